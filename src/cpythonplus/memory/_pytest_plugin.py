"""The plugin of pytest, loaded in every run with cpythonplus installed: it only adds options.

The folder `_no_cycles` has everything else; it is imported on demand: by `--no-cycles`, by the mark
`no_cycles`, or by the fixture `cycles`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cpythonplus.memory._no_cycles.checker import Checker
    from cpythonplus.memory._no_cycles.fixture import Cycles

_NAME = "cpythonplus-no-cycles"
_KINDS = "exception,closure"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the group "reference cycles" to `pytest --help`."""
    group = parser.getgroup("cpythonplus", "reference cycles (cpythonplus)")
    group.addoption(
        "--no-cycles",
        action="store_true",
        help="fail a test that leaves an exception or a closure in a reference cycle",
    )
    group.addoption(
        "--no-cycles-kinds",
        metavar="KIND,...",
        help=f"kinds that count: exception, closure, class, other (default: {_KINDS})",
    )
    group.addoption(
        "--no-cycles-packages",
        metavar="NAME,...",
        help="only cycles that are closed in these packages or modules count (default: all)",
    )
    group.addoption(
        "--no-cycles-baseline", metavar="FILE", help="causes that are known: they fail no test"
    )
    group.addoption(
        "--no-cycles-write-baseline",
        action="store_true",
        help="write the causes that are found into the baseline, and fail no test for them",
    )
    group.addoption(
        "--no-cycles-report-unused",
        action="store_true",
        help="list entries of allow_cycles and of the baseline that matched nothing, in any run",
    )
    parser.addini("no_cycles", "as --no-cycles", type="bool", default=False)
    parser.addini("no_cycles_kinds", "as --no-cycles-kinds", default=_KINDS)
    parser.addini("no_cycles_packages", "as --no-cycles-packages", type="args", default=[])
    parser.addini("no_cycles_baseline", "as --no-cycles-baseline", default="")
    parser.addini(
        "allow_cycles",
        "cycles to ignore, one per line: module:function:variable; * is anything",
        type="linelist",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marks; with `--no-cycles` switch on the check of every test."""
    config.addinivalue_line(
        "markers", "no_cycles(on=True, kinds=...): the test must leave no reference cycle behind"
    )
    config.addinivalue_line(
        "markers", "allow_cycles(*patterns, reason=...): cycles that do not count (default: all)"
    )
    if config.getoption("no_cycles") or config.getini("no_cycles"):
        _switch_on(config, everywhere=True)
    elif config.getoption("no_cycles_write_baseline"):
        raise pytest.UsageError("no cycles: --no-cycles-write-baseline needs --no-cycles")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Without `--no-cycles`: check the tests that are marked `no_cycles`, if there are any."""
    plugins = session.config.pluginmanager
    if plugins.has_plugin(_NAME) or session.config.getoption("collectonly"):
        return
    if any(item.get_closest_marker("no_cycles") is not None for item in session.items):
        # Too late for its own hook of this name, so call the code directly.
        _switch_on(session.config, everywhere=False).prepare(session.items)


@pytest.fixture
def cycles(request: pytest.FixtureRequest) -> Iterator[Cycles]:
    """The reference cycles that the test has left so far: `cycles.check()`, `cycles.found()`."""
    from cpythonplus.memory._no_cycles import fixture

    yield from fixture.provide(request, request.config.pluginmanager.get_plugin(_NAME))


def _switch_on(config: pytest.Config, *, everywhere: bool) -> Checker:
    try:
        from cpythonplus.memory._no_cycles import settings, young
        from cpythonplus.memory._no_cycles.checker import Checker

        young.probe()
    except (ImportError, RuntimeError) as error:
        # There is no extension, or the interpreter's collector cannot be watched.
        raise pytest.UsageError(f"no cycles: {error}") from None
    checker = Checker(config, settings.from_config(config, everywhere=everywhere))
    config.pluginmanager.register(checker, _NAME)
    config.pluginmanager.register(checker.verdict, f"{_NAME}-verdict")
    if everywhere:
        checker.young.relax()
    return checker
