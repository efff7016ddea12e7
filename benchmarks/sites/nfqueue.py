"""Netfilter's packet queue over a raw netlink socket: messages as bytes, and the queue itself.

Only what holding packets back takes. Sizes, numbers and byte orders are those of the kernel's
`linux/netfilter/nfnetlink_queue.h` and `nfnetlink.h`: netlink's own headers are in the machine's
byte order, what netfilter puts behind them in that of the network.
"""

from __future__ import annotations

import os
import socket
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

NETLINK_NETFILTER = 12
SOL_NETLINK = 270
NETLINK_NO_ENOBUFS = 5
SO_RCVBUFFORCE = 33

NLMSG_ERROR = 2
NLM_F_REQUEST = 1
NLM_F_ACK = 4

_SUBSYSTEM = 3 << 8
PACKET = _SUBSYSTEM | 0
CONFIG = _SUBSYSTEM | 2
VERDICT_BATCH = _SUBSYSTEM | 3

NFQA_PACKET_HDR = 1
NFQA_VERDICT_HDR = 2
NFQA_CFG_CMD = 1
NFQA_CFG_PARAMS = 2
NFQA_CFG_QUEUE_MAXLEN = 3
NFQA_CFG_MASK = 4
NFQA_CFG_FLAGS = 5

_BIND = 1
_COPY_META = 1
F_GSO = 4
"""Packets come as the sender's stack made them, up to 64 KiB: not cut up, and no checksum done."""
NF_ACCEPT = 1

_HEADER = struct.Struct("=IHHII")
_GENERIC = struct.Struct(">BBH")
_ATTRIBUTE = struct.Struct("=HH")
_TYPE_MASK = 0x3FFF
_ERROR = struct.Struct("=i")
_ID = struct.Struct(">I")

ONE_MESSAGE_BYTES = 8192
"""More than a packet's message without its contents can take."""


def attribute(kind: int, payload: bytes) -> bytes:
    """Return one netlink attribute, padded to four bytes."""
    length = _ATTRIBUTE.size + len(payload)
    return _ATTRIBUTE.pack(length, kind) + payload + bytes(-length % 4)


def message(kind: int, queue: int, attributes: bytes, *, flags: int = 0) -> bytes:
    """Return one message of netfilter's queue subsystem to queue number `queue`."""
    body = _GENERIC.pack(socket.AF_UNSPEC, 0, queue) + attributes
    return _HEADER.pack(_HEADER.size + len(body), kind, NLM_F_REQUEST | flags, 0, 0) + body


def binding(queue: int, max_packets: int) -> tuple[bytes, ...]:
    """Return the messages that make a socket the owner of a queue; each is acknowledged.

    The contents of packets stay in the kernel: only their numbers are told.
    """
    configuration = (
        attribute(NFQA_CFG_CMD, struct.pack(">BBH", _BIND, 0, 0)),
        attribute(NFQA_CFG_PARAMS, struct.pack(">IB", 0, _COPY_META))
        + attribute(NFQA_CFG_QUEUE_MAXLEN, _ID.pack(max_packets))
        + attribute(NFQA_CFG_MASK, _ID.pack(F_GSO))
        + attribute(NFQA_CFG_FLAGS, _ID.pack(F_GSO)),
    )
    return tuple(message(CONFIG, queue, each, flags=NLM_F_ACK) for each in configuration)


def acceptance(queue: int, last_id: int) -> bytes:
    """Return the message that lets go of all packets up to number `last_id`."""
    verdict = struct.pack(">II", NF_ACCEPT, last_id)
    return message(VERDICT_BATCH, queue, attribute(NFQA_VERDICT_HDR, verdict))


def packet_ids(received: bytes) -> Iterator[int]:
    """Yield the numbers of the packets that messages from the kernel tell of.

    Raises OSError for the error that one of them reports; an acknowledgement is none.
    """
    offset = 0
    while offset + _HEADER.size <= len(received):
        length, kind, _flags, _sequence, _port = _HEADER.unpack_from(received, offset)
        if length < _HEADER.size or offset + length > len(received):
            return  # cut off
        if kind == NLMSG_ERROR:
            (error,) = _ERROR.unpack_from(received, offset + _HEADER.size)
            if error:
                raise OSError(-error, os.strerror(-error))
        elif kind == PACKET:
            number = _packet_id(received, offset + _HEADER.size + _GENERIC.size, offset + length)
            if number is not None:
                yield number
        offset += (length + 3) & ~3


def _packet_id(received: bytes, offset: int, end: int) -> int | None:
    while offset + _ATTRIBUTE.size <= end:
        length, kind = _ATTRIBUTE.unpack_from(received, offset)
        if kind & _TYPE_MASK == NFQA_PACKET_HDR:
            number: int = _ID.unpack_from(received, offset + _ATTRIBUTE.size)[0]
            return number
        if length < _ATTRIBUTE.size:
            break
        offset += (length + 3) & ~3
    return None


class Queue:
    """The queue `number` of the network namespace that this process is in.

    When the socket is closed the kernel drops what the queue still holds.
    """

    def __init__(self, number: int, max_packets: int) -> None:
        """Bind the queue. Raises OSError: not root, or a kernel without packet queues."""
        self.number = number
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
        try:
            # A message per packet waits here while Python is busy; one lost is a packet stuck.
            self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
            self.socket.setsockopt(SOL_NETLINK, NETLINK_NO_ENOBUFS, 1)
            for each in binding(number, max_packets):
                self.socket.send(each)
                tuple(packet_ids(self.socket.recv(ONE_MESSAGE_BYTES)))
        except OSError:
            self.socket.close()
            raise
        self.socket.settimeout(0)

    def arrived(self, most: int = 256) -> list[int]:
        """Return the numbers of packets that have come, at most about `most`; does not wait."""
        found: list[int] = []
        try:
            while len(found) < most:
                found += packet_ids(self.socket.recv(ONE_MESSAGE_BYTES))
        except BlockingIOError:
            pass
        return found

    def accept_up_to(self, last_id: int) -> None:
        """Let the packets up to number `last_id` go on, in their order."""
        self.socket.send(acceptance(self.number, last_id))
