"""Which tasklets wait for each other's locks: told with their lines; none that can go on."""

import json
from textwrap import dedent

import pytest

from tests.support import run_child

# Another thread looks until two looks agree, or says that there is none once `settled` is set.
PROGRAM = """\
import json, os, sys, threading, time
from _thread import start_new_thread
from cpythonplus import tasklets
from cpythonplus.tasklets import locks, schedule, tasklet
from cpythonplus.tasklets.locks import _deadlocks as deadlocks
settled = []
def look():
    before = None
    while True:
        found = deadlocks.waits().as_json()
        here = [sorted(each["threads"]) for each in found["deadlocks"]]
        if (here and here == before) or (settled and not here):
            print(json.dumps(found), flush=True)
            os._exit(0)
        before = here
        time.sleep(0.05)
start_new_thread(look, ())
def settle():
    settled.append(True)
    time.sleep(60)
"""

RING = """
    a, b = locks.Lock(), locks.RLock()  # made
    c = locks.Condition(locks.Lock())  # c made
    def one():
        with a:  # one holds
            schedule()
            b.acquire()  # one waits
    def two():
        with b:  # two holds
            schedule()
            with c:  # two waits
                pass
    def three():
        with c:  # three holds
            schedule()
            a.acquire()  # three waits
    for each in (one, two, three):
        tasklet(each)()
    locks.Event().wait()
"""
PATCHED = """
    locks.patch(threads=True)
    a, b = threading.Lock(), threading.Lock()  # made
    both = threading.Barrier(2)
    def body(first, second):
        with first:  # holds
            both.wait()
            with second:  # waits
                pass
    left = threading.Thread(target=body, args=(a, b), name="left")
    right = threading.Thread(target=body, args=(b, a), name="right")
    left.start()
    right.start()
    left.join()
"""
TWO_THREADS = """
    a, b = locks.Lock(), locks.RLock()  # made
    both = threading.Barrier(2)
    def body(first, second):
        with first:  # holds
            both.wait()
            with second:  # waits
                pass
    def left():
        tasklet(body)(a, b)
        tasklets.run()
        time.sleep(60)
    threading.Thread(target=left).start()
    tasklet(body)(b, a)
    locks.Event().wait()
"""
ITSELF = """
    a = locks.Lock()  # made
    def body():
        with a:  # holds
            a.acquire()  # waits
    tasklet(body)()
    locks.Event().wait()
"""


@pytest.mark.parametrize(
    ("source", "kind", "waits"),
    [
        (
            RING,
            "cycle",
            {
                ("one", "one waits", "made", "two holds"),
                ("two", "two waits", "c made", "three holds"),
                ("three", "three waits", "made", "one holds"),
            },
        ),
        (
            PATCHED,
            "cycle",
            {("left", "waits", "made", "holds"), ("right", "waits", "made", "holds")},
        ),
        (TWO_THREADS, "cycle", {("body", "waits", "made", "holds")}),
        (ITSELF, "itself", {("body", "waits", "made", "holds")}),
    ],
)
def test_a_deadlock_is_told_with_its_lines(
    source: str, kind: str, waits: set[tuple[str, ...]]
) -> None:
    program = PROGRAM + dedent(source)
    found = json.loads(run_child(program).out)
    comments = [line.partition("  # ")[2] for line in program.splitlines()]
    (deadlock,) = found["deadlocks"]
    assert deadlock["kind"] == kind
    told = [
        (each["name"], *(comments[each[at]["line"] - 1] for at in ("at", "made_at", "held_at")))
        for each in found["waits"]
    ]
    assert {*told} == waits
    assert sorted(each["ident"] for each in found["waits"]) == sorted(deadlock["threads"])


@pytest.mark.parametrize(
    "source",
    [
        # The lock of a condition, which a waiter holds by `with` and has released.
        """
        c = locks.Condition(locks.Lock())
        def waits():
            with c:
                c.wait()
        def holds():
            with c:
                c.notify()
                tasklet(again)()
                settle()
        def again():
            with c:
                pass
        for each in (waits, holds):
            tasklet(each)()
        tasklets.run()
        """,
        # A lock that another tasklet releases: a signal.
        """
        a = locks.Lock()
        def waits():
            a.acquire()
            a.acquire()
        tasklet(waits)()
        tasklet(settle)()
        locks.Event().wait()
        """,
        # The opposite order, with a time-out.
        """
        a, b = locks.Lock(), locks.Lock()
        def body(first, second):
            with first:
                schedule()
                second.acquire(timeout=60)
        tasklet(body)(a, b)
        tasklet(body)(b, a)
        tasklet(settle)()
        locks.Event().wait()
        """,
        # The owner has ended without releasing it: anybody else may.
        """
        a = locks.Lock()
        tasklet(a.acquire)()
        def waits():
            with a:
                pass
        tasklet(waits)()
        tasklet(settle)()
        locks.Event().wait()
        """,
    ],
)
def test_a_wait_that_can_end_is_no_deadlock(source: str) -> None:
    found = json.loads(run_child(PROGRAM + dedent(source)).out)
    assert found["deadlocks"] == []
