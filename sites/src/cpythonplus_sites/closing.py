"""Keeps the `unreachable` routes behind those of the tunnels (rendering/closed.py). No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cpythonplus_sites.rendering.closed import PROTOCOL, route_arguments
from cpythonplus_sites.steps import ip

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cpythonplus_sites.live import Live, LiveRoute
    from cpythonplus_sites.model import Subnet
    from cpythonplus_sites.steps import Step
    from cpythonplus_sites.wanted import Wanted


def close(wanted: Wanted, live: Live) -> Iterator[Step]:
    """Before anything is forwarded."""
    for subnet in unguarded(wanted, live.routes):
        words = route_arguments(subnet, wanted.closed_metric).split()
        yield ip(f"refuse {subnet} while no tunnel leads there", "route", "replace", *words)


def unguarded(wanted: Wanted, routes: Sequence[LiveRoute]) -> list[Subnet]:
    """Return the subnets of other sites that a default route may take, once no tunnel does."""
    there = set(_ours(wanted, routes))
    return [subnet for subnet in wanted.closed if subnet not in there]


def reopen(wanted: Wanted, live: Live) -> Iterator[Step]:
    """Last of all: of sites that are not in the file."""
    for subnet in _ours(wanted, live.routes):
        if subnet not in wanted.closed:
            words = route_arguments(subnet, wanted.closed_metric).split()
            yield ip(f"no longer refuse {subnet}", "route", "del", *words)


def _ours(wanted: Wanted, routes: Sequence[LiveRoute]) -> Iterator[Subnet]:
    """The subnets that this network's routes refuse; those of another have another metric."""
    for route in routes:
        mark = (route.kind, route.protocol, route.metric)
        if mark == ("unreachable", PROTOCOL, wanted.closed_metric):
            yield route.subnet
