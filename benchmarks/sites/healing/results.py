"""What was found, and the table of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

LIMIT_S = 240
"""Whatever has not healed by then does not heal."""

SIDES = ("wg-quick", "before", "now")
"""By hand; by an older cpythonplus-sites; by the one that is here."""

TITLES = {
    "daemon": "WireGuard's daemon killed; 2 s later `apply`, `wg-quick up`",
    "down": "`wg-quick down`; 2 s later `apply`, `wg-quick up`",
    "cable": "far end's cable pulled for 2 s",
    "hub-moves": "hub gets another address, the spoke is behind NAT",
    "spoke-moves": "spoke gets another address",
    "udp-blocked": "UDP blocked",
    "udp-open": "UDP open again",
    "site-added": "fourth site added, seen by two of the others",
    "site-removed": "site removed",
    "ssh-site-removed": "site removed that is linked over ssh",
    "own-lan-down": "LAN behind the far gateway is off, packets for it arrive",
    "second-address": "hub gets the second address of its name, the spoke is behind NAT",
    "split-dns": "name of the hub leads into its LAN, as its own DNS answers; then one ping",
    "renamed": "a site is renamed at one gateway, and 200 s later at the other one",
    "hardware": "another machine becomes a gateway: its key is in the file at the other end first",
    "udp-said": "UDP blocked, then asked: `status`, `wg show`",
    "pmtu-said": "path carries 1400 bytes and tells nobody, then asked",
}
"""By the name of a situation."""


@dataclass(frozen=True)
class Found:
    """What one measurement gave; None: it does not apply, or it did not heal.

    lost: of 20 pings a second. leaked: packets for the other LAN that left in clear text.
    delivered: packets of a removed site that arrived within 3 s. looped: packets that went into the
    tunnel within 3 s, after one ping to the other LAN. said: whether the fault was named.
    """

    heal_s: float | None = None
    lost: int | None = None
    leaked: int | None = None
    delivered: int | None = None
    looped: int | None = None
    said: bool | None = None
    said_s: float | None = None


Results = Mapping[str, Mapping[str, Sequence["Found | None"]]]
"""Of each round, by situation and side."""


def table(results: Results, sides: Sequence[str]) -> str:
    """Return them as Markdown."""
    lines = [f"| | {' | '.join(sides)} |", "| --- |" + " --- |" * len(sides)]
    for name, by_side in results.items():
        cells = [_cell(by_side.get(side, ())) for side in sides]
        lines.append(f"| {TITLES[name]} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(rounds: Sequence[Found | None]) -> str:
    found = [each for each in rounds if each is not None]
    if not found:
        return "-"
    if any(each.said is not None for each in found):
        if not all(each.said for each in found):
            return "not said"
        return f"said in {_range([each.said_s or 0.0 for each in found], 1)} s"
    parts = []
    if any(each.lost is not None for each in found):
        took = [each.heal_s for each in found if each.heal_s is not None]
        healed = len(took) == len(found)
        parts.append(f"{_range(took, 1)} s" if healed else f"not within {LIMIT_S} s")
        parts.append(f"{_range([each.lost or 0 for each in found])} lost")
    for words, counts in (
        ("in clear text", [each.leaked for each in found]),
        ("delivered", [each.delivered for each in found]),
        ("round and round", [each.looped for each in found]),
    ):
        known = [count for count in counts if count is not None]
        parts += [f"{_range(known)} {words}"] if known else []
    return ", ".join(parts)


def _range(values: Sequence[float], digits: int = 0) -> str:
    """Return the least and the largest, or one where they are shown alike."""
    least, largest = (f"{value:,.{digits}f}" for value in (min(values), max(values)))
    return least if least == largest else f"{least} to {largest}"
