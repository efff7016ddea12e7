"""`pytest --no-cycles`: whom it blames and how, and what it leaves alone."""

import gc
import itertools
import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest

# Loaded here, so that pytester does not forget them after each run that imports them.
import cpythonplus.memory._no_cycles.fixture
from cpythonplus._base.data import Place
from cpythonplus.memory import _pytest_plugin as pytest_plugin
from cpythonplus.memory._cycles import naming
from cpythonplus.memory._no_cycles import allowing, young
from cpythonplus.memory.cycles import Cause, Kind
from tests.support import AT_START, run_child

pytest_plugins = "pytester"

PLUGIN = "cpythonplus.memory._pytest_plugin"
ROOT = Path(__file__).resolve().parents[3]

LIBRARY = '''\
def fetch():
    """Leave an exception behind.

    >>> fetch()
    """
    last = None
    try:
        int("x")
    except ValueError as error:
        last = error  # the culprit


def deep():
    def walk(depth):
        if depth:
            walk(depth - 1)

    walk(2)


class Client:
    error = None

    def fetch(self):
        try:
            int("x")
        except ValueError as error:
            self.error = error
'''


@dataclass
class Outcome:
    """What pytest said of the tests of one file."""

    reports: dict[str, list[pytest.TestReport]]
    status: int
    text: str

    def of(self, name: str) -> str:
        """Return `passed`, or what became of the test otherwise and when."""
        found = [report for report in self.reports[name] if not report.passed]
        return " ".join(f"{report.when} {report.outcome}" for report in found) or "passed"

    def told(self, name: str) -> str:
        """Return what stands under the heading of a test that failed."""
        return next(str(report.longrepr) for report in self.reports[name] if report.failed)


class Runner:
    """Runs pytest in this process, with the plugin and none but pytest's own."""

    def __init__(self, pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]) -> None:
        self._pytester = pytester
        self._capsys = capsys

    def __call__(self, tests: str, *options: str, ini: str = "") -> Outcome:
        tests = f"import pytest\nfrom library import *\n{tests}"
        self._pytester.makepyfile(library=LIBRARY, test_it=tests)
        self._pytester.makeini(f"[pytest]\npythonpath = .\n{ini}")
        self._capsys.readouterr()
        # unraisableexception would collect five times at the end.
        plugins = (PLUGIN, "no:cacheprovider", "no:unraisableexception")
        options = (*(word for plugin in plugins for word in ("-p", plugin)), *options)
        recorder = self._pytester.inline_run(*options, no_reraise_ctrlc=True)
        reports: dict[str, list[pytest.TestReport]] = {}
        # Where pytest did not even start, there is no recorder, only a status.
        names = "pytest_runtest_logreport"
        for report in recorder.getreports(names) if hasattr(recorder, "getreports") else ():
            assert isinstance(report, pytest.TestReport)
            reports.setdefault(report.nodeid.rpartition("::")[2], []).append(report)
        captured = self._capsys.readouterr()
        return Outcome(reports, int(recorder.ret or 0), captured.out + captured.err)


@pytest.fixture
def run(
    pytester: pytest.Pytester,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Runner]:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    before = (gc.get_threshold(), gc.get_debug(), gc.isenabled(), gc.callbacks[:], gc.garbage[:])
    yield Runner(pytester, capsys)
    after = (gc.get_threshold(), gc.get_debug(), gc.isenabled(), gc.callbacks[:], gc.garbage[:])
    assert after == before


BLAMED = """
def test_exception(): fetch()
def test_closure(): deep()
def test_fine(): pass

@pytest.fixture
def client(): return Client()
def test_value_of_a_fixture(client): client.fetch()

@pytest.fixture
def leaves():
    yield
    fetch()
def test_teardown(leaves): pass

def test_check(cycles):
    cycles.check()
    fetch()
    cycles.check()

import unittest
class Test(unittest.TestCase):
    def test_method(self): fetch()

def test_subtests(subtests):
    with subtests.test("x"): fetch()
"""


