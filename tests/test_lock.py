"""The lock files of the environments: they fit pyproject.toml, and pip takes nothing else."""

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support import child_environment
from tools import lock, setup_env

pytestmark = pytest.mark.any_version

PROJECT = """
[project]
dependencies = ["locked-thing>=1"]
[dependency-groups]
build = []
"""


def test_they_fit_pyproject() -> None:
    assert lock.stale() == []


def test_a_new_requirement_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(setup_env.ROOT / "requirements", tmp_path / "requirements")
    text = (setup_env.ROOT / "pyproject.toml").read_text()
    changed = text.replace('"redis>=6.0",', '"redis>=7.0",', 1)
    assert changed != text
    (tmp_path / "pyproject.toml").write_text(changed)
    (tmp_path / "requirements" / "lint.txt").unlink()
    monkeypatch.setattr(setup_env, "ROOT", tmp_path)
    assert sorted(lock.stale()) == ["lint", "test"]


def test_every_package_has_one_version_and_hashes_and_no_address() -> None:
    groups = setup_env.locked_groups()
    assert {path.stem for path in setup_env.lock_file("").parent.iterdir()} == set(groups)
    for name in groups:
        text = setup_env.lock_file(name).read_text()
        assert "://" not in text
        blocks = re.split(r"^(?=\w)", text, flags=re.MULTILINE)[1:]
        assert len(blocks) >= 1
        for block in blocks:
            package = r"[\w.-]+==[\w.]+( ; [^\\]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+\n"
            assert re.fullmatch(package, block), block


def make_wheel(folder: Path) -> None:
    """A package of nothing; pip looks into the file's own list of files."""
    info = "locked_thing-1.0.dist-info"
    tags = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = {
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: locked-thing\nVersion: 1.0\n",
        f"{info}/WHEEL": tags,
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(folder / "locked_thing-1.0-py3-none-any.whl", "w") as archive:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(name, text)


@pytest.mark.slow
def test_a_file_with_another_hash_is_not_installed(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    shutil.copy(setup_env.__file__, tmp_path / "tools")
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "requirements").mkdir()
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    make_wheel(wheels)
    locked = tmp_path / "requirements" / "build.txt"
    locked.write_text(f"locked-thing==1.0 --hash=sha256:{'0' * 64}\n")
    done = subprocess.run(
        [sys.executable, tmp_path / "tools" / "setup_env.py", "--", "true"],
        capture_output=True,
        text=True,
        check=False,
        env=child_environment({"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}),
    )
    assert done.returncode == 1
    assert "DO NOT MATCH THE HASHES" in done.stderr
    assert "pip install failed" in done.stderr.splitlines()[-1]
