"""`cpythonplus-sites apply`: makes this gateway as the file says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cpythonplus_sites.applying import ApplyRunningError, apply, await_sessions, only_one
from cpythonplus_sites.commands import sites
from cpythonplus_sites.commands.confirm import add_yes, agreed
from cpythonplus_sites.commands.gateway import (
    add_no_systemd,
    add_tune,
    find,
    need_root,
    need_trusted_program,
    plain_errors,
)
from cpythonplus_sites.commands.plan import line, remarks, text
from cpythonplus_sites.live import look, resolved
from cpythonplus_sites.machine import Machine
from cpythonplus_sites.planning import plan
from cpythonplus_sites.terminal import complain, show

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from cpythonplus_sites.applying import Outcome
    from cpythonplus_sites.commands.gateway import Gateway
    from cpythonplus_sites.planning import Plan, Step

    Addresses = Mapping[str, tuple[str, ...]]

NOT_AS_IT_SHOULD_BE_STATUS = 1
COMMAND = "cpythonplus-sites apply"
CHANGED_MEANWHILE = "the gateway or the file was changed meanwhile; the plan is now another one"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the action's arguments to a parser."""
    sites.add_common(parser)
    add_tune(parser)
    add = parser.add_argument
    add_yes(parser)
    add(
        "--endpoints-only", action="store_true", help="only update endpoints by DNS, without asking"
    )
    add_no_systemd(parser)


def run(options: argparse.Namespace) -> int:
    """Show the plan, ask, and carry it out."""
    try:
        with plain_errors():
            gateway = find(options)
            need_root("apply")
            if not options.endpoints_only:  # the timer, whose unit is there: links are to go on
                gateway.folder.check()
                need_trusted_program(Machine(), options)
            if options.yes or options.endpoints_only:
                return _at_once(gateway, options)
            return _after_asking(gateway, options)
    except ApplyRunningError as error:
        complain(COMMAND, str(error))
        return NOT_AS_IT_SHOULD_BE_STATUS


def _at_once(gateway: Gateway, options: argparse.Namespace) -> int:
    addresses = resolved(Machine(), gateway.wanted)
    with only_one(gateway.folder.path, tell=_say) as had_to_wait:
        if had_to_wait:  # for a run that may have had a newer file
            gateway = find(options)
        return _apply(gateway, options, addresses)


def _after_asking(gateway: Gateway, options: argparse.Namespace) -> int:
    """Nothing is locked while a person thinks: the timer would fail every minute."""
    while True:
        addresses = resolved(Machine(), gateway.wanted)
        found = _planned(gateway, options, addresses)
        show(text(gateway.site.name, found))
        if found.steps and not agreed():
            return NOT_AS_IT_SHOULD_BE_STATUS
        with only_one(gateway.folder.path, tell=_say):
            gateway = find(options)
            if _planned(gateway, options, addresses).steps == found.steps:
                return _apply(gateway, options, addresses)
        _say(CHANGED_MEANWHILE)


def _planned(gateway: Gateway, options: argparse.Namespace, addresses: Addresses) -> Plan:
    systemd = not options.no_systemd
    live = look(Machine(), gateway.wanted, systemd=systemd, addresses=addresses)
    return plan(gateway.wanted, live)


def _apply(gateway: Gateway, options: argparse.Namespace, addresses: Addresses) -> int:
    machine, wanted, name = Machine(), gateway.wanted, gateway.site.name
    systemd = not options.no_systemd
    outcome = apply(
        machine,
        wanted,
        endpoints_only=options.endpoints_only,
        systemd=systemd,
        addresses=addresses,
        tell=_tell,
    )
    if outcome.is_good and not options.endpoints_only and await_sessions(machine, wanted):
        # Another gateway changes its key, and the session with the new one is there now.
        more = apply(machine, wanted, systemd=systemd, addresses=addresses, tell=_tell)
        outcome = replace(more, done=(*outcome.done, *more.done))
    show(result(name, outcome))
    return 0 if outcome.is_good else NOT_AS_IT_SHOULD_BE_STATUS


def _say(message: str) -> None:
    complain(COMMAND, message)


def _tell(step: Step) -> None:
    show(f"  {line(step)}\n")


def result(name: str, outcome: Outcome, *, again: str = COMMAND) -> str:
    """What was done, and where it stopped.  again: the command that continues from there."""
    count = len(outcome.done)
    done = f"{count} step{'s' * (count != 1)} done"
    lines = [f"{name}: {done}" if count else f"{name}: nothing to do"]
    if outcome.failed is not None:
        lines = [f"{name}: {done}, then stopped", f"  ! {outcome.failed.description}"]
        lines += [f"    {outcome.reason}"]
        lines += [f"  - not done: {step.description}" for step in outcome.left]
        lines += [f"  {again} continues from here."]
    return "".join(f"{each}\n" for each in [*lines, *remarks(outcome.obstacles, outcome.notes)])
