"""CPython's own tests on ours: how they are judged, and the page that tells what fails."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tools import cpython_known, cpython_tests, cpython_tests_page
from tools.cpython_tests import Way
from tools.junit_results import Outcome, read_report
from tools.results_page import PageError

pytestmark = pytest.mark.any_version

Runs = dict[tuple[str, ...], Iterator[Outcome]]

OURS = Way((), known={"test.m.T.test_known": "a reason", "test.m.U.*_size": "another"})


def outcome(*failed: str, skipped: tuple[str, ...] = ()) -> Outcome:
    return Outcome(9, frozenset(failed), frozenset(skipped))


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    """What runs will say, by the arguments of their way; each is used up once."""
    left: Runs = {}
    monkeypatch.setattr(cpython_tests, "run_module", lambda _, way: next(left[way.tests]))
    return left


def test_what_is_known_needs_no_second_run(runs: Runs) -> None:
    runs[OURS.tests] = iter([outcome("test.m.T.test_known", "test.m.U.test_a_size")])
    verdict = cpython_tests.judge("m", OURS)
    assert not verdict.ours
    assert verdict.known == {"test.m.T.test_known": "a reason", "test.m.U.test_a_size": "another"}


def test_a_failure_is_ours_theirs_or_unsteady(runs: Runs) -> None:
    runs[OURS.tests] = iter([outcome("ours", "theirs", "once"), outcome("ours", "theirs")])
    runs[cpython_tests.PLAIN.tests] = iter([outcome("theirs")])
    verdict = cpython_tests.judge("m", OURS)
    seen = list(map(sorted, (verdict.ours, verdict.theirs, verdict.unsteady)))
    assert seen == [["ours"], ["theirs"], ["once"]]
    told = cpython_tests.describe(verdict)
    assert "FAILS ONLY HERE: ours" in told
    assert "fails in plain Python too: theirs" in told
    assert "failed once, not again: once" in told


def test_what_is_skipped_only_here_fails(runs: Runs) -> None:
    runs[OURS.tests] = iter([outcome(skipped=("here", "both"))] * 2)
    runs[cpython_tests.PLAIN.tests] = iter([outcome(skipped=("both",))])
    verdict = cpython_tests.judge("m", OURS, thoroughly=True)
    assert sorted(verdict.ours) == ["here"]
    assert verdict.skipped == 1


def test_a_report_is_read(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testcase name="a"/><testcase name="b"><failure/></testcase>'
        '<testcase name="c"><error/></testcase><testcase name="d"><skipped/></testcase>'
        "</testsuites>",
        "utf-8",
    )
    assert read_report(report, "m") == Outcome(
        4, frozenset({"b", "c"}), frozenset({"d"}), frozenset({"a"})
    )
    report.write_text("<testsuites>", "utf-8")
    assert read_report(report, "m") == Outcome(0, frozenset())


def test_recording_keeps_the_other_modules(tmp_path: Path) -> None:
    verdict = cpython_tests.Verdict(9, frozenset({"b"}), {"a": "a reason"}, skipped=2)
    cpython_tests.record({"m": verdict}, tmp_path)
    cpython_tests.record({"n": verdict}, tmp_path)
    (written,) = tmp_path.iterdir()
    modules = json.loads(written.read_text("utf-8"))["modules"]
    assert modules.keys() == {"m", "n"}
    assert modules["m"]["failed"] == ["a", "b"]
    assert (modules["m"]["tests"], modules["m"]["skipped"]) == (9, 2)


def test_the_page_is_up_to_date() -> None:
    assert cpython_tests_page.main(["--check"]) == 0, "run: make docs"


def result(*failed: str) -> dict[str, object]:
    found = {"tests": 3, "skipped": 1, "failed": list(failed), "failed in plain Python too": ["x"]}
    return {"python": "3.13.0", "modules": {"test_m": found}}


@pytest.fixture
def one_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpython_tests_page, "TASKLETS_ALL", ("test_m",))
    monkeypatch.setattr(cpython_tests_page, "KNOWN_TASKLETS", OURS.known)


@pytest.mark.usefixtures("one_module")
def test_the_page_tells_what_fails_and_why() -> None:
    results = [result("test.m.T.test_known", "test.m.U.test_size")]
    cpython_tests_page.check(results)
    text = cpython_tests_page.rendered(results)
    assert "| `test_m` | 2: 2 (and 1) |" in text
    assert "| `m.T.test_known` | all | a reason |" in text


@pytest.mark.usefixtures("one_module")
@pytest.mark.parametrize(
    ("failed", "complaint"),
    [
        (("test.m.T.test_known", "test.m.T.other"), r"T\.other fails for no known reason"),
        (("test.m.T.test_known",), "a reason that no failure has: "),
    ],
)
def test_reasons_and_failures_belong_together(failed: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(PageError, match=complaint):
        cpython_tests_page.check([result(*failed)])


@pytest.mark.usefixtures("one_module")
def test_a_module_that_did_not_run_is_told() -> None:
    with pytest.raises(PageError, match="not recorded: test_m"):
        cpython_tests_page.check([{"python": "3.13.0", "modules": {}}])


def test_the_page_about_run_has_what_is_known() -> None:
    page = (ROOT / "docs" / "reference" / "cpython-tests-under-run.md").read_text("utf-8")
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| `test_")]
    told = {test.strip("| `"): why.strip(" |") for test, _, why in rows}
    known = cpython_known.KNOWN_RUN.items()
    assert told == {name.removeprefix("test."): why for name, why in known}
