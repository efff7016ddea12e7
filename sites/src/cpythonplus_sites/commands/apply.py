"""`cpythonplus-sites apply`: makes this gateway as the file says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cpythonplus_sites import agreement
from cpythonplus_sites.applying import (
    ApplyRunningError,
    Outcome,
    apply,
    await_sessions,
    only_one,
)
from cpythonplus_sites.commands import options as common
from cpythonplus_sites.commands.confirm import add_yes, agreed
from cpythonplus_sites.commands.gateway import (
    add_no_systemd,
    add_tune,
    agreement_of,
    find,
    need_root,
    need_trusted_program,
    plain_errors,
)
from cpythonplus_sites.commands.plan import line, remarks, text
from cpythonplus_sites.commands.status import said
from cpythonplus_sites.health import examine
from cpythonplus_sites.live import endpoint_hosts, look, resolved, tunnels
from cpythonplus_sites.machine import Machine
from cpythonplus_sites.planning import is_fresh, plan
from cpythonplus_sites.secrets import SecretError
from cpythonplus_sites.terminal import Parser, carry_out, complain, show
from cpythonplus_sites.watching import path, remember, watch

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from cpythonplus_sites.commands.gateway import Gateway
    from cpythonplus_sites.heard import Heard
    from cpythonplus_sites.steps import Plan, Step

    Addresses = Mapping[str, tuple[str, ...]]

NOT_AS_IT_SHOULD_BE_STATUS = 1
COMMAND = "cpythonplus-sites apply"
CHANGED_MEANWHILE = "the gateway or the file was changed meanwhile; the plan is now another one"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the action's arguments to a parser."""
    common.add_common(parser)
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
            if options.endpoints_only:  # the timer, whose unit is there: links are to go on
                return _follow(gateway, options)
            gateway.folder.check()
            need_trusted_program(Machine(), options)
            return _at_once(gateway, options) if options.yes else _after_asking(gateway, options)
    except ApplyRunningError as error:
        complain(COMMAND, str(error))
        return NOT_AS_IT_SHOULD_BE_STATUS


def main(words: list[str]) -> int:
    """Carry out the action with these arguments, as a part of another one."""
    parser = Parser(prog=COMMAND, allow_abbrev=False)
    add_arguments(parser)
    return carry_out(COMMAND, lambda found: run(parser.parse_args(found)), words)


def _follow(gateway: Gateway, options: argparse.Namespace) -> int:
    """What the timer does. Tells on standard error, which is its journal, what it changes."""
    while (status := _follow_once(gateway, options)) is None:
        gateway = find(options)  # what was heard is old by now, and so may be the file
    return status


def _follow_once(gateway: Gateway, options: argparse.Namespace) -> int | None:
    """None where another run had to be waited for."""
    machine = Machine()
    heard = watch(machine, gateway.network, gateway.wanted)  # it takes seconds: without the lock
    outcome: Outcome | None = Outcome(())
    if heard.switches:
        # Before a name is looked up: where UDP is blocked, that may take all of its time.
        unknown: Addresses = dict.fromkeys(endpoint_hosts(gateway.wanted), ())
        outcome = _follow_with(gateway, options, heard, unknown)
    if heard.calls:
        agreement_of(machine, gateway, _alive(machine, gateway))
    if heard.calls and outcome is not None and outcome.failed is None:
        done = outcome.done
        more = _follow_with(gateway, options, heard, resolved(machine, gateway.wanted))
        outcome = None if more is None else replace(more, done=(*done, *more.done))
    if outcome is None:
        return None
    for switch in heard.switches if outcome.failed is None else ():
        _say(switch)
    if outcome.failed is not None:
        _say(f"{outcome.failed.description}: {outcome.reason}")
    else:
        try:
            remember(machine, gateway.network, heard.remembered)
        except (OSError, SecretError) as error:  # the links are as they should be all the same
            _say(f"{path(gateway.network)}: {error}")
    show(result(gateway.site.name, outcome))
    return 0 if outcome.is_good else NOT_AS_IT_SHOULD_BE_STATUS


def _alive(machine: Machine, gateway: Gateway) -> list[str]:
    """The neighbours to which something can be sent without a new session.

    One over WireGuard with keepalive = 0 is left in peace while nobody uses it.
    """
    live, now_s = tunnels(machine), machine.now_s()
    fresh = {end.public_key for x in live.values() for end in x.peers if is_fresh(end, now_s)}
    wanted = gateway.wanted
    names = [end.site for x in wanted.tunnels for end in x.peers if end.public_key in fresh]
    return list(dict.fromkeys([*names, *(x.site for x in wanted.ssh)]))


