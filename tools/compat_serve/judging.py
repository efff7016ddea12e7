"""What fails only with us: stock and plus side by side, and again where they differ."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tools.compat_serve.scenario import PLUS, PRELOAD, STOCK, Phases

TRIES = 3

Runner = Callable[[str], Phases]
"""Takes the application through all phases on one side."""


@dataclass(frozen=True)
class Verdict:
    """One application: phases by how they compare, each with its complaints."""

    passed: tuple[str, ...]
    ours: dict[str, list[str]] = field(default_factory=dict)
    """Failed on plus each time, and never on stock."""
    preload: dict[str, list[str]] = field(default_factory=dict)
    """Failed on plus, and on stock with --preload too."""
    theirs: dict[str, list[str]] = field(default_factory=dict)
    """Failed on stock; with the complaints of stock, and those of plus where it failed too."""
    unsteady: dict[str, list[str]] = field(default_factory=dict)
    """Failed on plus, but not each time, or on stock at another time."""
    runs: dict[str, Phases] = field(default_factory=dict)
    """The first run of each side."""


def failures(phases: Phases, known: Iterable[str]) -> dict[str, list[str]]:
    """Return the phases that did not pass: those that were not reached did not either."""
    failed = {}
    for name in known:
        if name not in phases:
            failed[name] = ["not reached"]
        elif phases[name].complaints:
            failed[name] = list(phases[name].complaints)
    return failed


def kinds(complaints: Iterable[str]) -> set[str]:
    """Return what is complained of, without numbers: they differ each time."""
    errors = "errors of the client"
    return {errors if text.startswith(errors) else re.sub(r"\d+", "N", text) for text in complaints}


def judge(run: Runner, names: Iterable[str]) -> Verdict:
    """Run both sides, and all three up to TRIES times while something fails on plus only.

    That is also a phase that fails on stock, where plus has other complaints.
    """
    names = tuple(names)
    runs = {STOCK: run(STOCK), PLUS: run(PLUS)}
    stock, plus = failures(runs[STOCK], names), failures(runs[PLUS], names)
    ours = only(plus, stock)
    passed = tuple(name for name in names if name not in stock and name not in plus)
    theirs = {
        name: [*why, *(f"under serve: {text}" for text in plus.get(name, ()))]
        for name, why in stock.items()
        if name not in ours
    }
    preload: dict[str, list[str]] = {}
    unsteady: dict[str, list[str]] = {}
    for attempt in range(TRIES):
        if attempt and ours:
            stock, plus = failures(run(STOCK), names), failures(run(PLUS), names)
            _move(ours.keys() - only(plus, stock).keys(), ours, unsteady)
        if not ours:
            break
        # Last, since a race that --preload has too is to be told as such.
        again = run(PRELOAD)
        runs.setdefault(PRELOAD, again)
        _move(ours.keys() & failures(again, names).keys(), ours, preload)
    return Verdict(passed, ours, preload, theirs, unsteady, runs)


def only(plus: dict[str, list[str]], stock: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the phases in which plus has complaints of a kind that stock has not."""
    return {name: why for name, why in plus.items() if kinds(why) - kinds(stock.get(name, ()))}


def _move(names: Iterable[str], source: dict[str, list[str]], to: dict[str, list[str]]) -> None:
    for name in sorted(names):
        to[name] = source.pop(name)
