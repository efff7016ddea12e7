"""One tiny measurement with each worker; stock stands on both sides, no time is asserted."""

import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.common import children
from benchmarks.common.children import Children, Commands
from benchmarks.common.engine import Case, Settings
from benchmarks.common.errors import MeasurementError
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side
from benchmarks.scenarios import SUITES, cases_of
from tests.support import own_children

pytestmark = pytest.mark.slow  # all together

STOCK_TWICE = Commands.of(sys.executable, [sys.executable])
TINY = Settings(1, 0.05, 1, idle_s=0.2)
# Stock threads beside a CPU-bound one answer every 20 ms at best: perhaps not once in TINY.
LONGER = Settings(1, 2.0, 1, idle_s=0.2)

_SAMPLE = (
    "echo-beside-0",
    "echo-beside-1",
    "lock-alone",
    "lock-pinned",
    "condition-alone",
    "condition-beside-1",
    "queue-alone",
    "efficiency-2",
    *(case.name for case in cases_of("giltest") if case.scenario == "kernels"),
    "startup-module",
    "http-1",
    "http-10-cpu",
    "flask-10",
    "flask-1-cpu",
    *(case.name for case in cases_of("threads") if case.scenario != "flask"),
)

_WITHOUT_LATENCIES = ("efficiency", "stream", "uncontended", "idle")
_WITH_PEER = tuple(case.name for case in cases_of("threads") if "peer" in case.sides)


@pytest.fixture(autouse=True)
def no_child_is_left() -> Iterator[None]:
    before = own_children()  # servers of other tests
    yield
    assert own_children() <= before


def case_called(name: str) -> Case:
    return next(c for suite in SUITES for c in cases_of(suite) if c.name == name)


def measure(case: Case, side: Side) -> Outcome:
    outcome = case.measure(STOCK_TWICE, side, TINY)
    return outcome if outcome.rate > 0 else case.measure(STOCK_TWICE, side, LONGER)


@pytest.mark.parametrize("name", _SAMPLE)
def test_a_case_measures(name: str) -> None:
    case = case_called(name)
    for module in case.needs:
        pytest.importorskip(module)
    if name == "kernel-sqlite":
        pytest.importorskip("sqlite3", exc_type=ImportError)
    outcome = measure(case, "plus")
    assert outcome.rate > 0
    assert not outcome.errors
    if case.scenario != "startup":
        assert outcome.scheduled is False
    if case in cases_of("threads"):
        assert outcome.patched is False
    if case.scenario not in _WITHOUT_LATENCIES:
        assert outcome.latency is not None
        assert 0 < outcome.latency.p50_ms <= outcome.latency.p99_ms <= outcome.latency.max_ms
    beside = name.endswith(("beside-1", "-cpu"))
    assert len(outcome.shares) == beside


@pytest.mark.parametrize("name", _WITH_PEER)
def test_a_case_measures_another_package(name: str) -> None:
    case = case_called(name)
    pytest.importorskip(case.peer)
    outcome = measure(case, "peer")
    assert outcome.rate > 0
    assert (outcome.scheduled, outcome.patched) == (False, False)


@pytest.mark.parametrize("name", ["uncontended-lock", "handover-queue-pinned", "idle-polling"])
@pytest.mark.parametrize("side", ["plus", "threads-only"])
def test_a_side_has_the_features_that_it_says(name: str, side: Side) -> None:
    pytest.importorskip("cpythonplus._native", exc_type=ImportError)
    outcome = case_called(name).measure(Commands.of(sys.executable), side, TINY)
    assert (outcome.scheduled, outcome.patched) == (side == "plus", True)


def worker(tmp_path: Path, code: str) -> Path:
    script = tmp_path / "worker.py"
    script.write_text("from benchmarks.common import worker\n" + code)
    return script


def test_a_workers_last_words_are_passed_on(tmp_path: Path) -> None:
    script = worker(tmp_path, "worker.begin()\nraise SystemExit('out of cheese')\n")
    with Children() as group, pytest.raises(MeasurementError, match="status 1: out of cheese"):
        group.worker([sys.executable], script, {}, limit_s=30).result()


def test_a_worker_that_hangs_ends_itself(tmp_path: Path) -> None:
    code = "p = worker.begin()\nimport signal\nsignal.raise_signal(signal.SIGALRM)\n"
    script = worker(tmp_path, code)
    with Children() as group, pytest.raises(MeasurementError, match="signal SIGALRM"):
        group.worker([sys.executable], script, {}, limit_s=30).result()


def test_a_child_that_takes_too_long_is_given_up() -> None:
    with Children() as group:
        child = group.start(["sleep", "1000"], "sleeper")
        child.process.send_signal(signal.SIGSTOP)
        with pytest.raises(MeasurementError, match="sleeper took longer than 0 s"):
            child.wait(0.05)
        child.process.send_signal(signal.SIGCONT)


def test_children_and_theirs_are_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "GRACE_S", 0.1)
    ready = tmp_path / "ready"
    # A child that ignores SIGTERM and has a child of its own, as gunicorn has.
    code = (
        "import os, pathlib, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "pid = os.fork()\n"
        "if pid:\n"
        "    path = pathlib.Path(sys.argv[1] + '.new')\n"
        "    path.write_text(str(pid))\n"
        "    path.rename(sys.argv[1])\n"
        "time.sleep(60)\n"
    )
    with Children() as group:
        child = group.start([sys.executable, "-c", code, str(ready)], "family")
        while not ready.exists():
            child.check()
            time.sleep(0.01)
        grandchild = int(ready.read_text())
    assert child.process.returncode == -signal.SIGKILL
    assert _is_dead(grandchild)


def _is_dead(pid: int) -> bool:
    """Whether `pid` ends soon; as a zombie it waits for whoever inherited it."""
    for _ in range(500):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state in "ZX":
            return True
        time.sleep(0.01)
    return False


def test_what_cannot_be_started_is_said() -> None:
    with Children() as group, pytest.raises(MeasurementError, match="cannot start nothing"):
        group.start(["/nowhere/python"], "nothing")


def test_stock_does_not_inherit_the_features(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPYTHONPLUS_RUN", "gil=1")
    assert "CPYTHONPLUS_RUN" not in children.environment()
    assert Commands.of("/py").prefix("stock") == ["/py"]
    assert Commands.of("/py").prefix("plus") == ["/py", "-m", "cpythonplus", "run"]
    assert Commands.of("/py").prefix("threads-only")[-2:] == ["run", "--no-gil"]
    assert Commands.of("/py").prefix("peer") == ["/py"]
