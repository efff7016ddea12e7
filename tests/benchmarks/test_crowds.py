"""Crowds: each kind wakes everybody, and what cannot be started is said."""

import sys
import threading
import time
from dataclasses import replace

import pytest

from cpythonplus.benchmarks.common import engine, targets
from cpythonplus.benchmarks.common.children import Commands
from cpythonplus.benchmarks.common.engine import Case, Settings
from cpythonplus.benchmarks.common.errors import UsageError
from cpythonplus.benchmarks.common.results import Outcome, Report
from cpythonplus.benchmarks.giltest.crowds import scenario, worker
from cpythonplus.benchmarks.suites import SUITES
from cpythonplus.cli.arguments import UsageError as CommandUsageError
from cpythonplus.cli.commands import bench
from tests.benchmarks import canned

STOCK_TWICE = Commands.of(sys.executable, [sys.executable])


def case_called(name: str) -> Case:
    return next(case for case in SUITES["giltest"]() if case.name == name)


@pytest.mark.parametrize("kind", worker.KINDS)
def test_everybody_is_woken(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "LEAD_S", 0.05)
    crowd = worker.KINDS[kind](7)
    threads = worker.started(crowd.wait, 7)
    found = worker.measured(crowd, threads)
    assert not any(thread.is_alive() for thread in threads)
    assert found["cpu_ms"] >= 0
    assert found["joined_ms"] >= 0


def test_nobody_is_woken_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "LEAD_S", 3600.0)
    crowd = worker.KINDS["sleep"](2)
    assert crowd.instant > time.monotonic() + 3000
    for kind in ("event", "semaphore", "barrier", "condition"):
        crowd = worker.KINDS[kind](2)
        threads = worker.started(crowd.wait, 2)
        assert all(thread.is_alive() for thread in threads)
        assert not crowd.instant
        crowd.wake()
        for thread in threads:
            thread.join(30)


def test_too_many_threads_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    real, count = threading.Thread.start, 0

    def start(self: threading.Thread) -> None:
        nonlocal count
        count += 1
        if count > 3:
            raise RuntimeError("can't start new thread")
        real(self)

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(SystemExit) as caught:
        worker.started(lambda: None, 5)
    assert str(caught.value) == "the system started 3 of 5 threads: can't start new thread"


def test_it_is_settled_when_no_cpu_time_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    used = iter([0, 50_000_000, 90_000_000, 90_100_000, 99])
    monkeypatch.setattr(time, "process_time_ns", lambda: next(used))
    monkeypatch.setattr(time, "sleep", lambda _: None)
    worker.settle()
    assert next(used) == 99


@pytest.mark.parametrize("kind", worker.KINDS)
def test_a_case_measures(kind: str) -> None:
    outcome = case_called(f"crowds-{kind}-100").measure(STOCK_TWICE, "plus", Settings(1, 0.05))
    assert outcome.rate > 0
    assert outcome.figures["joined_ms"] > 0
    assert (outcome.scheduled, outcome.patched) == (False, False)


def test_there_is_a_case_for_each_kind_and_size() -> None:
    names = {case.name for case in scenario.cases()}
    assert names == {f"crowds-{kind}-{size}" for kind in worker.KINDS for size in scenario.SIZES}


def test_a_quick_run_leaves_the_largest_out(capsys: pytest.CaptureFixture[str]) -> None:
    large = [case.name for case in SUITES["giltest"]() if not case.in_quick]
    assert large == [f"crowds-{kind}-10000" for kind in worker.KINDS]
    assert bench.main(["giltest", "--quick", "--list", "--only", "crowds-event*"]) == 0
    assert "crowds-event-1500" in (listed := capsys.readouterr().out)
    assert "10000" not in listed
    with pytest.raises(CommandUsageError, match="--quick leaves out crowds-event-10000"):
        bench.main(["giltest", "--quick", "--only", "crowds-event-10000"])
    case = replace(case_called("echo-beside-0"), in_quick=False)
    with pytest.raises(UsageError, match="leaves out echo-beside-0"):
        engine.quick([case])


@pytest.mark.parametrize(("cpu_ms", "wall_ms", "reached"), [(140, 54, True), (160, 60, False)])
def test_the_targets_are_cpu_time_and_wall_time(
    cpu_ms: float, wall_ms: float, reached: bool
) -> None:
    measured = canned.result(
        case_called("crowds-event-1000"),
        ("stock", Outcome(100, figures={"joined_ms": 50})),
        ("plus", Outcome(cpu_ms, figures={"joined_ms": wall_ms})),
    )
    found = targets.verdicts(Report("giltest", dict(canned.MACHINE), {}, [measured]))
    assert [v.target for v in found] == ["<= 1.5 x stock", "wall ms <= 1.1 x stock"]
    assert [v.reached for v in found] == [reached, reached]
    assert [v.value for v in found] == pytest.approx([cpu_ms / 100, wall_ms / 50])
