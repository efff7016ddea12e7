"""The verdict of a session on the causes that its tests met, its summary, and the baseline.

With xdist each worker has one, and so has the process that started them. The causes of a test
travel with the report of the test, so that nothing is lost if a worker crashes; the rest is sent
when the worker ends.
"""

from __future__ import annotations

from glob import glob
from os.path import exists
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cpythonplus.memory._no_cycles import causes, wording
from cpythonplus.memory._no_cycles.causes import Met, State, Tally
from cpythonplus.memory._no_cycles.packages import Packages

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cpythonplus.memory._cycles.report import Cycle
    from cpythonplus.memory._no_cycles.settings import Settings

_REPORT_KEY = "cpythonplus_no_cycles"
"""The attribute of a test's report with what the test met."""
_SELECTING = (
    *("keyword", "markexpr", "deselect", "ignore", "ignore_glob", "lf", "stepwise"),
    *("collectonly", "setuponly", "setupplan"),
)
"""Options that leave out tests."""


class Verdict:
    """The causes of a session, by tests."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        """Read the baseline; UsageError, with the mistake, if it is invalid."""
        self._config = config
        self._settings = settings
        self._packages: Packages | None = None
        self._tally = Tally()
        self._used: set[str] = set()
        self._unattributed: list[tuple[str, list[list[str]]]] = []
        self._narrowed = False
        self._whole = False
        self._written = ""
        self._known = frozenset[str]()
        path = settings.baseline
        try:
            # Not Path.exists(), which raises if a folder may not be read.
            if path is not None and (exists(path) or not settings.write_baseline):  # noqa: PTH110
                self._known = causes.read_baseline(path)
        except ValueError as error:
            raise pytest.UsageError(f"no cycles: {error}") from None

    @property
    def packages(self) -> Packages:
        """The packages whose cycles count; UsageError for a package that cannot be found."""
        if self._packages is None:
            try:
                self._packages = Packages(self._settings.packages)
            except ValueError as error:
                raise pytest.UsageError(f"no cycles: {error}") from None
        return self._packages

    def use(self, patterns: Iterable[str]) -> None:
        """Note that these patterns of the allow-list were needed."""
        self._used.update(patterns)

    def judged(self, cycles: Iterable[Cycle]) -> list[tuple[Cycle, Met]]:
        """Return each cycle with the state of its cause for the test that left it."""
        root = self._config.rootpath
        found = []
        for each in cycles:
            identity = causes.identity(each.cause, root)
            state = self._state(identity, each.cause.place.file)
            where, advice = wording.where(each.cause, root), wording.advice(each.cause)
            found.append((each, Met(state, identity, where, advice)))
        return found

    def _state(self, identity: str, file: str) -> State:
        if identity and not self.packages.have(file):
            return State.ELSEWHERE
        is_known = self._settings.write_baseline or identity in self._known
        return State.KNOWN if identity and is_known else State.COUNTS

    # ---- the causes of tests -------------------------------------------------------------------

    @staticmethod
    def attach(report: pytest.TestReport, met: Sequence[Met]) -> None:
        """Attach the causes of a test to its report, as plain values that execnet can send."""
        setattr(report, _REPORT_KEY, [list(map(str, each)) for each in met])

    def take(self, report: pytest.TestReport) -> None:
        """Note the causes in a report, which may come from a worker."""
        found: list[list[str]] = getattr(report, _REPORT_KEY, [])
        # A test that is expected to fail, or is to run again, does not count.
        self._tally.add(
            report.nodeid, [each for each in found if report.failed or each[0] != State.COUNTS]
        )

    def note(self, when: str, met: Iterable[Met]) -> None:
        """Note the findings of a full collection: the test that left them is unknown."""
        found = [list(map(str, each)) for each in met]
        if found:
            self._unattributed.append((when, found))

    # ---- the session ---------------------------------------------------------------------------

    def pytest_deselected(self) -> None:
        """Note that not all tests run."""
        self._narrowed = True

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """Take the result of an xdist worker; a crashed one has none."""
        output = getattr(node, "workeroutput", {}).get(_REPORT_KEY, ([], [], False))
        used, unattributed, narrowed = output
        self._used.update(used)
        self._unattributed += unattributed
        self._narrowed |= narrowed

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the session for causes that failed no test; write the baseline."""
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output[_REPORT_KEY] = [sorted(self._used), self._unattributed, self._narrowed]
            return
        for when, met in self._unattributed:
            self._tally.add(when, met)
        ended = session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        stopped = session.shouldstop or session.shouldfail
        self._whole = ended and not stopped and not self._narrowed and not self._selects()
        if session.exitstatus == pytest.ExitCode.OK and self._tally.of(State.COUNTS):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self._settings.write_baseline and self._settings.baseline is not None and ended:
            self._write(self._settings.baseline, whole=self._whole and not session.testsfailed)

    def _selects(self) -> bool:
        """Return whether the command line selects some of the tests only."""
        config = self._config
        if any(config.getoption(name, None) for name in _SELECTING):
            return True
        given = [Path(config.invocation_params.dir, each).resolve() for each in config.args]
        folders = [each for each in given if each.is_dir()]
        return not all(
            any(each.is_relative_to(folder) for folder in folders) for each in self._test_paths()
        )

    def _test_paths(self) -> list[Path]:
        """Return the paths of all tests."""
        root = self._config.rootpath
        patterns = [str(root / each) for each in self._config.getini("testpaths")]
        # As pytest does it: Path.glob takes no absolute pattern, nor ".".
        found = [path for each in patterns for path in glob(each, recursive=True)]  # noqa: PTH207
        return [Path(each).resolve() for each in found or [str(root)]]

    def _write(self, path: Path, *, whole: bool) -> None:
        """Write the causes met, and the known ones, unless every test has run and passed."""
        met = {each.met.identity for each in self._tally.of(State.KNOWN)}
        found = met if whole else met | self._known
        try:
            causes.write_baseline(path, found)
        except OSError as error:
            raise pytest.UsageError(f"no cycles: the baseline cannot be written: {error}") from None
        new, gone = len(found - self._known), len(self._known - found)
        self._written = f"{path}: {len(found)} causes, {new} of them new, {gone} gone"

    def pytest_report_header(self) -> str | None:
        """Return the header line about the session's checks."""
        settings = self._settings
        if not settings.everywhere:
            return None
        where = f", closed in {', '.join(settings.packages)}" if settings.packages else ""
        known = f", {len(self._known)} known causes" if settings.baseline is not None else ""
        return f"no cycles: {', '.join(sorted(settings.kinds))}{where}{known}"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print each root cause once, with its tests, and the settings that were not needed."""
        seen = {state: self._tally.of(state) for state in State}
        if seen[State.COUNTS]:
            number = len(seen[State.COUNTS])
            title = "1 root cause" if number == 1 else f"{number} root causes"
            terminalreporter.section(f"{title} of reference cycles", sep="-")
            terminalreporter.write_line(wording.summary(seen[State.COUNTS]))
        if self._written:
            terminalreporter.write_line(f"no cycles: {self._written}")
        elif seen[State.KNOWN]:
            terminalreporter.write_line(f"no cycles: {len(seen[State.KNOWN])} known causes met")
        if seen[State.ELSEWHERE]:
            told = ", ".join(self._settings.packages)
            number = len(seen[State.ELSEWHERE])
            terminalreporter.write_line(f"no cycles: {number} causes outside of {told}")
        met = {each.met.identity for each in seen[State.KNOWN]}
        gone = [] if self._written else sorted(self._known - met)
        if gone and (self._whole or self._settings.report_unused):
            terminalreporter.section("baseline: causes that did not occur", sep="-")
            terminalreporter.write_line("\n".join(gone))
        unused = [each.text for each in self._settings.allowed if each.text not in self._used]
        if self._settings.report_unused and unused:
            terminalreporter.section("allow_cycles: entries that matched nothing", sep="-")
            terminalreporter.write_line("\n".join(unused))