def test_a_leak_is_blamed(run: Runner) -> None:
    done = run(BLAMED, "--no-cycles", "--doctest-modules")
    assert {name: done.of(name) for name in done.reports} == {
        "library.fetch": "call failed",
        "test_exception": "call failed",
        "test_closure": "call failed",
        "test_fine": "passed",
        "test_value_of_a_fixture": "teardown failed",
        "test_teardown": "teardown failed",
        "test_check": "call failed",
        "test_method": "call failed",
        "test_subtests": "call failed",
    }
    line = LIBRARY[: LIBRARY.index("# the culprit")].count("\n") + 1
    for name in ("library.fetch", "test_exception", "test_teardown", "test_check", "test_method"):
        where, advice = done.told(name).splitlines()
        assert where.startswith(
            f"library.py:{line}: in fetch(): variable 'last' keeps the ValueError"
        )
        assert advice.strip()
    assert "in deep(): variable 'walk' keeps function walk" in done.told("test_closure")
    assert "Client.fetch(): variable 'self.error'" in done.told("test_value_of_a_fixture")
    assert "FAILED test_it.py::test_exception - Failed: library.py" in done.text


NOT_BLAMED = """
def test_failed():
    fetch()
    assert False

def test_skipped():
    fetch()
    pytest.skip("x")

@pytest.mark.xfail(strict=True)
def test_known(): fetch()

def test_raises():
    with pytest.raises(ValueError) as caught:
        int("x")
    error = caught.value
    assert error.args

def test_logged(caplog):
    import logging
    try:
        int("x")
    except ValueError:
        logging.exception("x")
    assert caplog.records

def test_taken(cycles):
    fetch()
    deep()
    assert {cycle.cause.variable for cycle in cycles.found()} == {"last", "walk"}
    assert not cycles.found()

@pytest.mark.allow_cycles
def test_anything(): fetch()

@pytest.mark.allow_cycles("library:fetch:last", "library:deep", reason="known")
def test_named():
    fetch()
    deep()

def test_class():
    class Made: pass

import unittest
class Test(unittest.TestCase):
    def test_method(self):
        fetch()
        self.fail()
    def test_sub(self):
        fetch()
        with self.subTest(): self.fail()
    def test_raises(self):
        with self.assertRaises(ValueError) as caught: int("x")
        assert caught

def test_after(): pass
"""


def test_what_is_not_blamed(run: Runner) -> None:
    done = run(NOT_BLAMED, "--no-cycles")
    wrong = {name: done.of(name) for name in done.reports if done.of(name) != "passed"}
    assert wrong == {
        "test_failed": "call failed",
        "test_skipped": "call skipped",
        "test_known": "call skipped",
        "test_method": "call failed",
        "test_sub": "call failed",
    }
    assert "last" not in done.text.partition("short test summary")[2]


# Without a GIL, classes are not collected once a second thread was started.
@pytest.mark.needs_gil
def test_nothing_is_done_without_the_option(run: Runner) -> None:
    tests = """
def test_leak():
    import gc
    fetch()
    assert not gc.get_debug()

@pytest.mark.no_cycles
def test_marked(): fetch()

@pytest.mark.no_cycles(kinds=["class"])
def test_kinds():
    fetch()
    class Made: pass

@pytest.mark.no_cycles
def test_marked_and_fine(): pass
"""
    done = run(tests)
    assert [done.of(name) for name in done.reports] == ["passed", *["call failed"] * 2, "passed"]
    assert "'Made'" in done.told("test_kinds")
    assert "fetch" not in done.told("test_kinds")
    assert run("def test_leak(): fetch()").of("test_leak") == "passed"


def test_the_fixture_works_without_the_option(run: Runner) -> None:
    done = run(
        """
def test_found(cycles):
    fetch()
    [cycle] = cycles.found()
    assert cycle.cause.variable == "last"

def test_check(cycles):
    fetch()
    cycles.check()

@pytest.mark.allow_cycles("library:*")
def test_allowed(cycles):
    fetch()
    cycles.check()
"""
    )
    assert [done.of(name) for name in done.reports] == ["passed", "call failed", "passed"]


