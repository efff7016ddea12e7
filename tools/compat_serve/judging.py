"""What fails only with us: stock and plus side by side, and again where they differ."""

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
    """Failed on stock; with the complaints of stock."""
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


def judge(run: Runner, names: Iterable[str]) -> Verdict:
    """Run both sides, and again up to TRIES times each while something fails on plus only."""
    names = tuple(names)
    runs = {STOCK: run(STOCK), PLUS: run(PLUS)}
    theirs = failures(runs[STOCK], names)
    all_ours = failures(runs[PLUS], names)
    only = {name: why for name, why in all_ours.items() if name not in theirs}
    preload: dict[str, list[str]] = {}
    if only:
        runs[PRELOAD] = run(PRELOAD)
        failed = failures(runs[PRELOAD], names)
        preload = {name: why for name, why in only.items() if name in failed}
    ours = {name: why for name, why in only.items() if name not in preload}
    unsteady: dict[str, list[str]] = {}
    for _ in range(TRIES - 1):
        if not ours:
            break
        stock, plus = failures(run(STOCK), names), failures(run(PLUS), names)
        for name in [name for name in ours if name in stock or name not in plus]:
            unsteady[name] = ours.pop(name)
    passed = tuple(name for name in names if name not in theirs and name not in only)
    return Verdict(passed, ours, preload, theirs, unsteady, runs)
