"""What sockets call for each read and write, without anybody who waits."""

import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support import run_child

_native: Any = pytest.importorskip("cpythonplus._native", exc_type=ImportError)


@pytest.fixture
def pair() -> Iterator[tuple[int, int]]:
    one, other = socket.socketpair()
    with one, other:
        yield one.fileno(), other.fileno()


@pytest.mark.parametrize("asked", [1, 100, 8192, 8193, 65536])
def test_what_is_received_is_what_was_sent(pair: tuple[int, int], asked: int) -> None:
    here, there = pair
    message = bytes(range(256)) * 40
    _native.io_sendall(here, message, 0, 0.0)
    got = b""
    while len(got) < len(message):
        piece = _native.io_recv(there, asked, 0, 0.0, True)
        assert 0 < len(piece) <= asked
        got += piece
    assert got == message
    with pytest.raises(BlockingIOError):
        _native.io_recv(there, asked, 0, 0.0, True)


@pytest.mark.parametrize("asked", [0, 5, 9000])
def test_a_datagram_that_is_longer_is_cut(asked: int) -> None:
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with here, there:
        here.send(b"x" * 10_000)
        # The kernel then tells the whole length, of which the buffer has a part.
        cut = _native.io_recv(there.fileno(), asked, socket.MSG_TRUNC, 0.0, False)
    assert cut == b"x" * asked


@pytest.mark.parametrize("flags", [0, socket.MSG_TRUNC])
def test_a_datagram_is_all_that_there_is(flags: int) -> None:
    """With MSG_TRUNC the kernel tells more than fits: nothing is to be read behind the end."""
    run_child(
        f"""
import socket
from cpythonplus import _native
flags = {flags} | socket.MSG_WAITALL
here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
for _ in range(3):
    here.send(b"x" * 50)
assert _native.io_recv(there.fileno(), 100, flags, None, False) == b"x" * 50
buffer = bytearray(b"." * 60)
_native.io_recv_into(there.fileno(), memoryview(buffer)[:10], 0, flags, None, False)
assert buffer == b"x" * 10 + b"." * 50, buffer
assert _native.io_recv(there.fileno(), 100, 0, None, False) == b"x" * 50
""",
        timeout=20,
    )


def test_a_read_for_all_with_a_time_out_gives_what_is_there(pair: tuple[int, int]) -> None:
    here, there = pair
    _native.io_sendall(here, b"x" * 50, 0, 0.0)
    got = _native.io_recv(there, 100, socket.MSG_WAITALL, 0.001, True)
    assert got == b"x" * 50


def test_a_read_that_waits_for_all_keeps_what_it_has() -> None:
    tasklets = pytest.importorskip("cpythonplus.tasklets", exc_type=ImportError)
    pairs = [socket.socketpair() for _ in range(3)]
    got: list[bytes] = []

    def read(end: socket.socket) -> None:
        fd = end.fileno()
        got.append(_native.io_recv(fd, 100, socket.MSG_WAITALL, None, True))
        _native.io_forget(fd)

    for number, (here, there) in enumerate(pairs):
        here.send(bytes([number]) * 50)
        tasklets.tasklet(read)(there)
    tasklets.schedule()  # each has its first half and waits
    for number, (here, _) in enumerate(pairs):
        here.send(bytes([number]) * 50)
    tasklets.run()
    assert sorted(got) == [bytes([number]) * 100 for number in range(3)]
    for ends in pairs:
        for end in ends:
            end.close()


def test_send_tells_how_much_was_taken(pair: tuple[int, int]) -> None:
    here, there = pair
    assert _native.io_send(here, memoryview(b"abc"), 0, 0.0) == 3
    assert _native.io_recv(there, 10, socket.MSG_PEEK, 0.0, True) == b"abc"
    assert _native.io_recv(there, 10, 0, 0.0, True) == b"abc"


RECV = (0, 1, 0, 0.0, True)
SEND = (0, b"x", 0, 0.0)


@pytest.mark.parametrize(
    ("call", "arguments", "error"),
    [
        (_native.io_recv, RECV[:4], TypeError),
        (_native.io_recv, (*RECV, 1), TypeError),
        (_native.io_recv, ("0", *RECV[1:]), TypeError),
        (_native.io_recv, (2**31, *RECV[1:]), OverflowError),
        (_native.io_recv, (-(2**31) - 1, *RECV[1:]), OverflowError),
        (_native.io_recv, (2**80, *RECV[1:]), OverflowError),
        (_native.io_recv, (0, -1, 0, 0.0, True), ValueError),
        (_native.io_recv, (0, 2**63, 0, 0.0, True), OverflowError),
        (_native.io_recv, (0, 1.5, 0, 0.0, True), TypeError),
        (_native.io_recv, (-1, *RECV[1:]), OSError),
        (_native.io_send, SEND[:3], TypeError),
        (_native.io_sendall, (*SEND, 1), TypeError),
        (_native.io_sendall, (0, "text", 0, 0.0), TypeError),
        (_native.io_sendall, (0, b"x", 2**31, 0.0), OverflowError),
        (_native.io_send, (-1, *SEND[1:]), OSError),
    ],
)
def test_wrong_arguments(
    call: Callable[..., object], arguments: tuple[object, ...], error: type[Exception]
) -> None:
    with pytest.raises(error):
        call(*arguments)
