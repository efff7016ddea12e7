"""Percentiles, and the ratio of two sides with its confidence interval.

Pure functions of numbers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from statistics import median

CONFIDENCE = 0.95
FEWEST_PAIRS = 6
"""With five pairs, even all of them on one side happen by chance in 2 of 32 cases: over 5 %."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """The ratio of plus to stock: the estimate, and the interval of CONFIDENCE around it."""

    estimate: float
    low: float
    high: float

    def contains(self, value: float) -> bool:
        """Whether a value lies in the interval."""
        return self.low <= value <= self.high


def percentile(ordered: Sequence[int], percent: float) -> int:
    """Return the `percent`-th percentile of sorted samples by nearest rank.

    The result is a measured value, not one in between. 0 is the minimum. Raises ValueError without
    samples, or for a percentage outside of 0..100.
    """
    if not ordered or not 0 <= percent <= 100:  # noqa: PLR2004
        raise ValueError("expected samples and a percentage from 0 to 100")
    # Exact: in floating point 0.07 * 100 is above 7, one rank too far.
    rank = math.ceil(Fraction(str(percent)) / 100 * len(ordered))
    return ordered[max(rank, 1) - 1]


def ratio(pairs: Sequence[tuple[float, float]]) -> Ratio | None:
    """Return the ratio of the second to the first of each pair; None for fewer than FEWEST_PAIRS.

    pairs: (stock, plus) of one round each. Other load on the machine affects both runs of a round,
    so their ratio is examined, as a logarithm. The estimate is Hodges and Lehmann's: the median of
    the means of all pairs of these. The interval belongs to Wilcoxon's signed-rank test, exact for
    any number of rounds and any symmetric distribution. From twelve rounds on, one odd round moves
    neither far. Rejected: a bootstrap of medians, which is no better founded with so few rounds,
    and needs a seed.

    Hodges, Lehmann: Estimates of Location Based on Rank Tests, Annals of Mathematical Statistics 34
    (1963). Hollander, Wolfe, Chicken: Nonparametric Statistical Methods, 3rd ed., 3.2 and 3.3.
    """
    logarithms = [math.log(plus / stock) for stock, plus in pairs if stock > 0 and plus > 0]
    if len(logarithms) < FEWEST_PAIRS:
        return None
    means = sorted((a + b) / 2 for a, b in combinations_with_replacement(logarithms, 2))
    cut = signed_rank_quantile(len(logarithms), (1 - CONFIDENCE) / 2)
    return Ratio(math.exp(median(means)), math.exp(means[cut]), math.exp(means[-1 - cut]))


def signed_rank_quantile(count: int, probability: float) -> int:
    """Return the largest k with P(T <= k) <= `probability`, T the signed-rank sum of `count`.

    -1 if even T = 0 is more probable. Exact: counts the subsets of 1..count by their sums.
    """
    subsets = [1]
    for rank in range(1, count + 1):
        wider = subsets + [0] * rank
        for total, number in enumerate(subsets):
            wider[total + rank] += number
        subsets = wider
    seen, limit = 0, probability * 2**count
    for total, number in enumerate(subsets):
        seen += number
        if seen > limit:
            return total - 1
    return len(subsets) - 1
