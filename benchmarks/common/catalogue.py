"""The two kinds of object that say what there is to measure; benchmarks/scenarios.py finds them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.common.engine import Case, Settings
from benchmarks.common.sides import Side
from benchmarks.common.targets import Target

if TYPE_CHECKING:
    from rich.console import RenderableType

    from benchmarks.common.results import Report


@dataclass(frozen=True, slots=True)
class Table:
    """How the results of cases of one `Case.scenario` are shown."""

    title: str
    latency_unit: str = "ms"
    """`us` where latencies are too short for milliseconds."""
    rated_by_p99: bool = False
    """Whether the rate is p99, which has a column of its own already."""
    cost_of_one: bool = False
    """Whether what one operation takes says more than how many of them fit into a second."""
    mean: bool = False
    """Whether the geometric mean of the ratios is what counts."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is measured in one folder: `SCENARIO` in its scenario.py."""

    cases: Mapping[str, Callable[..., list[Case]]]
    """What makes the cases, by the suite that has them."""
    tables: Mapping[str, Table]
    """By `Case.scenario`."""
    figures: Mapping[str, str] = field(default_factory=dict)
    """Headings of the columns for `Outcome.figures`, in order; one that is not here has none."""
    targets: tuple[Target, ...] = ()
    """What a run must show."""
    place: int = 0
    """Among the scenarios of its suites, in runs and in tables."""


@dataclass(frozen=True, slots=True)
class Suite:
    """Scenarios that run together and have options in common: `SUITE` in a folder's suite.py."""

    name: str
    help: str
    full: Settings
    quick: Settings
    size: str = "{0.seconds:g} s"
    """How large one measurement is, for `format` with the settings."""
    counts: Mapping[str, str] = field(default_factory=dict)
    """Options that are named as the settings that they change, and what is counted."""
    has_workers: bool = False
    """Whether the number of worker processes can be chosen."""
    unless_named: frozenset[Side] = frozenset()
    """Sides that are measured only when they are named."""
    plus: str = "run"
    """The command of `cpythonplus` on the plus side."""
    check: Callable[[], None] = lambda: None
    """Raises UsageError where nothing can be measured here."""
    show: Callable[[Report], RenderableType] | None = None
    """Returns the summary that is shown in the place of tables; None: there are tables."""
