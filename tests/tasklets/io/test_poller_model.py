"""Random reads, waits, sends, kills and closings of socket pairs; who must wait waits."""

import random
import socket
from contextlib import suppress

import pytest

from cpythonplus import _native
from cpythonplus.tasklets import tasklet
from cpythonplus.tasklets.io import sleep, wait_readable

PAIRS = 4
STEPS = 150


class Pair:
    """Readers register it for good; others wait for single events of the same descriptor."""

    def __init__(self) -> None:
        self.left, self.right = socket.socketpair()
        self.left.setblocking(False)
        self.got: list[bytes] = []
        self.sent = b""
        self.readers: list[tasklet] = []
        self.waiters: list[tasklet] = []

    def read(self, size: int) -> None:
        def body() -> None:
            with suppress(OSError):
                self.got.append(_native.io_recv(self.left.fileno(), size, 0, None, True))

        self.readers.append(tasklet(body)())

    def wait(self) -> None:
        self.waiters.append(tasklet(wait_readable)(self.left))

    def send(self, count: int, chance: random.Random) -> None:
        data = bytes(chance.randrange(256) for _ in range(count))
        self.right.send(data)
        self.sent += data

    def kill(self, chance: random.Random) -> None:
        for tasks in (self.readers, self.waiters):
            if tasks:
                tasks.pop(chance.randrange(len(tasks))).kill()

    def check(self) -> None:
        self.readers = [task for task in self.readers if task.alive]
        self.waiters = [task for task in self.waiters if task.alive]
        received = b"".join(self.got)
        assert self.sent.startswith(received)
        if len(received) < len(self.sent):
            assert self.readers + self.waiters == []
        assert all(task.blocked for task in self.readers + self.waiters)

    def end(self) -> None:
        for task in self.waiters:
            task.kill()
        _native.io_forget(self.left.fileno())  # the readers get EBADF
        self.left.close()
        self.right.close()
        for _ in range(2):
            sleep(0.0001)
        assert not any(task.alive for task in self.readers)


def settle() -> None:
    """Main waits, so the descriptors are looked at."""
    for _ in range(3):
        sleep(0.00005)


@pytest.fixture(params=range(6))
def chance(request: pytest.FixtureRequest) -> random.Random:
    return random.Random(request.param)


def test_who_must_wait_waits(chance: random.Random) -> None:
    pairs = [Pair() for _ in range(PAIRS)]
    for _ in range(STEPS):
        at = chance.randrange(PAIRS)
        pair = pairs[at]
        match chance.randrange(12):
            case 0 | 1 | 2:
                pair.read(chance.randrange(1, 4))
            case 3 | 4:
                pair.wait()
            case 5 | 6 | 7 | 8:
                pair.send(chance.randrange(1, 4), chance)
            case 9 | 10:
                pair.kill(chance)
            case _:
                pair.end()
                pairs[at] = Pair()
        if chance.random() < 0.5:
            settle()
            for each in pairs:
                each.check()
    for pair in pairs:
        pair.end()
