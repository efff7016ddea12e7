import json
import re
import sys
from pathlib import Path

import pytest

from benchmarks.common import engine, machine
from benchmarks.common.children import Commands
from benchmarks.common.engine import Case, Settings
from benchmarks.common.errors import MeasurementError, UsageError
from benchmarks.common.results import CaseResult, Outcome, Report, Share, geometric_mean_ratio
from benchmarks.common.sides import Side
from benchmarks.giltest.echo import scenario as echo
from benchmarks.scenarios import SUITES, TARGETS, cases_of, verdicts
from tests.benchmarks import canned

STOCK_TWICE = Commands.of(sys.executable, [sys.executable])


class Quiet:
    def __init__(self) -> None:
        self.seen: list[str] = []

    def begin(self, total: int) -> None:
        self.seen.append(f"begin {total}")

    def step(self, text: str) -> None:
        self.seen.append(text)

    def end(self) -> None:
        self.seen.append("end")


def fake(name: str, *, starts: bool = False, scenario: str = "fake") -> Case:
    def measure(_commands: Commands, side: Side, _settings: Settings) -> Outcome:
        if name == "broken" and side == "plus":
            raise MeasurementError("worker.py ended with signal SIGSEGV")
        if name == "stopped":
            raise KeyboardInterrupt
        return Outcome(rate=100.0 if side == "stock" else 250.0)

    return Case(name, scenario, f"case {name}", "things/s", measure, starts_interpreters=starts)


def test_sides_alternate_and_rounds_are_spread() -> None:
    steps = engine.schedule([fake("a"), fake("b", starts=True)], Settings(2, 1.0, 3))
    assert [(s.case.name, s.number, s.side) for s in steps] == [
        ("a", 0, "stock"),
        ("a", 0, "plus"),
        ("b", 0, "stock"),
        ("b", 0, "plus"),
        ("a", 1, "plus"),
        ("a", 1, "stock"),
        ("b", 1, "plus"),
        ("b", 1, "stock"),
        ("b", 2, "stock"),
        ("b", 2, "plus"),
    ]


def test_a_failed_measurement_is_recorded_and_the_run_goes_on() -> None:
    progress = Quiet()
    cases = [fake("broken"), fake("good")]
    report = engine.run("test", cases, STOCK_TWICE, Settings(2, 1.0), progress)
    assert report.failures() == ["case broken, plus, 2 rounds: worker.py ended with signal SIGSEGV"]
    broken, good = report.cases
    assert broken.ratio() is None
    assert good.ratio() == 2.5
    assert good.round_ratios() == [2.5, 2.5]
    assert progress.seen[:2] == ["begin 8", "case broken, stock, round 1 of 2"]
    assert progress.seen[-1] == "end"
    assert [r.position for r in good.rounds] == [2, 3, 6, 7]


def test_an_interrupt_ends_the_progress_and_is_passed_on() -> None:
    progress = Quiet()
    with pytest.raises(KeyboardInterrupt):
        engine.run("test", [fake("stopped")], STOCK_TWICE, Settings(1, 1.0), progress)
    assert progress.seen[-1] == "end"


def test_cases_are_selected_by_name_scenario_and_wildcard() -> None:
    cases = cases_of("giltest")
    assert [c.name for c in engine.select(cases, ["echo-beside-[12]", "efficiency"])] == [
        "echo-beside-1",
        "echo-beside-2",
        "efficiency-1",
        "efficiency-2",
    ]
    assert engine.select(cases, []) == cases
    with pytest.raises(UsageError, match="no case is called 'ehco'"):
        engine.select(cases, ["ehco"])


@pytest.mark.parametrize("suite", SUITES)
def test_names_are_unique(suite: str) -> None:
    names = [case.name for case in cases_of(suite)]
    assert len(names) == len(set(names))


def test_an_interpreter_that_lacks_something_is_found_out_before_measuring() -> None:
    case = Case("a", "a", "a", "a", fake("a").measure, needs=("no_such_module_xyz",))
    with pytest.raises(UsageError, match="lacks no_such_module_xyz; they are in"):
        engine.check_interpreter(STOCK_TWICE, [case], own_command=True)
    with pytest.raises(UsageError, match="cannot run the interpreter /nowhere/python"):
        engine.check_interpreter(Commands.of("/nowhere/python"), [], own_command=False)


