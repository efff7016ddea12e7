"""`cpythonplus-sites down`: this gateway leaves the network, until the next apply."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cpythonplus_sites import confirming
from cpythonplus_sites.applying import ApplyRunningError, carry_on, only_one
from cpythonplus_sites.commands import options as common
from cpythonplus_sites.commands.asking import add_yes, agreed
from cpythonplus_sites.commands.gateway import add_no_systemd, find, need_root, plain_errors
from cpythonplus_sites.commands.outcome import NOT_AS_IT_SHOULD_BE_STATUS, result
from cpythonplus_sites.commands.plan import line, text
from cpythonplus_sites.live import endpoint_hosts, look
from cpythonplus_sites.machine import Machine
from cpythonplus_sites.taking_down import plan_down
from cpythonplus_sites.terminal import Parser, carry_out, complain, show

if TYPE_CHECKING:
    import argparse

    from cpythonplus_sites.commands.gateway import Gateway
    from cpythonplus_sites.steps import Plan, Step

COMMAND = "cpythonplus-sites down"
STAYS = "files, keys and kernel settings stay; cpythonplus-sites apply brings the links up again"
CLOSED = "packets for the other sites are refused here, until then or until --clear-routes"
OPEN = "packets for the other sites now take the default route, unencrypted"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the action's arguments to a parser."""
    common.add_common(parser, default_file="the one that was applied last, in the host folder")
    add_yes(parser)
    parser.add_argument(
        "--clear-routes",
        action="store_true",
        help="also remove the `unreachable` routes to the other sites",
    )
    add_no_systemd(parser)


def main(words: list[str]) -> int:
    """Carry out the action with these arguments, as a part of another one."""
    parser = Parser(prog=COMMAND, allow_abbrev=False)
    add_arguments(parser)
    return carry_out(COMMAND, lambda found: run(parser.parse_args(found)), words)


def run(options: argparse.Namespace) -> int:
    """Show the plan, ask, and take the links down."""
    if options.file is None:
        # Not ./sites.toml: the links were made from the copy that `apply` left.
        copy = Path(options.host_dir) / "sites.toml"
        options.file = copy if copy.exists() else None
    try:
        with plain_errors():
            gateway = find(options)
            need_root("down")
            if not options.yes:
                found = _planned(gateway, options)
                show(text(gateway.site.name, found))
                if found.steps and not agreed():
                    return NOT_AS_IT_SHOULD_BE_STATUS
            with only_one(gateway.folder.path, tell=lambda words: complain(COMMAND, words)):
                return _take_down(gateway, options)
    except ApplyRunningError as error:
        complain(COMMAND, str(error))
        return NOT_AS_IT_SHOULD_BE_STATUS


def _planned(gateway: Gateway, options: argparse.Namespace) -> Plan:
    wanted = gateway.wanted
    unasked: dict[str, tuple[str, ...]] = dict.fromkeys(endpoint_hosts(wanted), ())
    live = look(Machine(), wanted, systemd=not options.no_systemd, addresses=unasked)
    return plan_down(wanted, live, routes_too=options.clear_routes)


def _take_down(gateway: Gateway, options: argparse.Namespace) -> int:
    confirming.end(Machine(), gateway.folder)
    outcome = carry_on(Machine(), lambda: _planned(gateway, options), _tell)
    show(result(gateway.site.name, outcome, again=COMMAND))
    if not outcome.is_good:
        return NOT_AS_IT_SHOULD_BE_STATUS
    return show(f"  - {STAYS}\n  - {OPEN if options.clear_routes else CLOSED}\n")


def _tell(step: Step) -> None:
    show(f"  {line(step)}\n")
