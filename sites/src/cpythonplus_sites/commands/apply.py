"""`cpythonplus-sites apply`: makes this gateway as the file says."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from cpythonplus_sites.applying import (
    ApplyRunningError,
    Outcome,
    apply,
    await_sessions,
    only_one,
)
from cpythonplus_sites.commands import sites
from cpythonplus_sites.commands.gateway import (
    add_no_systemd,
    add_tune,
    find,
    need_root,
    need_trusted_program,
    plain_errors,
)
from cpythonplus_sites.commands.plan import line, remarks, text
from cpythonplus_sites.commands.status import said
from cpythonplus_sites.health import examine
from cpythonplus_sites.live import look
from cpythonplus_sites.machine import Machine
from cpythonplus_sites.planning import plan
from cpythonplus_sites.secrets import SecretError
from cpythonplus_sites.terminal import UsageError, complain, show
from cpythonplus_sites.watching import path, remember, watch

if TYPE_CHECKING:
    import argparse

    from cpythonplus_sites.commands.gateway import Gateway
    from cpythonplus_sites.steps import Step

NOT_AS_IT_SHOULD_BE_STATUS = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the action's arguments to a parser."""
    sites.add_common(parser)
    add_tune(parser)
    add = parser.add_argument
    add("--yes", action="store_true", help="do not ask for confirmation")
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
            if options.endpoints_only:  # the timer, whose unit is there: links are to go on
                return _follow(gateway, options)
            gateway.folder.check()
            need_trusted_program(Machine(), options)
            with only_one(gateway.folder.path):
                return _apply(gateway, options)
    except ApplyRunningError as error:
        complain("cpythonplus-sites apply", str(error))
        return NOT_AS_IT_SHOULD_BE_STATUS


def _follow(gateway: Gateway, options: argparse.Namespace) -> int:
    """What the timer does. Tells on standard error, which is its journal, what it changes."""
    machine, network = Machine(), gateway.network
    heard = watch(machine, network, gateway.wanted)  # it takes seconds: without the lock
    outcome = Outcome(())
    if heard.calls:
        with only_one(gateway.folder.path):
            outcome = apply(
                machine,
                gateway.wanted,
                endpoints_only=True,
                systemd=not options.no_systemd,
                heard=heard,
                tell=lambda step: _log(line(step)),
            )
    for switch in heard.switches if outcome.failed is None else ():
        _log(switch)
    if outcome.failed is not None:
        _log(f"{outcome.failed.description}: {outcome.reason}")
    else:
        try:
            remember(machine, network, heard.remembered)
        except (OSError, SecretError) as error:  # the links are as they should be all the same
            _log(f"{path(network)}: {error}")
    show(_result(gateway.site.name, outcome))
    return 0 if outcome.is_good else NOT_AS_IT_SHOULD_BE_STATUS


def _log(text: str) -> None:
    complain("cpythonplus-sites apply", text)


def _apply(gateway: Gateway, options: argparse.Namespace) -> int:
    machine, name = Machine(), gateway.site.name
    systemd = not options.no_systemd
    if not options.yes:
        found = plan(gateway.wanted, look(machine, gateway.wanted, systemd=systemd))
        show(text(name, found))
        if found.steps and not _agreed():
            return NOT_AS_IT_SHOULD_BE_STATUS
    outcome = apply(machine, gateway.wanted, systemd=systemd, tell=_tell)
    if outcome.is_good and await_sessions(machine, gateway.wanted):
        # Another gateway changes its key, and the session with the new one is there now.
        more = apply(machine, gateway.wanted, systemd=systemd, tell=_tell)
        outcome = replace(more, done=(*outcome.done, *more.done))
    show(_result(name, outcome))
    if outcome.failed is not None:
        return NOT_AS_IT_SHOULD_BE_STATUS
    reaches = examine(machine, gateway.network, gateway.wanted)
    show("".join(f"  {each}\n" for each in said(reaches)))
    is_well = not any(reach.side == "here" for reach in reaches)
    return 0 if outcome.is_good and is_well else NOT_AS_IT_SHOULD_BE_STATUS


def _agreed() -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError("no terminal to ask for confirmation; --yes carries out the plan")
    try:
        return input("proceed? [y/N] ").strip().lower() in ("y", "yes")
    except (EOFError, KeyboardInterrupt):
        return False


def _tell(step: Step) -> None:
    show(f"  {line(step)}\n")


def _result(name: str, outcome: Outcome) -> str:
    count = len(outcome.done)
    done = f"{count} step{'s' * (count != 1)} done"
    is_idle = not count and not outcome.missed
    lines = [f"{name}: nothing to do" if is_idle else f"{name}: {done}"]
    if outcome.failed is not None:
        lines = [f"{name}: {done}, then stopped", f"  ! {outcome.failed.description}"]
        lines += [f"    {outcome.reason}"]
        lines += [f"  - not done: {step.description}" for step in outcome.left]
        lines += ["  cpythonplus-sites apply continues from here."]
    lines += [f"  ! {step.description}: {reason}" for step, reason in outcome.missed]
    return "".join(f"{each}\n" for each in [*lines, *remarks(outcome.obstacles, outcome.notes)])
