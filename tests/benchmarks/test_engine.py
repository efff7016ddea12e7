import json
import re
import sys
from pathlib import Path

import pytest

from cpythonplus.benchmarks.common import engine, targets
from cpythonplus.benchmarks.common.children import Commands
from cpythonplus.benchmarks.common.engine import Case, Settings
from cpythonplus.benchmarks.common.errors import MeasurementError, UsageError
from cpythonplus.benchmarks.common.results import (
    CaseResult,
    Outcome,
    Report,
    Share,
    Side,
    geometric_mean_ratio,
)
from cpythonplus.benchmarks.suites import SUITES
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
    cases = SUITES["giltest"]()
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
    names = [case.name for case in SUITES[suite]()]
    assert len(names) == len(set(names))


def test_an_interpreter_that_lacks_something_is_found_out_before_measuring() -> None:
    case = Case("a", "a", "a", "a", fake("a").measure, needs=("no_such_module_xyz",))
    with pytest.raises(UsageError, match="lacks no_such_module_xyz; install with"):
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


def test_a_case_that_works_on_neither_side_does_not_spoil_the_mean() -> None:
    good = canned.result(fake("a"), ("stock", Outcome(rate=1)), ("plus", Outcome(rate=4)))
    half = canned.result(fake("b"), ("stock", Outcome(rate=1)))
    none = CaseResult("c", "fake", "c", "u")
    assert geometric_mean_ratio([good, none]) == pytest.approx(4)
    assert geometric_mean_ratio([good, half]) is None
    assert geometric_mean_ratio([]) is None


def test_every_target_names_something_that_is_measured() -> None:
    cases = SUITES["giltest"]()
    names = {case.name for case in cases} | {case.scenario for case in cases}
    assert {t.case for t in targets.TARGETS} <= names
    assert {t.other for t in targets.TARGETS if t.other} <= names
    assert len(targets.verdicts(canned.report())) == len(targets.TARGETS)


def test_targets_are_judged_on_both_kinds_of_limit() -> None:
    found = {(v.case, v.quantity): v for v in targets.verdicts(canned.report())}
    assert found["echo-beside-1", "ratio"].reached
    assert found["echo-beside-1", "rate_against"].value == pytest.approx(55_000 / 19_400)
    assert found["echo-beside-8", "ratio"].reached
    assert not found["echo-beside-8", "p99_ms"].reached
    assert found["echo-beside-8", "min_share"].limit == pytest.approx(0.05 / 8)


def test_the_policys_share_is_the_policys() -> None:
    gil = pytest.importorskip("cpythonplus.gil", exc_type=ImportError)
    assert gil.Policy().batch_share == targets.POLICY_SHARE


def test_a_mislabelled_side_is_noticed() -> None:
    case = canned.result(
        fake("a"),
        ("stock", Outcome(rate=1, scheduled=False)),
        ("plus", Outcome(rate=1, scheduled=False)),
    )
    assert Report("t", {}, {}, [case]).unscheduled() == ["a"]
    assert canned.report().unscheduled() == []


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
    assert set(verdict) == {"case", "quantity", "target", "limit", "value", "reached"}


def test_the_machine_is_described() -> None:
    report = engine.run("test", [], STOCK_TWICE, Settings(1, 1.0), Quiet())
    wanted = {"cpu", "cores", "kernel", "python", "python_build_flags", "cpythonplus", "date"}
    assert wanted <= set(report.machine)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]+\+00:00", report.machine["date"])
