"""Runs the cases of a benchmark: which measurement comes when, and what becomes of its result."""

from __future__ import annotations

import dataclasses
import fnmatch
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from benchmarks.common import machine
from benchmarks.common.children import Commands
from benchmarks.common.errors import MeasurementError, UsageError
from benchmarks.common.results import CaseResult, Outcome, Report, Round, Share
from benchmarks.common.sides import SIDES, Side
from cpythonplus.memory import allocators


@dataclass(frozen=True, slots=True)
class Settings:
    """How long and how often everything is measured."""

    rounds: int
    """How often each case is measured on each side."""
    seconds: float
    """Length of one measurement, without warm-up."""
    startup_rounds: int = 25
    """How often an interpreter is started on each side."""
    idle_s: float = 10.0
    """Length of one measurement of a process that does nothing."""
    items: int = 110_000
    """How many items the catalogue of a preforking server has."""
    requests: int = 1500
    """How many requests a preforking server gets for each of its workers."""
    parked: int = 100_000
    """How many microthreads are parked where the memory of one is measured."""
    many: int = 1_000_000
    """How many are parked where each is woken once."""
    connections: int = 1000
    """How many connections an echo server has."""
    sleepers: int = 10_000
    """How many microthreads sleep at once."""
    longest_sleep_s: float = 2.0
    """Each of their sleeps takes up to so long."""
    heap_mib: int = 500
    """How much memory is taken, to see how much comes back."""
    rows: int = 20_000_000
    """How many rows one process makes at most, where the memory of very many is measured."""
    arrivals: int = 200
    """How many requests a measurement in an open loop waits for, longer than `seconds` if need be.

    With fewer there is no 99th percentile to speak of.
    """

    @property
    def warmup_s(self) -> float:
        """Length of the warm-up before each measurement, and of the solo calibration."""
        return min(0.3, self.seconds)

    @property
    def limit_s(self) -> float:
        """How long a child may take before it ends itself.

        Generous: beside eight CPU threads a stock server needs seconds for a handful of answers.
        """
        return self.seconds + 60


@dataclass(frozen=True, slots=True)
class Case:
    """One thing to measure on several sides."""

    name: str
    scenario: str
    title: str
    unit: str
    measure: Callable[[Commands, Side, Settings], Outcome]
    """Measures once, in a fresh child process. Raises MeasurementError."""
    statistic: Literal["best", "median"] = "best"
    starts_interpreters: bool = False
    """Whether it takes `Settings.startup_rounds` rounds instead of `Settings.rounds`."""
    better: Literal["higher", "lower"] = "higher"
    needs: tuple[str, ...] = ()
    """Modules that the interpreter must have."""
    sides: tuple[Side, ...] = SIDES
    peer: str = ""
    """The package on the `peer` side: its module, most often its name on PyPI as well."""
    base: Side = "stock"
    """The side that is always measured, and that ratios refer to."""
    own: Side = "plus"
    """The side that targets are stated for."""
    packages: Mapping[Side, str] = field(default_factory=dict)
    """What a side other than `peer` needs: names on PyPI, which are those of modules as well."""
    programs: Mapping[Side, str] = field(default_factory=dict)
    """What a side needs on PATH; it tells its version when called with `version`."""
    libraries: Mapping[Side, str] = field(default_factory=dict)
    """What a side needs of the allocators that `cpythonplus run --malloc` knows."""
    absent: tuple[Side, ...] = ()
    """Sides that are not measured because they lack what they need."""
    once: bool = False
    """Whether one round is enough, however many the others take."""
    alone: str = ""
    """Name of the case whose latencies its own are compared with: the same, undisturbed."""
    in_quick: bool = True
    """Whether it is measured where a run is only to show that it works."""

    def rounds(self, settings: Settings) -> int:
        """Return the number of rounds."""
        if self.once:
            return 1
        return settings.startup_rounds if self.starts_interpreters else settings.rounds


@dataclass(frozen=True, slots=True)
class Step:
    """One measurement of the schedule."""

    case: Case
    number: int
    side: Side


class Progress(Protocol):
    """Shows how far a run is."""

    def begin(self, total: int) -> None:
        """Say that `total` measurements follow."""

    def step(self, text: str) -> None:
        """Say that the measurement `text` begins."""

    def end(self) -> None:
        """Say that the last measurement is over; also called when the run is broken off."""


def schedule(cases: Sequence[Case], settings: Settings) -> list[Step]:
    """Return all measurements in order.

    The sides of a case follow each other directly, and which one goes first changes from round to
    round: a machine that warms up or is disturbed does not favour one of them. A round goes through
    all cases before the next one begins, so the rounds of one case are spread over the whole run.
    """
    steps = []
    for number in range(max((case.rounds(settings) for case in cases), default=0)):
        steps += [
            Step(case, number, side)
            for case in cases
            if number < case.rounds(settings)
            for side in (case.sides if number % 2 == 0 else case.sides[::-1])
        ]
    return steps


