"""The way that a link with `fallback = "ssh"` takes, and the memory kept for it. No I/O.

The way is WireGuard, as long as it gets an answer; it is ssh if WireGuard gets none and ssh does.
Each gateway judges the direction in which it sends. So for some seconds, or if a firewall blocks
one direction only, packets may leave by one way and return by the other.

WireGuard is left at once, and the first return to it is immediate too. If it fails again soon
afterwards, each return has to wait longer than the one before (HOLD_S, doubled up to MOST_HOLD_S),
as routers damp a route that flaps (RFC 2439). An ssh tunnel that does not answer either is no
reason to move to it, nor to stay on it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind = Literal["wireguard", "ssh"]

HOLD_S = 60.0
MOST_HOLD_S = 600.0
SOON_S = 600.0
"""WireGuard that fails within this time of a return has failed "again"."""

VERSION = 1


@dataclass(frozen=True)
class Memory:
    """The state of one link that the timer keeps from one look to the next (watching.py).

    Times are seconds since the boot; None: never. Only since_s is seconds since the epoch.
    received_bytes: WireGuard's counter; received_at_s: when it last grew.  spare_packets,
    spare_at_s: the same for the tun device.  answered_at_s: the last answer to a ping through
    WireGuard.  way: the one in use; since_s: since when; reason: why.  to_ssh, to_wireguard: the
    number of switches.  alive_since_s: since when WireGuard answers while ssh is in use; hold_s:
    how long it has to answer before the return.  returned_at_s: the last return.
    """

    received_bytes: int | None = None
    received_at_s: float | None = None
    spare_packets: int | None = None
    spare_at_s: float | None = None
    answered_at_s: float | None = None
    way: Kind = "wireguard"
    since_s: float | None = None
    reason: str = ""
    to_ssh: int = 0
    to_wireguard: int = 0
    alive_since_s: float | None = None
    hold_s: float = 0.0
    returned_at_s: float | None = None

    def received(self, count: int, now_s: float) -> Memory:
        """The memory with the current value of WireGuard's counter."""
        if count == self.received_bytes:
            return self
        return replace(self, received_bytes=count, received_at_s=now_s)

    def spare_received(self, count: int, now_s: float) -> Memory:
        """The memory with the current counter of the tun device, which begins at 0."""
        if count == (self.spare_packets or 0):
            return self
        return replace(self, spare_packets=count, spare_at_s=now_s)


@dataclass(frozen=True)
class Answers:
    """The answers to a look's pings.  steady: WireGuard answered nearly all of several pings."""

    wireguard: bool
    ssh: bool
    steady: bool = False


NO_ANSWER = "no answer through WireGuard, and ssh answers"
ANSWERS_AGAIN = "WireGuard answers again"
SSH_FAILED = "ssh gives no answer, and WireGuard does"


def decide(memory: Memory, in_use: Kind, answers: Answers, now_s: float) -> tuple[Kind, Memory]:
    """The way from now on, and the new memory.  in_use: the way of the current routes.

    now_s: seconds since the boot.  The reason of a switch is in the memory.
    """
    if in_use == "wireguard" and answers.ssh and not answers.wireguard:
        return "ssh", _left(memory, now_s)
    if in_use == "ssh" and answers.wireguard and not answers.ssh:
        return "wireguard", _returned(memory, SSH_FAILED, now_s)
    if in_use == "wireguard" or not answers.steady:
        return in_use, replace(memory, alive_since_s=None)
    since_s = now_s if memory.alive_since_s is None else memory.alive_since_s
    if now_s - since_s < memory.hold_s:
        return in_use, replace(memory, alive_since_s=since_s)
    return "wireguard", _returned(memory, ANSWERS_AGAIN, now_s)


def _left(memory: Memory, now_s: float) -> Memory:
    again = memory.returned_at_s is not None and now_s - memory.returned_at_s < SOON_S
    hold_s = min(max(2 * memory.hold_s, HOLD_S), MOST_HOLD_S) if again else 0.0
    return replace(
        memory, hold_s=hold_s, reason=NO_ANSWER, to_ssh=memory.to_ssh + 1, alive_since_s=None
    )


def _returned(memory: Memory, reason: str, now_s: float) -> Memory:
    count = memory.to_wireguard + 1
    return replace(
        memory, reason=reason, to_wireguard=count, returned_at_s=now_s, alive_since_s=None
    )


# ---- memory as text -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Remembered:
    """A gateway's memory.  looked_at_s: the last look; full_at_s: the last full comparison."""

    links: Mapping[str, Memory] = field(default_factory=dict)
    looked_at_s: float | None = None
    full_at_s: float | None = None

    def of(self, site: str) -> Memory:
        """The memory of the link with a site."""
        return self.links.get(site, Memory())


def written(remembered: Remembered) -> str:
    """The memory as the text of a file."""
    links = {site: asdict(memory) for site, memory in remembered.links.items()}
    data = {"version": VERSION, "looked_at_s": remembered.looked_at_s}
    return json.dumps({**data, "full_at_s": remembered.full_at_s, "links": links}, indent=1) + "\n"


def read(text: str | None, now_s: float) -> Remembered:
    """The memory in a text; empty if the text is from another boot, or invalid."""
    try:
        data = json.loads(text or "")
        if data["version"] != VERSION:
            return Remembered()
        looked_at_s, full_at_s = _time(data["looked_at_s"]), _time(data["full_at_s"])
        links = {str(site): _memory(values) for site, values in data["links"].items()}
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
        return Remembered()
    if max(looked_at_s or 0.0, full_at_s or 0.0) > now_s:
        return Remembered()
    return Remembered(links, looked_at_s, full_at_s)


def _memory(values: dict[str, Any]) -> Memory:
    """The memory of one link. Raises ValueError, KeyError or TypeError for invalid values."""
    if values["way"] not in ("wireguard", "ssh"):
        raise ValueError(values["way"])
    return Memory(
        received_bytes=_count(values["received_bytes"]),
        spare_packets=_count(values["spare_packets"]),
        spare_at_s=_time(values["spare_at_s"]),
        received_at_s=_time(values["received_at_s"]),
        answered_at_s=_time(values["answered_at_s"]),
        way=values["way"],
        since_s=_time(values["since_s"]),
        reason=str(values["reason"]),
        to_ssh=int(values["to_ssh"]),
        to_wireguard=int(values["to_wireguard"]),
        alive_since_s=_time(values["alive_since_s"]),
        hold_s=_seconds(values["hold_s"]),
        returned_at_s=_time(values["returned_at_s"]),
    )


def _count(value: object) -> int | None:
    return None if value is None else int(value)  # type: ignore[call-overload]


def _time(value: object) -> float | None:
    return None if value is None else _seconds(value)


def _seconds(value: object) -> float:
    found = float(value)  # type: ignore[arg-type]
    if not isfinite(found):
        raise ValueError(value)
    return found
