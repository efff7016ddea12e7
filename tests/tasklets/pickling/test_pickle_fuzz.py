"""Programs of random seeds, and of hypothesis, pickled where they stop, end as undisturbed ones do.

Damaged pickles crash nothing.
"""

import os
import subprocess
import sys
from collections import Counter

import pytest

from tests.support import SANITIZED
from tools.pickle_fuzz import run_programs
from tools.pickle_property import check_programs
from tools.setup_env import ROOT

PROGRAMS = int(os.environ.get("PICKLE_PROGRAMS", "600"))

KEPT = (1028, 46, 50, 65, 118, 150, 159, 171, 186)  # each has failed once


@pytest.mark.parametrize("seeds", [KEPT, range(1000, 1060)], ids=["kept", "some"])
def test_programs(seeds: tuple[int, ...] | range) -> None:
    failures, counts = run_programs(list(seeds))
    assert failures == []
    assert counts["programs"] == len(seeds)
    assert counts["stops"] > 5 * len(seeds)


@pytest.mark.parametrize("count", [60, pytest.param(PROGRAMS, marks=pytest.mark.slow)])
def test_property(count: int) -> None:
    counts: Counter[str] = Counter()
    assert check_programs(count, 0, counts) is None
    assert counts["programs"] >= count
    assert counts["ended"] > count // 3


# A damaged pickle may ask for any memory, and under a sanitizer nothing can limit it.
@pytest.mark.skipif(SANITIZED, reason="the sanitizer needs more addresses than the limit")
@pytest.mark.parametrize("every", [11, pytest.param(1, marks=pytest.mark.slow)])
def test_damage(every: int) -> None:
    command = [sys.executable, "-m", "tools.pickle_damage", "--every", str(every)]
    child = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stdout + child.stderr
    assert "beside_coroutines: 0 wrong" in child.stdout