def select(cases: Sequence[Case], patterns: Iterable[str]) -> list[Case]:
    """Return the cases whose name or scenario matches one of `patterns` (shell wildcards).

    Without patterns, all of them. Raises UsageError for a pattern that matches nothing.
    """
    wanted = list(patterns)
    for pattern in wanted:
        if not any(_matches(case, pattern) for case in cases):
            names = ", ".join(dict.fromkeys(case.scenario for case in cases))
            raise UsageError(f"no case is called {pattern!r}; scenarios are {names} (see --list)")
    return [case for case in cases if not wanted or any(_matches(case, p) for p in wanted)]


def quick(cases: Iterable[Case]) -> list[Case]:
    """Return those of `cases` that a quick run measures. Raises UsageError when there are none."""
    asked = list(cases)
    if found := [case for case in asked if case.in_quick]:
        return found
    raise UsageError(f"--quick leaves out {', '.join(case.name for case in asked)}")


def _matches(case: Case, pattern: str) -> bool:
    return fnmatch.fnmatchcase(case.name, pattern) or fnmatch.fnmatchcase(case.scenario, pattern)


def with_sides(
    cases: Iterable[Case], commands: Commands, wanted: Sequence[Side], *, own_command: bool
) -> list[Case]:
    """Return `cases` with those of their sides that are wanted and can be measured; base always.

    A peer that is not installed is left out. With `own_command` (see `check_interpreter`) so is
    the side that needs an option of `cpythonplus run`. A side that lacks its package or program
    becomes one of the absent ones.
    """
    found = list(cases)
    peers = sorted({package for case in found for package in _packages(case, wanted)})
    missing = machine.missing_modules(commands.python, *peers) if peers else []

    def is_wanted(case: Case, side: Side) -> bool:
        if side == "peer":
            return side in wanted and case.peer not in missing
        return side == case.base or (
            side in wanted and not (side == "threads-only" and own_command)
        )

    def is_absent(case: Case, side: Side) -> bool:
        program = case.programs.get(side)
        return (
            case.packages.get(side) in missing
            or bool(program and not shutil.which(program))
            or (side in case.libraries and not _is_installed(case.libraries[side]))
        )

    def with_its_sides(case: Case) -> Case:
        sides = [side for side in case.sides if is_wanted(case, side)]
        absent = tuple(side for side in sides if is_absent(case, side))
        present = tuple(side for side in sides if side not in absent)
        return dataclasses.replace(case, sides=present, absent=absent)

    return [with_its_sides(case) for case in found]


def _is_installed(kind: str) -> bool:
    try:
        allocators.find_library(kind)
    except allocators.AllocatorError:
        return False
    return True


def _packages(case: Case, wanted: Sequence[Side]) -> list[str]:
    """Return the packages that the wanted sides of `case` need beside cpythonplus."""
    sides = [side for side in case.sides if side in wanted]
    found = [case.packages[side] for side in sides if side in case.packages]
    return [*found, case.peer] if "peer" in sides else found


def check_interpreter(commands: Commands, cases: Iterable[Case], *, own_command: bool) -> None:
    """Raise UsageError when the interpreter lacks something that the cases need.

    `own_command` says that the plus side is not `cpythonplus run`, so the package need not be
    installed for the interpreter.
    """
    if not own_command and machine.missing_modules(commands.python, "cpythonplus"):
        raise UsageError(f"cpythonplus is not installed for {commands.python}")
    needed = sorted({module for case in cases for module in case.needs})
    if missing := machine.missing_modules(commands.python, *needed):
        raise UsageError(
            f"{commands.python} lacks {', '.join(missing)}; they are in the dependency group bench"
        )


def run(
    benchmark: str,
    cases: Sequence[Case],
    commands: Commands,
    settings: Settings,
    progress: Progress,
) -> Report:
    """Measure `cases` and return everything that came out.

    A measurement that fails is recorded as such and the run goes on. KeyboardInterrupt is passed
    on after the children are gone. Raises UsageError when the interpreter does not run.
    """
    results = {
        case.name: CaseResult(
            case.name,
            case.scenario,
            case.title,
            case.unit,
            case.statistic,
            case.better,
            case.peer,
            case.base,
            case.own,
            case.absent,
            case.alone,
        )
        for case in cases
    }
    peers = sorted({package for case in cases for package in _packages(case, case.sides)})
    programs = sorted(
        {p for case in cases for side, p in case.programs.items() if side in case.sides}
    )
    report = Report(
        benchmark=benchmark,
        machine=machine.describe(commands.python, peers, programs),
        settings={**dataclasses.asdict(settings), "plus_command": " ".join(commands.plus_prefix)},
        cases=list(results.values()),
    )
    steps = schedule(cases, settings)
    progress.begin(len(steps))
    try:
        for position, step in enumerate(steps):
            rounds = step.case.rounds(settings)
            side = results[step.case.name].label(step.side)
            progress.step(f"{step.case.title}, {side}, round {step.number + 1} of {rounds}")
            outcome, failure = None, None
            try:
                outcome = step.case.measure(commands, step.side, settings)
            except MeasurementError as error:
                failure = str(error)
            results[step.case.name].rounds.append(
                Round(step.side, step.number, position, outcome, failure)
            )
    finally:
        progress.end()
    return report


def shares_of(raw: Iterable[dict[str, Any]]) -> tuple[Share, ...]:
    """Return the shares that a worker reported."""
    return tuple(Share(work=float(s["work"]), cpu=float(s["cpu"])) for s in raw)
