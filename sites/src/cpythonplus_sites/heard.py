"""What the timer's look tells to those that plan. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cpythonplus_sites.fallback import Remembered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cpythonplus_sites.fallback import Kind
    from cpythonplus_sites.model import Endpoint


@dataclass(frozen=True)
class Heard:
    """The result of the look.

    silent: sites that give no sign of life through WireGuard.  stuck: those, and the ones without a
    session, with the endpoint at which they were tried.  ways: of links with a fallback, from
    now on.  switches: a line for each link that changes its way.  calls: whether anything has to be
    compared, or done.
    """

    silent: frozenset[str] = frozenset()
    stuck: Mapping[str, Endpoint] = field(default_factory=dict)
    ways: Mapping[str, Kind] = field(default_factory=dict)
    switches: tuple[str, ...] = ()
    calls: bool = True
    remembered: Remembered = field(default_factory=Remembered)
