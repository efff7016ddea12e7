"""`cpythonplus-sites apply`: makes this gateway as the file says."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from cpythonplus_sites import agreement, confirming
from cpythonplus_sites.applying import (
    ApplyRunningError,
    Outcome,
    apply,
    await_sessions,
    only_one,
)
from cpythonplus_sites.commands import down
from cpythonplus_sites.commands import options as common
from cpythonplus_sites.commands.asking import add_yes, agreed
from cpythonplus_sites.commands.gateway import (
    add_no_systemd,
    add_tune,
    agreement_of,
    find,
    need_root,
    need_trusted_program,
    plain_errors,
)
from cpythonplus_sites.commands.outcome import NOT_AS_IT_SHOULD_BE_STATUS, result
from cpythonplus_sites.commands.plan import line, text
from cpythonplus_sites.commands.status import said
from cpythonplus_sites.health import examine
from cpythonplus_sites.heard import Heard
from cpythonplus_sites.live import SYSTEMD_RUNS, endpoint_hosts, look, resolved, tunnels
from cpythonplus_sites.machine import Machine
from cpythonplus_sites.planning import is_fresh, plan
from cpythonplus_sites.secrets import SecretError
from cpythonplus_sites.terminal import Parser, UsageError, carry_out, complain, show
from cpythonplus_sites.this_host import program
from cpythonplus_sites.watching import path, remember, watch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cpythonplus_sites.commands.gateway import Gateway
    from cpythonplus_sites.host_folder import HostFolder
    from cpythonplus_sites.model import Network
    from cpythonplus_sites.steps import Plan, Step
    from cpythonplus_sites.wanted import Wanted

    Addresses = Mapping[str, tuple[str, ...]]

COMMAND = "cpythonplus-sites apply"
LEAST_TRIAL_S, MOST_TRIAL_S = 1, 24 * 3600
MOST_TRIES, TRY_S = 4, 6.0
"""The number of addresses, and seconds for each: an unanswered handshake is repeated after 5 s."""

ON_TRIAL = """\
on trial for {0} s: cpythonplus-sites confirm keeps it, or else the file from before comes back
"""
CONFIRMED_SO = "what was applied on trial before is confirmed by this apply\n"
CHANGED_MEANWHILE = "the gateway or the file was changed meanwhile; the plan is now another one"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the action's arguments to a parser."""
    common.add_common(parser)
    add_tune(parser)
    add = parser.add_argument
    add_yes(parser)
    add(
        "--confirm",
        type=_limit,
        metavar="TIME",
        help="go back to the file from before, unless confirmed within TIME, such as 5m",
    )
    add(
        "--endpoints-only", action="store_true", help="only update endpoints by DNS, without asking"
    )
    add_no_systemd(parser)


def _need_a_file_of_its_own(folder: HostFolder, options: argparse.Namespace) -> None:
    """Raise UsageError if the file is the copy in the host folder: a trial goes back to that."""
    path = common.path_of_file(options)
    if path.resolve() == folder.sites_path.resolve():
        raise UsageError(
            f"--confirm would go back to {path}, the very file that it is to try: edit a copy in "
            "another folder, and name it with --file"
        )


def _limit(text: str) -> float:
    match = re.fullmatch(r"([0-9]{1,5})(s|m|h)", text)
    found = int(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]] if match else 0
    if not LEAST_TRIAL_S <= found <= MOST_TRIAL_S:
        raise argparse.ArgumentTypeError(f"expected a time from 1s to 24h, got {text!r}")
    return float(found)


def run(options: argparse.Namespace) -> int:
    """Show the plan, ask, and carry it out."""
    if options.confirm and options.endpoints_only:
        raise UsageError("--confirm and --endpoints-only cannot be combined")
    try:
        with plain_errors():
            gateway = find(options)
            need_root("apply")
            if options.confirm:
                _need_a_file_of_its_own(gateway.folder, options)
            if options.endpoints_only:  # for the timer, whose unit exists: links must not stop
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


def go_back(folder: HostFolder, *, no_systemd: bool) -> int:
    """End a trial: apply the file from before, or take everything down if there was none."""
    found = confirming.trial(Machine(), folder)
    words = ["--yes", "--host-dir", str(folder.path)] + ["--no-systemd"] * no_systemd
    if found is not None and not found.has_before:
        _say("it was not confirmed, and nothing was applied before: taking it down")
        return down.main(words)
    _say("it was not confirmed: going back to the file from before")
    parser = Parser(prog=COMMAND, allow_abbrev=False)
    add_arguments(parser)
    options = parser.parse_args([*words, "--file", str(folder.before_path)])
    options.is_going_back = True
    return carry_out(COMMAND, lambda _: run(options), [])


def _is_late(gateway: Gateway) -> bool:
    found = confirming.trial(Machine(), gateway.folder)
    return found is not None and not found.left_s(Machine(), gateway.folder)


def _follow(gateway: Gateway, options: argparse.Namespace) -> int:
    """Run as the timer; changes are reported on standard error, which goes to the journal."""
    if _is_late(gateway):
        return go_back(gateway.folder, no_systemd=options.no_systemd)
    while (status := _follow_once(gateway, options)) is None:
        gateway = find(options)  # after waiting, the result of the look is old, and the file may be
    return status


