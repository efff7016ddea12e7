"""Means, errors and shares, of numbers whose truth is known."""

import random

import pytest

from cpythonplus.memory._attribution.estimating import Estimate, by_rows, mean, trimmed

pytestmark = pytest.mark.any_version


def test_a_mean_weighs_calls() -> None:
    found = mean([(1, 10.0), (3, 90.0)])
    assert found.value == 25.0
    assert found.error > 0
    assert mean([(1, 7.0)] * 5) == Estimate(7.0, 0.0)


def test_one_that_is_far_away_is_trimmed() -> None:
    entries = [(1, 1_000.0 + n % 3) for n in range(40)] + [(1, 5_000_000.0)]
    assert mean(entries).error > 100_000
    found = trimmed(entries)
    assert found is not None
    assert abs(found.value - 1_001) < 1
    assert found.error < 1
    assert trimmed(entries[:10]) is None


def made(costs: list[float], rows: int, noise: float) -> list[tuple[list[int], float]]:
    chosen = random.Random(1)
    counts = [[chosen.randrange(10) for _ in costs] for _ in range(rows)]
    return [
        (row, sum(c * n for c, n in zip(costs, row, strict=True)) + chosen.gauss(0, noise))
        for row in counts
    ]


def test_shares_of_what_grew_together() -> None:
    costs = [0.0, 1_000.0, -200.0, 5.0]
    found = by_rows(made(costs, 60, 500), {})
    for column, cost in enumerate(costs):
        assert abs(found[column].value - cost) < 4 * found[column].error
        assert 1 < found[column].error < 100


def test_what_is_known_alone_is_not_worked_out_again_and_helps() -> None:
    rows = [([n % 7 + 1, n % 7 + 1], 300.0 * (n % 7 + 1)) for n in range(30)]
    both = by_rows(rows, {})
    assert both[0].error > 100
    assert (both[0].partner, both[1].partner) == (1, 0)
    helped = by_rows(rows, {0: Estimate(100.0, 1.0)})
    assert list(helped) == [1]
    assert abs(helped[1].value - 200) < 1
    assert helped[1].error < 10


def test_a_row_that_does_not_fit_counts_little() -> None:
    rows = made([0.0, 1_000.0], 40, 0)
    rows[7] = (rows[7][0], -50_000_000.0)
    found = by_rows(rows, {})
    assert abs(found[1].value - 1_000) < 10
    assert abs(found[0].value) < 10


@pytest.mark.parametrize("rows", [[], [([1], 5.0)], [([0, 0], 5.0)] * 9])
def test_too_few_rows_tell_nothing(rows: list[tuple[list[int], float]]) -> None:
    assert by_rows(rows, {}) == {}


@pytest.mark.parametrize("noise", [0, 300])
@pytest.mark.parametrize("cost", [64.0, 1_000.0, 20_000.0])
def test_two_that_always_run_together_are_not_told_apart(cost: float, noise: float) -> None:
    chosen = random.Random(1)
    rows = [
        ([count, count, other], cost * count + 500.0 * other + chosen.gauss(0, noise))
        for count, other in [(chosen.randrange(16, 200), chosen.randrange(16)) for _ in range(40)]
    ]
    found = by_rows(rows, {})
    assert (found[0].partner, found[1].partner) == (1, 0)
    assert min(found[0].error, found[1].error) > 5 * cost
    assert abs(found[0].value + found[1].value - cost) < 0.1 * cost
    assert abs(found[2].value - 500) < 100
    assert found[2].error < 50
    helped = by_rows(rows, {0: Estimate(cost, 1.0)})
    assert helped[1].error < 10
