"""`--record-lies FOLDER`: what the tests of test_lies.py found, for tools/lies_page.py."""

import platform
from pathlib import Path
from typing import Any

import pytest

from benchmarks.common.storing import stored


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-lies", type=Path, metavar="FOLDER", help="where results are kept")


class _Recorder:
    """Collects what tests note as their property `lie`, where pytest-xdist's workers report."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lies: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self._lies += [value for name, value in report.user_properties if name == "lie"]  # type: ignore[misc]

    def pytest_sessionfinish(self) -> None:
        found = {
            "python": platform.python_version(),
            "lies": sorted(self._lies, key=lambda lie: (lie["fact"], lie["lie"])),
        }
        minor = ".".join(platform.python_version_tuple()[:2])
        path = self._folder / f"lies-{minor}.json"
        path.write_text(stored(found), "utf-8")


def pytest_configure(config: pytest.Config) -> None:
    folder: Path | None = config.getoption("--record-lies", None)
    if folder is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Recorder(folder))
