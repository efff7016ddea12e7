"""CPython's own tests on ours: how they are judged, and the page that tells what fails."""

import json
from collections.abc import Iterator
from importlib.util import find_spec
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
    monkeypatch.setattr(cpython_tests, "run_module", lambda _, way, __: next(left[way.tests]))
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
    verdict = cpython_tests.Verdict(9, frozenset({"b"}), {"a": "a reason"}, skipped=2, seconds=1.26)
    path = cpython_tests.path_of_record("whole", tmp_path)
    cpython_tests.record({"m": verdict}, path, times=True)
    cpython_tests.record({"n": verdict}, path, times=True)
    modules = json.loads(path.read_text("utf-8"))["modules"]
    assert modules.keys() == {"m", "n"}
    assert modules["m"]["failed"] == ["a", "b"]
    assert (modules["m"]["tests"], modules["m"]["skipped"]) == (9, 2)
    assert cpython_tests.recorded_seconds(tmp_path) == {"m": 1.3, "n": 1.3}


def test_times_are_recorded_of_the_whole_only(tmp_path: Path) -> None:
    nothing = cpython_tests.Verdict(0, frozenset(), {}, frozenset({"m: no tests ran", "m.x"}))
    path = cpython_tests.path_of_record("tests", tmp_path)
    cpython_tests.record({"m": nothing}, path)
    recorded = json.loads(path.read_text("utf-8"))["modules"]["m"]
    assert "seconds" not in recorded
    assert recorded["failed in plain Python too"] == ["m.x"]


def test_times_of_this_version_come_first(tmp_path: Path) -> None:
    own = cpython_tests.path_of_record("whole", tmp_path)
    for path, seconds in ((tmp_path / "cpython-whole-3.1.json", 5), (own, 3)):
        modules = {"m": {"seconds": seconds}, path.name: {"seconds": 1}}
        path.write_text(json.dumps({"modules": modules}), "utf-8")
    found = cpython_tests.recorded_seconds(tmp_path)
    assert found["m"] == 3
    assert len(found) == 3


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_parts_have_everything_once_and_cost_about_the_same(parts: int) -> None:
    seconds = {f"m{i}": float(i % 17) for i in range(100)}
    modules = [*seconds, "new"]
    shares = [cpython_tests.part_of(modules, k, parts, seconds) for k in range(1, parts + 1)]
    assert sorted(name for share in shares for name in share) == sorted(modules)
    costs = [sum(seconds.get(name, 4.0) for name in share) for share in shares]
    assert max(costs) - min(costs) <= max(seconds.values())
    first = [seconds.get(name, 4.0) for name in shares[0]]
    assert first == sorted(first, reverse=True), "two run at once: the longest come first"


@pytest.mark.skipif(
    find_spec("test.test_threading") is None,
    reason="without Python's own tests (Debian: libpython3-testsuite)",
)
def test_the_list_of_all_modules() -> None:
    """As `python -m test` has it: a module, or one of a package."""
    found = cpython_tests.all_modules()
    assert "test_threading" in found
    assert found == sorted(set(found))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--whole", "--part", "0/3"], "K/N"),
        (["--whole", "--part", "4/3"], "K/N"),
        (["--whole", "--part", "one"], "K/N"),
        (["--part", "1/3"], "of --whole"),
        (["--whole", "--tasklets"], "not with --tasklets"),
        (["--record", "/tmp"], "needs --tasklets or --whole"),
    ],
)
def test_wrong_arguments(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cpython_tests.parse(arguments)
    assert ended.value.code == 2
    assert complaint in capsys.readouterr().err


def test_which_modules_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    way = Way((), all=("a", "b"), quick=("a",))
    monkeypatch.setattr(cpython_tests, "all_modules", lambda: ["x", "y", "z"])
    monkeypatch.delenv("CPYTHON_TESTS", raising=False)

    def chosen(*arguments: str) -> list[str]:
        return list(cpython_tests.chosen(cpython_tests.parse(arguments), way, {"y": 9.0}))

    assert chosen() == ["a", "b"]
    assert chosen("--quick") == ["a"]
    assert chosen("--whole") == ["y", "x", "z"]
    assert chosen("--whole", "--part", "1/2") == ["y"]
    assert chosen("--whole", "c") == ["c"]


def test_the_pages_are_up_to_date() -> None:
    assert cpython_tests_page.main(["--check"]) == 0, "run: make docs"


def result(*failed: str) -> dict[str, object]:
    found = {"tests": 3, "skipped": 1, "failed": list(failed), "failed in plain Python too": ["x"]}
    found["unsteady"] = ["y", "z"]
    return {"python": "3.13.0", "modules": {"test_m": found}}


@pytest.fixture
def one_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpython_tests_page, "TASKLETS_ALL", ("test_m",))
    monkeypatch.setattr(cpython_tests_page, "KNOWN_TASKLETS", OURS.known)


@pytest.mark.usefixtures("one_module")
def test_the_page_tells_what_fails_and_why() -> None:
    results = [result("test.m.T.test_known", "test.m.U.test_size")]
    cpython_tests_page.check(results, OURS.known, ("test_m",))
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
        cpython_tests_page.check([result(*failed)], OURS.known)


def test_a_module_that_did_not_run_is_told() -> None:
    with pytest.raises(PageError, match="not recorded: test_m"):
        cpython_tests_page.check([{"python": "3.13.0", "modules": {}}], {}, ("test_m",))


def test_the_page_about_run_sums_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpython_tests_page, "KNOWN_WHOLE", OURS.known)
    results = [result("test.m.T.test_known")]
    text = cpython_tests_page.rendered_whole(results)
    for row in ("modules | 1 |", "tests | 2 |", "plain Python | 1 |", "`run` | 1 |", "again | 2 |"):
        assert row in text
    assert "| `m.T.test_known` | all | a reason |" in text


def test_the_page_about_run_has_what_is_known() -> None:
    page = (ROOT / "docs" / "reference" / "cpython-tests.md").read_text("utf-8")
    inherited = page.partition("### With all children under run")[2].partition("\n## ")[0]
    rows = [line.split(" | ") for line in inherited.splitlines() if line.startswith("| `test_")]
    told = {test.strip("| `"): why.strip(" |") for test, _, why in rows}
    known = cpython_known.KNOWN_RUN.items()
    assert told == {name.removeprefix("test."): why for name, why in known}
