"""What tests of other people's libraries share: a program whose tasklets use one all at once.

The library is the one that is installed, and nobody has changed it; the program only patches.
"""

import importlib.util
from collections.abc import Mapping
from textwrap import dedent

import pytest

from tests.support import Child, run_child

TIMEOUT_S = 120
"""For a child: many times what it takes. A thread that waits where a tasklet should hangs it."""

PRELUDE = '''
import gc, os, resource, sys

_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # two for each connection

from cpythonplus.tasklets import TaskletExit, io, locks, tasklet

io.patch()
locks.patch()

import threading, time, traceback


class Together:
    """Tasklets that work at once, and one beside them, which counts its turns while they wait."""

    def __init__(self, work, count=1_000, *, until=None, then=None):
        """until: asked at each turn; once it is true, `then` is called, and neither again."""
        self.results, self.turns, self.failed = {}, 0, []
        self.over = threading.Event()
        self.tasklets = [tasklet(self.one)(number, work) for number in range(count)]
        tasklet(self.beside)(until, then)
        self.over.wait()
        assert not any(one.alive for one in self.tasklets)
        if self.failed:
            raise BaseExceptionGroup(f"{len(self.failed)} of them failed", self.failed[:3])

    def one(self, number, work):
        try:
            self.results[number] = work(number)
        except BaseException as error:
            if not isinstance(error, TaskletExit):  # others may wait for this one for ever
                traceback.print_exc()
                os._exit(3)
            self.results[number] = None
            self.failed.append(error)

    def beside(self, until, then):
        while len(self.results) < len(self.tasklets):
            self.turns += 1
            io.sleep(0.001)
            try:
                if until is not None and until():
                    until = None
                    then(self)
            except BaseException:  # nobody would end it then
                traceback.print_exc()
                os._exit(3)
        self.over.set()

    def answers(self):
        """What they returned, in their order."""
        return [self.results[number] for number in range(len(self.tasklets))]


def raised(work, *args):
    """Return the name of the exception's type."""
    try:
        work(*args)
    except Exception as error:
        return type(error).__name__
    return "nothing"


def wait_until(is_so):
    while not is_so():
        io.sleep(0.001)


def descriptors():
    gc.collect()
    return len(os.listdir("/proc/self/fd"))
'''


def needs(*names: str) -> None:
    """Skip the test where a library cannot be had for this interpreter."""
    for name in names:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")


def run_patched(code: str, *, first: str = "", env: Mapping[str, str] | None = None) -> Child:
    """Run a program of which all tasklets wait alone; it ends with "fine".

    first: what it does before it patches.
    """
    child = run_child(first + PRELUDE + dedent(code), timeout=TIMEOUT_S, env=env)
    assert child.out.endswith("fine\n"), child
    assert not child.err, child
    return child