def _follow_once(gateway: Gateway, options: argparse.Namespace) -> int | None:
    """Look and apply once; returns the status, or None if it had to wait for another run."""
    machine = Machine()
    heard = watch(machine, gateway.network, gateway.wanted)  # takes seconds: without the lock
    outcome: Outcome | None = Outcome(())
    if heard.switches:
        # Routes switch before names are looked up: if UDP is blocked, a look-up may time out.
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
    show(result(gateway.site.name, outcome, again=COMMAND))
    return 0 if outcome.is_good else NOT_AS_IT_SHOULD_BE_STATUS


def _alive(machine: Machine, gateway: Gateway) -> list[str]:
    """The neighbours to which packets can be sent without a new session.

    An unused link over WireGuard with keepalive = 0 is not woken up.
    """
    fresh = _fresh(machine)
    wanted = gateway.wanted
    names = [end.site for x in wanted.tunnels for end in x.peers if end.public_key in fresh]
    return list(dict.fromkeys([*names, *(x.site for x in wanted.ssh)]))


def _follow_with(
    gateway: Gateway, options: argparse.Namespace, heard: Heard, addresses: Addresses
) -> Outcome | None:
    """Apply under the lock; do nothing and return None if it had to wait for another run."""
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
            tell=lambda step: None if step.is_quiet else _say(line(step)),
        )


def _at_once(gateway: Gateway, options: argparse.Namespace) -> int:
    addresses = resolved(Machine(), gateway.wanted)
    with only_one(gateway.folder.path, tell=_say) as had_to_wait:
        if had_to_wait:  # the run before may have had a newer file
            gateway = find(options)
        outcome = _apply(gateway, options, addresses)
    return _close(gateway, outcome)


def _after_asking(gateway: Gateway, options: argparse.Namespace) -> int:
    """Ask, then apply. The lock is not held while a person thinks: the timer would fail."""
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
    if options.confirm:
        _begin_trial(machine, gateway, options)
    elif not _is_going_back(options):
        _end_trial(machine, gateway)
    outcome = apply(machine, wanted, systemd=systemd, addresses=addresses, tell=_tell)
    if outcome.is_good and await_sessions(machine, wanted):
        # Plan again: another gateway changes its key, and its new key has a session now.
        more = apply(machine, wanted, systemd=systemd, addresses=addresses, tell=_tell)
        outcome = replace(more, done=(*outcome.done, *more.done))
    if outcome.failed is None and not (systemd and machine.exists(SYSTEMD_RUNS)):
        _try_addresses(machine, wanted, gateway.network, addresses)
    try:
        agreement.note(machine, gateway.folder)
    except (OSError, SecretError) as error:  # the links are as they should be all the same
        _say(f"{gateway.folder.editions_path}: {error}")
    if _is_going_back(options) and outcome.failed is None:
        confirming.end(machine, gateway.folder)
    return outcome


def _try_addresses(
    machine: Machine, wanted: Wanted, network: Network, addresses: Addresses
) -> None:
    """Try all addresses of silent sites once: without systemd, no timer tries them later."""
    peers = [peer for tunnel in wanted.tunnels for peer in tunnel.peers]
    found = {x.public_key: sum(len(addresses.get(y.host, ())) for y in x.endpoints) for x in peers}
    several = {key for key, count in found.items() if count > 1}
    for _ in range(min(max(found.values(), default=0) - 1, MOST_TRIES)):
        if several <= _fresh(machine):
            return
        machine.pause(TRY_S)
        heard = Heard(stuck=watch(machine, network, wanted).stuck)
        tried = apply(
            machine, wanted, endpoints_only=True, systemd=False, heard=heard, addresses=addresses
        )
        if not tried.done:
            return


def _fresh(machine: Machine) -> set[str]:
    """The public keys with which there is a session."""
    now_s = machine.now_s()
    found = (end for tunnel in tunnels(machine).values() for end in tunnel.peers)
    return {end.public_key for end in found if is_fresh(end, now_s)}


def _is_going_back(options: argparse.Namespace) -> bool:
    return getattr(options, "is_going_back", False)


def _begin_trial(machine: Machine, gateway: Gateway, options: argparse.Namespace) -> None:
    """Start the process that waits, before any change: this process may be cut off by it."""
    confirming.begin(machine, gateway.folder, options.confirm)
    words = [*program(), "confirm", "--wait", "--host-dir", str(gateway.folder.path)]
    if options.no_systemd or not machine.exists(SYSTEMD_RUNS):
        machine.start([*words, "--no-systemd"])
    else:
        # The process gets its own unit: one in the log-in's session may be killed at its end.
        done = machine.run(["systemd-run", "--quiet", "--collect", "--", *words])
        if done.status != 0:
            machine.start(words)
    show(ON_TRIAL.format(f"{options.confirm:g}"))


def _end_trial(machine: Machine, gateway: Gateway) -> None:
    if confirming.trial(machine, gateway.folder) is not None:
        confirming.end(machine, gateway.folder)
        show(CONFIRMED_SO)


def _close(gateway: Gateway, outcome: Outcome) -> int:
    """Report the outcome, and look at the links; that takes seconds, so the lock is not held."""
    show(result(gateway.site.name, outcome, again=COMMAND))
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
