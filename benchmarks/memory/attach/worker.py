"""Worker: a heap of many objects, and a loop that notices when it stands still.

Parameters: objects; parts: what a doctor asks for meanwhile, nothing: a full collection; python;
tick_s: the loop sleeps so long in each turn. If not 0, no parts are no collection either.
"""

import gc
import os
import subprocess
import threading
import time

from benchmarks.common import worker

# In a process of its own: its imports and its waiting are not the process's that is looked at.
_DOCTOR = """
import sys
from cpythonplus._doctor.agent.client import connect
parts = sys.argv[2:]
print("ready", flush=True)
sys.stdin.readline()
with connect(int(sys.argv[1])) as client:
    for part in parts:
        client.ask(part)
"""


ASLEEP_S = 5.0


class Node:
    """One object with a few others."""

    def __init__(self, number: int) -> None:
        """Hold a text and a list."""
        self.name = f"node {number}"
        self.others = [number]


class Loop:
    """The longest time between two turns of a loop, in nanoseconds."""

    def __init__(self, tick_s: float) -> None:
        """Begin with nothing."""
        self.tick_s = tick_s
        self.done = False
        self.longest_ns = 0

    def run(self) -> None:
        """Turn until somebody sets `done`."""
        last = time.perf_counter_ns()
        going = True
        while going:
            if self.tick_s:
                time.sleep(self.tick_s)
            going = not self.done
            # Behind the question: the pause may end with the last turn.
            now = time.perf_counter_ns()
            self.longest_ns = max(self.longest_ns, now - last)
            last = now

    def wait_for_turns(self) -> None:
        """Return when it turns: what starts a thread waits for it."""
        while not self.longest_ns:
            time.sleep(0.001)


def examine(python: str, parts: list[str], loop: Loop) -> threading.Thread:
    """Return a thread that has this process looked at, which is ready to be."""
    command = [python, "-c", _DOCTOR, str(os.getpid()), *parts]
    doctor = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert doctor.stdout is not None  # noqa: S101
    if doctor.stdout.readline() != "ready\n":
        raise SystemExit("the doctor does not start")

    def ask() -> None:
        loop.wait_for_turns()
        doctor.communicate("go\n")
        loop.done = True
        if doctor.returncode:
            os._exit(1)

    return threading.Thread(target=ask)


def collect(loop: Loop) -> threading.Thread:
    """Return a thread that makes a full collection; beside a loop that sleeps, it only waits."""

    def ask() -> None:
        loop.wait_for_turns()
        time.sleep(ASLEEP_S) if loop.tick_s else gc.collect()
        loop.done = True

    return threading.Thread(target=ask)


def main() -> None:
    """Measure one side and leave the milliseconds of the longest pause."""
    parameters = worker.begin()
    # Each has an instance, its text, its list, and a number.
    heap = [Node(number) for number in range(parameters["objects"] // 4)]
    loop = Loop(parameters["tick_s"])
    parts = parameters["parts"]
    thread = examine(parameters["python"], parts, loop) if parts else collect(loop)
    thread.start()
    loop.run()
    thread.join()
    del heap
    worker.finish(parameters, {"rate": loop.longest_ns / 1e6})


if __name__ == "__main__":
    main()