# Without a GIL, classes are not collected once a second thread was started.
@pytest.mark.needs_gil
def test_the_ini_file(run: Runner) -> None:
    ini = """
no_cycles = true
no_cycles_kinds = exception, class
allow_cycles =
    library:Client.*   # a reason
    */nothing.py:*:last
    [odd]*:a:b[1]
"""
    tests = """
def test_allowed():
    Client().fetch()
def test_leak(): fetch()
def test_closure(): deep()
def test_class():
    class Made: pass
"""
    done = run(tests, "--no-cycles-report-unused", ini=ini)
    assert [done.of(name) for name in done.reports] == [
        "passed",
        "call failed",
        "passed",
        "call failed",
    ]
    unused = done.text.partition("entries that matched nothing")[2].splitlines()[1:3]
    assert unused == ["*/nothing.py:*:last", "[odd]*:a:b[1]"]


@pytest.mark.parametrize(
    ("ini", "options", "marks", "told"),
    [
        ("", ["--no-cycles-kinds=exceptions"], "", "got 'exceptions'"),
        (
            "no_cycles_kinds = ,",
            [],
            "",
            "expected kinds of cycles among exception, closure, class, other",
        ),
        (
            "allow_cycles = a::b",
            [],
            "",
            "expected module:function:variable (* matches anything), got 'a::b'",
        ),
        (
            "",
            [],
            "@pytest.mark.allow_cycles(3)",
            "test_it.py::test_it: expected a pattern module:function:variable, got 3",
        ),
        (
            "",
            [],
            "@pytest.mark.no_cycles(kinds='x')",
            "test_it.py::test_it: expected kinds of cycles among",
        ),
        ("", [], "@pytest.mark.no_cycles(kind='class')", "no_cycles takes kinds, on, got kind="),
        ("", [], "@pytest.mark.no_cycles('class')", "no_cycles takes True or False and kinds="),
        (
            "",
            [],
            "@pytest.mark.allow_cycles(pattern='x')",
            "allow_cycles takes reason, got pattern=",
        ),
    ],
    ids=str,
)
def test_wrong_input_is_one_line(
    run: Runner, ini: str, options: list[str], marks: str, told: str
) -> None:
    done = run(f"{marks}\ndef test_it(): pass", "--no-cycles", *options, ini=ini)
    assert done.status == pytest.ExitCode.USAGE_ERROR
    [line] = [line for line in done.text.splitlines() if line.startswith("ERROR: ")]
    assert told in line


def summary_of(done: Outcome) -> list[str]:
    """Return the lines of the summary of root causes."""
    _, _, rest = done.text.partition("of reference cycles")
    lines = rest.partition("\n---")[0].partition("\n===")[0].splitlines()[1:]
    return [line for line in lines if line]


# Without a GIL, classes are not collected once a second thread was started.
@pytest.mark.needs_gil
def test_what_a_full_collection_finds_fails_the_session(run: Runner) -> None:
    """Who left it cannot be known: no test fails for it, but the gate does not pass."""
    tests = """
import gc
kept = []
def test_keeps():
    client = Client()
    client.fetch()
    kept.append(client)
def test_drops():
    kept.clear()
def test_collects():
    gc.collect()
"""
    gc.collect()  # not to be named: what runs before this one have left
    done = run(tests, "--no-cycles")
    assert {done.of(name) for name in done.reports} == {"passed"}
    assert done.status == pytest.ExitCode.TESTS_FAILED
    lines = summary_of(done)
    assert "self.error" in lines[0]
    assert lines[-1].strip() == "(full collection during test_it.py::test_collects)"


def test_what_only_the_end_finds_fails_the_session(run: Runner) -> None:
    tests = """
@pytest.fixture(scope="module")
def box():
    box = []
    yield box
    box.clear()
def test_keeps(box):
    client = Client()
    client.fetch()
    box.append(client)
def test_goes_on(box): pass
def test_ends(): pass
"""
    gc.collect()
    done = run(tests, "--no-cycles")
    assert "self.error" in "".join(summary_of(done))
    assert done.status == pytest.ExitCode.TESTS_FAILED


