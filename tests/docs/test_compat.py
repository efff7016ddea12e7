"""Other people's tests on ours: how runs are compared, and the page that tells what differs."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.servers import PATIENCE_S, sessions, until
from tools import results_page
from tools.compat import causes, farm, fetch, packages, page, report, run
from tools.compat.judge import PROCESS, ROUNDS, Counts, judge, open_questions
from tools.compat.packages import ListError, Package
from tools.compat.report import Finding
from tools.compat.run import Run
from tools.junit_results import Outcome, read_report
from tools.results_page import PageError

pytestmark = pytest.mark.any_version


@pytest.fixture
def junit(tmp_path: Path) -> "Reports":
    return Reports(tmp_path)


KINDS = {".": "", "F": "<failure/>", "E": "<error/>", "s": "<skipped/>"}


class Reports:
    """Makes JUnit files: a letter for each test, `.` passed, `s` skipped, ` ` missing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def outcomes(self, *runs: str) -> list[Outcome]:
        return [self.outcome(letters) for letters in runs]

    def outcome(self, letters: str) -> Outcome:
        if not letters:
            return Outcome(0, frozenset({PROCESS}))
        cases = [
            f'<testcase classname="t.C" name="test_{place}">{KINDS[letter]}</testcase>'
            for place, letter in enumerate(letters)
            if letter != " "
        ]
        path = self.folder / "report.xml"
        path.write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
        return read_report(path, "t")


def test_the_same_on_both_sides_is_nothing(junit: Reports) -> None:
    stock, plus = junit.outcomes(".Fs"), junit.outcomes(".Fs")
    verdict = judge(stock, plus, {})
    assert not verdict.ours
    assert not verdict.unsteady
    assert verdict.theirs == {"t.C.test_1"}
    assert not open_questions(stock, plus, {})


@pytest.mark.parametrize("letter", ["F", "E", "s", " "])
def test_what_is_worse_twice_fails_only_with_us(junit: Reports, letter: str) -> None:
    stock, plus = junit.outcomes("..", ".."), junit.outcomes(f".{letter}", f".{letter}")
    assert judge(stock, plus, {}).ours == {"t.C.test_1": Counts(0, 2, 2)}
    assert open_questions(stock[:1], plus[:1], {})


def test_two_of_three_are_enough_and_one_is_not(junit: Reports) -> None:
    stock, plus = junit.outcomes("..", "..", ".."), junit.outcomes("FF", "F.", "..")
    verdict = judge(stock, plus, {})
    assert verdict.ours == {"t.C.test_0": Counts(0, 2, 3)}
    assert verdict.unsteady == {"t.C.test_1": Counts(0, 1, 3)}
    assert len(plus) == ROUNDS
    assert not open_questions(stock, plus, {})


def test_what_fails_on_stock_at_times_is_unsteady(junit: Reports) -> None:
    stock, plus = junit.outcomes(".", "F", "."), junit.outcomes("F", "F", "F")
    verdict = judge(stock, plus, {})
    assert not verdict.ours
    assert verdict.unsteady == {"t.C.test_0": Counts(1, 3, 3)}


def test_what_fails_on_stock_only_asks_for_no_more_runs(junit: Reports) -> None:
    stock, plus = junit.outcomes("F"), junit.outcomes(".")
    assert judge(stock, plus, {}).unsteady == {"t.C.test_0": Counts(1, 0, 1)}
    assert not open_questions(stock, plus, {})


def test_what_stock_skips_and_we_fail_is_ours(junit: Reports) -> None:
    stock, plus = junit.outcomes("s", "s"), junit.outcomes("F", "F")
    assert judge(stock, plus, {}).ours
    assert open_questions(stock[:1], plus[:1], {})


def test_a_failing_test_that_stock_has_not_is_ours(junit: Reports) -> None:
    assert judge(junit.outcomes(". ", ". "), junit.outcomes(".F", ".F"), {}).ours


def test_a_process_that_ends_without_a_report_is_one_failure(junit: Reports) -> None:
    verdict = judge(junit.outcomes("...", "..."), junit.outcomes("", ""), {})
    assert verdict.ours == {PROCESS: Counts(0, 2, 2)}
    # Nor do the tests of a stock process that crashed count against plus.
    verdict = judge(junit.outcomes("", ""), junit.outcomes("..F", "..F"), {})
    assert not verdict.ours


