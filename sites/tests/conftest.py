"""What several tests get from pytest."""

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

STAND_IN = Path(__file__).with_name("wg_pubkey.py")


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder such as /tmp."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


@pytest.fixture(scope="session", autouse=True)
def _wg_pubkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Have `wg pubkey` on PATH; where there is no wg, it is a stand-in."""
    if shutil.which("wg") is not None:
        yield
        return
    program = tmp_path_factory.mktemp("programs") / "wg"
    words = shlex.join([sys.executable, "-IS", str(STAND_IN)])
    program.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    program.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{os.environ.get('PATH', os.defpath)}{os.pathsep}{program.parent}")
        yield


@pytest.fixture
def without_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing on it but this folder."""
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder
