"""docs/how-to/installation.md: its commands, and that a removal leaves nothing."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs import as_typed, pages
from tests.support import SANITIZED, child_environment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(SANITIZED, reason="its wheel wants another Python"),
]

PAGE = pages.ROOT / "docs" / "how-to" / "installation.md"
NEEDED = "rich", "gunicorn"


def wheel() -> Path:
    """The wheel that the tests' environment was made of."""
    found = as_typed.wheel()
    if found is None:
        pytest.skip("the wheel is not there")
    return found


def files_of(folder: Path) -> set[str]:
    found = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    return {name for name in found if "__pycache__" not in name or "cpythonplus" in name}


def test_the_commands_for_a_machine_without_a_network(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    download = [sys.executable, "-m", "pip", "download", "-q", "--dest", str(wheels)]
    if subprocess.run([*download, *NEEDED], check=False, capture_output=True).returncode:
        pytest.skip("what it needs cannot be fetched")
    shutil.copy(wheel(), wheels)
    lines = [each for block in pages.blocks(PAGE, PAGE.read_text()) for each in block.commands()]
    commands = [each for each in lines if re.search(r"\bvenv\b", each)]
    assert len(commands) == 5
    before: set[str] = set()
    for command in commands:
        words = shlex.split(command)
        if words[0] == "python3":
            words[0] = sys.executable
        if "uninstall" in words:
            assert (site(tmp_path) / "cpythonplus.pth").exists()
        done = subprocess.run(
            [str(tmp_path / words[0]) if "/" in words[0] else words[0], *words[1:]],
            check=False,
            cwd=tmp_path,
            env=child_environment({"PIP_DISABLE_PIP_VERSION_CHECK": "1"}),
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, (command, done)
        if "venv" in words:
            before = files_of(tmp_path / "venv")
        if "--version" in words:
            assert re.match(r"cpythonplus \d", done.stdout)
        if "run" in words:
            assert (done.stdout, done.stderr) == ("it runs\n", "")
    left = {name for name in files_of(tmp_path / "venv") - before if "cpythonplus" in name}
    assert left == set()
    look = [str(tmp_path / "venv/bin/python"), "-c", "print('stock')"]
    environment = {**os.environ, "CPYTHONPLUS_RUN": "left over"}
    after = subprocess.run(look, check=True, capture_output=True, text=True, env=environment)
    assert (after.stdout, after.stderr) == ("stock\n", "")


def site(folder: Path) -> Path:
    return next((folder / "venv/lib").glob("python3*")) / "site-packages"
