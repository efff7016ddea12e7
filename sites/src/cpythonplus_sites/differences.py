"""The changes of a new site file to an existing network, in words. No I/O.

A plan lists the steps on this gateway. This module names the operation, and what it requires of the
other gateways: a site with another name, another machine as gateway, a LAN that moved. A site is
recognised by its key, then by its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cpythonplus_sites.model import Network, Site

NETWORK = (
    "the network is called {0}, it was {1}: packets are lost for some seconds, once at each"
    " gateway; the others may follow later, in any order"
)
TUNNEL = (
    "the range of the tunnels changes from {0} to {1}: a link is down from now on until its other"
    " end has this file as well; do not come through a tunnel"
)
RENAMED = "{0} is called {1} from now on: its links stay, and the other gateways may follow later"
RENAMED_BY_NAMES = (
    "{0} is called {1} from now on: its preshared keys come from the names, so each of its links is"
    " down within three minutes, until its other end has this file as well"
)
HARDWARE = (
    "{0} has another key, so another machine, or one set up anew, is its gateway: the old one gets"
    " in no more, and the link is up when the new one has applied this file"
)
MOVED = (
    "{0} moves from {1} to {2}: hosts there are reached again when {1}, {2} and this gateway have"
    " this file"
)
NEW_LAN = "{0} gets the LAN {1}: {0} has to have this file as well before it is reached"
ADDRESS = (
    "the end of the tunnels of {0} changes from {1} to {2}: pings and links over ssh to it fail"
    " until {0} has this file as well"
)
NEW = "{0} is new"
GONE = "{0} is no longer in the file: it gets in no more"


def told(before: Network, after: Network, here: str) -> tuple[str, ...]:
    """A line for each operation; here: the site of this gateway, by its new name."""
    return tuple(_told(before, after, here))


def _told(before: Network, after: Network, here: str) -> Iterator[str]:
    if before.name != after.name:
        yield NETWORK.format(after.name, before.name)
    if before.tunnel != after.tunnel:
        yield TUNNEL.format(before.tunnel, after.tunnel)
    names = _names(before, after)
    kept = {name for name in names.values() if name is not None}
    for old, new in names.items():
        if new is None:
            yield GONE.format(old)
        elif new != old:
            yield (RENAMED_BY_NAMES if after.preshared_of_names else RENAMED).format(old, new)
    for site in after.sites:
        if site.name not in kept:
            yield NEW.format(site.name)
    for old, new in names.items():
        if new is not None:
            yield from _of_site(before.site(old), after.site(new), here)
    yield from _lans(before, after, names, here)


def _names(before: Network, after: Network) -> dict[str, str | None]:
    """Each site's new name, by its old one; None if the site is gone."""
    keys = {key: x.name for x in after.sites for key in (x.public_key, x.next_public_key) if key}
    known = {site.name for site in after.sites}
    found = {
        x.name: keys.get(x.public_key or "") or keys.get(x.next_public_key or "")
        for x in before.sites
    }
    taken = set(found.values())
    return {
        name: new or (name if name in known and name not in taken else None)
        for name, new in found.items()
    }


def _of_site(old: Site, new: Site, here: str) -> Iterator[str]:
    known = {old.public_key, old.next_public_key}
    has_key = old.public_key is not None and new.public_key is not None
    if has_key and new.public_key not in known and new.name != here:
        yield HARDWARE.format(new.name)
    if old.tunnel_address != new.tunnel_address and new.name != here:
        yield ADDRESS.format(new.name, old.tunnel_address, new.tunnel_address)


def _lans(
    before: Network, after: Network, names: dict[str, str | None], here: str
) -> Iterator[str]:
    owners = {lan: names[site.name] or site.name for site in before.sites for lan in site.lans}
    old = {new for new in names.values() if new is not None}
    for site in after.sites:
        for lan in site.lans:
            owner = owners.get(lan)
            if owner is not None and owner != site.name:
                yield MOVED.format(lan, owner, site.name)
            elif owner is None and site.name in old and site.name != here:
                yield NEW_LAN.format(site.name, lan)
