"""Objects that an operand of a running function holds: no name leads to them, and none is lost."""

import sys

import pytest

from tests.memory.grown import of_rss
from tests.support import PYMALLOC, child_environment, run_child

COMMON = """
import gc
import sys
import threading
from cpythonplus import memory

class Texts(list):
    def __enter__(self):
        pass

    def __exit__(self, *error):
        pass

def made():
    return Texts(f"a longer text, no. {number} " * 3 for number in range(2000))

def told(found):
    for row in found.result.owners:
        if row.name == "threading._dangling.data" or row.type == "code":
            continue
        print(row.name.partition(" x ")[2] or row.name, row.type, row.entries - row.entries_before)
"""


KEPT = "temporary value of fetch()"
# From 3.14 on the stack has the function __exit__ and the object; before that the bound method.
OF_WITH = KEPT if sys.version_info >= (3, 14) else f"{KEPT}.__self__"


@of_rss
@pytest.mark.parametrize(
    ("work", "kept"),
    [
        ("for text in made(): pause()", f"{KEPT} list_iterator 40001"),
        ("print(made(), pause())", f"{KEPT} __main__.Texts 40001"),
        ("{'texts': made(), 'done': pause()}", f"{KEPT} __main__.Texts 40001"),
        ("with made(): pause()", f"{OF_WITH} __main__.Texts 40001"),
        ("pause(made())", "given of pause()[...] __main__.Texts 40001"),
    ],
)
def test_of_greenlets(work: str, kept: str) -> None:
    pytest.importorskip("greenlet")
    out = run_child(
        COMMON
        + f"""
from greenlet import getcurrent, greenlet

def pause(*given):
    getcurrent().parent.switch()

def fetch():
    {work}

workers = []
with memory.growth() as found:
    for _ in range(20):
        workers.append(greenlet(fetch))
        workers[-1].switch()
told(found)
""",
        env=child_environment(PYMALLOC),
    ).out
    assert ("__main__.workers list" if sys.version_info >= (3, 15) else kept) in out
    assert "held by C code" not in out
    assert "nothing on the heap" not in out


@of_rss
@pytest.mark.parametrize(
    ("work", "kept"),
    [
        ("for text in made(): pause()", f"{KEPT} list_iterator 40001"),
        ("print(made(), pause())", f"{KEPT} __main__.Texts 40001"),
        ("with made(): pause()", f"{OF_WITH} __main__.Texts 40001"),
        ("pause(made())", "given of pause()[...] __main__.Texts 40001"),
    ],
)
def test_of_threads(work: str, kept: str) -> None:
    """Inside a call of another Python function."""
    out = run_child(
        COMMON
        + f"""
ends = threading.Event()
begun = threading.Semaphore(0)

def pause(*given):
    begun.release()
    ends.wait()

def fetch():
    {work}

threading.stack_size(256 * 1024)
with memory.growth() as found:
    for _ in range(20):
        threading.Thread(target=fetch).start()
    for _ in range(20):
        begun.acquire()
told(found)
ends.set()
""",
        env=child_environment(PYMALLOC),
    ).out
    assert kept in out
    assert "held by C code" not in out
    assert "nothing on the heap" not in out


@of_rss
@pytest.mark.parametrize(
    "work",
    [
        "for text in made(): wait()",
        "print(made(), wait())",
        "for text in itertools.chain(made(), iter(wait, 0)): pass",
        "for text in itertools.cycle(made()): pass",
        "for text in made():\n        while not over: pass",
    ],
)
def test_of_threads_that_wait_for_the_gil(work: str) -> None:
    """In C code that the innermost function has called, and at its jumps back."""
    out = run_child(
        COMMON
        + f"""
import _thread, itertools, os, time

wait, over, begun = _thread.allocate_lock().acquire, False, []
wait()

def fetch():
    begun.append(True)
    {work}

with memory.growth() as found:
    for _ in range(8):
        threading.Thread(target=fetch, daemon=True).start()
    while len(begun) < 8:
        time.sleep(0.01)
    time.sleep(0.5)
told(found)
sys.stdout.flush()
os._exit(0)
""",
        env=child_environment(PYMALLOC),
    ).out
    assert "temporary value of fetch()" in out
    assert "held by C code" not in out
    assert "has it: " not in out
    assert "nothing on the heap" not in out


@of_rss
def test_a_list_in_the_making_hides_nothing() -> None:
    """It is larger than what has grown for good, and gone a moment later."""
    out = run_child(
        COMMON
        + """
import os

kept = []
begun = threading.Event()

def made(number):
    if number == 20_000:
        begun.set()
        threading.Event().wait()
    return [number, str(number)]

def tick():
    return [made(number) for number in range(20_001)]

with memory.growth() as found:
    kept.extend([number] for number in range(3000))
    threading.Thread(target=tick, daemon=True).start()
    begun.wait()
told(found)
sys.stdout.flush()
os._exit(0)
""",
        env=child_environment(PYMALLOC),
    ).out
    first, second = out.splitlines()[:2]
    assert first.startswith("__main__.kept list")
    assert second.startswith("temporary value of tick")
