"""tools/arm64.sh says in one line where it cannot work, which is where .ci/run leaves it out."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support import child_environment

pytestmark = pytest.mark.any_version

SCRIPT = Path(__file__).resolve().parent.parent / "tools" / "arm64.sh"


def usable(folder: Path, *, kernel: str, uid: int) -> tuple[int, str, str]:
    # What the machine can do is not asked for: `unshare` succeeds.
    for name, does in (("uname", f"echo {kernel}"), ("id", f"echo {uid}"), ("unshare", "exit 0")):
        (folder / name).write_text(f"#!/bin/sh\n{does}\n")
        (folder / name).chmod(0o755)
    path = {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    command = [str(SCRIPT), "usable"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=child_environment(path)
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("kernel", ["6.7.0", "6.10.3-cloud", "6.18.44", "7.0.1"])
def test_new_kernels(kernel: str, tmp_path: Path) -> None:
    assert usable(tmp_path, kernel=kernel, uid=0) == (0, "", "")


@pytest.mark.parametrize("kernel", ["5.15.0", "6.1.0-13-amd64", "6.6.99"])
def test_old_kernels(kernel: str, tmp_path: Path) -> None:
    said = f"arm64: Linux {kernel} is older than 6.7\n"
    assert usable(tmp_path, kernel=kernel, uid=0) == (1, said, "")


def test_others_than_root(tmp_path: Path) -> None:
    assert usable(tmp_path, kernel="6.18.44", uid=1000) == (1, "arm64: not root\n", "")