def test_what_is_known_asks_for_no_more_runs(junit: Reports) -> None:
    stock, plus = junit.outcomes(".."), junit.outcomes("F.")
    known = {"t.C.*_0": "a reason"}
    verdict = judge(stock, plus, known)
    assert verdict.known == {"t.C.test_0": "a reason"}
    assert not verdict.ours
    assert not open_questions(stock, plus, known)


def test_a_known_name_may_have_brackets() -> None:
    stock = [Outcome(1, frozenset(), passed=frozenset({"t[a-b]"}))] * 2
    plus = [Outcome(1, frozenset({"t[a-b]"}))] * 2
    assert judge(stock, plus, {"t[a-b]": "a reason"}).known
    assert judge(stock, plus, {"t[x]": "another"}).ours


def test_what_may_fail_and_does_has_passed(tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    cases = '<testcase name="a"><skipped type="pytest.xfail"/></testcase>'
    cases += '<testcase name="b"><skipped type="pytest.skip"/></testcase>'
    path.write_text(f"<testsuite>{cases}</testsuite>")
    found = read_report(path, "t")
    assert (found.passed, found.skipped) == (frozenset("a"), frozenset("b"))


def test_addresses_in_names_are_one(tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    path.write_text(
        '<testsuite><testcase classname="t" name="a[&lt;f at 0x7f01ab&gt;]"/></testsuite>'
    )
    assert read_report(path, "t").passed == {"t.a[<f at 0x...>]"}


# ---- the list -----------------------------------------------------------------------------------


def listed(tmp_path: Path, text: str) -> list[Package]:
    path = tmp_path / "packages.toml"
    path.write_text(text, "utf-8")
    return packages.read(path)


def test_the_list_is_in_order_and_has_a_quick_part() -> None:
    names = [package.name.lower() for package in packages.read()]
    assert names == sorted(names)
    assert sum(package.quick for package in packages.for_run(packages.read())) == 10
    leaking = packages.for_no_cycles(packages.read())
    assert [package.name for package in leaking if package.quick] == ["boltons", "tenacity"]
    assert len(leaking) == 6


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[[package]]\nname = "a"\nversion = "1"', "neither tests nor left_out"),
        ('[[package]]\nname = "a"\ntests = ["t"]', "keys: version"),
        ('[[package]]\nname = "a"\nversion = "1"\ntest = ["t"]', "keys: test"),
        ('[[package]]\nname = "a"\nversion = "1"\ntests = ["t"]\npython = "3.11"', "expected >="),
        ('[[package]]\nname = "a"\nversion = "1"\ntests = ["t"]\n' * 2, "a more than once"),
    ],
)
def test_a_wrong_list_is_told(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ListError, match=complaint):
        listed(tmp_path, text)


def test_a_package_says_which_pythons_it_is_for() -> None:
    package = Package("a", "1", python=">=3.12,<3.15,!=3.13")
    supported = [minor for minor in range(11, 16) if package.supports(f"3.{minor}.4")]
    assert supported == [12, 14]


def test_some_run_with_tasklets_patches_only() -> None:
    both = Package("a", "1", tasklets=True)
    one = Package("b", "1", tasklets=True, only_tasklets=True)
    assert packages.for_run([both, one]) == [both]
    assert [each.name for each in packages.for_tasklets([both, one])] == ["a", "b"]


def test_those_for_tasklets_have_other_reasons() -> None:
    here = Package("a", "1", extra=("-x",), tasklets=True, extra_tasklets=("-y",))
    here = replace(here, known={"u": "not here"}, known_tasklets={"t": "why"})
    (found,) = packages.for_tasklets([here, Package("b", "1")])
    assert (found.name, found.extra, found.known) == ("a", ("-x", "-y"), {"t": "why"})


def test_packages_are_chosen() -> None:
    quick, other = Package("Quick", "1", quick=True), Package("other", "1")
    assert packages.chosen([quick, other], [], quick=True) == [quick]
    assert packages.chosen([quick, other], ["other", "quick"], quick=True) == [other, quick]
    with pytest.raises(ListError, match=r"no such package in packages\.toml: x, y"):
        packages.chosen([quick, other], ["quick", "x", "y"], quick=False)


def test_a_wrong_name_is_one_line_and_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert farm.main(["no-such-package"]) == 2
    said = capsys.readouterr()
    assert said.err == "compat: no such package in packages.toml: no-such-package\n"
    assert not said.out
    assert farm.main(["--tasklets", "trio"]) == 2, "it has a loop of its own"


