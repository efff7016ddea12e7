"""Kernel parameters for streams over long distances, each with its measurement.

One TCP stream cannot have more data in flight than its buffers hold: at a round trip of 80 ms,
Linux's limit of 6 MiB allows about 375 Mbit/s, whatever the line can do. Measured with
the benchmark `sites` (one stream between two LANs, 80 ms; benchmarks/results/sites-3.14.json):

tcp_rmem, tcp_wmem, their last number (most bytes of a receive and of a send buffer): with 32 MiB,
    WireGuard carries 1,617 Mbit/s, with 6 and 4 MiB 334. The buffers are those of the
    stream's two *ends*: on the gateways alone the parameters change nothing for streams between
    hosts of the LANs, which is why those need the file as well.

The parameter tcp_congestion_control = bbr was measured and is not set. With Linux's own buffers
WireGuard is slower than with cubic (277 against 334 Mbit/s, without losses), and if a gateway uses
it for the connection of an ssh link, that link falls from 91 to 2.5 Mbit/s.

The parameters net.core.rmem_max, wmem_max and the budgets of network devices were not measured and
are not set. They belong to the whole machine, which a benchmark in namespaces does not change; TCP
sizes its own buffers without the first two.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cpythonplus_sites.machine import Machine
    from cpythonplus_sites.model import Network

FOLDER = PurePosixPath("/etc/sysctl.d")

LINUX = {
    "net.ipv4.tcp_rmem": "4096 131072 6291456",
    "net.ipv4.tcp_wmem": "4096 16384 4194304",
}
"""Linux's defaults on a machine with enough memory (tcp_init of the kernel)."""

SETTINGS = {
    "net.ipv4.tcp_rmem": "4096 131072 33554432",
    "net.ipv4.tcp_wmem": "4096 16384 33554432",
}
"""The settings that helped: least, first and most bytes of a buffer; the most is not LINUX's."""


def values(current: Mapping[str, str]) -> dict[str, str]:
    """Return SETTINGS as they are to be on a machine whose parameters are `current`.

    Only a maximum is changed, and only raised; the least and first sizes stay the machine's own. A
    parameter that is missing in `current`, or invalid, gets the value of SETTINGS.
    """
    return {name: _raised(current.get(name, ""), value) for name, value in SETTINGS.items()}


def current(machine: Machine) -> dict[str, str]:
    """Return the current values of the parameters of SETTINGS, without missing ones."""
    paths = {name: Path("/proc/sys", *name.split(".")) for name in SETTINGS}
    found = {name: machine.read(each) for name, each in paths.items()}
    return {name: text for name, text in found.items() if text is not None}


def _raised(current: str, wanted: str) -> str:
    words, (*_, most) = current.split(), wanted.split()
    if len(words) != len(wanted.split()) or not all(word.isdecimal() for word in words):
        return wanted
    return " ".join([*words[:-1], str(max(int(words[-1]), int(most)))])


def path(network: Network) -> PurePosixPath:
    """The path of the file of sysctl.d, which is read after those of the distribution."""
    return FOLDER / f"61-cpythonplus-{network.name}-tune.conf"


def text(wanted: Mapping[str, str] = SETTINGS) -> str:
    """The file of sysctl.d, equal for gateways and for hosts of the LANs."""
    lines = [f"{name} = {value}" for name, value in wanted.items()]
    return "\n".join(
        [
            "# TCP buffers for streams over long distances, such as a round trip of 80 ms: they",
            "# help at the two ends of a stream, on hosts of the LANs, not on gateways.",
            *lines,
            "",
        ]
    )
