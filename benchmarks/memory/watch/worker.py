"""Worker: requests to a Flask test client. Parameters: side, errors, seconds, warmup_s."""

import gc
import time
from collections.abc import Callable

from benchmarks.common import worker
from benchmarks.memory.watch.app import app

Request = Callable[[], object]


def requests(*, errors: bool) -> list[Request]:
    """Return the round of requests; errors: those that fail."""
    client = app.test_client()
    if errors:
        return [lambda: client.get("/order/7")]
    return [
        lambda: client.get("/page/start"),
        lambda: client.post("/echo", json={"lines": [1, 2, 3]}),
    ]


def run(round_of: list[Request], seconds: float) -> float:
    """Send the round again and again; return the mean seconds of a request."""
    done = 0
    begin = now = time.perf_counter()
    while now - begin < seconds:
        for _ in range(20):
            for request in round_of:
                request()
        done += 20 * len(round_of)
        now = time.perf_counter()
    return (now - begin) / done


def main() -> None:
    """Measure one side and leave the microseconds of a request."""
    parameters = worker.begin()
    round_of = requests(errors=parameters["errors"])
    run(round_of, parameters["warmup_s"])
    gc.collect()
    if parameters["side"] == "gc-off":
        seconds = run(round_of, parameters["seconds"])
    elif parameters["side"] == "stock":
        gc.enable()
        seconds = run(round_of, parameters["seconds"])
    else:
        from cpythonplus import memory

        gc.enable()
        with memory.cycles.watch(hoards=False):
            seconds = run(round_of, parameters["seconds"])
    worker.finish(parameters, {"rate": seconds * 1e6})


if __name__ == "__main__":
    main()
