"""Worker: CPU-bound threads with nothing beside them. Parameters: threads, seconds, warmup_s."""

import time

from benchmarks.common import cpu, worker


def main() -> None:
    """Let the threads work for the given time and report their units per second."""
    parameters = worker.begin()
    threads = cpu.CpuThreads(parameters["threads"])
    threads.start()
    time.sleep(parameters["warmup_s"])
    before = threads.snapshot()
    time.sleep(parameters["seconds"])
    after = threads.snapshot()
    threads.stop()
    worker.finish(parameters, {"rate": cpu.rate(before, after)})


if __name__ == "__main__":
    main()
