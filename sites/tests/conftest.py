"""What several tests get from pytest."""

import atexit
import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

import hypothesis
import pytest

# As in the tests of the rest (tests/conftest.py).
hypothesis.settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile("searching", deadline=None)
hypothesis.settings.load_profile("steady")

STAND_IN = Path(__file__).with_name("wg_pubkey.py")


def _stand_in_for_wg() -> None:
    """Have `wg pubkey` on PATH where there is no wg; files of tests use it when they are read."""
    folder = tempfile.mkdtemp(prefix="stand-in-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    program = Path(folder, "wg")
    words = shlex.join([sys.executable, "-IS", str(STAND_IN)])
    program.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    program.chmod(0o755)
    os.environ["PATH"] = f"{os.environ.get('PATH', os.defpath)}{os.pathsep}{folder}"


if shutil.which("wg") is None:
    _stand_in_for_wg()


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder such as /tmp."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


@pytest.fixture
def without_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing on it but this folder."""
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder
