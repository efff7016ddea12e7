"""One route as the kernel has it. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cpythonplus_sites.model import Subnet


@dataclass(frozen=True)
class LiveRoute:
    """A route of the main table.  metric: by default 0 in IPv4, 1024 in IPv6.

    kind: as `ip` names it. All kinds but `unicast` lead nowhere; their device means nothing: it is
    lo in IPv6, and none in IPv4.
    """

    subnet: Subnet
    device: str
    protocol: int
    metric: int = 0
    kind: str = "unicast"
