"""Packets of pings, and answers to them."""

from __future__ import annotations

import os
import struct
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpythonplus_sites import probing
from cpythonplus_sites.probing import Ping, Probe, checksum, echo

pytestmark = pytest.mark.any_version

TOKEN = b"12345678"
IPV4_HEADER = b"\x45" + bytes(19)


def test_checksum() -> None:
    assert checksum(bytes.fromhex("0001f203f4f5f6f7")) == 0x220D  # RFC 1071, section 3
    packet = probing._packet(4, 7, 9, TOKEN, 56)
    assert checksum(packet) == 0


def reply(version: int, *, kind: int | None = None, ident: int = 7, token: bytes = TOKEN) -> bytes:
    kind = probing._REPLY[version] if kind is None else kind
    data = struct.pack("!BBHHH", kind, 0, 0, ident, 9) + token
    return (IPV4_HEADER if version == 4 else b"") + data


@pytest.mark.parametrize("version", [4, 6])
def test_answers_are_told_from_anything_else(version: int) -> None:
    assert probing._sequence(version, reply(version), 7, TOKEN) == 9
    for other in (
        reply(version, kind=probing._REQUEST[version]),
        reply(version, ident=8),
        reply(version, token=b"another!"),
        reply(version)[:-1],
        b"",
    ):
        assert probing._sequence(version, other, 7, TOKEN) is None


@given(st.sampled_from([4, 6]), st.binary())
def test_any_packet_is_survived(version: int, data: bytes) -> None:
    assert probing._sequence(version, data, 7, TOKEN) is None


def test_without_the_right_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: int) -> None:
        raise PermissionError

    monkeypatch.setattr(probing, "_socket", refused)
    found = echo([Probe(ip_address("127.0.0.1"))], count=2, interval_s=0.001, wait_s=0.001)
    assert found == [Ping(2, 0, error="this host gives no socket for it")]


@pytest.mark.skipif(os.geteuid() != 0, reason="raw sockets need root")
def test_this_host_answers() -> None:
    here = ip_address("127.0.0.1")
    probes = [
        Probe(here),
        Probe(here, ip_address("127.0.0.5"), "lo", 1400, whole=True),
        Probe(here, size_bytes=70_000),
        Probe(here, ip_address("192.0.2.1")),
        Probe(here, device="no-such"),
    ]
    found = echo(probes, count=2, interval_s=0.01)
    assert [ping.received for ping in found] == [2, 2, 0, 0, 0]
    assert [bool(ping.error) for ping in found] == [False, False, True, True, True]
    assert found[2].told
    assert found[0].time_ms is not None
