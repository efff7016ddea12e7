"""A line between a master and one of its workers: short messages in both directions.

A pair of connected sockets that keep messages whole.  A message is a few words; descriptors may go
with it.  Each side has one end, and ends the line by closing it: the other side reads EOFError.
"""

from __future__ import annotations

import os
import select
import socket
from contextlib import suppress

_LONGEST = 2048
_MOST_DESCRIPTORS = 128  # a server's listening sockets


class Channel:
    """One end of a line between the master and another process of the server."""

    def __init__(self, end: socket.socket) -> None:
        """Take over `end`, a connected socket of type SOCK_SEQPACKET."""
        end.setblocking(False)  # noqa: FBT003
        self._end = end

    @staticmethod
    def pair() -> tuple[Channel, Channel]:
        """Return both ends of a new line; raises OSError."""
        one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        return Channel(one), Channel(other)

    @classmethod
    def of(cls, descriptor: int) -> Channel:
        """Return the end that was received as `descriptor`."""
        return cls(socket.socket(fileno=descriptor))

    def fileno(self) -> int:
        """Return the descriptor; -1 once it is closed."""
        return self._end.fileno()

    def send(self, *words: object, descriptors: tuple[int, ...] = ()) -> None:
        """Send a message, with copies of `descriptors`.

        Raises OSError if the other end is closed, or has left too many messages unread.
        """
        text = " ".join(map(str, words)).encode(errors="replace")[:_LONGEST]
        socket.send_fds(self._end, [text], descriptors)

    def receive(self, wait_s: float = 0.0) -> tuple[list[str], list[int]] | None:
        """Return the words of the next message and its descriptors; None after `wait_s` seconds.

        Raises EOFError if the other end is closed, OSError for other errors.
        """
        if wait_s:
            look = select.poll()
            look.register(self._end, select.POLLIN)
            look.poll(wait_s * 1000)
        try:
            text, descriptors, *_ = socket.recv_fds(self._end, _LONGEST, _MOST_DESCRIPTORS)
        except BlockingIOError:
            return None
        except ConnectionResetError:
            text, descriptors = b"", []
        if not text:
            raise EOFError("the other end of the line is closed")
        for each in descriptors:
            os.set_inheritable(each, False)  # noqa: FBT003
        return text.decode(errors="replace").split(), descriptors

    def close(self) -> None:
        """End the line; closing it again does nothing."""
        with suppress(OSError):
            self._end.close()
