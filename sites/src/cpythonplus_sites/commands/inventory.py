"""`cpythonplus-sites inventory`: the gateways as an Ansible inventory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cpythonplus_sites.commands import options as common
from cpythonplus_sites.commands.network import site_called
from cpythonplus_sites.rendering import inventory
from cpythonplus_sites.site_file import load
from cpythonplus_sites.terminal import UsageError, show

if TYPE_CHECKING:
    import argparse

FORMATS = {"yaml": inventory.as_yaml, "json": inventory.as_json}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the action's arguments to a parser."""
    common.add_common(parser, site=False)
    add = parser.add_argument
    add("--format", choices=tuple(FORMATS), help="format of a static inventory (yaml)")
    add("--list", action="store_true", help="answer as a dynamic inventory of Ansible")
    add("--host", metavar="NAME", help="answer as a dynamic inventory for one host")


def run(options: argparse.Namespace) -> int:
    """Print the inventory."""
    if sum(map(bool, (options.format, options.list, options.host))) > 1:
        raise UsageError("--format, --list and --host cannot be combined")
    network = load(common.path_of_file(options))
    if options.host is not None:
        return show(inventory.host(network, site_called(network, options.host)).encode())
    text = (
        inventory.dynamic(network) if options.list else FORMATS[options.format or "yaml"](network)
    )
    return show(text.encode())
