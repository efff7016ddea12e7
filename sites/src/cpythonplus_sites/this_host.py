"""The values of this host for rendering, from the folder of its keys and its state."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from zipimport import zipimporter

import cpythonplus_sites
from cpythonplus_sites import advertised, live
from cpythonplus_sites.machine import Machine
from cpythonplus_sites.passage import lan_device
from cpythonplus_sites.rendering import Host, closed, forwarding
from cpythonplus_sites.trust import weak_spot, weak_spot_below
from cpythonplus_sites.wanted import preshared_ends

if TYPE_CHECKING:
    from cpythonplus_sites.host_folder import HostFolder
    from cpythonplus_sites.model import Network, Site, Subnet


def host_of(folder: HostFolder, network: Network, site: Site) -> Host:
    """This host's values for the files of its own `site`; missing keys are left out.

    Raises SecretError for a key that others can read, RenderingError for an odd folder.
    """
    preshared = {}
    if network.preshared:
        for link in network.links_of(site.name):
            far = link.other(site.name)
            ends = preshared_ends(network, site.name, far, folder.public_key())
            key = ends and folder.preshared_key(*ends, of_names=network.preshared_of_names)
            if key:
                preshared[far] = key
    found = Host(
        folder=PurePosixPath(folder.path.absolute()),
        program=program(),
        private_key=folder.private_key(),
        preshared_keys=preshared,
        advertised=advertised.interfaces(Machine(), Path(forwarding.sysctl_path(network))),
    )
    return replace(found, own_subnets=_own_subnets(Machine(), network, site, found))


def _own_subnets(machine: Machine, network: Network, site: Site, host: Host) -> tuple[Subnet, ...]:
    try:
        before = machine.read(Path(closed.batch_path(network, host))) or ""
        lan = lan_device(live.devices(machine), site)
        return closed.own_subnets(site, live.routes(machine), lan, before)
    except OSError:  # `render` needs no iproute2
        return ()


def program() -> tuple[str, ...]:
    """The command of this package for units; it may be in an environment, or a zipapp."""
    found = archive()
    if not sys.executable:
        return ("cpythonplus-sites",) if found is None else (str(found),)
    if found is not None:
        return (sys.executable, str(found))
    return (sys.executable, "-m", "cpythonplus_sites")


def archive() -> Path | None:
    """The absolute path of the zipapp that this package was started from; None if it is a folder.

    Links in the path are kept: if a link is moved to a new version, the unit uses that version.
    """
    loader = getattr(cpythonplus_sites.__spec__, "loader", None)
    return Path(loader.archive).absolute() if isinstance(loader, zipimporter) else None


def foreign_hand() -> str | None:
    """One line on a part of the unit's program that others than root could change; None if none.

    The interpreter, its library and this package are checked, with the folders above them.
    """
    zipped = archive()
    package = zipped or Path(cpythonplus_sites.__file__).parent
    for path in (sys.executable, Path(os.__file__).parent, package):
        found = weak_spot(path) if path else None
        if found is not None:
            return found
    return weak_spot_below(package) if zipped is None else None
