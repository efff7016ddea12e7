"""`cpythonplus-sites render`: the files of a gateway, to read or to copy there by hand."""

from __future__ import annotations

import argparse
import sys
from ipaddress import IPv4Address
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from cpythonplus_sites.commands import options as common
from cpythonplus_sites.commands.network import site_called
from cpythonplus_sites.files import PRIVATE_FOLDER_MODE, make_folder
from cpythonplus_sites.host_folder import HostFolder
from cpythonplus_sites.machine import ProgramError
from cpythonplus_sites.rendering import Host, RenderedFile, RenderingError, render
from cpythonplus_sites.rendering import readme as readmes
from cpythonplus_sites.rendering.static_routes import instructions
from cpythonplus_sites.secrets import SecretError, write_atomically
from cpythonplus_sites.site_file import load
from cpythonplus_sites.terminal import UsageError, show, suggestion
from cpythonplus_sites.this_host import host_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cpythonplus_sites.model import Network, Site

README_MODE = 0o644


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the action's arguments to a parser."""
    common.add_common(parser)
    add = parser.add_argument
    add(
        "--all",
        action="store_true",
        help="write the files of every site, in one folder each, without secrets",
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--out", type=Path, metavar="DIR", help="write all files below this folder")
    where.add_argument("--stdout", metavar="NAME", help="print one of them, such as wg-acme.conf")
    add(
        "--lan-router",
        type=_address,
        metavar="ADDRESS",
        help="the LAN's default gateway, for the DHCP option in static-routes.md",
    )


def run(options: argparse.Namespace) -> int:
    """Write or print the files."""
    if options.all and (options.stdout or options.site or options.lan_router):
        raise UsageError("--all requires --out")
    network = load(common.path_of_file(options))
    try:
        if options.all:
            for site in network.sites:
                files = render(network, site, Host())
                _write(options.out / site.name, files, readmes.readme(network, site, files))
            return 0
        return _one(options, network)
    except (RenderingError, SecretError, ProgramError) as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"{error.filename or options.out}: {error.strerror}") from None


def _one(options: argparse.Namespace, network: Network) -> int:
    folder = HostFolder(options.host_dir)
    site, host = _site_and_host(options, network, folder)
    files = render(network, site, host)
    if options.lan_router is not None:
        routes = instructions(network, site, host, router=options.lan_router)
        files = tuple(routes if file.path == routes.path else file for file in files)
    if options.stdout is not None:
        return show(_called(files, options.stdout).text.encode())
    _write(options.out, files, readmes.readme(network, site, files))
    return 0


def _site_and_host(
    options: argparse.Namespace, network: Network, folder: HostFolder
) -> tuple[Site, Host]:
    """The site to render, and the host's values, which have secrets only for its own site."""
    own = folder.site_in(network)
    site = own if options.site is None else site_called(network, options.site)
    if site is None:
        raise UsageError("no site has the key of this host; give --site NAME or --all")
    if site == own:
        return site, host_of(folder, network, site)
    reason = (
        f"{site.name} does not have the key of this host; its files are written without secrets"
    )
    print(f"cpythonplus-sites render: {reason}", file=sys.stderr)
    return site, Host(folder=PurePosixPath(folder.path.absolute()))


def _called(files: Sequence[RenderedFile], name: str) -> RenderedFile:
    found = [file for file in files if name in (str(file.path), file.path.name)]
    if len(found) == 1:
        return found[0]
    names = [file.path.name for file in files]
    if found:
        raise UsageError(f"there are several {name!r}; use the whole path")
    raise UsageError(f"no file is called {name!r}{suggestion(name, names)}: {', '.join(names)}")


def _write(folder: Path, files: Sequence[RenderedFile], readme: str) -> None:
    """Write all files below `folder`; if it is new, only its owner may enter it."""
    make_folder(folder, PRIVATE_FOLDER_MODE)
    for file in files:
        path = folder / file.path.relative_to("/")
        make_folder(path.parent)
        write_atomically(path, file.text, mode=file.mode)
    write_atomically(folder / readmes.NAME, readme, mode=README_MODE)


def _address(text: str) -> IPv4Address:
    try:
        return IPv4Address(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected an IPv4 address, got {text!r}") from None