def test_a_root_cause_is_one_report(run: Runner) -> None:
    """Each test that left it fails, whatever ran before it; the cause is told once."""
    tests = "".join(f"def test_{number}(): fetch()\n" for number in range(5))
    done = run(f"{tests}def test_deep(): deep()", "--no-cycles")
    assert {done.of(name) for name in done.reports} == {"call failed"}
    assert "2 root causes of reference cycles" in done.text
    first = summary_of(done)[:7]
    assert "in fetch(): variable 'last'" in first[0]
    assert first[2:] == [
        "    5 tests:",
        *(f"        test_it.py::test_{number}" for number in range(3)),
        "        and 2 more",
    ]


MANY = "\n".join(
    f"""
def leave_{number}():
    kept_{number} = None
    try: int("x")
    except ValueError as error: kept_{number} = error
def test_{number}(): leave_{number}()
"""
    for number in range(12)
)


def test_no_clock_decides(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which each look at the clock is a minute later has the same verdict."""
    usual = run(MANY, "--no-cycles")
    assert {usual.of(name) for name in usual.reports} == {"call failed"}
    minutes = itertools.count()
    for clock in ("perf_counter", "monotonic", "time", "process_time", "thread_time"):
        monkeypatch.setattr(time, clock, lambda: 60.0 * next(minutes))
    slow = run(MANY, "--no-cycles")
    monkeypatch.undo()
    assert [slow.told(name) for name in slow.reports] == [
        usual.told(name) for name in usual.reports
    ]


def test_what_cannot_be_named_counts(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_component: list[object]) -> list[Cause]:
        raise RecursionError

    monkeypatch.setattr(naming, "_causes", fail)
    tests = """
def test_leaves(): fetch()
def test_other():
    a = []
    a.append(a)
@pytest.mark.allow_cycles
def test_allowed(): fetch()
"""
    done = run(tests, "--no-cycles", "--no-cycles-packages", "library")
    assert [done.of(name) for name in done.reports] == ["call failed", "passed", "passed"]
    assert done.told("test_leaves").startswith("a cycle that could not be named, of ValueError")
    assert "test_it.py::test_leaves" in "".join(summary_of(done))


def test_a_collection_of_another_thread_does_not_hide_a_leak(
    run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile `gc.collect` does nothing."""
    collect, refused = gc.collect, itertools.count()
    own = young.__file__

    def busy(generation: int = 2) -> int:
        here = sys._getframe(1).f_code.co_filename == own
        return 0 if here and next(refused) % 3 else collect(generation)

    tests = "def test_leaves(): fetch()\ndef test_fine(): pass"
    monkeypatch.setattr(gc, "collect", busy)
    done = run(tests, "--no-cycles")
    assert [done.of(name) for name in done.reports] == ["call failed", "passed"]
    assert next(refused) > 3
    monkeypatch.setattr(young, "_TRIES", 2)
    monkeypatch.setattr(gc, "collect", lambda _generation=2: 0)
    done = run(tests, "--no-cycles")
    assert done.of("test_fine") == "call failed"
    assert "a collection of another thread did not end" in done.told("test_fine")


# ---- whose cycles count -------------------------------------------------------------------------

PACKAGES = {
    ".tox/py/lib/python3/site-packages/mine/__init__.py": LIBRARY,
    ".tox/py/lib/python3/site-packages/theirs.py": LIBRARY,
    "near.py": LIBRARY,
}
OF_PACKAGES = """
import mine, near, theirs
def test_mine(): mine.fetch()
def test_theirs(): theirs.fetch()
def test_near(): near.fetch()
def test_own(): exec_()
def exec_():
    last = None
    try: int("x")
    except ValueError as error: last = error
def test_no_file():
    space = {}
    exec("def f():\\n try: int('')\\n except ValueError as e: last = e", space)
    space["f"]()
"""


@pytest.fixture
def packages(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package below the project's folder, as tox and nox install it, and modules beside it."""
    for name, text in PACKAGES.items():
        path = pytester.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(pytester.path / ".tox/py/lib/python3/site-packages")


@pytest.mark.usefixtures("packages")
def test_only_named_packages_count(run: Runner) -> None:
    """And what has no file, which may be theirs."""
    ini = "no_cycles = true\nno_cycles_packages = mine"
    done = run(OF_PACKAGES, ini=ini)
    assert {name for name in done.reports if done.of(name) != "passed"} == {
        "test_mine",
        "test_no_file",
    }
    assert "no cycles: 3 causes outside of mine" in done.text
    done = run(OF_PACKAGES, "--no-cycles-packages=near,theirs", ini=ini)
    assert {name for name in done.reports if done.of(name) == "passed"} == {"test_mine", "test_own"}


@pytest.mark.usefixtures("packages")
def test_a_package_that_is_not_there_is_no_pass(run: Runner, pytester: pytest.Pytester) -> None:
    (pytester.path / "broken").mkdir()
    (pytester.path / "broken" / "__init__.py").write_text("raise RuntimeError")
    for name, told in (
        ("mien", "'mien', which is no package"),
        ("a-b", "got 'a-b'"),
        ("broken.part", "'broken.part', which is no package"),
    ):
        done = run("def test_it(): pass", "--no-cycles", f"--no-cycles-packages={name}")
        assert done.status == pytest.ExitCode.USAGE_ERROR
        [line] = [line for line in done.text.splitlines() if line.startswith("ERROR: ")]
        assert told in line


# ---- the baseline -------------------------------------------------------------------------------

OLD = "def test_old(): fetch()\ndef test_gone(): deep()"
NEW = "def test_old(): fetch()\ndef test_new(): Client().fetch()"


@pytest.mark.usefixtures("packages")
def test_a_baseline_lets_pass_what_is_known(run: Runner, pytester: pytest.Pytester) -> None:
    ini = "no_cycles = true\nno_cycles_baseline = known.txt"
    done = run(
        f"{OLD}\nimport mine\ndef test_mine(): mine.deep()", "--no-cycles-write-baseline", ini=ini
    )
    assert done.status == 0
    assert "known.txt: 3 causes, 3 of them new, 0 gone" in done.text
    path = pytester.path / "known.txt"
    known = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    assert known == [
        "closure library.py:deep:walk",
        "closure mine:deep:walk",
        "exception library.py:fetch:last",
    ]
    done = run(NEW, ini=ini)
    assert [done.of(name) for name in done.reports] == ["passed", "call failed"]
    assert "1 root cause of reference cycles" in done.text
    assert "no cycles: 1 known causes met" in done.text
    _, _, gone = done.text.partition("baseline: causes that did not occur")
    assert gone.splitlines()[1:3] == known[:2]
    # Of a part of the tests nothing is gone.
    for options in (["-k", "old"], ["test_it.py::test_old"]):
        done = run(NEW, *options, ini=ini)
        assert done.status == 0
        assert "did not occur" not in done.text
        run(NEW, *options, "--no-cycles-write-baseline", ini=ini)
        assert [line for line in path.read_text().splitlines() if line[0] != "#"] == known
    done = run(NEW, "-k", "old", "--no-cycles-report-unused", ini=ini)
    assert "did not occur" in done.text
    (pytester.path / "part").mkdir()
    (pytester.path / "part" / "test_part.py").write_text("def test_part(): pass")
    for options in (["part"], ["--collect-only"]):
        run(NEW, *options, "--no-cycles-write-baseline", ini=ini)
        assert [line for line in path.read_text().splitlines() if line[0] != "#"] == known
    rows = f"{ini}\ntestpaths = part"
    (pytester.path / "parts.txt").write_text(path.read_text())
    done = run(
        NEW, "part", "--no-cycles-write-baseline", "--no-cycles-baseline=parts.txt", ini=rows
    )
    assert "parts.txt: 0 causes, 0 of them new, 3 gone" in done.text
    done = run(NEW, "--no-cycles-write-baseline", ini=ini)
    assert "known.txt: 2 causes, 1 of them new, 2 gone" in done.text
    assert run(NEW, ini=ini).status == 0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--no-cycles", "--no-cycles-write-baseline"], "needs a file: --no-cycles-baseline FILE"),
        (["--no-cycles-write-baseline"], "--no-cycles-write-baseline needs --no-cycles"),
        (["--no-cycles", "--no-cycles-baseline=none.txt"], "there is no baseline"),
        (["--no-cycles", f"--no-cycles-baseline={'n' * 300}"], "there is no baseline"),
        (["--no-cycles", "--no-cycles-baseline=wrong.txt"], "got 'library:fetch'"),
    ],
    ids=str,
)
def test_a_wrong_baseline_is_one_line(
    run: Runner, pytester: pytest.Pytester, options: list[str], told: str
) -> None:
    (pytester.path / "wrong.txt").write_text("# x\n\nlibrary:fetch\n")
    done = run("def test_it(): pass", *options)
    assert done.status == pytest.ExitCode.USAGE_ERROR
    [line] = [line for line in done.text.splitlines() if line.startswith("ERROR: ")]
    assert told in line


