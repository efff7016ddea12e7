"""The result of one look of the timer (watching.py), as input for plans. No I/O."""

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
    """The result of one look of the timer.

    silent: sites from which nothing comes through WireGuard.  stuck: these, and the sites without a
    session, with the endpoint at which they were tried.  ways: those from now on, for links with a
    fallback.  switches: a line for each link that changes its way.  calls: whether anything has to
    be compared, or done.
    """

    silent: frozenset[str] = frozenset()
    stuck: Mapping[str, Endpoint] = field(default_factory=dict)
    ways: Mapping[str, Kind] = field(default_factory=dict)
    switches: tuple[str, ...] = ()
    calls: bool = True
    remembered: Remembered = field(default_factory=Remembered)
