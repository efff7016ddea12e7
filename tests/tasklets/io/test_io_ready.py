"""Descriptors that are always ready: who uses them lets the other tasklets have their turns."""

# ruff: noqa: ANN401 (sockets of a module that may be missing)

import select as stock_select
import socket as stock
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any

import pytest

from cpythonplus.tasklets import run, schedule, tasklet

socket: Any = pytest.importorskip("cpythonplus.tasklets.io.socket", exc_type=ImportError)

from cpythonplus.tasklets.io import select, selectors, sleep  # noqa: E402

PEEK = stock.MSG_PEEK
LIMIT_S = 60


@pytest.fixture
def readable() -> Iterator[Any]:
    """A socket with a byte that stays there."""
    one, other = socket.socketpair()
    with one, other:
        one.sendall(b"x")
        yield other


@pytest.fixture
def writable() -> Iterator[Any]:
    """A socket whose datagrams go nowhere."""
    with (
        socket.socket(stock.AF_INET, stock.SOCK_DGRAM) as one,
        socket.socket(stock.AF_INET, stock.SOCK_DGRAM) as other,
    ):
        other.bind(("127.0.0.1", 0))
        one.connect(other.getsockname())
        yield one


READS: dict[str, Callable[[Any], object]] = {
    "recv": lambda it: it.recv(1, PEEK),
    "recv_into": lambda it: it.recv_into(bytearray(1), 1, PEEK),
    "recvfrom": lambda it: it.recvfrom(1, PEEK),
    "recvfrom_into": lambda it: it.recvfrom_into(bytearray(1), 1, PEEK),
    "recvmsg": lambda it: it.recvmsg(1, 0, PEEK),
    "select": lambda it: select.select([it], [], []),
    "select-0": lambda it: select.select([it], [], [], 0),
}
WRITES: dict[str, Callable[[Any], object]] = {
    "send": lambda it: it.send(b"x"),
    "sendall": lambda it: it.sendall(b"x"),
    "sendmsg": lambda it: it.sendmsg([b"x"]),
    "sendto": lambda it: it.sendto(b"x", it.getpeername()),
}


def until_others_had_turns(call: Callable[[], object]) -> None:
    """Make the call again and again; it returns once a sleep and a channel's reader came along."""
    turns = set()

    def sleeps() -> None:
        for _ in range(3):
            sleep(0.001)
        turns.add("slept")

    def schedules() -> None:
        for _ in range(3):
            schedule()
        turns.add("scheduled")

    def calls() -> None:
        limit = monotonic() + LIMIT_S
        while len(turns) < 2 and monotonic() < limit:
            call()

    task = tasklet(calls)()
    tasklet(sleeps)()
    tasklet(schedules)()
    while task.alive:
        run()
    assert turns == {"slept", "scheduled"}


@pytest.mark.parametrize("name", READS)
def test_reading(name: str, readable: Any) -> None:
    until_others_had_turns(lambda: READS[name](readable))


@pytest.mark.parametrize("name", WRITES)
def test_writing(name: str, writable: Any) -> None:
    until_others_had_turns(lambda: WRITES[name](writable))


@pytest.mark.parametrize("kind", ["poll", "epoll", "EpollSelector", "PollSelector"])
def test_objects_that_ask(kind: str, readable: Any) -> None:
    if kind.endswith("Selector"):
        with getattr(selectors, kind)() as selector:
            selector.register(readable, stock_select.EPOLLIN)
            until_others_had_turns(selector.select)
    else:
        asking = getattr(select, kind)()
        asking.register(readable.fileno(), stock_select.POLLIN)
        until_others_had_turns(asking.poll)


def test_a_listener() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def connect_and_accept() -> None:
            with stock.create_connection(listener.getsockname()):
                listener.accept()[0].close()

        until_others_had_turns(connect_and_accept)


def test_what_never_waits_does_not_give_way(readable: Any) -> None:
    """The others may be in the midst of something that goes by that."""
    readable.settimeout(0)
    turns: list[int] = []
    tasklet(turns.append)(1)
    limit = monotonic() + 0.05
    while monotonic() < limit:
        readable.recv(1, PEEK)
    assert not turns
    run()


def test_an_exception_that_comes_meanwhile_loses_nothing(readable: Any) -> None:
    """It comes before the call has taken anything."""
    got = []

    def calls() -> None:
        limit = monotonic() + LIMIT_S
        while monotonic() < limit:
            got.append(readable.recv(1, PEEK))

    task = tasklet(calls)()
    task.run()  # back here when it gives way
    assert task.scheduled
    task.kill()
    assert not task.alive
    assert set(got) == {b"x"}
    assert readable.recv(2) == b"x"
