"""The soak for some seconds: every component gets on, and nothing fails."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import LOAD
from tools.soak import verdict

pytest.importorskip("cpythonplus.tasklets.io._patching", exc_type=ImportError)

SOAK = Path(__file__).resolve().parents[2] / "tools" / "soak.py"


@pytest.mark.slow
def test_everything_at_once() -> None:
    command = [sys.executable, str(SOAK), "--seconds", "4"]
    limit_s = LOAD * 60
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit_s)
    found = json.loads(done.stdout)
    assert min(found["turns"].values()) > 0, found
    # Some seconds are too few to see what grows.
    assert [each for each in found["complaints"] if " grew " not in each] == []


def samples(rss_kb: list[int], descriptors: list[int]) -> dict[str, list[int]]:
    return {"rss_kb": rss_kb, "descriptors": descriptors}


def test_what_grows_is_told() -> None:
    warming_up, flat = [10] * 10, [9] * 95 + [12] * 5
    assert verdict(samples(warming_up + [1000] * 90, flat)) == []
    assert verdict(samples(warming_up + [1000 + n for n in range(90)], flat)) != []
    assert verdict(samples([1000] * 100, [9] * 90 + [30] * 10)) != []
