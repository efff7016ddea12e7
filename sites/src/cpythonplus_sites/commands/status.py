"""`cpythonplus-sites status`: whether the other sites can be reached."""

from __future__ import annotations

import argparse
import json
import re
from typing import TYPE_CHECKING

from cpythonplus_sites.commands import options as common
from cpythonplus_sites.commands.gateway import (
    agreement_of,
    find,
    need_root,
    plain_errors,
)
from cpythonplus_sites.health import examine
from cpythonplus_sites.machine import Machine
from cpythonplus_sites.metrics import prometheus
from cpythonplus_sites.terminal import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cpythonplus_sites.health import Reach
    from cpythonplus_sites.probing import Ping

UNHEALTHY_STATUS = 1
MOST_PINGS = 100
MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86400
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
TITLES = ("site", "via", "handshake", "ping", "LAN ping", "large", "received", "sent", "state")
NOT_APPLIED = (
    "{0} is not the file that is applied here; cpythonplus-sites plan shows the differences\n"
)
HOST = ("host",)
"""The column for sites that name a probe host."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the action's arguments to a parser."""
    common.add_common(parser)
    parser.add_argument(
        "--format",
        choices=("text", "json", "prometheus"),
        default="text",
        help="format of the output (text)",
    )
    parser.add_argument(
        "--ping-count",
        type=_count,
        default=3,
        metavar="N",
        help="number of pings for each address (3)",
    )


def _count(text: str) -> int:
    value = int(text) if re.fullmatch(r"[0-9]{1,3}", text) else -1
    if not 0 <= value <= MOST_PINGS:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to {MOST_PINGS}, got {text!r}")
    return value


def run(options: argparse.Namespace) -> int:
    """Judge every other site; returns 1 if one is not reached."""
    with plain_errors():
        gateway = find(options)
        need_root("status")
        network, name = gateway.network, gateway.site.name
        machine = Machine()
        agreement = agreement_of(machine, gateway)
        found = examine(
            machine,
            network,
            gateway.wanted,
            ping_count=options.ping_count,
            agreement=agreement,
        )
        path = common.path_of_file(options)
        is_applied = agreement.is_applied(path.read_text("utf-8"))
    if options.format == "prometheus":
        show(prometheus(network.name, name, found))
    elif options.format == "json":
        reached = [reach.as_json() for reach in found]
        show(json.dumps({"network": network.name, "site": name, "sites": reached}, indent=2) + "\n")
    else:
        show(table(found) + NOT_APPLIED.format(path) * (not is_applied))
    return UNHEALTHY_STATUS if any(reach.verdict == "bad" for reach in found) else 0


def table(found: Sequence[Reach]) -> str:
    """The table for people: a line for each site, and the probable causes below."""
    if not found:
        return "there is no other site\n"
    has_hosts = any(reach.host is not None for reach in found)
    rows = [(*TITLES[:6], *HOST * has_hosts, *TITLES[6:])]
    rows += [_row(reach, has_hosts=has_hosts) for reach in found]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    lines += said([reach for reach in found if reach.cause or reach.note], brief=True)
    return "".join(f"{each}\n" for each in lines)


def said(found: Sequence[Reach], *, brief: bool = False) -> list[str]:
    """The lines for each site: cause and side of a fault, or that it is reached.

    brief: without the lines that say that a site is reached.
    """
    lines = []
    for reach in found:
        where = f" ({reach.side})" if reach.side else ""
        if reach.cause:
            lines.append(f"{reach.site}{where}: {reach.cause}")
        if reach.note:
            lines.append(f"{reach.site}: {reach.note}")
        if not reach.cause and not brief:
            lines.append(f"{reach.site}: reached, {_ping(reach.lan or reach.tunnel)}")
    return lines


def _row(reach: Reach, *, has_hosts: bool) -> tuple[str, ...]:
    never = "never" if reach.via == "wireguard" else "-"
    age_s = reach.handshake_age_s
    return (
        reach.site,
        "ssh (fallback)" if reach.way == "ssh" else reach.via,
        never if age_s is None else f"{_duration(age_s)} ago",
        _ping(reach.tunnel),
        _ping(reach.lan),
        _large(reach.large),
        *(_ping(reach.host),) * has_hosts,
        _size(reach.received_bytes),
        _size(reach.sent_bytes),
        reach.verdict,
    )


def _ping(ping: Ping | None) -> str:
    if ping is None:
        return "-"
    if not ping.received:
        return "none"
    lost = f" ({ping.received} of {ping.sent})" if ping.received < ping.sent else ""
    return f"{'?' if ping.time_ms is None else f'{ping.time_ms:.1f}'} ms{lost}"


def _large(ping: Ping | None) -> str:
    """`pass` if a packet of full size came back; `smaller` if a router said it is too large."""
    if ping is None:
        return "-"
    return "pass" if ping.received else "smaller" if ping.told else "lost"


def _duration(seconds: float) -> str:
    for unit_s, name in ((DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "min")):
        if seconds >= 2 * unit_s:
            return f"{seconds / unit_s:.0f} {name}"
    return f"{seconds:.0f} s"


def _size(count: int | None) -> str:
    if count is None:
        return "-"
    power = max(0, min(len(UNITS) - 1, (count.bit_length() - 1) // 10))
    return f"{count / 1024**power:.{min(power, 1)}f} {UNITS[power]}"
