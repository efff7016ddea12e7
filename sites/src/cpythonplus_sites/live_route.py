"""One route as the kernel has it. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cpythonplus_sites.model import Subnet


@dataclass(frozen=True)
class LiveRoute:
    """One of the main routing table.  metric: 0 in IPv4, 1024 in IPv6 where nobody gave one.

    kind: as `ip` names it. All but `unicast` lead nowhere; the device says nothing there: in IPv6
    it is lo, in IPv4 there is none.
    """

    subnet: Subnet
    device: str
    protocol: int
    metric: int = 0
    kind: str = "unicast"
