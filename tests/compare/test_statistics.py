"""Percentiles and ratios against known values."""

import itertools
import math
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpythonplus._compare.statistics import percentile, ratio, signed_rank_quantile


@pytest.mark.parametrize(
    ("percent", "expected"), [(0, 15), (5, 15), (30, 20), (40, 20), (50, 35), (99.9, 50), (100, 50)]
)
def test_percentiles(percent: float, expected: int) -> None:
    assert percentile([15, 20, 35, 40, 50], percent) == expected


def test_a_percentile_is_exact() -> None:
    assert percentile(range(1, 101), 7) == 7
    assert percentile(range(1, 1001), 99.9) == 999


@pytest.mark.parametrize(("samples", "percent"), [([], 50), ([1], -1), ([1], 101)])
def test_no_percentile(samples: list[int], percent: float) -> None:
    with pytest.raises(ValueError, match="expected"):
        percentile(samples, percent)


@pytest.mark.parametrize(
    ("count", "expected"),
    # The table of critical values of Wilcoxon's test, two-sided, 5 %.
    [(5, -1), (6, 0), (7, 2), (8, 3), (9, 5), (10, 8), (11, 10), (12, 13), (15, 25), (20, 52)],
)
def test_the_signed_rank_distribution(count: int, expected: int) -> None:
    assert signed_rank_quantile(count, 0.025) == expected


def test_all_of_the_distribution() -> None:
    assert signed_rank_quantile(4, 1) == 10


@pytest.mark.parametrize("count", range(6))
def test_too_few_pairs(count: int) -> None:
    assert ratio([(1, 2)] * count) is None


def test_pairs_without_a_ratio_do_not_count() -> None:
    assert ratio([(1, 2)] * 5 + [(0, 1), (1, 0)]) is None


def test_equal_ratios() -> None:
    found = ratio([(1, 2), (2, 4), (3, 6), (1, 2), (5, 10), (8, 16)])
    assert found is not None
    assert (found.estimate, found.low, found.high) == pytest.approx((2, 2, 2))


def test_six_pairs() -> None:
    """With six, the interval is from the least to the greatest ratio."""
    found = ratio([(1, each) for each in (1.1, 1.2, 0.9, 1.3, 1.05, 1.0)])
    assert found is not None
    assert (found.low, found.high) == pytest.approx((0.9, 1.3))
    assert found.contains(1)


def test_one_odd_round_hardly_matters() -> None:
    usual = [(10.0, 9.0 + i / 100) for i in range(11)]
    found = ratio([*usual, (10.0, 900.0)])
    assert found is not None
    assert 0.9 <= found.estimate <= 0.92
    assert found.high < 0.95


@given(st.lists(st.tuples(st.floats(0.1, 100), st.floats(0.1, 100)), min_size=6, max_size=12))
def test_against_the_definition(pairs: list[tuple[float, float]]) -> None:
    logarithms = [math.log(plus / stock) for stock, plus in pairs]
    means = [(a + b) / 2 for a, b in itertools.combinations_with_replacement(logarithms, 2)]
    found, turned = ratio(pairs), ratio([(plus, stock) for stock, plus in pairs])
    assert found is not None
    assert turned is not None
    assert found.estimate == pytest.approx(math.exp(median(means)))
    assert found.low <= found.estimate <= found.high
    # Which side is called stock changes nothing.
    assert (1 / turned.high, 1 / turned.low) == pytest.approx((found.low, found.high))
