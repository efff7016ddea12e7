"""memory.trim: what goes back to the kernel, what stays, and that pymalloc survives it."""

import json

import pytest

from cpythonplus import memory
from cpythonplus.memory._trim import Trimmed, TrimStep
from tests.memory.rebuilding import rebuilt
from tests.support import SANITIZED, run_child

# One object in 500 lives on, so each arena has some: none of them can go back as a whole.
FRAGMENTED = """
import gc, json, os, sys
from cpythonplus import memory

everything = [(i, i + 1) for i in range(400_000)]
survivors = everything[::500]
del everything
"""

# Objects of all sizes come and go between trims, and none may change.
STRESS = """
import gc, random, sys, threading
from cpythonplus import _native

gc.disable()  # what it frees would count as pools that became empty
random.seed(7)
live = {}
for turn in range(8):
    for i in range(3000):
        live[random.randrange(20_000)] = random.randbytes(random.randrange(1, 560))
    for key in random.sample(list(live), len(live) // 2):
        del live[key]
    copies = {key: bytearray(value) for key, value in live.items()}
    result, pools, arenas = _native.memory_trim_pools()
    assert result == "done", result
    assert all(value == copies[key] for key, value in live.items())
    # Nothing was allocated but for the check itself, so they are empty still; but it may have freed
    # the last block of an arena, which is unmapped with its 63 or 64 pools.
    fewer = pools - _native.memory_trim_pools()[1]
    assert -10 < fewer < 10 or 53 < fewer < 74, (pools, fewer)
# What holds no block stays as it was: as many blocks as before, and the walk over all pools works.
copies = live = value = None
blocks = sys.getallocatedblocks()
_native.memory_trim_pools()
assert abs(sys.getallocatedblocks() - blocks) < 50
sys._debugmallocstats()
"""


def rss_of(trimmed: Trimmed, name: str) -> int:
    return next(step.freed_bytes for step in trimmed.steps if step.name == name)


@pytest.mark.needs_gil
@pytest.mark.skipif(SANITIZED, reason="objects do not come from pymalloc there")
def test_empty_pools_go_back() -> None:
    out = run_child(
        FRAGMENTED
        + """
first = memory.trim()
blocks = sys.getallocatedblocks()
again = memory.trim(collect=False, caches=False, c_heap=False)
assert [len(survivors), survivors[5]] == [800, (2500, 2501)]
assert abs(sys.getallocatedblocks() - blocks) < 200, "no block was lost"
print(json.dumps([first.as_json(), again.as_json()]))
"""
    ).out
    first, again = (rebuilt(Trimmed, each) for each in json.loads(out))
    assert [step.name for step in first.steps] == ["collect", "caches", "pools", "c_heap"]
    # Of 36 MiB, three pages of four; some pools have a survivor.
    assert rss_of(first, "pools") > 8 * 1024 * 1024
    assert first.freed_bytes == sum(step.freed_bytes for step in first.steps)
    assert [step.name for step in again.steps] == ["pools"]
    assert abs(again.freed_bytes) < 2 * 1024 * 1024, "nothing is left to give"


@pytest.mark.needs_gil
@pytest.mark.skipif(SANITIZED, reason="malloc is the sanitizer's")
def test_the_end_of_the_c_heap_does_not_matter() -> None:
    out = run_child(
        """
        import json
        from cpythonplus import memory

        big = [f"{i}".ljust(600) for i in range(100_000)]
        last = "x" * 600
        del big
        trimmed = memory.trim()
        print(json.dumps(trimmed.as_json()))
        """
    ).out
    trimmed = rebuilt(Trimmed, json.loads(out))
    assert rss_of(trimmed, "c_heap") > 0.95 * 100_000 * 600


@pytest.mark.needs_gil
@pytest.mark.skipif(SANITIZED, reason="objects do not come from pymalloc there")
@pytest.mark.parametrize("allocator", ["pymalloc", "pymalloc_debug"])
def test_pymalloc_goes_on(allocator: str) -> None:
    run_child(STRESS, env={"PYTHONMALLOC": allocator})


def test_threads_and_forks_in_between() -> None:
    run_child(
        """
        import os, threading
        from cpythonplus.memory import trim  # imported, not while the threads run

        def work():
            for i in range(8):
                kept = [bytes([i]) * (j % 500) for j in range(2000)]
                del kept[::2]
                trim(collect=False)
                assert all(each == bytes([i]) * len(each) for each in kept)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(3):
            pid = os.fork()
            if pid == 0:
                trim()
                os._exit(len([object() for _ in range(10_000)]) != 10_000)
            assert os.waitpid(pid, 0)[1] == 0
        for thread in threads:
            thread.join()
        """,
        env={"PYTHONWARNINGS": "ignore"},
        timeout=30,
    )


@pytest.mark.needs_gil
def test_what_cannot_be_done_is_told() -> None:
    out = run_child(
        """
        from cpythonplus import memory
        print(memory.trim(caches=False))
        """,
        env={"PYTHONMALLOC": "malloc"},
    ).out
    assert "skipped: Python's small objects do not come from pymalloc's pools here" in out


def test_nothing_is_done_that_is_not_wanted() -> None:
    found = memory.trim(collect=False, caches=False, pools=False, c_heap=False)
    assert found.steps == ()
    only = memory.trim(collect=False, caches=False, modules=True, pools=False, c_heap=False)
    assert [step.note for step in only.steps] == ["re, linecache"]


@pytest.mark.any_version
def test_the_table() -> None:
    steps = (
        TrimStep("collect", 4096, 1_500_000, "12 things"),
        TrimStep("pools", -(3 << 20), 10**7, "9", 2 << 20),
    )
    trimmed = Trimmed(10 << 20, 13 << 20, steps)
    assert str(trimmed) == (
        "10 MiB resident before, 13 MiB after\n"
        "\n"
        "   freed    time  step\n"
        "   4 KiB  1.5 ms  collect  12 things\n"
        "  -3 MiB   10 ms  pools    9; 2 MiB stays free between blocks in use"
    )
    assert rebuilt(Trimmed, json.loads(json.dumps(trimmed.as_json()))) == trimmed