def test_results_best_median_and_shares() -> None:
    case = canned.result(
        fake("a"),
        ("stock", Outcome(rate=10, shares=canned.outcome(1, shares=()).shares)),
        ("plus", Outcome(rate=30, shares=(Share(0.2, 0.2), Share(0.1, 0.3)))),
        ("stock", Outcome(rate=12)),
        ("plus", Outcome(rate=36, shares=(Share(0.04, 0.2), Share(0.3, 0.3)))),
        ("stock", Outcome(rate=11)),
        ("plus", Outcome(rate=33)),
    )
    assert case.ratio() == 3
    assert case.median_ratio() == 3
    assert case.min_share("plus") == 0.04
    assert case.min_share("stock") is None
    case.statistic = "median"
    shown = case.shown("plus")
    assert shown is not None
    assert shown.rate == 33


def test_of_a_cost_the_least_is_the_best() -> None:
    case = canned.result(
        fake("a"), *(("plus", Outcome(rate=rate)) for rate in (30, 10, 20)), ("peer", Outcome(5))
    )
    case.better = "lower"
    best, median = case.best("plus"), case.median("plus")
    assert best is not None
    assert median is not None
    assert (best.rate, median.rate) == (10, 20)
    assert case.sides() == ("plus", "peer")


def test_a_case_that_works_on_neither_side_does_not_spoil_the_mean() -> None:
    good = canned.result(fake("a"), ("stock", Outcome(rate=1)), ("plus", Outcome(rate=4)))
    half = canned.result(fake("b"), ("stock", Outcome(rate=1)))
    none = CaseResult("c", "fake", "c", "u")
    assert geometric_mean_ratio([good, none]) == pytest.approx(4)
    assert geometric_mean_ratio([good, half]) is None
    assert geometric_mean_ratio([]) is None


def test_every_target_names_something_that_is_measured() -> None:
    cases = [case for suite in SUITES for case in cases_of(suite)]
    names = {case.name for case in cases} | {case.scenario for case in cases}
    assert {t.case for t in TARGETS} <= names
    assert {t.other for t in TARGETS if t.other} <= names
    judged: list[tuple[str, str]] = []
    for suite in SUITES:
        found = [(v.case, v.quantity) for v in verdicts(canned.report(suite))]
        earlier = {case for case, _ in judged}  # two suites share one
        judged += [verdict for verdict in found if verdict[0] not in earlier]
    # Each once, but for those that are stated again for later versions.
    stated = [(t.case, t.quantity) for t in TARGETS if t.since <= (3, 13)]
    assert sorted(judged) == sorted(stated)


def test_no_case_name_means_two_things() -> None:
    """A target refers to a case by its name, whatever the suite."""
    meant = {(c.name, c.scenario, c.title) for suite in SUITES for c in cases_of(suite)}
    assert len({name for name, _, _ in meant}) == len(meant)


@pytest.mark.parametrize(
    ("python", "limit"),
    [("CPython 3.11.7", 10), ("CPython 3.13.0", 10), ("CPython 3.14.0rc1", 4), ("3.15.0a2", 4)],
)
def test_a_target_holds_for_its_versions(python: str, limit: float) -> None:
    report = canned.report("threads")
    report.machine["python"] = python
    (verdict,) = (v for v in verdicts(report) if v.case == "stream-queue-1")
    assert verdict.limit == limit
    where = "before 3.14" if limit == 10 else "from 3.14 on"
    assert verdict.target == f">= {limit} x stock {where}"


@pytest.mark.parametrize(
    ("stock_ms", "plus_ms", "reached"),
    [(1, 50, True), (1, 52, False), (600, 655, True), (600, 661, False), (60, 1, True)],
)
def test_more_cpu_time_is_judged_by_what_can_be_told(
    stock_ms: float, plus_ms: float, reached: bool
) -> None:
    (case,) = engine.select(cases_of("threads"), ["idle-polling"])
    measured = canned.result(
        case, ("stock", Outcome(rate=stock_ms)), ("plus", Outcome(rate=plus_ms))
    )
    report = Report("threads", dict(canned.MACHINE), {}, [measured])
    (verdict,) = verdicts(report)
    assert verdict.value == pytest.approx((plus_ms - stock_ms) / 1e3)
    assert verdict.reached is reached
    assert verdict.target == "<= 0.05 s more in 10 s, or 10%"


