"""Programs under load: every child of this room begins with PRELUDE."""

from collections.abc import Mapping, Sequence
from textwrap import dedent

from tests.support import Child, run_child

PRELUDE = '''
import os, sys, threading, time
from cpythonplus import UnsupportedPlatform, gil
from cpythonplus.gil import atomic


def until(condition):
    """Wait for what other threads do; the test's time-out ends it if they don't."""
    while not condition():
        time.sleep(0.001)


class Load:
    """CPU-bound threads, and interactive ones that block often, as long as the block lasts."""

    def __init__(self, cpu=1, io=0, daemon=False):
        self.stop = False
        self.counts = [0] * (cpu + io)
        bodies = [self.cpu] * cpu + [self.io] * io
        self.threads = [
            threading.Thread(target=body, args=(i,), name=f"{body.__name__}-{i}", daemon=daemon)
            for i, body in enumerate(bodies)
        ]

    def cpu(self, i):
        while not self.stop:
            for _ in range(200):
                pass
            self.counts[i] += 1

    def io(self, i):
        while not self.stop:
            time.sleep(0.0002)
            self.counts[i] += 1

    def progress(self):
        """Wait until each thread has got on."""
        before = list(self.counts)
        until(lambda: all(now > was for now, was in zip(self.counts, before)))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        self.progress()
        return self

    def __exit__(self, *exception):
        self.stop = True
        for thread in self.threads:
            thread.join()


def together(body, count=4):
    """Run body(i) in `count` threads that begin together; raises what one of them raised."""
    barrier = threading.Barrier(count)
    errors = []

    def run(i):
        try:
            barrier.wait()
            body(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]

'''

# With the scheduler, without it and never used, and with hooks that only serve atomic sections.
STATES = {
    "installed": "gil.install()\n",
    "never installed": "",
    "uninstalled": "gil.install()\ngil.uninstall()\n",
}


def run(
    code: str,
    *,
    before: str = "gil.install()\n",
    timeout: float = 60,
    env: Mapping[str, str] | None = None,
    args: Sequence[str] = (),
    status: int | None = 0,
) -> Child:
    """Run `code` after PRELUDE and `before`."""
    program = PRELUDE + before + dedent(code)
    return run_child(program, timeout=timeout, env=env, args=args, status=status)
