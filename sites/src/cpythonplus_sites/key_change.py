"""The steps of a key's change on the gateway that has the key: the writes to its files.

Each step may be repeated, and may be interrupted between any two writes: the next run finds the
key that the interrupted one made, and continues. `apply` then sets up the tunnels that follow from
the files (`rotation.wanted_tunnels`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Optional

from cpythonplus_sites import keys
from cpythonplus_sites.host_folder import HostFolder, write_key
from cpythonplus_sites.rotation import Stage, carries, stage_of

if TYPE_CHECKING:
    from cpythonplus_sites.machine import Machine
    from cpythonplus_sites.model import Network, Site

SetKeys = Callable[[Mapping[str, Optional[str]]], None]
"""Sets keys of this site in the site file, all or none; None removes one."""

PROBE_BYTES = 1000
"""The size of a ping: much more than the keepalives and handshakes of an idle tunnel."""

_PINGS = 3


class KeyChangeError(Exception):
    """A step that is not possible now; its text is one line."""


def stage_here(folder: HostFolder, site: Site) -> Stage:
    """The stage of the change of this host's key."""
    return stage_of(site, next_key=folder.next_public_key())


def begin(folder: HostFolder, site: Site, set_keys: SetKeys) -> None:
    """Make the next key and announce it."""
    if folder.aborted_key_path.exists():
        raise KeyChangeError(
            "the previous change was aborted and is not finished: run rotate finish"
        )
    if stage_here(folder, site) == "switched":
        raise KeyChangeError("the new key is already in use: run rotate finish")
    if folder.public_key() != site.public_key:
        raise KeyChangeError(f"the public_key of {site.name} in the file is not this host's")
    key = folder.next_key()
    if key is None:
        key = keys.new_private_key()
        write_key(folder.next_key_path, key)
    set_keys({"next_public_key": keys.public_key(key)})


def switch(folder: HostFolder, site: Site, set_keys: SetKeys) -> None:
    """Replace the old key by the next one; the old one is deleted."""
    key = _announced_key(folder, site)
    public = keys.public_key(key)
    write_key(folder.private_key_path, key)
    set_keys({"public_key": public, "next_public_key": public})


def finish(folder: HostFolder, site: Site, set_keys: SetKeys) -> None:
    """Delete the next key: it is the current key now, or the change was aborted."""
    if stage_here(folder, site) == "begun":
        raise KeyChangeError("the new key is not in use yet: run rotate switch or rotate abort")
    if site.next_public_key is not None:
        set_keys({"next_public_key": None})
    for path in (folder.next_key_path, folder.aborted_key_path):
        path.unlink(missing_ok=True)


def abort(folder: HostFolder, site: Site, set_keys: SetKeys) -> None:
    """Go back to the old key. The next one is kept until the other gateways stop using it."""
    if stage_here(folder, site) == "switched":
        raise KeyChangeError("the old key is gone and the new one in use: run rotate finish")
    if site.next_public_key is not None and folder.public_key() == site.next_public_key:
        # `switch` was interrupted between its two writes.
        raise KeyChangeError("the old key is already gone: run rotate switch, which continues")
    if folder.next_key_path.exists():
        folder.next_key_path.rename(folder.aborted_key_path)
    elif not folder.aborted_key_path.exists():
        raise KeyChangeError("no key is being changed here")
    if site.next_public_key is not None:
        set_keys({"next_public_key": None})


def used_interfaces(machine: Machine, network: Network, site: Site) -> dict[str, frozenset[str]]:
    """The interfaces over which each linked site sends to this one, found by pings.

    The answer to a ping takes the far gateway's route. The set is empty if none came. Needs root.
    """
    links = [link for link in network.links_of(site.name) if link.via == "wireguard"]
    peers = [network.site(link.other(site.name)) for link in links]
    before = _received(machine)
    for peer in peers:
        own, far = str(site.tunnel_address), str(peer.tunnel_address)
        words = ["ping", "-n", "-q", "-i", "0.2", "-W", "1", "-c", str(_PINGS)]
        machine.run([*words, "-s", str(PROBE_BYTES), "-I", own, far], timeout_s=10)
    grown = {key: value - before.get(key, 0) for key, value in _received(machine).items()}
    return {
        peer.name: frozenset(
            interface
            for (interface, key), count in grown.items()
            if key in (peer.public_key, peer.next_public_key) and count >= PROBE_BYTES
        )
        for peer in peers
    }


def not_moved(used: Mapping[str, frozenset[str]], site: Site, *, spare: bool) -> dict[str, str]:
    """The sites that do not send over that interface alone, with the reason."""
    wanted = carries(site, spare=spare)
    return {
        name: f"sends over {' and '.join(sorted(found))}" if found else "does not answer"
        for name, found in used.items()
        if found != {wanted}
    }


def _announced_key(folder: HostFolder, site: Site) -> str:
    key = folder.next_key()
    if key is None or site.next_public_key is None or folder.aborted_key_path.exists():
        raise KeyChangeError("no key is being changed here: run rotate begin")
    if keys.public_key(key) != site.next_public_key:
        raise KeyChangeError(f"{folder.next_key_path} is not the next_public_key of the file")
    return key


def _received(machine: Machine) -> dict[tuple[str, str], int]:
    """Bytes by interface and public key of the peer, from `wg show all transfer`."""
    received = {}
    for line in machine.run(["wg", "show", "all", "transfer"]).out.splitlines():
        columns = line.split("\t")
        if len(columns) > 2 and columns[2].isdecimal():  # noqa: PLR2004
            received[columns[0], columns[1]] = int(columns[2])
    return received
