"""The zipapp that one copies to a gateway: what is in it, and that it works on each Python here."""

import ast
import os
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from cpythonplus_sites import clock, keys
from cpythonplus_sites.host_folder import HostFolder, write_key
from sites.tests.site_texts import BERLIN_KEY, GOOD, with_changed
from tests.support import child_environment
from tools import old_pythons, sites_zipapp

pytestmark = pytest.mark.any_version

INTERPRETERS = {
    "this": sys.executable,
    **dict(old_pythons.interpreters((*old_pythons.OLD, "3.13"))),
}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dist") / "cpythonplus-sites.pyz"
    sites_zipapp.write(path, tomli())
    return path


def tomli() -> Path:
    """The package, of which only what is not compiled is taken."""
    return Path(pytest.importorskip("tomli").__file__).parent


@pytest.fixture(params=INTERPRETERS)
def python(request: pytest.FixtureRequest) -> str:
    return INTERPRETERS[request.param]


def run(
    python: str, *words: str | Path, cwd: Path | None = None, status: int | None = 0
) -> subprocess.CompletedProcess[str]:
    """Run it where nothing of this environment can be imported."""
    kept = child_environment()
    for name in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"):
        kept.pop(name, None)
    done = subprocess.run(
        [python, *map(str, words)],
        cwd=cwd,
        env=kept,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert status in (None, done.returncode), done.stdout + done.stderr
    return done


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sites.toml").write_text(GOOD)
    return tmp_path


def test_it_checks_a_file(archive: Path, python: str, folder: Path) -> None:
    done = run(python, "-IW", "error", archive, "check", cwd=folder)
    assert "3 sites, 3 links, no problems" in done.stdout
    (folder / "sites.toml").write_text(with_changed('gateway = "192.168.30.1"', "gateway = 7"))
    done = run(python, "-I", archive, "check", cwd=folder, status=2)
    assert done.stdout == "sites.toml:23: sites.rome.gateway: expected a string in quotes, got 7\n"


@pytest.mark.parametrize("has_tomli", [False, True])
def test_tomli_is_used_before_3_11_alone(
    archive: Path, python: str, folder: Path, has_tomli: bool
) -> None:
    with zipfile.ZipFile(archive) as opened:
        kept = [name for name in opened.namelist() if has_tomli or not name.startswith("tomli")]
        opened.extractall(folder / "package", kept)
    script = (
        "import sys; sys.path.insert(0, 'package')\n"
        "from cpythonplus_sites.commands.sites import main; status = main(['check'])\n"
        "print('tomli' in sys.modules, sys.version_info < (3, 11)); sys.exit(status)"
    )
    is_old = run(python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))", status=None)
    status = 2 if is_old.returncode and not has_tomli else 0
    done = run(python, "-ISc", script, cwd=folder, status=status)
    if status:
        line = "cpythonplus-sites: requires tomli before Python 3.11; pip install tomli\n"
        assert done.stderr == line
    else:
        used, old = done.stdout.splitlines()[-1].split()
        assert used == old


def test_units_call_it_by_its_path(archive: Path, python: str, folder: Path) -> None:
    """Also where it was called by a relative one; a copy in another folder is another program."""
    (folder / "a copy.pyz").write_bytes(archive.read_bytes())
    host = HostFolder(folder / "host")
    host.create()
    key = keys.new_private_key()
    write_key(host.private_key_path, key)
    text = with_changed(BERLIN_KEY, keys.public_key(key))
    (folder / "sites.toml").write_text(text)
    unit = "cpythonplus-sites-acme-endpoints.service"
    words = ["render", "--stdout", unit, "--host-dir", str(host.path)]
    done = run(python, "-I", "a copy.pyz", *words, cwd=folder)
    (line,) = (each for each in done.stdout.splitlines() if each.startswith("ExecStart="))
    assert f' "{folder}/a copy.pyz" apply --endpoints-only ' in line
    assert f"--file {host.path}/sites.toml" in line
    program = shlex.split(line.partition("=")[2])[0]
    assert Path(program).samefile(python)
    assert " -m " not in line


