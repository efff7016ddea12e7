"""The result of one run of one side."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cpythonplus._compare.sides import Side

CURVE = (0, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 100)
"""The percentiles that are kept of each loop."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One run. values: by the names of `report.METRICS`; unmeasured ones are missing."""

    side: Side
    round: int
    status: int
    values: Mapping[str, float]
    errors: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By loop, then by kind: how many requests failed."""
    curves: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """By loop: the seconds at each of CURVE."""
    late_s: float = 0.0
    """By how much the load generator itself was late, the 99th percentile of the open loop."""