def test_a_test_may_do_with_the_collector_what_it_likes(run: Runner) -> None:
    """Its settings stay its own; what it leaves is found all the same."""
    tests = """
import gc
def test_disabled():
    gc.disable()
    fetch()
def test_flags():
    gc.set_debug(0)
    fetch()
@pytest.mark.no_cycles(False)
def test_not_checked():
    gc.set_debug(gc.DEBUG_SAVEALL)
    fetch()
    gc.collect()
    assert any(type(found) is ValueError for found in gc.garbage)
    gc.set_debug(0)
    gc.garbage.clear()
def test_still_disabled():
    assert not gc.isenabled()
    gc.enable()
    gc.set_threshold(60_000, 4, 5)
def test_still_set():
    assert gc.get_threshold()[:2] == (60_000, 4)
    gc.collect(1)
    raise KeyboardInterrupt
"""
    before = gc.get_threshold()
    gc.collect()  # not to be named: what runs before this one have left
    try:
        done = run(tests, "--no-cycles")
        assert gc.get_threshold()[:2] == (60_000, 4)
    finally:
        gc.set_threshold(*before)
    assert done.status == pytest.ExitCode.INTERRUPTED
    assert done.of("test_disabled") == done.of("test_flags") == "call failed"
    assert done.of("test_not_checked") == "passed"
    assert done.of("test_still_disabled") == "passed"


