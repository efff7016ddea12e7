"""Tells cycles of pytest, plugins and unittest from those of tests and tested code."""

import re
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import pytest

from cpythonplus.memory._cycles.report import Cause, Cycle
from cpythonplus.memory._no_cycles import allowing

_PACKAGES = ("_pytest", "pytest", "pluggy", "unittest", "doctest", "xdist", "execnet", "hypothesis")
_OWN = f"{Path(__file__).parent}/"
_RAISES = re.compile(r"\._(?:excinfo|traceback)\b")
"""Attributes by which the result of `pytest.raises() as caught` holds the exception."""

_PROXIED = "f._proxied_tests"
"""The cycle of `hypothesis.given`, in a function that looks like one of the test's file."""

_ANYIO = "/anyio/_backends/"
"""The folder of anyio that has its plugin's class TestRunner beside code for programs."""


class Machinery:
    """The source files of the code that runs the tests."""

    def __init__(self, plugins: pytest.PytestPluginManager) -> None:
        self._places = (_OWN, *_packages(), *_plugins(plugins))

    def not_made(self, found: Sequence[Cycle], item: pytest.Item | None) -> list[Cycle]:
        """Return those of `found` that the machinery has not made.

        A cycle is judged by the place that closes it. If a test's own variable closes it, its value
        may be the machinery's: the result of `pytest.raises`, with the exception that a test takes
        out of it (`error = caught.value`), and fixtures of pytest or a plugin, `caplog` for
        instance. These exist to hold exceptions. item: None after all tests.
        """
        raising = {
            _function(x.cause)
            for x in found
            if _RAISES.search(x.cause.variable) and _uses_pytest(x.cause.place.file, item)
        }
        return [x for x in found if _function(x.cause) not in raising and not self._is(x, item)]

    def _is(self, cycle: Cycle, item: pytest.Item | None) -> bool:
        cause = cycle.cause
        if cause.place.file.startswith(self._places) or cause.variable.startswith(_PROXIED):
            return True
        if _ANYIO in cause.place.file and cause.place.function.startswith("TestRunner."):
            return True
        if item is None or cause.place.file != str(item.path):
            return False
        name = re.split(r"[.\[]", cause.variable, maxsplit=1)[0]
        definitions = getattr(item, "_fixtureinfo", None)
        definitions = getattr(definitions, "name2fixturedefs", {}).get(name)
        if not definitions:
            return name == "request"
        code = getattr(definitions[-1].func, "__code__", None)
        return getattr(code, "co_filename", "").startswith(self._places)


def _uses_pytest(file: str, item: pytest.Item | None) -> bool:
    """Return whether a file has tests, or helpers of tests.

    In other files attributes with such names need not come from `pytest.raises`.
    """
    modules = (module for _, module in allowing.modules_of(file))
    return (item is not None and file == str(item.path)) or any(
        each is pytest or each is pytest.raises
        for module in islice(modules, 1)
        for each in vars(module).values()
    )


def _function(cause: Cause) -> tuple[str, str, str, str]:
    return (cause.kind, cause.what, cause.place.file, cause.place.function)


@lru_cache(maxsize=1)
def _packages() -> tuple[str, ...]:
    places = []
    for name in _PACKAGES:
        try:
            spec = find_spec(name)
        except (ImportError, ValueError):
            continue
        if spec is not None and spec.origin:
            is_package = spec.submodule_search_locations is not None
            places.append(f"{Path(spec.origin).parent}/" if is_package else spec.origin)
    return tuple(places)


def _plugins(plugins: pytest.PytestPluginManager) -> list[str]:
    """Return the places of plugins from installed packages.

    The whole folder for `pytest_something`; else the one file, because a package with another
    purpose, as anyio, may have a plugin, too.
    """
    places = []
    for plugin, _ in plugins.list_plugin_distinfo():
        name = getattr(plugin, "__name__", "")
        file = getattr(plugin, "__file__", None)
        if isinstance(file, str) and isinstance(name, str):
            whole = "." in name and name.startswith("pytest_")
            places.append(f"{Path(file).parents[name.count('.') - 1]}/" if whole else file)
    return places
