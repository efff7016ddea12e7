"""The soak for some seconds: every component gets on, and nothing fails."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools.soak import verdict

pytest.importorskip("cpythonplus.tasklets.io.patching", exc_type=ImportError)

SOAK = Path(__file__).resolve().parents[2] / "tools" / "soak.py"


def test_everything_at_once() -> None:
    command = [sys.executable, str(SOAK), "--seconds", "4"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    found = json.loads(done.stdout)
    assert min(found["turns"].values()) > 0, found
    # Some seconds are too few to see what grows.
    assert [each for each in found["complaints"] if " grew " not in each] == []


def sample(rss_kb: int, descriptors: int = 9) -> dict[str, int]:
    return {"rss_kb": rss_kb, "descriptors": descriptors, "kernel_threads": 1}


def test_what_grows_is_told() -> None:
    warming_up = [sample(10)] * 10
    assert verdict(warming_up + [sample(1000)] * 90) == []
    assert verdict(warming_up + [sample(1000 + n) for n in range(90)]) != []
    assert verdict([sample(1000)] * 90 + [sample(1000, 10)] * 10) != []
