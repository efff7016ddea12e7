"""Pings of our own: many at once, each from a chosen address, through a chosen device, of any size.

`ping -I DEVICE` was rejected: it receives only packets from the same device, and the far gateway
may answer through another one (it judges its own direction, see fallback.py). So each packet names
its device (IP_PKTINFO, ip(7); RFC 3542, 6.1), and the answer may come through any. The ping of
busybox also has no option against fragmentation.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
import time
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cpythonplus_sites.model import Address

HEADERS = {4: 28, 6: 48}
"""The bytes of the IP and ICMP headers, by version of IP."""

SMALL = 84
"""The default size of a packet in bytes, with its headers; the same as that of ping."""

_REQUEST, _REPLY = {4: 8, 6: 128}, {4: 0, 6: 129}
_TOKEN_BYTES = 8
_BUFFER = 65536
# Not every version of Python has these constants (linux/in.h, linux/in6.h).
_IP_PKTINFO, _IP_MTU_DISCOVER = 8, 10
_IPV6_PKTINFO, _IPV6_MTU_DISCOVER = 50, 23
_IPV6_CHECKSUM, _UDP_SUM_AT = 7, 6
_MAY_FRAGMENT, _MUST_NOT_FRAGMENT = 0, 2


@dataclass(frozen=True)
class Probe:
    """A ping to send.

    source, device: None lets the kernel choose.  size_bytes: the size of the IP packet; whole: it
    must not be fragmented on its way.
    """

    address: Address
    source: Address | None = None
    device: str | None = None
    size_bytes: int = SMALL
    whole: bool = False


@dataclass(frozen=True)
class Ping:
    """The answers to `sent` packets.

    time_ms: the mean round trip, None without an answer.  error: why this host could not even send
    the last packet.  told: a router reported that the packet was too large.
    """

    sent: int
    received: int
    time_ms: float | None = None
    error: str = ""
    told: bool = False


def echo(
    probes: Sequence[Probe], *, count: int = 3, interval_s: float = 0.2, wait_s: float = 1.0
) -> list[Ping]:
    """Send all probes at the same time, `count` times; one result for each, in the same order.

    wait_s: the wait for answers after the last packet; it ends when all are there.  Without root
    nothing is sent (Ping.error). Never raises.
    """
    asked = [_Asked(probe) for probe in probes]
    sockets: dict[int, socket.socket] = {}
    try:
        for version in sorted({each.address.version for each in probes}):
            with suppress(OSError):  # a kernel without IPv6, or a container without the right
                sockets[version] = _socket(version)
        token, ident = os.urandom(_TOKEN_BYTES), int.from_bytes(os.urandom(2), "big")
        for number in range(count):
            for place, each in enumerate(asked):
                sequence = place * count + number
                each.send(sockets.get(each.probe.address.version), ident, sequence & 0xFFFF, token)
            is_last = number == count - 1
            _receive(sockets, asked, ident, token, wait_s if is_last else interval_s, stop=is_last)
    finally:
        for found in sockets.values():
            found.close()
    return [each.result() for each in asked]


@dataclass
class _Asked:
    """A running probe.  times_s: when each packet left, by its number; None: it was answered."""

    probe: Probe
    times_s: dict[int, float | None] = field(default_factory=dict)
    took_s: list[float] = field(default_factory=list)
    sent: int = 0
    error: str = ""
    told: bool = False

    def send(self, found: socket.socket | None, ident: int, sequence: int, token: bytes) -> None:
        probe = self.probe
        version = probe.address.version
        packet = _packet(version, ident, sequence, token, probe.size_bytes - HEADERS[version])
        self.sent += 1
        if found is None:
            self.error = "this host gives no socket for it"
            return
        try:
            _set_fragmenting(found, version, whole=probe.whole)
            self.times_s[sequence] = time.monotonic()
            found.sendmsg([packet], [_way(probe)], 0, (str(probe.address), 0))
        except OSError as error:
            self.times_s.pop(sequence, None)
            self.told |= error.errno == errno.EMSGSIZE
            self.error = error.strerror or str(error)

    def answered(self, sequence: int) -> None:
        sent_s = self.times_s.get(sequence)
        if sent_s is not None:
            self.took_s.append(time.monotonic() - sent_s)
            self.times_s[sequence] = None

    def result(self) -> Ping:
        took_s = self.took_s
        mean_ms = round(1000 * sum(took_s) / len(took_s), 3) if took_s else None
        return Ping(self.sent, len(took_s), mean_ms, "" if took_s else self.error, self.told)


def send_udp(source: Address, target: Address, ports: Iterable[tuple[int, int]]) -> None:
    """Send an empty UDP packet for each pair of ports. Best effort: never raises.

    The socket is raw, so that any number is a valid port: below 1024, 0, or in use.
    """
    version = target.version
    family = socket.AF_INET if version == 4 else socket.AF_INET6  # noqa: PLR2004
    with suppress(OSError), socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_UDP) as found:
        if version == 6:  # noqa: PLR2004
            found.setsockopt(socket.IPPROTO_IPV6, _IPV6_CHECKSUM, _UDP_SUM_AT)
        found.bind((str(source), 0))
        for own, far in ports:
            # IPv4 needs no checksum (RFC 768); for IPv6 the kernel fills it in.
            found.sendto(struct.pack("!HHHH", own, far, 8, 0), (str(target), 0))


def _socket(version: int) -> socket.socket:
    if version == 4:  # noqa: PLR2004
        return socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    return socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)


def _set_fragmenting(found: socket.socket, version: int, *, whole: bool) -> None:
    value = _MUST_NOT_FRAGMENT if whole else _MAY_FRAGMENT
    if version == 4:  # noqa: PLR2004
        found.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, value)
    else:
        found.setsockopt(socket.IPPROTO_IPV6, _IPV6_MTU_DISCOVER, value)


def _way(probe: Probe) -> tuple[int, int, bytes]:
    """The control message that names source and device."""
    index = 0 if probe.device is None else socket.if_nametoindex(probe.device)
    if probe.address.version == 4:  # noqa: PLR2004
        source = b"\0" * 4 if probe.source is None else probe.source.packed
        return socket.IPPROTO_IP, _IP_PKTINFO, struct.pack("=I4s4s", index, source, b"")
    source = b"\0" * 16 if probe.source is None else probe.source.packed
    return socket.IPPROTO_IPV6, _IPV6_PKTINFO, struct.pack("=16sI", source, index)


def _packet(version: int, ident: int, sequence: int, token: bytes, length: int) -> bytes:
    payload = token.ljust(max(length, len(token)), b"\0")
    head = struct.pack("!BBHHH", _REQUEST[version], 0, 0, ident, sequence)
    if version == 6:  # noqa: PLR2004
        return head + payload  # the kernel computes the checksum (RFC 3542, 3.1)
    return head[:2] + struct.pack("!H", checksum(head + payload)) + head[4:] + payload


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    even = data + b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(even) // 2}H", even))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


def _receive(
    sockets: dict[int, socket.socket],
    asked: list[_Asked],
    ident: int,
    token: bytes,
    wait_s: float,
    *,
    stop: bool,
) -> None:
    """Take answers for `wait_s` seconds.  stop: once all are there."""
    end = time.monotonic() + wait_s
    versions = {found: version for version, found in sockets.items()}
    while not (stop and all(None is t for each in asked for t in each.times_s.values())):
        left_s = end - time.monotonic()
        if left_s <= 0:
            return
        for found in select.select(list(versions), [], [], left_s)[0]:
            version = versions[found]
            try:
                data, sender = found.recvfrom(_BUFFER)
            except OSError:  # such as an ICMP error that the kernel passes on
                continue
            sequence = _sequence(version, data, ident, token)
            for each in asked if sequence is not None else ():
                is_from = str(each.probe.address) == _sender(sender)
                if sequence is not None and is_from and sequence in each.times_s:
                    each.answered(sequence)


def _sequence(version: int, data: bytes, ident: int, token: bytes) -> int | None:
    """The number of an answer to one of our packets; None for anything else."""
    if version == 4:  # noqa: PLR2004
        data = data[(data[0] & 15) * 4 :] if data else data
    head = struct.Struct("!BBHHH")
    if len(data) < head.size + len(token) or data[head.size : head.size + len(token)] != token:
        return None
    kind, _, _, found, sequence = head.unpack_from(data)
    return int(sequence) if (kind, found) == (_REPLY[version], ident) else None


def _sender(address: tuple[object, ...]) -> str:
    """The sender's address without its zone, in canonical form."""
    return str(ip_address(str(address[0]).partition("%")[0]))
