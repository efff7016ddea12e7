"""What the files of all rooms get from pytest.

A fixture of several rooms, and the markers of tests that lists name (tests/selection.py). Tests
that need a GIL are skipped where there is none.
"""

import gc
import re
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tests.selection import TESTS, is_any_version, unsteady
from tests.support import FREE_THREADED, WITHOUT_GIL

# In the background of some shells SIGINT is ignored, which child processes would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No test fails because the machine is slow, be it in making examples, or on one day with an example
# of that day.
# --hypothesis-profile searching looks for new examples.
hypothesis.settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile("searching", deadline=None)
hypothesis.settings.load_profile("steady")

# Without a GIL the imports of such a file, or the classes that it makes, may be refused.
_REFUSED = re.compile(
    r"^(from (.*\b(tasklets|stackless)\b|tests\.lines )|pytestmark = pytest\.mark\.needs_gil$)",
    re.MULTILINE,
)


class _Refused(pytest.Module):
    """A file that cannot be imported without a GIL."""

    def collect(self) -> list[pytest.Item | pytest.Collector]:
        pytest.skip(WITHOUT_GIL, allow_module_level=True)


def _is_refused(path: Path) -> bool:
    in_tasklets = path.is_relative_to(TESTS / "tasklets")
    return in_tasklets or bool(_REFUSED.search(path.read_text("utf-8")))


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder such as /tmp."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Module | None:
    """Leave out what cannot be imported."""
    if FREE_THREADED and _is_refused(module_path):
        return _Refused.from_parent(parent, path=module_path)
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Share the rewriting of assertions among xdist's workers.

    It is most of what is done before the first test. Each worker imports its part of the files
    first; the parts of the others are in the cache then.
    """
    worker: dict[str, Any] | None = getattr(session.config, "workerinput", None)
    everything = session.config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if worker is None or not everything or FREE_THREADED or sys.dont_write_bytecode:
        return
    number = int(worker["workerid"].removeprefix("gw"))
    for path in sorted(TESTS.rglob("test_*.py"))[number :: worker["workercount"]]:
        with suppress(Exception, pytest.skip.Exception):  # told when all are collected
            pytest.Module.from_parent(session, path=path).obj  # noqa: B018  # this imports it


@pytest.hookimpl(tryfirst=True)  # before pytest looks at markers for -m
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what the lists of tests/selection.py name; skip what is unsteady or needs a GIL."""
    listed = unsteady()
    same = {path: is_any_version(path) for path in {item.path for item in items}}
    for item in items:
        if same[item.path]:
            item.add_marker(pytest.mark.any_version)
        # The list names a test with all its parameters, or with some.
        if why := listed.get(item.nodeid) or listed.get(item.nodeid.partition("[")[0]):
            item.add_marker(pytest.mark.skip(reason=str(why)))
        if FREE_THREADED and item.get_closest_marker("needs_gil"):
            item.add_marker(pytest.mark.skip(reason=WITHOUT_GIL))


@hypothesis.settings(max_examples=1, database=None)
@hypothesis.given(hypothesis.strategies.none())
def _first_example(_: None) -> None:
    """Have hypothesis note its generator, which must have a referrer that is not frozen."""


def pytest_collection_finish() -> None:
    """Keep collections short: pytest's million objects stay, and are not looked at by each one."""
    _first_example()
    gc.collect()
    gc.freeze()