# ---- running ------------------------------------------------------------------------------------


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """An environment's interpreter beside a `pytest` that does what PROGRAM says."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "python").symlink_to(sys.executable)
    (folder / "pytest").write_text("import os; exec(os.environ['PROGRAM'])", "utf-8")
    return folder / "python"


def ran(python: Path, program: str, limit_s: float = 60.0) -> Run:
    package = Package("a", "1", environment={"PROGRAM": program}, limit_s=limit_s)
    return run.run_once(package, "stock", python.parent, python, python.parent / "log.txt")


TEST = frozenset({"t.a"})
REPORT = """
import os, sys
(path,) = [each.partition("=")[2] for each in sys.argv if each.startswith("--junitxml=")]
open(path, "w").write('<testsuite><testcase classname="t" name="a">%s</testcase></testsuite>')
"""


def test_a_run_is_read(python: Path) -> None:
    found = ran(python, REPORT % "")
    assert (found.outcome, found.ending) == (Outcome(1, frozenset(), passed=TEST), "")
    found = ran(python, REPORT % "<failure/>" + "sys.exit(1)")
    assert (found.outcome, found.ending) == (Outcome(1, TEST), "")


@pytest.mark.parametrize(
    ("ending", "told"),
    [
        ("sys.exit(1)", "status 1: no output"),
        ("print('x'); sys.exit(3)", "status 3: x"),
        ("sys.stdout.flush(); os.abort()", "status -6"),
    ],
)
def test_a_process_that_ends_badly_is_a_failure(python: Path, ending: str, told: str) -> None:
    found = ran(python, REPORT % "" + ending)
    assert found.outcome.failed == {PROCESS}
    assert found.ending.startswith(told)
    assert found.ending.endswith("the last test begun: no test")


@pytest.mark.slow
def test_a_time_limit_ends_what_left_the_group_too(python: Path, tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    # The child is in another session, and in the way of its parent's end.
    program = f"""
import os, signal, time
open(os.environ["CPYTHONPLUS_COMPAT_RUNNING"], "w").write("t::a")
if os.fork() == 0:
    os.setsid()
    open({str(noted)!r}, "w").write(str(os.getpid()))
signal.signal(signal.SIGABRT, signal.SIG_IGN)
time.sleep(600)
"""
    found = ran(python, program, limit_s=8.0)
    assert found.outcome.failed == {PROCESS}
    assert found.ending == "time limit: no output; the last test begun: t::a"
    left = int(noted.read_text())
    until("its end", lambda: left not in {pid for pid, _ in sessions()})


@pytest.mark.slow
@pytest.mark.needs_gil
@pytest.mark.parametrize(
    ("side", "wrong"),
    [("stock", "plus"), ("plus", "stock"), ("stock", "tasklets"), ("tasklets", "stock")],
)
def test_the_plugin_ends_the_wrong_side(tmp_path: Path, side: str, wrong: str) -> None:
    (tmp_path / "test_a.py").write_text("def test_a(): pass\n")
    (tmp_path / "cpythonplus_compat.py").write_text(fetch.PLUGIN.read_text("utf-8"))

    def status(asked: str) -> tuple[int, str]:
        environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        environment |= {
            "PYTHONPATH": str(tmp_path),
            "CPYTHONPLUS_COMPAT_SIDE": asked,
            "CPYTHONPLUS_COMPAT_RUNNING": str(tmp_path / "running"),
        }
        script = str(Path(sys.executable).with_name("pytest"))
        command = [sys.executable, *run.SIDES[side], script, "-p", "cpythonplus_compat"]
        # Workers are processes of their own, which tasklets patch only by hand.
        workers = "0" if "tasklets" in {side, wrong} else "1"
        done = subprocess.run(
            [*command, "-p", "no:cacheprovider", "-n", workers, "test_a.py"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    good, bad = status(side), status(wrong)
    assert good[0] == 0, good[1]
    assert bad[0] == 99, bad[1]
    assert f"compat: {wrong}: cpythonplus is " in bad[1]


def test_ending_the_farm_ends_what_it_began(python: Path, tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    program = f"import os, time; open({str(noted)!r}, 'w').write('x'); time.sleep(600)"
    code = f"""
