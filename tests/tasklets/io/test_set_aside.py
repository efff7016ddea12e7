"""What ends a wait that is just beginning, while asyncio's running loop is set aside for it.

An audit hook in Python runs then, so signals, other threads and tools get their turn there.
"""

from textwrap import dedent

import pytest

from tests.support import run_child

PROGRAM = """
import asyncio, signal, sys, threading
from cpythonplus import _native
from cpythonplus.tasklets import getcurrent, io, locks, schedule, tasklet
from cpythonplus.tasklets.io import selectors, socket  # loops are set aside from then on

LONG = 20

def between(call):
    calls = [call]

    def hook(event, args):
        if event.startswith("sys.set_asyncgen_hook") and calls:
            calls.pop()()
            print("set aside")

    sys.addaudithook(hook)

def other_thread(call, *args):
    thread = threading.Thread(target=call, args=args)
    thread.start()
    thread.join()

async def body():
"""
RUN = """
asyncio.run(body())
"""

ENDS = {
    "an exception": (
        """
        me = getcurrent()
        between(lambda: other_thread(lambda: me.throw(ValueError, "now", pending=True)))
        try:
            io.sleep(LONG)
        except ValueError as error:
            print(error)
        """,
        "now",
    ),
    "an event": (
        """
        event = _native.io_delivery()
        between(lambda: other_thread(event.deliver))
        print(event.wait())
        """,
        "True",
    ),
    "a lock": (
        """
        lock = locks.Lock()
        lock.acquire()
        between(lambda: other_thread(lock.release))
        print(lock.acquire(timeout=LONG))
        """,
        "True",
    ),
    "a descriptor": (
        """
        here, there = socket.socketpair()
        here.settimeout(LONG)
        between(lambda: there.send(b"x"))
        print(here.recv(1))
        here.close()
        there.close()
        """,
        "b'x'",
    ),
}


@pytest.mark.parametrize("end", ENDS)
def test_it_ends_the_wait(end: str) -> None:
    program, result = ENDS[end]
    body = "".join(f"    {line}\n" for line in dedent(program).strip().splitlines())
    child = run_child(PROGRAM + body + RUN)
    assert child.out == f"set aside\n{result}\n"


def test_nothing_is_switched_meanwhile() -> None:
    """A tasklet that has left the run queue goes nowhere."""
    body = """
    def call():
        try:
            schedule()
        except RuntimeError as error:
            print(error)

    tasklet(print)("another one")
    between(call)
    io.sleep(0.001)
    """
    child = run_child(PROGRAM + body + RUN)
    assert child.out == "Recursive scheduler call due to callbacks!\nset aside\nanother one\n"


def test_timers_that_begin_meanwhile() -> None:
    """As many as there is room for, by the time that this wait has made room for its own."""
    body = """
    def call():
        later.extend(tasklet(print).bind(args=(number,)) for number in range(100))
        for each in later:
            _native.io_begin_after(each, 1000.0)

    later = []
    between(call)
    io.sleep(0.001)
    for each in later:
        each.kill()
    """
    child = run_child(PROGRAM + body + RUN)
    assert child.out == "set aside\n"


@pytest.mark.parametrize("nth", [1, 2, 3, 4])
def test_a_signal_handler_that_raises_leaves_the_loop(nth: int) -> None:
    """The hook is called for each of two hooks of the loop, when they are set aside and back."""
    body = f"""
    def handler(*_):
        print("handler")
        raise KeyError

    def hook(event, args):
        if event.startswith("sys.set_asyncgen_hook"):
            number.append(0)
            if len(number) == {nth}:
                signal.raise_signal(signal.SIGUSR1)

    loop, hooks, number = asyncio.get_running_loop(), sys.get_asyncgen_hooks(), []
    signal.signal(signal.SIGUSR1, handler)
    sys.unraisablehook = lambda _: None
    sys.addaudithook(hook)
    io.sleep(0.001)
    print(asyncio.get_running_loop() is loop)
    """
    child = run_child(PROGRAM + body + RUN)
    assert child.out == "handler\nTrue\n"
