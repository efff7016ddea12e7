"""Counts packets on an interface of a machine, by a socket of the kernel that sees them all."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from sites.tests.testbed.namespaces import wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sites.tests.testbed.namespaces import Machine

# A line for each IP packet, with its source and its target; what is no IP is passed over.
PROGRAM = """\
import ipaddress, socket, sys
# A protocol from the start would let in what passes other interfaces until it is bound to this one.
tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
tap.bind((sys.argv[1], 3))  # ETH_P_ALL
print("ready", flush=True)
while True:
    try:
        data, (_, kind, *_) = tap.recvfrom(65535)
    except OSError:  # the interface went down, which is told once
        continue
    if kind == 0x0800:
        ends = data[12:16], data[16:20]
    elif kind == 0x86DD:
        ends = data[8:24], data[24:40]
    else:
        continue
    print(*map(ipaddress.ip_address, ends), flush=True)
"""


class Tap:
    """What passes an interface of a machine, in both directions, from now on."""

    def __init__(self, machine: Machine, interface: str) -> None:
        self._process = machine.start(sys.executable, "-ISc", PROGRAM, interface)
        wait_until(lambda: bool(self._lines()), f"a tap at {interface}")

    def _lines(self) -> list[str]:
        return self._process.text().splitlines()

    def count(self, *, source: Sequence[str] = ("",), target: Sequence[str] = ("",)) -> int:
        """Packets whose addresses begin with one of these."""
        pairs = [line.split() for line in self._lines()[1:]]
        return sum(a.startswith(tuple(source)) and b.startswith(tuple(target)) for a, b in pairs)