import signal, sys
from pathlib import Path
from tools import results_page
from tools.compat import farm, run
from tools.compat.packages import Package
signal.signal(signal.SIGTERM, farm._end)
package = Package("a", "1", environment={{"PROGRAM": {program!r}}})
python = Path({str(python)!r})
run.run_once(package, "stock", python.parent, python, python.parent / "log.txt")
"""
    root = Path(farm.__file__).resolve().parent.parent.parent
    with subprocess.Popen([sys.executable, "-c", code], cwd=root) as process:
        until("the process that it runs", noted.exists)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 128 + signal.SIGTERM
    marks = f"{run._MARK}={process.pid} ".encode()
    until("its end", lambda: not list(run._marked(marks)))  # killed, but perhaps not gone yet


def test_both_sides_run_in_turn_until_it_is_clear(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, junit: Reports
) -> None:
    left = {"stock": junit.outcomes("..", ".F", ".."), "plus": junit.outcomes("FF", "..", "FF")}
    sides = []

    def run_once(_package: Package, side: str, _sources: Path, _python: Path, log: Path) -> Run:
        sides.append(log.stem)
        return Run(left[side].pop(0), 1.0)

    monkeypatch.setattr(run, "run_once", run_once)
    monkeypatch.setattr(farm, "LOGS", tmp_path)
    found = farm._compare(Package("a", "1"), tmp_path, tmp_path)
    assert sides == ["a-stock-1", "a-plus-1", "a-stock-2", "a-plus-2", "a-stock-3", "a-plus-3"]
    assert found.bad
    assert found.verdict.ours == {"t.C.test_0": Counts(0, 2, 3)}
    assert found.verdict.unsteady == {"t.C.test_1": Counts(1, 2, 3)}
    left.update(stock=junit.outcomes(".."), tasklets=junit.outcomes(".."))
    found = farm._compare(Package("a", "1"), tmp_path, tmp_path, "tasklets")
    assert sides[6:] == ["a-stock-1", "a-tasklets-1"]
    assert list(found.runs) == ["stock", "plus"]
    left["stock"] = junit.outcomes("FF")
    assert farm._compare(Package("a", "1"), tmp_path, tmp_path).broken.endswith("none was found")


# ---- what is told -------------------------------------------------------------------------------


def finding(stock: list[Outcome], plus: list[Outcome], package: Package) -> Finding:
    runs = {
        "stock": [Run(outcome, 1.0) for outcome in stock],
        "plus": [Run(outcome, 2.0, "time limit: x" * (PROCESS in each)) for outcome in plus]
        if (each := {name for outcome in plus for name in outcome.failed})
        else [Run(outcome, 2.0) for outcome in plus],
    }
    return Finding(package, judge(stock, plus, package.known), runs)


def test_a_package_is_one_line_and_its_failures_follow(junit: Reports) -> None:
    stock, plus = junit.outcomes("....", "...."), junit.outcomes(".FF.", ".F..")
    said = report.described(finding(stock, plus, Package("a", "1"))).splitlines()
    assert said == [
        "stock 4 passed in 1 s, plus 2 passed 2 failed in 2 s; 1 only with us, 1 unsteady",
        "  FAILS ONLY WITH US: t.C.test_1: stock 0, plus 2 of 2",
        "  unsteady: t.C.test_2: stock 0, plus 1 of 2",
    ]


def test_how_a_process_ended_is_told(junit: Reports) -> None:
    said = report.described(
        finding(junit.outcomes(".", "."), junit.outcomes("", ""), Package("a", "1"))
    )
    assert f"FAILS ONLY WITH US: {PROCESS}" in said
    assert "  plus: time limit: x" in said


def test_recording_keeps_the_other_packages(tmp_path: Path, junit: Reports) -> None:
    known = Package("a", "1", known={"t.C.test_1": "a reason"})
    report.record([finding(junit.outcomes("..F"), junit.outcomes(".FF"), known)], tmp_path)
    report.record([Finding(Package("b", "2"), not_run="no tests")], tmp_path)
    (written,) = tmp_path.glob("compat-*.json")
    report.record([Finding(Package("c", "3"), not_run="x")], tmp_path, "compat-tasklets")
    assert list(results_page.read(tmp_path, "compat-tasklets")[0]["packages"]) == ["c"]
    kept = json.loads(written.read_text("utf-8"))["packages"]
    assert kept["b"] == {"version": "2", "not run": "no tests"}
    assert kept["a"]["only with us"] == ["t.C.test_1"]
    assert kept["a"]["fail on both"] == ["t.C.test_2"]
    assert kept["a"]["plus"] == {"passed": 1, "failed": 2, "skipped": 0, "seconds": [2.0]}


# ---- the page -----------------------------------------------------------------------------------


def test_the_page_is_up_to_date() -> None:
    assert page.main(["--check"]) == 0, "run: make docs"


LISTED = [
    Package("a", "1", known={"t.C.*_1": "a reason"}),
    Package("b", "2", python=">=3.12"),
]


def result(python: str, *only: str, version: str = "1") -> dict[str, object]:
    sides = {"passed": 1000, "failed": 2, "skipped": 3, "seconds": [1.0]}
    a = {
        "version": version,
        "stock": sides,
        "plus": sides,
        "only with us": list(only),
        "unsteady": {"t.once": {"stock": 0, "plus": 1, "rounds": 3}},
        "fail on both": ["x"],
    }
    b = {"version": "2", "not run": "2 is for Python >=3.12"}
    return {"python": python, "machine": "Linux", "packages": {"a": a, "b": b}}


def test_the_page_tells_what_differs_and_why() -> None:
    results = [result("3.11.7"), result("3.13.0", "t.C.test_1")]
    page.check(results, LISTED)
    text = "\n".join(page.rendered(results, LISTED, "under `run`"))
    assert "Fail only under `run`, and why:" in text
    assert "| package | 3.11.7 | 3.13.0 |" in text
    assert "| a 1 | 1,002: 0 (and 1) | 1,002: 1 (and 1) |" in text
    assert "| together | 1,002: 0 | 1,002: 1 |" in text
    assert "| a | `t.C.test_1` | 3.13 | a reason |" in text
    assert "| a | `t.once` | 3.11 | 0 | 1 | 3 |" in text
    assert "- b, on all: 2 is for Python >=3.12" in text


def test_a_reason_that_no_failure_has_is_listed() -> None:
    text = page.rendered([result("3.13.0")], LISTED, "under `run`")
    assert "| a | `t.C.*_1` | in other runs | a reason |" in text


@pytest.mark.parametrize(
    ("results", "complaint"),
    [
        ([result("3.13.0", "t.C.test_1", "t.other")], r"t\.other: for no reason"),
        ([result("3.13.0", "t.C.test_1", version="0")], "not recorded: a 1"),
        ([{"python": "3.13.0", "packages": {}}], "not recorded: a 1"),
    ],
)
def test_results_and_the_list_belong_together(
    results: list[dict[str, object]], complaint: str
) -> None:
    with pytest.raises(PageError, match=complaint):
        page.check(results, LISTED)


def test_the_oldest_version_comes_first(tmp_path: Path) -> None:
    for name in ("compat-3.13", "compat-3.9", "compat-serve-3.13", "compat-tasklets-3.13"):
        text = json.dumps({"python": f"{name.rpartition('-')[2]}.1", "from": name})
        (tmp_path / f"{name}.json").write_text(text, "utf-8")
    found = [one["from"] for one in results_page.read(tmp_path, "compat")]
    assert found == ["compat-3.9", "compat-3.13"]


def test_a_result_that_the_list_has_not_is_told() -> None:
    with pytest.raises(PageError, match=r"3\.13\.0: not in the list: b"):
        page.check([result("3.13.0", "t.C.test_1")], LISTED[:1])


@pytest.mark.any_version
@pytest.mark.parametrize(
    ("idle", "busy", "steady", "unsteady", "by_load"),
    [
        (["a", "a"], ["a"], "a", "", ""),
        (["ab"], ["a"], "a", "b", ""),  # one run each says nothing
        (["ab", "ab"], ["a", "a"], "a", "", "b"),
        (["a", "a"], ["ab", "ab"], "a", "", "b"),
        (["ab", "a"], ["a", "ab"], "a", "b", ""),
        (["", ""], ["", ""], "", "", ""),
    ],
)
def test_causes_that_depend_on_load_are_found(
    idle: list[str], busy: list[str], steady: str, unsteady: str, by_load: str
) -> None:
    found = causes.compared(list(map(frozenset, idle)), list(map(frozenset, busy)))
    assert found == causes.Causes(frozenset(steady), frozenset(unsteady), frozenset(by_load))


def test_causes_are_what_a_baseline_has(tmp_path: Path) -> None:
    assert causes.read(tmp_path) == frozenset()
    (tmp_path / causes.FILE).write_text("# head\nexception a:b:c\n")
    assert causes.read(tmp_path) == {"exception a:b:c"}