def test_a_mark_may_name_its_argument(run: Runner) -> None:
    tests = "@pytest.mark.no_cycles(on=False)\ndef test_it(): fetch()"
    assert run(tests, "--no-cycles").of("test_it") == "passed"


def test_what_hypothesis_keeps_is_not_the_tests(run: Runner) -> None:
    """The function that keeps it has the test's file. Importing Hypothesis would cost seconds."""
    tests = """
class Test: pass
def accept(f):
    f._proxied_tests = []
    f._proxied_tests.append(lambda: f)
def test_given(): accept(Test())
def test_leaves():
    accept(Test())
    fetch()
"""
    done = run(tests, "--no-cycles")
    assert done.of("test_given") == "passed"
    assert done.of("test_leaves") == "call failed"


def test_an_attribute_named_as_one_of_pytest_raises_counts(run: Runner) -> None:
    tests = """
source = (
    "class Box: pass\\n"
    "def keep():\\n"
    "    box = Box()\\n"
    "    try: int('')\\n"
    "    except ValueError as error: box._traceback = error.__traceback__\\n"
)
space = {"__name__": "client"}
exec(compile(source, "/site/client.py", "exec"), space)
def test_it(): space["keep"]()
"""
    assert "'box._traceback' keeps" in run(tests, "--no-cycles").told("test_it")


def test_what_the_runner_of_anyio_keeps_is_not_the_tests(run: Runner) -> None:
    """It lies in a file that programs use, too."""
    tests = """
source = "def keep():\\n try: int('')\\n except ValueError as error: last = error"
space = {}
exec(compile(source, "/site/anyio/_backends/_asyncio.py", "exec"), space)
keep = space["keep"]
def test_runner():
    call = type(keep)(keep.__code__.replace(co_qualname="TestRunner.call"), space)
    call()
def test_other(): keep()
"""
    done = run(tests, "--no-cycles")
    assert done.of("test_runner") == "passed"
    assert done.of("test_other") == "call failed"


