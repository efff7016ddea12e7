"""Carries out a plan, and plans again from the new state, until there is nothing left to do.

wg-quick and systemd set most of what an interface needs when they bring it up, so the remaining
steps are known only then. Planning again also shows a step that had no effect, and helps to find
a program that reverts a change.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cpythonplus_sites.live import look, resolved, tunnels
from cpythonplus_sites.planning import is_fresh, plan
from cpythonplus_sites.rotation import awaited
from cpythonplus_sites.secrets import SecretError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cpythonplus_sites.heard import Heard
    from cpythonplus_sites.machine import Machine
    from cpythonplus_sites.steps import Plan, Step
    from cpythonplus_sites.wanted import Wanted

ROUNDS = 5
"""One plan for an interface, one for what depends on it, one for an obstacle; if more plans are
needed, another program undoes the steps."""

STEP_TIMEOUT_S = 60
NO_EFFECT = "it was done, but has been undone by something else"
SESSION_PATIENCE_S = 12
"""A handshake without an answer is repeated every 5 s."""

SESSION_POLL_S = 0.2
LOCK_NAME = "apply.lock"
LOCK_PATIENCE_S = 60
"""A person and the timer may run at the same time; either normally takes seconds."""

LOCK_POLL_S = 0.1


class ApplyRunningError(Exception):
    """Another run held the lock of the same host folder for longer than LOCK_PATIENCE_S."""


@dataclass(frozen=True)
class Outcome:
    """The result of a run.

    failed: the step at which it stopped; reason: why, in one line.  left: the steps planned behind
    it.  obstacles, notes: those of the last plan.  missed: optional steps that failed, and why.
    """

    done: tuple[Step, ...]
    failed: Step | None = None
    reason: str = ""
    left: tuple[Step, ...] = ()
    obstacles: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    missed: tuple[tuple[Step, str], ...] = ()

    @property
    def is_good(self) -> bool:
        """Whether the gateway is now as it should be."""
        return self.failed is None and not self.obstacles and not self.missed


@contextmanager
def only_one(
    host_folder: Path,
    *,
    tell: Callable[[str], object] = lambda _: None,
    patience_s: float = LOCK_PATIENCE_S,
) -> Iterator[bool]:
    """Hold the lock that keeps other runs from changing the gateway; wait for it if necessary.

    Yields whether it had to wait: then the gateway and the site file may have changed. `tell` is
    called before waiting. Raises ApplyRunningError after `patience_s`; OSError without the folder.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    file = os.open(host_folder / LOCK_NAME, flags, 0o600)
    try:
        had_to_wait = not _is_locked(file)
        if had_to_wait:
            tell(f"another run is changing this gateway; waiting for up to {patience_s:g} s")
            _await_lock(file, host_folder, patience_s)
        yield had_to_wait
    finally:
        os.close(file)


def _await_lock(file: int, host_folder: Path, patience_s: float) -> None:
    # The lock is polled, as flock(2) has no time limit but a signal.
    end = time.monotonic() + patience_s
    while not _is_locked(file):
        if time.monotonic() > end:
            text = f"another run has been changing this gateway for {patience_s:g} s"
            raise ApplyRunningError(f"{text} ({host_folder / LOCK_NAME} is locked)")
        time.sleep(LOCK_POLL_S)


def _is_locked(file: int) -> bool:
    """Whether the lock is ours now."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def apply(
    machine: Machine,
    wanted: Wanted,
    *,
    endpoints_only: bool = False,
    systemd: bool = True,
    heard: Heard | None = None,
    addresses: Mapping[str, tuple[str, ...]] | None = None,
    tell: Callable[[Step], None] = lambda _: None,
) -> Outcome:
    """Make the gateway as it should be; `tell` is called with each step before it is done.

    heard: the result of the timer's look (watching.watch).
    addresses: the result of an earlier `live.resolved`, so that no resolver is waited for here.

    Stops at the first step that fails, unless that is optional. The steps before it are kept: each
    step leaves the gateway working, and the next run continues from there.
    """
    known = resolved(machine, wanted, addresses)

    def planned() -> Plan:
        live = look(
            machine,
            wanted,
            systemd=systemd,
            heard=heard,
            endpoints_only=endpoints_only,
            addresses=known,
        )
        return plan(wanted, live, endpoints_only=endpoints_only)

    return carry_on(machine, planned, tell)


def carry_on(
    machine: Machine, planned: Callable[[], Plan], tell: Callable[[Step], None]
) -> Outcome:
    """Carry out the plan that `planned` returns, and plan again, until no step is left."""
    done: list[Step] = []
    missed: dict[Step, str] = {}

    def outcome(
        failed: Step | None = None, reason: str = "", left: tuple[Step, ...] = ()
    ) -> Outcome:
        remarks = (found.obstacles, found.notes)
        return Outcome(tuple(done), failed, reason, left, *remarks, tuple(missed.items()))

    before: tuple[Step, ...] = ()
    rounds = 0
    while True:
        found = planned()
        steps = tuple(step for step in found.steps if step not in missed)
        if not steps:
            return outcome()
        if rounds == ROUNDS or steps == before:
            return outcome(steps[0], NO_EFFECT, steps[1:])
        for position, step in enumerate(steps, 1):
            tell(step)
            reason = carry_out(machine, step)
            if reason is not None and not step.optional:
                return outcome(step, reason, steps[position:])
            if reason is not None:
                missed[step] = reason
                continue
            done.append(step)
        before, rounds = steps, rounds + 1


def await_sessions(machine: Machine, wanted: Wanted) -> bool:
    """Wait for the sessions that routes are to move to while another gateway changes its key.

    Returns whether a key is being changed at all. Sessions that are not there after
    SESSION_PATIENCE_S are left to the next apply.
    """
    if len(wanted.rotation) < 2:  # noqa: PLR2004
        return False
    end = time.monotonic() + SESSION_PATIENCE_S
    while awaited(wanted.rotation, _alive(machine)) and time.monotonic() < end:
        time.sleep(SESSION_POLL_S)
    return True


def _alive(machine: Machine) -> set[tuple[str, str]]:
    now = time.time()
    return {
        (tunnel.interface, peer.public_key)
        for tunnel in tunnels(machine).values()
        for peer in tunnel.peers
        if is_fresh(peer, now)
    }


def carry_out(machine: Machine, step: Step) -> str | None:
    """Do one step; returns why it failed, or None.

    If a program must read the file at once (step.commands) and its command fails, the old file is
    restored: otherwise the next run would not see the difference, or a start would fail on it.
    """
    if step.file is None:
        return _run(machine, step)
    path = Path(step.file.path)
    try:
        before = (machine.read(path), machine.mode(path)) if step.commands else (None, None)
        machine.write(path, step.file.text, mode=step.file.mode)
        reason: str | None = "interrupted"
        try:
            reason = _run(machine, step)
        finally:
            if reason is not None:
                _put_back(machine, path, *before)
    except OSError as error:
        return error.strerror or str(error)
    except SecretError as error:
        return str(error)
    return reason


def _put_back(machine: Machine, path: Path, text: str | None, mode: int | None) -> None:
    if text is None or mode is None:
        machine.remove(path)
    else:
        machine.write(path, text, mode=mode)


def _run(machine: Machine, step: Step) -> str | None:
    for command in step.commands:
        output = machine.run(command.argv, stdin=command.stdin, timeout_s=STEP_TIMEOUT_S)
        if output.status != 0 and not command.tolerated:
            return f"{command.argv[0]}: {output.reason}"
    return None
