"""The hooks of `pytest --no-cycles`: they check each test after its call and after its teardown.

`_pytest_plugin` registers them only on demand. Cycles found after the call fail the test; cycles
found after the teardown, when the values of its fixtures are gone, are an error at teardown.
"""

from collections.abc import Generator, Iterable

import pytest

from cpythonplus.memory._cycles.naming import is_named
from cpythonplus.memory._cycles.report import Cycle
from cpythonplus.memory._no_cycles import allowing, wording
from cpythonplus.memory._no_cycles.causes import Met, State
from cpythonplus.memory._no_cycles.machinery import Machinery
from cpythonplus.memory._no_cycles.settings import Plan, Settings, marked
from cpythonplus.memory._no_cycles.verdict import Verdict
from cpythonplus.memory._no_cycles.young import Young

_NOT_CHECKED = Plan(frozenset(), ())


class Checker:
    """A session's checks; between tests it keeps none of their objects."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self.young = Young(settings.kinds)
        self.verdict = Verdict(config, settings)
        self._config = config
        self._settings = settings
        self._machinery: Machinery | None = None
        self._usual = Plan(settings.kinds if settings.everywhere else frozenset(), settings.allowed)
        self._plans: dict[str, Plan] = {}
        # About the running test: its plan, whether something has failed already, and the causes
        # that it met since the last report.
        self._plan = _NOT_CHECKED
        self._spoiled = False
        self._met: list[Met] = []
        self._at_boundary = False

    def prepare(self, items: Iterable[pytest.Item]) -> None:
        """Read the marks, so that mistakes in them are reported before any test runs."""
        _ = self.verdict.packages
        for item in marked(items):
            self._plans[item.nodeid] = self._settings.plan(item)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Call `prepare`."""
        self.prepare(session.items)

    # ---- one test ------------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Make sure that objects that are young at its beginning are the test's own."""
        self._plan = self._plans.get(item.nodeid, self._usual)
        if not self._plan.kinds:
            # The collector is not changed either: the test may be about it.
            self.young.stop()
            self._at_boundary = False
            return (yield)
        self._met.clear()
        self.young.name(self._plan.kinds)
        if not self._at_boundary:
            self.young.start()
            self.young.boundary()
            self._at_boundary = True
        # The dict for the values of its fixtures was made when tests were collected. As an old
        # object it would keep young cycles alive that include it, by a frame's variable.
        _set_funcargs(item, {**(getattr(item, "funcargs", None) or {})})
        try:
            return (yield)
        finally:
            if self.young.found_during:
                old, self.young.found_during = self.young.found_during, []
                self._note_old(f"(full collection during {item.nodeid})", old, self._plan)
            self._plan = _NOT_CHECKED

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Fail a test that has passed if it leaves a cycle: its frame is gone by now."""
        try:
            result = yield
        except BaseException:
            self._spoiled = True
            raise
        if self._plan.kinds and self.young.exact:
            self._fail_for(self._blamed(item, self.young.look(), self._plan))
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Turn the report of a teardown into an error if cycles are left now."""
        report = yield
        # The first report of a test is its setup's, also if a plugin runs the test again.
        self._spoiled = not report.passed or (self._spoiled and call.when != "setup")
        if self._plan.kinds and call.when == "teardown":
            # The runner releases the values of the fixtures only after this hook.
            _set_funcargs(item, {})
            found = self._blamed(item, self.young.boundary(), self._plan)
            if found:
                call.excinfo = _as_raised(wording.text(found, self._config.rootpath))
                failed = pytest.TestReport.from_item_and_call(item, call)
                report.outcome, report.longrepr = failed.outcome, failed.longrepr
        self.verdict.attach(report, self._met)
        self._met = []
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note other failures, of subtests for instance, and the causes that were met."""
        self._spoiled |= report.failed
        self.verdict.take(report)

    # ---- for the fixture `cycles` --------------------------------------------------------------

    def check(self, item: pytest.Item) -> None:
        """Fail the test now if it has left a cycle so far."""
        plan = self._plan
        if not plan.kinds:
            plan = Plan(self._settings.kinds, self._settings.plan(item).allowed)
        self._fail_for(self._blamed(item, self.young.look(), plan))

    def found(self, item: pytest.Item) -> tuple[Cycle, ...]:
        """Return the cycles since the last look, of all kinds; the test is not blamed for them."""
        return tuple(self._left(item, self.young.look()))

    # ---- what counts ---------------------------------------------------------------------------

    def _left(self, item: pytest.Item | None, found: Iterable[Cycle]) -> list[Cycle]:
        """Return those of `found` that the machinery around the tests has not made."""
        left = wording.merged(found)
        if left and self._machinery is None:
            self._machinery = Machinery(self._config.pluginmanager)
        return self._machinery.not_made(left, item) if self._machinery else []

    def _blamed(self, item: pytest.Item, found: list[Cycle], plan: Plan) -> list[Cycle]:
        """Return those of `found` that the test is blamed for; note also the known ones."""
        if not found or self._spoiled:
            return []
        judged = self.verdict.judged(self._asked_for(item, found, plan))
        self._met += [met for _, met in judged]
        return [cycle for cycle, met in judged if met.state == State.COUNTS]

    def _asked_for(
        self, item: pytest.Item | None, found: Iterable[Cycle], plan: Plan
    ) -> list[Cycle]:
        """Return cycles of the plan's kinds, and nameless ones; without allowed ones."""
        of_kinds = [x for x in found if x.cause.kind in plan.kinds or not is_named(x.cause)]
        return [each for each in self._left(item, of_kinds) if not self._is_allowed(each, plan)]

    def _is_allowed(self, cycle: Cycle, plan: Plan) -> bool:
        if not plan.allowed:
            return False
        modules = allowing.module_names(cycle.cause.place.file)
        matching = [each.text for each in plan.allowed if each.allows(cycle.cause, modules)]
        self.verdict.use(matching)
        return bool(matching)

    def _fail_for(self, found: list[Cycle]) -> None:
        if found:
            pytest.fail(wording.text(found, self._config.rootpath), pytrace=False)

    def _note_old(self, when: str, found: Iterable[Cycle], plan: Plan) -> None:
        """Keep the findings of a full collection: the test that left them is unknown."""
        judged = self.verdict.judged(self._asked_for(None, found, plan))
        self.verdict.note(when, [met for _, met in judged])

    # ---- the session ---------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Look once more for the rest, and restore the collector.

        This runs before others end the session: pytest's cache is written by json, which leaves
        cycles. The rest are cycles that lived longer than the tests that used them, of module
        fixtures for instance, and cycles that a test has put into an older object. The result does
        not depend on full collections in the tests.
        """
        if self._settings.everywhere and self.young.running:
            self._note_old("(found after all tests)", self.young.rest(), self._usual)
        self.young.stop()

    def pytest_unconfigure(self) -> None:
        """Restore the collector, also if the session did not finish."""
        self.young.stop()


def _set_funcargs(item: pytest.Item, values: dict[str, object]) -> None:
    if hasattr(item, "funcargs"):  # an item of another kind has no fixtures
        item.funcargs = values


def _as_raised(text: str) -> pytest.ExceptionInfo[BaseException]:
    """Return the exception that pytest has when a test calls `pytest.fail(text, pytrace=False)`."""
    try:
        pytest.fail(text, pytrace=False)
    except BaseException as error:  # noqa: BLE001  # pytest's own is no Exception
        return pytest.ExceptionInfo.from_exception(error)
