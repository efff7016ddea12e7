"""Programs of random seeds, pickled wherever they stop, end as an undisturbed run does."""

import pytest

from tools.pickle_fuzz import run_programs

KEPT = (1028, 46, 50, 65, 118, 150, 159, 171, 186)  # each has failed once


@pytest.mark.parametrize("seeds", [KEPT, range(1000, 1060)], ids=["kept", "some"])
def test_programs(seeds: tuple[int, ...] | range) -> None:
    failures, counts = run_programs(list(seeds))
    assert failures == []
    assert counts["programs"] == len(seeds)
    assert counts["stops"] > 5 * len(seeds)