def test_thresholds_are_raised_and_restored(run: Runner) -> None:
    tests = "import gc\ndef test_it(): assert gc.get_threshold()[0] >= 50_000"
    assert run(tests, "--no-cycles").status == 0
    before = gc.get_threshold()
    gc.set_threshold(0)
    try:
        tests = "import gc\ndef test_it(): assert not gc.get_threshold()[0]"
        assert run(tests, "--no-cycles").status == 0
    finally:
        gc.set_threshold(*before)


@pytest.mark.slow
def test_with_xdist(run: Runner, pytester: pytest.Pytester) -> None:
    tests = "def test_leak(): fetch()\ndef test_allowed(): deep()"
    ini = "allow_cycles =\n    library:deep\n    never"
    run(tests, ini=ini)
    done = pytester.runpytest_subprocess(
        *("-p", "xdist", "-p", PLUGIN, "-n", "1", "--no-cycles", "--no-cycles-report-unused")
    )
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["FAILED test_it.py::test_leak - Failed: library.py:*", "*1 failed*"])
    text = done.stdout.str()
    assert text.partition("entries that matched nothing")[2].splitlines()[1] == "never"
    assert "library:deep" not in text
    assert "1 root cause of reference cycles" in text


@pytest.mark.slow
def test_a_baseline_with_xdist(run: Runner, pytester: pytest.Pytester) -> None:
    """Workers tell the process that started them what they met."""
    run(OLD)
    options = ["-p", "xdist", "-p", PLUGIN, "-n", "2", "--no-cycles", "--no-cycles-baseline=b.txt"]
    pytester.runpytest_subprocess(*options, "--no-cycles-write-baseline").assert_outcomes(passed=2)
    known = (pytester.path / "b.txt").read_text()
    assert known.endswith("\nclosure library.py:deep:walk\nexception library.py:fetch:last\n")
    run(NEW)
    done = pytester.runpytest_subprocess(*options)
    done.assert_outcomes(passed=1, failed=1)
    text = done.stdout.str()
    assert "1 root cause of reference cycles" in text
    _, _, gone = text.partition("baseline: causes that did not occur")
    assert gone.splitlines()[1] == "closure library.py:deep:walk"


def test_being_installed_costs_nothing() -> None:
    child = run_child(
        f"""
        import sys
        import pytest
        before = set(sys.modules)
        import {PLUGIN}
        print(sorted(set(sys.modules) - before))
        """
    )
    names = sorted({"cpythonplus", "cpythonplus.memory", PLUGIN} - {*AT_START})
    assert child.out == f"{names}\n"


@pytest.mark.any_version
def test_the_entry_point_is_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"]["cpythonplus"] == PLUGIN
    assert import_module(PLUGIN) is pytest_plugin


CAUSE = Cause(Kind.EXCEPTION, Place("/x/app/client.py", 3, "Client.fetch"), "errors[]", "X", "-")


@pytest.mark.any_version
@pytest.mark.parametrize(
    ("pattern", "allows"),
    [
        ("*", True),
        ("app.client", True),
        ("app.*:Client.fetch:errors[]", True),
        ("*:*:errors*", True),
        ("app", False),
        ("client", False),
        ("app.client:Client", False),
        ("app.client:*:errors", False),
        ("*:*:errors[a]", False),
        ("client.py", True),
        ("app/client.py", True),
        ("/x/*", True),
        ("*/app/*:Client.*", True),
        ("lient.py", False),
        ("/app/client.py", False),
    ],
)
def test_patterns(pattern: str, allows: bool) -> None:
    assert allowing.parse(pattern).allows(CAUSE, ["app.client"]) is allows


@pytest.mark.any_version
def test_names_of_modules(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    for name in ("__init__", "client"):
        (tmp_path / "app" / f"{name}.py").touch()
    assert allowing.module_names(f"{tmp_path}/app/client.py") == ["app.client"]
    assert allowing.module_names(f"{tmp_path}/app/__init__.py") == ["app"]
    assert allowing.module_names("<string>") == []
    here = allowing.module_names(cpythonplus.memory._no_cycles.fixture.__file__)
    assert "cpythonplus.memory._no_cycles.fixture" in here
