"""Whether all gateways have the same site file, and whose is older.

Two files may both be valid, and still not fit together: only one of them has a site, or a LAN has
moved. Each gateway sends its neighbours, through the tunnels, a digest of its applied file, and the
time at which that file was first applied anywhere. This time is the file's serial number, which
nobody has to increment: a gateway with the same file that hears of an earlier time adopts it, and
a restored old file keeps its own.

No process listens, no port is open, and no firewall is in the way. The numbers are the ports of UDP
packets to the far end of the tunnel. Our nftables table there keeps them in a set, with the source
address, and drops the packets (rendering/forwarding.py). Rejected: a service, which would need
systemd, a port in each gateway's firewall, and a protocol.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from hashlib import sha256
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from cpythonplus_sites import toml
from cpythonplus_sites.clock import FLOOR
from cpythonplus_sites.rendering import names
from cpythonplus_sites.rendering.forwarding import FIRST_PORT, HEARD, HEARD_S, PARTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cpythonplus_sites.host_folder import HostFolder
    from cpythonplus_sites.machine import Machine
    from cpythonplus_sites.model import Address, Network

MOST_KNOWN = 200
"""The number of files of which a gateway remembers when they were first applied."""

SLACK_S = 2
"""The seconds by which the parts of one message may differ."""

_PART_BITS = 16
_WORD_BITS = 32


@dataclass(frozen=True)
class Edition:
    """A site file: a digest of its contents, and when it was first applied, in whole seconds."""

    digest: int
    since_s: int


@dataclass(frozen=True)
class Agreement:
    """The file that is applied here, and the known files of other sites."""

    own: Edition | None = None
    others: Mapping[str, Edition] = field(default_factory=dict)

    def is_same(self, site: str) -> bool | None:
        """Whether a site has this gateway's file; None: the file of one of them is unknown."""
        far = self.others.get(site)
        return None if self.own is None or far is None else self.own.digest == far.digest

    def is_applied(self, text: str) -> bool:
        """Whether a file has the same data as the applied one; true if no applied file is known."""
        try:
            return self.own is None or self.own.digest == digest(text)
        except ValueError:
            return False

    def note(self, site: str) -> str:
        """A sentence about the file of a site; empty if it is this gateway's file, or unknown."""
        return difference(self.own, self.others.get(site))


