"""What there is to measure, found by listing the folders: removing one takes it away everywhere."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.common.catalogue import Scenario, Suite
from benchmarks.common.engine import Case
from benchmarks.common.results import Report
from benchmarks.common.targets import Verdict

_FOLDER = Path(__file__).resolve().parent


def _listed(file: str, name: str) -> list[Any]:
    """Return what is called `name` in each `file`, in the order of the folders."""
    found = (path.relative_to(_FOLDER.parent) for path in sorted(_FOLDER.glob(f"**/{file}.py")))
    return [getattr(import_module(".".join(path.with_suffix("").parts)), name) for path in found]


SCENARIOS: list[Scenario] = sorted(
    _listed("scenario", "SCENARIO"), key=lambda scenario: scenario.place
)
SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in _listed("suite", "SUITE")
    if any(suite.name in scenario.cases for scenario in SCENARIOS)
}
TABLES = {name: table for scenario in SCENARIOS for name, table in scenario.tables.items()}
FIGURES = {name: text for scenario in SCENARIOS for name, text in scenario.figures.items()}
TARGETS = tuple(
    replace(target, heading=scenario.figures.get(target.figure, ""))
    for scenario in SCENARIOS
    for target in scenario.targets
)


def cases_of(suite: str, **options: int) -> list[Case]:
    """Return the cases of a suite; `options` are for what makes them."""
    made = (each.cases[suite](**options) for each in SCENARIOS if suite in each.cases)
    return [case for cases in made for case in cases]


def verdicts(report: Report) -> list[Verdict]:
    """Return the verdict on each target that `report` measured."""
    found = (target.verdict(report) for target in TARGETS)
    return [verdict for verdict in found if verdict is not None]
