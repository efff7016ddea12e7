"""What the files of all rooms get from pytest.

A fixture of several rooms; what needs a GIL is skipped where there is none.
"""

import re
import signal
from pathlib import Path

import pytest

from tests.support import FREE_THREADED, WITHOUT_GIL

# In the background of some shells SIGINT is ignored, which child processes would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Importing the room is refused there.
_USES_TASKLETS = re.compile(r"^from .*\b(tasklets|stackless)\b", re.MULTILINE)


class _Refused(pytest.Module):
    """A file that cannot be imported without a GIL."""

    def collect(self) -> list[pytest.Item | pytest.Collector]:
        pytest.skip(WITHOUT_GIL, allow_module_level=True)


def _imports_tasklets(path: Path) -> bool:
    return path.parent.name == "tasklets" or bool(_USES_TASKLETS.search(path.read_text("utf-8")))


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
    """Leave out what imports tasklets."""
    if FREE_THREADED and _imports_tasklets(module_path):
        return _Refused.from_parent(parent, path=module_path)
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what is marked."""
    for item in items:
        if FREE_THREADED and item.get_closest_marker("needs_gil"):
            item.add_marker(pytest.mark.skip(reason=WITHOUT_GIL))