def digest(text: str) -> int:
    """A 32-bit digest of a file's data: comments and the order of tables do not count.

    Raises ValueError if the text is not TOML.
    """
    meaning = json.dumps(toml.loads(text.removeprefix("\ufeff")), sort_keys=True, default=str)
    return int.from_bytes(sha256(meaning.encode()).digest()[: _WORD_BITS // 8], "big")


# ---- the known files ----------------------------------------------------------------------------


def read_known(text: str | None) -> dict[int, int]:
    """The digests of files, and the times since which they are known; none from an invalid text."""
    try:
        data = json.loads(text or "")
        return {int(key, 16): int(value) for key, value in data.items()}
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}


def written_known(known: Mapping[int, int]) -> str:
    """The youngest MOST_KNOWN entries as the text of a file."""
    youngest = sorted(known.items(), key=lambda each: each[1])[-MOST_KNOWN:]
    return json.dumps({f"{key:08x}": value for key, value in youngest}, indent=1) + "\n"


def learnt(known: Mapping[int, int], found: Iterable[Edition]) -> dict[int, int]:
    """The known files, with the earliest time that a site has reported for each.

    Times before this release are ignored: the clock of that gateway was wrong, as on a board
    without a clock chip.
    """
    later = dict(known)
    for each in found:
        own_s = later.get(each.digest)
        if own_s is not None and each.since_s >= FLOOR and not FLOOR <= own_s <= each.since_s:
            later[each.digest] = each.since_s
    return later


def here(machine: Machine, folder: HostFolder) -> Edition | None:
    """The file that is applied here; None if there is none, or it cannot be read."""
    try:
        text = machine.read(folder.sites_path)
        own = None if text is None else digest(text)
        known = read_known(machine.read(folder.editions_path))
    except (OSError, ValueError):
        return None
    return None if own is None or own not in known else Edition(own, known[own])


def note(machine: Machine, folder: HostFolder) -> None:
    """Remember the time at which the current file was applied. Raises OSError, SecretError."""
    text = machine.read(folder.sites_path)
    known = read_known(machine.read(folder.editions_path))
    try:
        own = digest(text or "")
    except ValueError:
        return
    if own not in known:
        # A new file is newer than all before it, even if the clock went back meanwhile.
        since_s = max(int(machine.now_s()), max(known.values(), default=0) + 1)
        _keep(machine, folder, {**known, own: since_s})


def _keep(machine: Machine, folder: HostFolder, known: Mapping[int, int]) -> None:
    machine.write(folder.editions_path, written_known(known), mode=0o600)


def exchange(
    machine: Machine, network: Network, name: str, folder: HostFolder, sites: Iterable[str]
) -> Agreement:
    """Send the file's digest to the neighbours of site `name`, and read what all have sent.

    Raises OSError, SecretError.
    """
    own = here(machine, folder)
    if own is None:
        return Agreement()
    tell(machine, network, name, own, sites)
    found = heard(machine, network)
    known = read_known(machine.read(folder.editions_path))
    later = learnt(known, found.values())
    if later != known:
        _keep(machine, folder, later)
    return Agreement(Edition(own.digest, later[own.digest]), found)


# ---- messages between gateways ------------------------------------------------------------------


def tell(machine: Machine, network: Network, name: str, own: Edition, sites: Iterable[str]) -> None:
    """Send the neighbours of site `name` the digest and time of the file that is applied here."""
    source = network.site(name).tunnel_address
    ports = list(zip(range(FIRST_PORT, FIRST_PORT + PARTS), _parts(own)))
    for site in sites:
        machine.send_udp(source, network.site(site).tunnel_address, ports)


def _parts(own: Edition) -> list[int]:
    words = (own.digest, own.since_s % (1 << _WORD_BITS))
    return [word >> shift & 0xFFFF for word in words for shift in (_PART_BITS, 0)]


def heard(machine: Machine, network: Network) -> dict[str, Edition]:
    """The last message of each other gateway, by the name of its site."""
    command = ["nft", "-j", "list", "set", "inet", names.table(network), HEARD]
    sites = {site.tunnel_address: site.name for site in network.sites}
    told: dict[str, dict[int, list[tuple[int, int]]]] = {}
    for address, part, value, expires_s in _elements(machine.run(command).out):
        if address in sites and 0 <= part < PARTS:
            found = told.setdefault(sites[address], {}).setdefault(part, [])
            found.append((HEARD_S - expires_s, value))
    return {
        site: edition for site, parts in told.items() if (edition := _edition(parts)) is not None
    }


def _edition(parts: Mapping[int, list[tuple[int, int]]]) -> Edition | None:
    """The file in a gateway's message; None if a part is missing, or the last one is unclear."""
    if len(parts) < PARTS:
        return None
    last = [sorted(parts[number])[:2] for number in range(PARTS)]
    ages = [found[0][0] for found in last]
    is_twice = any(len(found) > 1 and found[0][0] == found[1][0] for found in last)
    if is_twice or max(ages) - min(ages) > SLACK_S:
        return None
    high, low, since_high, since_low = (found[0][1] for found in last)
    return Edition(high << _PART_BITS | low, since_high << _PART_BITS | since_low)


def _elements(text: str) -> Iterator[tuple[Address, int, int, int]]:
    """Read `nft -j list set`: address, part, value, and seconds until the element expires."""
    try:
        entries = json.loads(text)["nftables"]
    except (ValueError, LookupError, TypeError):
        return
    for entry in entries if isinstance(entries, list) else ():
        found = entry.get("set", {}) if isinstance(entry, dict) else {}
        for each in found.get("elem", ()):
            try:
                yield _element(each["elem"])
            except (ValueError, LookupError, TypeError):
                continue


def _element(found: dict[str, Any]) -> tuple[Address, int, int, int]:
    address, source, target = found["val"]["concat"]
    return ip_address(address), int(source) - FIRST_PORT, int(target), int(found["expires"])


# ---- in words -----------------------------------------------------------------------------------

NEWER = (
    "its site file is another one, and newer than the one that is applied here ({far}; here: {own})"
)
OLDER = (
    "its site file is another one, and older than the one that is applied here ({far}; here: {own})"
)
OTHER = "its site file is another one than the one that is applied here (both are of {own})"
RESTORED = (
    "this file is older than the one that is applied here: it was first applied on {found}, that"
    " one on {own}"
)


def difference(own: Edition | None, far: Edition | None) -> str:
    """A sentence about a neighbour's file; empty if it is this gateway's file, or unknown."""
    if own is None or far is None or own.digest == far.digest:
        return ""
    text = OTHER if own.since_s == far.since_s else NEWER if far.since_s > own.since_s else OLDER
    return text.format(far=_moment(far.since_s), own=_moment(own.since_s))


def is_restored(own: Edition | None, text: str, known: Mapping[int, int]) -> str:
    """A sentence if a file that is about to be applied is older than the applied one."""
    try:
        found = known.get(digest(text))
    except ValueError:
        return ""
    if own is None or found is None or found >= own.since_s:
        return ""
    return RESTORED.format(found=_moment(found), own=_moment(own.since_s))


def _moment(since_s: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(since_s))
