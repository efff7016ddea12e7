"""What `memory.attribute` costs a call: beside none at all, and a call that is measured.

    python -m benchmarks.memory.attributing [--quick]

The quickest of several rounds speaks for each, in microseconds of CPU time of the thread.
"""

import argparse
import sys
import time
from collections.abc import Callable

from cpythonplus import memory
from cpythonplus.memory._attribution.recording import Recorder

ROUNDS, CALLS, MEASURED = 15, 20_000, 2_000


def bare() -> None:
    """Do nothing."""


@memory.attribute("decorated")
def decorated() -> None:
    """Do nothing, attributed."""


def block() -> None:
    """Do nothing in a block."""
    with memory.attribute("block"):
        pass


def microseconds(call: Callable[[], None], calls: int, rounds: int) -> float:
    """Return what one call takes, of the quickest round."""
    best = float("inf")
    for _ in range(rounds):
        began = time.thread_time_ns()
        for _ in range(calls):
            call()
        best = min(best, time.thread_time_ns() - began)
    return best / calls / 1e3


def rows(calls: int, measured: int, rounds: int) -> list[tuple[str, float]]:
    """Return what each way of calling takes, in microseconds."""
    found = [("stock: a function that does nothing", microseconds(bare, calls, rounds))]
    memory.attribute.configure()
    found.append(("decorated, measured now and then", microseconds(decorated, calls, rounds)))
    found.append(("a block, measured now and then", microseconds(block, calls, rounds)))
    later = Recorder._later  # noqa: SLF001
    setattr(Recorder, "_later", lambda _: None)  # noqa: B010  # each call
    try:
        memory.attribute.configure()
        found.append(("decorated, each call measured", microseconds(decorated, measured, rounds)))
        kept = [str(number) for number in range(1_000_000)]
        name = f"the same, beside {len(kept):,} more objects"
        found.append((name, microseconds(decorated, measured // 10, rounds)))
    finally:
        setattr(Recorder, "_later", later)  # noqa: B010
        memory.attribute.configure()
    return found


def main(arguments: list[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="less exactly, for a test")
    quick = parser.parse_args(arguments).quick
    found = rows(500, 50, 2) if quick else rows(CALLS, MEASURED, ROUNDS)
    print("| a call | us |\n|---|---|")
    for name, value in found:
        print(f"| {name} | {value:.2f} |")


if __name__ == "__main__":
    main(sys.argv[1:])
