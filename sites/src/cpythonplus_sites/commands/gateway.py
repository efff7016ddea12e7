"""The common part of plan, apply and status: this host's site, and its wanted state."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cpythonplus_sites import agreement, differences, rotation, tuning
from cpythonplus_sites.agreement import Agreement
from cpythonplus_sites.commands import keys as key_commands
from cpythonplus_sites.commands import options as common
from cpythonplus_sites.host_folder import HostFolder
from cpythonplus_sites.live import SYSTEMD_RUNS
from cpythonplus_sites.machine import Machine
from cpythonplus_sites.problems import SiteFileError
from cpythonplus_sites.record import NOTHING, Record
from cpythonplus_sites.rendering import Host, RenderingError, names, render, units, withdrawn
from cpythonplus_sites.secrets import SecretError
from cpythonplus_sites.site_file import load
from cpythonplus_sites.terminal import UsageError
from cpythonplus_sites.this_host import foreign_hand, host_of, program
from cpythonplus_sites.wanted import Keys, PlainFile, want

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator

    from cpythonplus_sites.model import Network, Site
    from cpythonplus_sites.wanted import Wanted


@dataclass(frozen=True)
class Gateway:
    """This host as the site file describes it."""

    network: Network
    site: Site
    wanted: Wanted
    folder: HostFolder


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn errors of keys, files and configurations into one line each."""
    with key_commands.plain_errors():
        try:
            yield
        except (RenderingError, LookupError) as error:
            raise UsageError(str(error)) from None


def find(options: argparse.Namespace) -> Gateway:
    """Read the file and this host's keys; changes nothing. Raises the errors of `plain_errors`."""
    path = common.path_of_file(options)
    network = load(path)
    folder = HostFolder(Path(options.host_dir).absolute())
    private = folder.private_key()
    if private is None:
        raise UsageError(f"no {folder.private_key_path}; cpythonplus-sites keygen creates it")
    site = _site(network, folder, options.site, path)
    if site.public_key is None:
        raise UsageError(
            f"{path}: sites.{site.name} has no public_key; "
            f"cpythonplus-sites keygen --site {site.name} writes it"
        )
    public, next_public = folder.public_key(), folder.next_public_key()
    preshared = _preshared(network, folder)
    keys = Keys(private, folder.next_key(), preshared, public, next_public)
    tuned = tuning_files(network, options, Machine())
    copy = PlainFile(folder.sites_path, path.read_text("utf-8"))
    host = host_of(folder, network, site)
    wanted = _want(network, site, keys, host, folder, more=(*tuned, copy))
    remarks = _remarks(network, site, folder, copy.text)
    wanted = replace(wanted, before=_before(keys, host, folder), remarks=remarks)
    return Gateway(network, site, wanted, folder)


def _want(
    network: Network,
    site: Site,
    keys: Keys,
    host: Host,
    folder: HostFolder,
    *,
    more: tuple[PlainFile, ...] = (),
) -> Wanted:
    return want(
        network,
        site,
        keys,
        stage=rotation.stage_of(site, next_key=folder.next_public_key()),
        files=(*render(network, site, host), *more),
        withdrawn=withdrawn(network, site),
        units=units(network, site),
        changing_units=names.changing_units(network),
        tunnel_user=names.tunnel_user(network),
        own_subnets=host.own_subnets,
        record=folder.record_path,
        kept=(tuning.path(network),),
    )


def _remarks(network: Network, site: Site, folder: HostFolder, text: str) -> tuple[str, ...]:
    """The changes from the network that was applied here last to the file, in words."""
    machine = Machine()
    try:
        if machine.read(folder.sites_path) in (None, text):
            return ()
        known = agreement.read_known(machine.read(folder.editions_path))
        restored = agreement.is_restored(agreement.here(machine, folder), text, known)
        found = differences.told(load(folder.sites_path), network, site.name)
    except (SiteFileError, OSError):
        return ()
    return tuple(filter(None, (restored, *found)))


def _before(keys: Keys, host: Host, folder: HostFolder) -> Record:
    """Return the record of a version that kept none, by its copy of the file."""
    if folder.record_path.exists() or not folder.sites_path.exists():
        return NOTHING
    try:
        network = load(folder.sites_path)
        site = folder.site_in(network)
        if site is None:
            return NOTHING
        return _want(network, site, keys, Host(folder=host.folder), folder).written
    except (SiteFileError, OSError, LookupError, RenderingError):
        return NOTHING


def add_tune(parser: argparse.ArgumentParser) -> None:
    """Add the option that `tuning_files` reads."""
    add = parser.add_argument
    add(
        "--tune",
        action="store_true",
        help="also set TCP buffers for long distances; see sites tune",
    )


def add_no_systemd(parser: argparse.ArgumentParser) -> None:
    """Add the option for hosts, and tests, on which systemd is not used."""
    add = parser.add_argument
    add("--no-systemd", action="store_true", help="do not use systemd, as on hosts without it")


def tuning_files(
    network: Network, options: argparse.Namespace, machine: Machine
) -> tuple[PlainFile, ...]:
    """The file of kernel parameters for long distances, if the option asks for it."""
    if not getattr(options, "tune", False):
        return ()
    values = tuning.values(tuning.current(machine))
    return (PlainFile(tuning.path(network), tuning.text(values)),)


def _site(network: Network, folder: HostFolder, name: str | None, path: Path) -> Site:
    found = folder.site_in(network)
    if name is None:
        if found is None:
            raise UsageError(f"no site in {path} has this host's key ({folder.path}); give --site")
        return found
    if all(site.name != name for site in network.sites):
        known = ", ".join(site.name for site in network.sites)
        raise UsageError(f"{path}: there is no site {name!r}; there are {known}")
    # With another site's key, the far ends would drop this site's packets silently.
    if found is None or found.name != name:
        raise UsageError(f"the key in {folder.path} is not that of site {name!r} in {path}")
    return found


def _preshared(network: Network, folder: HostFolder) -> Callable[[str, str], str] | None:
    if not network.preshared:
        return None
    if folder.preshared_secret() is None:
        raise UsageError(
            f"no {folder.preshared_path}; cpythonplus-sites keygen --secret"
            " creates it at the first "
            "gateway, --secret-from takes it to the others"
        )
    of_names = network.preshared_of_names
    return lambda one, other: folder.preshared_key(one, other, of_names=of_names) or ""


def need_trusted_program(machine: Machine, options: argparse.Namespace) -> None:
    """Raise UsageError if the timer would run, as root, a program that others can change."""
    if options.no_systemd or not machine.exists(SYSTEMD_RUNS):
        return  # no unit is written
    found = foreign_hand()
    if found is not None:
        raise UsageError(
            f"a unit would run {' '.join(program())} as root, and {found}; install "
            "cpythonplus-sites where only root can write, as in a venv below /opt (or give "
            "--no-systemd)"
        )


def agreement_of(
    machine: Machine, gateway: Gateway, sites: Iterable[str] | None = None
) -> Agreement:
    """Exchange digests of the applied file with neighbours; best effort.  sites: by default all."""
    network, name = gateway.network, gateway.site.name
    if sites is None:
        sites = [link.other(name) for link in network.links_of(name)]
    try:
        return agreement.exchange(machine, network, name, gateway.folder, sites)
    except (OSError, SecretError):
        return Agreement()


def need_root(what: str) -> None:
    """Raise UsageError unless this process may look at and change tunnels."""
    if os.geteuid() != 0:
        raise UsageError(f"{what} requires root")
