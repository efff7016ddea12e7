"""Sites with an internet between them: each a gateway and a host in its LAN."""

from __future__ import annotations

import re
import signal
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sites.tests.testbed.namespaces import Machine, wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Self

    from sites.tests.testbed.namespaces import Process

NAMES = ("berlin", "paris", "rome", "oslo", "lisbon")
ANSWERS = re.compile(r"icmp_seq=(\d+) ttl=")
SILENCE = re.compile(r"no answer yet for icmp_seq=(\d+)")


@dataclass(frozen=True)
class Pings:
    """A stream of pings: numbers of those that were answered."""

    process: Process
    per_second: int

    def answered(self) -> list[int]:
        """The sequence numbers that came back, in that order, once each."""
        return list(dict.fromkeys(map(int, ANSWERS.findall(self.process.text()))))

    def more(self, count: int, *, what: str = "", timeout: float = 60) -> None:
        """Wait until `count` more have been answered; what: the words for it where they are not."""
        wanted = len(self.answered()) + count
        what = what or f"{count} more pings"
        wait_until(lambda: len(self.answered()) >= wanted, what, timeout=timeout)

    def lost(self) -> list[int]:
        """The numbers that are missing before the last one that came back."""
        numbers = self.answered()
        return sorted({*range(1, max(numbers, default=0) + 1)} - {*numbers})

    def silent(self) -> list[int]:
        """The numbers that have had no answer when the next one was sent, also a late one."""
        return [int(number) for number in SILENCE.findall(self.process.text())]

    def stop(self) -> None:
        """Send no more."""
        self.process.signal(signal.SIGINT)


class Site:
    """A gateway between the internet and its LAN, with one host in that. `number` counts from 1."""

    def __init__(self, bed: Bed, number: int) -> None:
        self.bed = bed
        self.number = number
        self.name = NAMES[number - 1]
        self.public = f"203.0.113.{10 + number}"
        self.lan = f"192.168.{10 * number}.0/24"
        self.gateway_address = f"192.168.{10 * number}.1"
        self.host_address = f"192.168.{10 * number}.10"
        self.tunnel_address = f"10.254.0.{number}"
        self.gateway = Machine(f"{self.name}-gateway", bed.folder)
        self.host = Machine(f"{self.name}-host", bed.folder)

    def connect(self) -> None:
        """Lay the cables and give addresses; the gateway does not forward by itself."""
        self._cable(self.gateway, "wan0", self.bed.internet, f"to-{self.name}")
        self._cable(self.gateway, "lan0", self.host, "eth0")
        self.bed.internet.run("ip", "link", "set", f"to-{self.name}", "up", "master", "public")
        _batch(
            self.gateway,
            f"address add {self.public}/24 dev wan0",
            f"address add {self.gateway_address}/24 dev lan0",
            "link set wan0 up",
            "link set lan0 up",
            "route add default via 203.0.113.1",
        )
        _batch(
            self.host,
            f"address add {self.host_address}/24 dev eth0",
            "link set eth0 up",
            f"route add default via {self.gateway_address}",
        )
        self.gateway.run("sysctl", "-qw", "net.ipv4.ip_forward=0")
        self.gateway.environment["WG_QUICK_USERSPACE_IMPLEMENTATION"] = "wireguard-go"

    @staticmethod
    def _cable(one: Machine, one_end: str, other: Machine, other_end: str) -> None:
        cable = f"link add {one_end} type veth peer name {other_end} netns {other.pid}"
        # By numbers that only count outside of the machines.
        one.enter_network("ip", *cable.split())

    def reaches(self, other: Site) -> bool:
        """Whether one ping gets from the host of this LAN to the host of the other one."""
        ping = self.host.try_run("ping", "-n", "-c1", "-W1", other.host_address)
        return ping.returncode == 0

    def ping(self, other: Site, *, per_second: int = 20) -> Pings:
        """Begin to ping from the host of this LAN to the host of the other one."""
        interval = f"{1 / per_second:g}"
        process = self.host.start("ping", "-nO", "-i", interval, other.host_address)
        return Pings(process, per_second)


class Bed:
    """`count` sites, connected to one internet of public addresses; a context manager."""

    def __init__(self, folder: Path, count: int = 2) -> None:
        self.folder = folder
        self.internet = Machine("internet", folder)
        self._sites = [Site(self, number + 1) for number in range(count)]
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.internet)
            _batch(
                self.internet,
                "link add public type bridge",
                "address add 203.0.113.1/24 dev public",
                "link set public up",
            )
            for site in self._sites:
                stack.enter_context(site.gateway)
                stack.enter_context(site.host)
                site.connect()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    @property
    def sites(self) -> Sequence[Site]:
        """In the order of their numbers."""
        return self._sites


def _batch(machine: Machine, *lines: str) -> None:
    machine.run("ip", "-batch", "-", stdin="\n".join(lines))
