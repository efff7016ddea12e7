"""Code that a collection runs while a lock or a queue is made or let go: up to 3.11."""

import sys

import pytest

from tests.collecting import COLLECTING, RELEASING
from tests.support import run_child

pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="collections run between instructions"
)


def printed(program: str) -> str:
    return run_child(COLLECTING + program).out


def test_an_rlock_is_released_while_it_is_let_go() -> None:
    assert (
        printed(
            """
from cpythonplus.threads import RLock
lock = RLock()
"""
            + RELEASING
            + """
print(lock.acquire(False), *refused)
"""
        )
        == "True cannot release un-acquired lock\n"
    )


def test_a_queue_is_found_while_it_is_made() -> None:
    assert (
        printed(
            """
from cpythonplus.threads import Queue

def act():
    for it in gc.get_objects():
        if type(it) is Queue:
            try:
                it.put_nowait(1)
                it.get_nowait()
            except AttributeError:  # before its __init__
                pass

while_collecting(Queue)
print("end")
"""
        )
        == "end\n"
    )
