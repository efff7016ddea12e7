"""Random calls of the whole API, by fuzz_calls.py: no crash, no hang, nothing on standard error.

`make fuzz-calls` is the long form.
"""

import os
from pathlib import Path

import pytest

from tests.support import finish_child, start_child

PROGRAM = Path(__file__).with_name("fuzz_calls.py")

CALLS = 3000


def fuzz(seed: int, calls: int = CALLS, *args: str) -> None:
    child = finish_child(start_child(PROGRAM, args=(str(seed), str(calls), *args)), timeout=120)
    assert (child.status, child.err) == (0, ""), f"seed {seed}\n{child}"
    assert int(child.out.split()[0]) > calls * 0.9, child.out  # exceptions interrupt the counting


@pytest.mark.parametrize("seed", range(3))
def test_nothing_crashes(seed: int) -> None:
    fuzz(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 100 + int(os.environ.get("FUZZ_SEEDS", "20"))))
def test_nothing_crashes_at_length(seed: int) -> None:
    fuzz(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 205))
def test_nothing_crashes_with_two_threads(seed: int) -> None:
    fuzz(seed, 500, "--thread")
