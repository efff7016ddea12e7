"""Compares runs of the same tests, stock and plus, test by test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tools.junit_results import Outcome, reason

PROCESS = "(process)"
"""Name of the failure of a whole process: a crash, a time-out, a wrong exit status."""

ROUNDS = 3
"""How often both sides run where something differs."""

_PASSED, _SKIPPED, _FAILED = range(3)


@dataclass(frozen=True)
class Counts:
    """In how many of the runs a test did not pass, or did not even run."""

    stock: int
    plus: int
    rounds: int


@dataclass(frozen=True)
class Verdict:
    """What the runs of one package say, by the names of tests."""

    ours: Mapping[str, Counts] = field(default_factory=dict)
    """Not as on stock, in two runs at least, and stock never."""
    known: Mapping[str, str] = field(default_factory=dict)
    """Not as on stock, for a reason."""
    theirs: frozenset[str] = frozenset()
    """Fail in every run of both."""
    unsteady: Mapping[str, Counts] = field(default_factory=dict)
    """Fail now and then, or on stock only."""
    suspects: frozenset[str] = frozenset()
    """Those of them that were once not as on stock."""


def judge(stock: Sequence[Outcome], plus: Sequence[Outcome], known: Mapping[str, str]) -> Verdict:
    """Compare as many runs of stock as of plus.

    A test fails only with us when it is worse than in any run of stock (skipped where stock passes,
    failed or missing where stock does not) in two runs or more; one run shows nothing, so a package
    with a difference is to run again until `open_questions` has none left.
    """
    ours, excused, unsteady, theirs, suspects = {}, {}, {}, set(), set()
    for name in sorted(_names(stock) | _names(plus)):
        theirs_levels, ours_levels = _levels(name, stock, stock), _levels(name, plus, stock)
        levels = theirs_levels + ours_levels
        # Where stock left no report at all, nothing can be said against plus.
        worst = max(theirs_levels, default=_FAILED)
        worse = sum(level > worst for level in ours_levels)
        why = reason(name, known) if worse else ""
        if why:
            excused[name] = why
        elif worse > 1:
            ours[name] = _counts(theirs_levels, ours_levels)
        elif min(levels) == _FAILED:
            theirs.add(name)
        elif worse or _FAILED in levels:
            unsteady[name] = _counts(theirs_levels, ours_levels)
            if worse:
                suspects.add(name)
    return Verdict(ours, excused, frozenset(theirs), unsteady, frozenset(suspects))


def open_questions(
    stock: Sequence[Outcome], plus: Sequence[Outcome], known: Mapping[str, str]
) -> bool:
    """Return whether one more run of both could say of a test that it fails only with us."""
    if len(plus) >= ROUNDS:
        return False
    verdict = judge(stock, plus, known)
    return bool(verdict.ours or verdict.suspects)


def _names(runs: Sequence[Outcome]) -> set[str]:
    return {name for run in runs for name in run.failed | run.skipped | run.passed}


def _levels(name: str, runs: Sequence[Outcome], stock: Sequence[Outcome]) -> list[int]:
    """Return how a test went in each run that left a report.

    Of a process that left none only the process is told, not each of its tests.  A test that is
    missing in a run failed there if stock has it in any.
    """
    if name == PROCESS:
        return [_FAILED if name in run.failed else _PASSED for run in runs]
    absent = _FAILED if any(name in _names([run]) for run in stock) else _PASSED
    return [_level(name, run, absent) for run in runs if run.ran]


def _level(name: str, run: Outcome, absent: int) -> int:
    if name in run.failed:
        return _FAILED
    if name in run.skipped:
        return _SKIPPED
    return _PASSED if name in run.passed else absent


def _counts(stock: Sequence[int], plus: Sequence[int]) -> Counts:
    return Counts(sum(map(bool, stock)), sum(map(bool, plus)), len(plus))
