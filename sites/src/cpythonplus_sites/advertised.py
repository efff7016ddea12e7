"""Interfaces whose default route comes from router advertisements (RA), which forwarding would end.

With `forwarding` on, Linux takes its host for a router, drops the default routes that it learnt
from RAs, and accepts no new ones, unless accept_ra is 2 for the interface
(Documentation/networking/ip-sysctl.rst): a gateway at an ordinary IPv6 connection cuts itself off.

If NetworkManager or systemd-networkd read the advertisements, accept_ra is 0, and the kernel
leaves their routes alone.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cpythonplus_sites.machine import Machine

RA_PROTOCOLS = ("9", "ra")
"""RTPROT_RA as `ip` prints it, with and without -N (linux/rtnetlink.h)."""

CONF = Path("/proc/sys/net/ipv6/conf")
_ACCEPTED = re.compile(r"^-?net[./]ipv6[./]conf[./](\S+)[./]accept_ra\s*=\s*2\s*$", re.MULTILINE)
_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,15}")


def interfaces(machine: Machine, before: Path) -> tuple[str, ...]:
    """The interfaces that need accept_ra = 2, sorted.

    before: the file of sysctl.d that an earlier run wrote. Its interfaces are kept: while the line
    to the provider is down, there is no such route, and the file must not change because of that.
    """
    kept = {name.replace("/", ".") for name in _ACCEPTED.findall(_text(machine, before))}
    found = {name for name in _with_default_route(machine) if _accepts(machine, name)}
    return tuple(sorted(name for name in kept | found if _PLAIN.fullmatch(name)))


def setting(interface: str) -> str:
    """The name of the parameter in sysctl.d(5), with slashes, as eth0.7 contains a dot."""
    return f"net/ipv6/conf/{interface}/accept_ra"


def _with_default_route(machine: Machine) -> Iterator[str]:
    output = machine.run(["ip", "-j", "-N", "-6", "route", "show", "default"])
    for entry in _entries(output.out):
        if str(entry.get("protocol")) in RA_PROTOCOLS:
            hops = entry.get("nexthops")
            for each in [entry, *(hops if isinstance(hops, list) else [])]:
                name = each.get("dev") if isinstance(each, dict) else None
                if isinstance(name, str):
                    yield name


def _entries(text: str) -> list[dict[str, Any]]:
    try:
        value = json.loads(text)
    except ValueError:
        return []
    return [x for x in value if isinstance(x, dict)] if isinstance(value, list) else []


def _accepts(machine: Machine, name: str) -> bool:
    return _text(machine, CONF / name / "accept_ra").strip() in ("1", "2")


def _text(machine: Machine, path: Path) -> str:
    try:
        return machine.read(path) or ""
    except (OSError, ValueError):
        return ""