def _follow_with(
    gateway: Gateway, options: argparse.Namespace, heard: Heard, addresses: Addresses
) -> Outcome | None:
    """Nothing is done, and None returned, where another run had to be waited for."""
    with only_one(gateway.folder.path, tell=_say) as had_to_wait:
        if had_to_wait:
            return None
        return apply(
            Machine(),
            gateway.wanted,
            endpoints_only=True,
            systemd=not options.no_systemd,
            heard=heard,
            addresses=addresses,
            tell=lambda step: _say(line(step)),
        )


def _at_once(gateway: Gateway, options: argparse.Namespace) -> int:
    addresses = resolved(Machine(), gateway.wanted)
    with only_one(gateway.folder.path, tell=_say) as had_to_wait:
        if had_to_wait:  # for a run that may have had a newer file
            gateway = find(options)
        outcome = _apply(gateway, options, addresses)
    return _close(gateway, outcome)


def _after_asking(gateway: Gateway, options: argparse.Namespace) -> int:
    """Nothing is locked while a person thinks: the timer would fail every minute."""
    while True:
        addresses = resolved(Machine(), gateway.wanted)
        found = _planned(gateway, options, addresses)
        show(text(gateway.site.name, found))
        if found.steps and not agreed():
            return NOT_AS_IT_SHOULD_BE_STATUS
        outcome = None
        with only_one(gateway.folder.path, tell=_say):
            gateway = find(options)
            if _planned(gateway, options, addresses).steps == found.steps:
                outcome = _apply(gateway, options, addresses)
        if outcome is not None:
            return _close(gateway, outcome)
        _say(CHANGED_MEANWHILE)


def _planned(gateway: Gateway, options: argparse.Namespace, addresses: Addresses) -> Plan:
    systemd = not options.no_systemd
    live = look(Machine(), gateway.wanted, systemd=systemd, addresses=addresses)
    return plan(gateway.wanted, live)


def _apply(gateway: Gateway, options: argparse.Namespace, addresses: Addresses) -> Outcome:
    machine, wanted, systemd = Machine(), gateway.wanted, not options.no_systemd
    outcome = apply(machine, wanted, systemd=systemd, addresses=addresses, tell=_tell)
    if outcome.is_good and await_sessions(machine, wanted):
        # Another gateway changes its key, and the session with the new one is there now.
        more = apply(machine, wanted, systemd=systemd, addresses=addresses, tell=_tell)
        outcome = replace(more, done=(*outcome.done, *more.done))
    agreement.note(machine, gateway.folder)
    return outcome


def _close(gateway: Gateway, outcome: Outcome) -> int:
    """Say what was done, and look at the links, which takes seconds: without the lock."""
    show(result(gateway.site.name, outcome))
    if outcome.failed is not None:
        return NOT_AS_IT_SHOULD_BE_STATUS
    machine = Machine()
    found = agreement_of(machine, gateway)
    reaches = examine(machine, gateway.network, gateway.wanted, agreement=found)
    show("".join(f"  {each}\n" for each in said(reaches)))
    is_well = not any(reach.side == "here" for reach in reaches)
    return 0 if outcome.is_good and is_well else NOT_AS_IT_SHOULD_BE_STATUS


def _say(message: str) -> None:
    complain(COMMAND, message)


def _tell(step: Step) -> None:
    show(f"  {line(step)}\n")


def result(name: str, outcome: Outcome, *, again: str = COMMAND) -> str:
    """What was done, and where it stopped.  again: the command that continues from there."""
    count = len(outcome.done)
    done = f"{count} step{'s' * (count != 1)} done"
    is_idle = not count and not outcome.missed
    lines = [f"{name}: nothing to do" if is_idle else f"{name}: {done}"]
    if outcome.failed is not None:
        lines = [f"{name}: {done}, then stopped", f"  ! {outcome.failed.description}"]
        lines += [f"    {outcome.reason}"]
        lines += [f"  - not done: {step.description}" for step in outcome.left]
        lines += [f"  {again} continues from here."]
    lines += [f"  ! {step.description}: {reason}" for step, reason in outcome.missed]
    return "".join(f"{each}\n" for each in [*lines, *remarks(outcome.obstacles, outcome.notes)])