def test_targets_are_judged_on_both_kinds_of_limit() -> None:
    found = {(v.case, v.quantity): v for v in verdicts(canned.report())}
    assert found["echo-beside-1", "ratio"].reached
    assert found["echo-beside-1", "rate_against"].value == pytest.approx(55_000 / 19_400)
    assert found["echo-beside-8", "ratio"].reached
    assert not found["echo-beside-8", "p99_ms"].reached
    assert found["echo-beside-8", "min_share"].limit == pytest.approx(0.05 / 8)


def test_the_policys_share_is_the_policys() -> None:
    gil = pytest.importorskip("cpythonplus.gil", exc_type=ImportError)
    assert gil.Policy().batch_share == echo.POLICY_SHARE


def test_a_mislabelled_side_is_noticed() -> None:
    case = canned.result(
        fake("a"),
        ("stock", Outcome(rate=1, scheduled=False)),
        ("plus", Outcome(rate=1, scheduled=False)),
    )
    assert Report("t", {}, {}, [case]).mislabelled() == ["a"]
    assert canned.report().mislabelled() == []


@pytest.mark.parametrize(
    ("side", "scheduled", "patched", "right"),
    [
        ("stock", False, False, True),
        ("stock", False, True, False),
        ("peer", False, False, True),
        ("peer", True, False, False),
        ("plus", True, True, True),
        ("plus", True, False, False),
        ("threads-only", False, True, True),
        ("threads-only", True, True, False),
        ("threads-only", False, False, False),
        ("plus", True, None, True),
    ],
)
def test_each_side_has_its_features(
    side: Side, scheduled: bool, patched: bool | None, right: bool
) -> None:
    case = canned.result(fake("a"), (side, Outcome(1, scheduled=scheduled, patched=patched)))
    assert (Report("t", {}, {}, [case]).mislabelled() == []) is right


def test_sides_that_cannot_be_measured_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "missing_modules", lambda *_: ["culsans"])
    cases = engine.select(cases_of("threads"), ["handover-lock", "handover-queue", "idle-waiting"])

    def sides(*wanted: Side, own_command: bool = False) -> list[tuple[Side, ...]]:
        found = engine.with_sides(cases, STOCK_TWICE, wanted, own_command=own_command)
        return [case.sides for case in found]

    assert sides("plus", "threads-only", "peer") == [
        ("stock", "plus", "threads-only", "peer"),
        ("stock", "plus", "threads-only"),
        ("stock", "plus"),
    ]
    assert sides("plus") == [("stock", "plus")] * 3
    assert sides("peer") == [("stock", "peer"), ("stock",), ("stock",)]
    assert sides("plus", "threads-only", own_command=True) == [("stock", "plus")] * 3


def test_a_machine_with_peers_tells_their_versions() -> None:
    report = engine.run("test", [], STOCK_TWICE, Settings(1, 1.0), Quiet())
    assert "peers" not in report.machine
    assert machine.describe(sys.executable, ["pytest"])["peers"] == f"pytest {pytest.__version__}"


def test_the_json_holds_all_rounds(tmp_path: Path) -> None:
    path = tmp_path / "raw.json"
    canned.report().write_json(path)
    raw = json.loads(path.read_text())
    assert set(raw) == {"schema", "benchmark", "machine", "settings", "cases", "targets"}
    assert raw["schema"] == 1
    echo = raw["cases"][1]
    assert echo["name"] == "echo-beside-1"
    assert [r["side"] for r in echo["rounds"]] == ["stock", "plus", "plus", "stock"]
    latency = echo["rounds"][1]["outcome"]["latency"]
    assert set(latency) == {"count", "p50_ms", "p99_ms", "max_ms", "curve"}
    assert echo["rounds"][1]["outcome"]["shares"] == [{"work": 0.4, "cpu": 0.41}]
    assert echo["ratio"] == pytest.approx(55_000 / 206)
    verdict = raw["targets"][0]
    assert (echo["better"], echo["peer"]) == ("higher", "")
    assert echo["ratios"] == {"plus": echo["ratio"]}
    assert set(verdict) == {"case", "quantity", "target", "limit", "value", "reached"}


def test_the_machine_is_described() -> None:
    report = engine.run("test", [], STOCK_TWICE, Settings(1, 1.0), Quiet())
    wanted = {"cpu", "cores", "kernel", "python", "python_build_flags", "cpythonplus", "date"}
    assert wanted <= set(report.machine)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]+\+00:00", report.machine["date"])
