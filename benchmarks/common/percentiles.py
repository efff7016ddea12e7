"""Percentiles by the nearest-rank definition, the only one used in the benchmarks.

The p-th percentile of n sorted samples is the sample with rank ceil(p / 100 * n): always a
value that was really measured, never one interpolated between two. With few samples p99 is the
maximum, which is what one wants to be told about few samples.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil

CURVE = (0, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99, 100)
"""Percentiles that are kept of each distribution for the latency curves."""


def nearest_rank(ordered: Sequence[int], percent: float) -> int:
    """Return the `percent`-th percentile of `ordered`.

    `ordered` is sorted ascending and not empty; `percent` lies in 0..100, where 0 means the
    minimum. Raises ValueError otherwise.
    """
    if not ordered:
        raise ValueError("no samples")
    if not CURVE[0] <= percent <= CURVE[-1]:
        raise ValueError(f"percent must be in 0..100, not {percent}")
    # Exact arithmetic: 0.07 * 100 is 7.000000000000001 in floating point, one rank too far.
    rank = ceil(Fraction(Decimal(str(percent))) / 100 * len(ordered))
    return ordered[max(rank, 1) - 1]


@dataclass(frozen=True, slots=True)
class Latency:
    """A distribution of times, in milliseconds."""

    count: int
    p50_ms: float
    p99_ms: float
    max_ms: float
    curve: tuple[tuple[float, float], ...]
    """(percent, milliseconds) at each of CURVE."""


def summarise(samples_ns: Iterable[int]) -> Latency | None:
    """Summarise raw samples in nanoseconds; None when there are none."""
    ordered = sorted(samples_ns)
    if not ordered:
        return None
    curve = tuple((float(percent), nearest_rank(ordered, percent) / 1e6) for percent in CURVE)
    return Latency(
        count=len(ordered),
        p50_ms=nearest_rank(ordered, 50) / 1e6,
        p99_ms=nearest_rank(ordered, 99) / 1e6,
        max_ms=ordered[-1] / 1e6,
        curve=curve,
    )
