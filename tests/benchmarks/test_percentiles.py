import pytest

from benchmarks.common.percentiles import CURVE, nearest_rank, summarise


@pytest.mark.parametrize(
    ("percent", "expected"), [(0, 15), (5, 15), (30, 20), (40, 20), (50, 35), (99, 50), (100, 50)]
)
def test_the_textbook_example(percent: float, expected: int) -> None:
    assert nearest_rank([15, 20, 35, 40, 50], percent) == expected


@pytest.mark.parametrize("percent", [7, 14, 28, 29, 55, 56, 57, 58, 99, 99.9])
def test_ranks_that_floating_point_gets_wrong(percent: float) -> None:
    ordered = range(1, 1001)
    assert nearest_rank(ordered, percent) == round(percent * 10)


def test_a_percentile_is_always_a_sample() -> None:
    ordered = [1, 1_000_000]
    assert {nearest_rank(ordered, p) for p in range(101)} == set(ordered)


@pytest.mark.parametrize("percent", [-1, 101])
def test_no_percentiles_outside_0_to_100(percent: float) -> None:
    with pytest.raises(ValueError, match="percent"):
        nearest_rank([1], percent)


def test_no_percentiles_of_nothing() -> None:
    with pytest.raises(ValueError, match="no samples"):
        nearest_rank([], 50)
    assert summarise([]) is None


def test_summary_is_in_milliseconds_and_needs_no_order() -> None:
    latency = summarise([3_000_000, 1_000_000, 2_000_000, 40_000_000])
    assert latency is not None
    assert (latency.count, latency.p50_ms, latency.p99_ms, latency.max_ms) == (4, 2, 40, 40)
    assert [percent for percent, _ in latency.curve] == list(CURVE)
    assert latency.curve[0][1] == 1
    assert latency.curve[-1][1] == 40