def test_whether_others_can_change_it_is_looked_at(archive: Path, folder: Path) -> None:
    copied = folder / "copied.pyz"
    copied.write_bytes(archive.read_bytes())
    script = """
import sys
sys.path.insert(0, "copied.pyz")
from cpythonplus_sites import this_host
print(this_host.program())
looked_at = []
this_host.weak_spot = lambda path: looked_at.append(str(path))
print(this_host.foreign_hand(), looked_at[-1])
this_host.weak_spot = lambda path: f"others can change {path}" if path == found else None
found = this_host.archive()
print(this_host.foreign_hand())
"""
    done = run(sys.executable, "-I", "-c", script, cwd=folder)
    assert done.stdout.splitlines() == [
        str((sys.executable, str(copied))),
        f"None {copied}",
        f"others can change {copied}",
    ]


def test_it_has_the_clock(archive: Path, python: str, folder: Path) -> None:
    root = folder / "image"
    root.mkdir()
    run(python, "-I", archive, "clock", "install", "--root", root, "--init", "cron", cwd=folder)
    installed = root / "usr/local/lib/cpythonplus/clock.py"
    assert installed.read_bytes() == Path(clock.__file__).read_bytes()
    done = run(python, "-I", archive, "clock", "nonsense", cwd=folder, status=2)
    assert done.stderr.startswith("cpythonplus-clock: ")
    file = folder / "time"
    run(python, "-I", archive, "clock", "save", "--file", file, cwd=folder)
    assert file.read_text().strip().isdecimal()


def test_an_old_python_is_told_so(archive: Path, folder: Path) -> None:
    ast.parse(sites_zipapp.MAIN, feature_version=(3, 0))
    script = sites_zipapp.MAIN.replace("(3, 9)", "(9, 9)", 1)
    done = run(sys.executable, "-I", "-c", script, cwd=folder, status=1)
    assert done.stderr.startswith("cpythonplus-sites requires Python 3.9 or later; this is 3.")


def test_it_is_the_same_bytes_each_time(archive: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.pyz"
    os.utime(tomli() / "__init__.py")
    sites_zipapp.write(again, tomli())
    assert again.read_bytes() == archive.read_bytes()
    with zipfile.ZipFile(archive) as opened:
        members = opened.infolist()
    assert {member.date_time for member in members} == {sites_zipapp.LONG_AGO}
    assert {member.compress_type for member in members} == {zipfile.ZIP_STORED}
    names = [member.filename for member in members]
    assert names == sorted(set(names))
    assert {Path(name).suffix for name in names} == {".py", ""}
    assert {"__main__.py", "LICENSE", "tomli/LICENSE", "cpythonplus_sites/clock.py"} <= set(names)
    assert "cpythonplus_sites/files.py" in names  # a link in the sources
    assert archive.read_bytes().startswith(b"#!/usr/bin/env python3\n")
    assert os.access(archive, os.X_OK)


def test_the_tests_are_spelled_for_an_old_python() -> None:
    """What `make old-pythons` makes of `match`, carried out here."""
    source = '''"""A docstring."""
def f(words):
    match words:
        case ("a", name, "b" | "c"):
            return name
        case ["d", *rest] if rest:
            return rest
        case ("e", *_, last):
            return last
        case ("f" | "g",) as whole:
            return whole
        case _:
            return None
'''
    spelled = old_pythons.spelled_for_3_9(source)
    ast.parse(spelled, feature_version=(3, 9))
    assert spelled.split("\n")[1] == "from __future__ import annotations"
    scopes: list[dict[str, object]] = [{}, {}]
    exec(compile(source, "source", "exec"), scopes[0])
    exec(compile(spelled, "spelled", "exec"), scopes[1])
    for words in ("a x b", "a x d", "d", "d 1 2", "e", "e 1", "e 1 2", "g", "g 1", "a 1 c 2"):
        results = [scope["f"](words.split()) for scope in scopes]  # type: ignore[operator]
        assert results[0] == results[1], words
