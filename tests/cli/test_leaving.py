"""The line about a program that goes on in a Python where nothing is activated."""

import os
import shutil
import site
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cpythonplus._cli import leaving
from cpythonplus._cli.features import OUTSIDE_SITE, Run, python_tag
from cpythonplus._cli.startup import HOME
from tests.cli.support import NOTHING, PYTHON, Result, environment, execute, run

LINE = "cpythonplus run: the program continues in "
ACTIVE = "from cpythonplus import threads; print(threads.patched())"


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same interpreter in a venv without the package."""
    folder = tmp_path_factory.mktemp("other") / "venv"
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", folder], check=True, env=environment())
    return str(folder / "bin" / "python")


def become(
    *words: str, how: str = "os.execv(words[0], words)", options: tuple[str, ...] = ()
) -> Result:
    """Run a program that becomes `words` with `how`."""
    return run(*options, "-c", f"import os, sys; words = {[*words]!r}; {how}")


def assert_told(result: Result, python: str, reason: str, out: str) -> None:
    assert result.err.startswith(f"{LINE}{python} without cpythonplus: {reason}"), result
    assert result.err.count("\n") == 1
    assert (result.status, result.out) == (0, out)


PRINT = ("-c", "print(1)")


@pytest.mark.parametrize(
    ("python", "options", "how", "reason"),
    [
        ("other", [], "os.execv(words[0], words)", "the package is not in a site-packages folder"),
        ("other", [], "os.execl(words[0], *words)", "the package is not in a site-packages folder"),
        ("other", [], "os.execvp(words[0], words)", "the package is not in a site-packages folder"),
        ("other", ["-I"], "os.execve(words[0], words, os.environ)", "with -I or -E it ignores"),
        (PYTHON, ["-E"], "os.execv(words[0], words)", "with -I or -E it ignores CPYTHONPLUS"),
        (PYTHON, ["-S"], "os.execv(words[0], words)", "with -S it reads no site-packages folder"),
        (PYTHON, ["-IS"], "os.execv(words[0], words)", "with -S it reads no site-packages folder"),
        (PYTHON, [], "os.execve(words[0], words, {})", "its environment has no CPYTHONPLUS_RUN"),
        (
            PYTHON,
            [],
            "os.execve(path=words[0], argv=words, env={})",
            "its environment has no CPYTHONPLUS_RUN",
        ),
    ],
)
def test_told(python: str, options: list[str], how: str, reason: str, other: str) -> None:
    python = other if python == "other" else python
    assert_told(become(python, *options, *PRINT, how=how), python, reason, "1\n")


def test_no_children() -> None:
    result = become(PYTHON, *PRINT, options=("--no-children",))
    assert_told(result, PYTHON, "it was started with --no-children", "1\n")


def test_by_the_first_line_of_a_script(other: str, tmp_path: Path) -> None:
    for number, first in enumerate((other, f"{other} -s", "/usr/bin/env theirs")):
        script = tmp_path / f"script{number}"
        script.write_text(f"#!{first}\nimport sys; print(sys.argv[1:])\n")
        script.chmod(0o755)
        theirs = tmp_path / "theirs"
        if not theirs.exists():
            theirs.symlink_to(other)
        how = f"os.environ['PATH'] = {str(tmp_path)!r}; os.execv(words[0], words)"
        result = become(str(script), "x", how=how)
        python = str(theirs) if first.startswith("/usr") else other
        assert_told(result, python, "the package is not in a site-packages folder", "['x']\n")


@pytest.mark.parametrize(
    "words",
    [
        [PYTHON, "-c", ACTIVE],
        [PYTHON, "-s", "-c", ACTIVE],
        [str(Path(PYTHON).parent / "." / Path(PYTHON).name), "-c", ACTIVE],
    ],
    ids=str,
)
def test_activated(words: list[str]) -> None:
    result = become(*words)
    assert (result.status, result.out, result.err) == (0, "True\n", "")


def test_what_is_not_told(other: str, tmp_path: Path) -> None:
    """No Python, no success, no end of the program, or a word that says what is wanted."""
    assert become("/bin/echo", "1").err == ""
    shell = tmp_path / "python3"
    shell.write_text("#!/bin/sh\necho 1\n")
    shell.chmod(0o755)
    assert become(str(shell)).err == ""
    failed = become("/does/not/exist/python")
    assert (failed.status, LINE in failed.err) == (1, False)
    fork = "os.fork() or os.execv(words[0], words); os.wait()"
    assert become(other, *PRINT, how=fork).err == ""
    spawn = "os.spawnv(os.P_WAIT, words[0], words)"
    assert become(other, *PRINT, how=spawn).err == ""
    assert become(PYTHON, "-m", "cpythonplus", "run", *PRINT).err == ""
    # An inner run, which does not tell of itself either.
    assert become(PYTHON, "-m", "cpythonplus", "run", *NOTHING, *PRINT).err == ""
    assert become(other, *PRINT, options=NOTHING).err == ""


def test_outside_of_a_site_folder(other: str, tmp_path: Path) -> None:
    """There PYTHONPATH is the way in: with a Python of the same version, unless it reads none."""
    shutil.copytree(HOME, tmp_path / "cpythonplus")
    path = str(tmp_path)

    def start(*words: str) -> Result:
        code = f"import os; words = {[*words]!r}; os.execv(words[0], words)"
        command = [other, "-m", "cpythonplus", "run", "-c", code]
        return execute(command, env={"PYTHONPATH": path})

    active = start(other, "-c", ACTIVE)
    assert (active.out, active.err) == ("True\n", "")
    assert_told(start(other, "-E", *PRINT), other, "with -I or -E it ignores", "1\n")


# ---- a Python that is not here: what is looked at -----------------------------------------------

RUN = Run(HOME, python_tag(), 1, {"gil": {}}, children=True)
LIBRARY = leaving._LIBRARY  # of this version


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., str]:
    """Make what looks like an interpreter in a prefix; `installed`: with this package."""

    def make(name: str, *, installed: bool, library: str = LIBRARY) -> str:
        python = tmp_path / "bin" / name
        python.parent.mkdir()
        python.write_bytes(b"\x7fELF")
        python.chmod(0o755)
        standard = tmp_path / sys.platlibdir / library
        standard.mkdir(parents=True)
        (standard / "os.py").touch()
        if installed:
            folder = Path(site.getsitepackages([str(tmp_path)])[0])
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "cpythonplus.pth").touch()
            (folder / "cpythonplus").symlink_to(HOME)
        return str(python)

    return make


def line(*words: str, **variables: str) -> str | None:
    env = {"CPYTHONPLUS_RUN": RUN.encode(), "PYTHONNOUSERSITE": "1", **variables}
    return leaving.line(RUN, words[0], list(words), env)


def test_another_prefix(make: Callable[..., str]) -> None:
    python = make("python3", installed=False)
    assert (line(python, "x.py") or "").endswith(
        f"`{python} -m cpythonplus run` starts a program with it"
    )


def test_another_prefix_with_the_package(make: Callable[..., str]) -> None:
    python = make("python3", installed=True)
    assert line(python, "x.py") is None
    assert line(python, "-s", "x.py") is None
    for options in (["-I"], ["-E"], ["-B", "-sE"]):
        assert "ignores CPYTHONPLUS_RUN" in (line(python, *options, "x.py") or "")
    assert "-S" in (line(python, "-S", "x.py") or "")


@pytest.mark.parametrize("with_base", [True, False])
def test_a_venv_of_another_prefix(make: Callable[..., str], with_base: bool) -> None:
    """It reads the site folder of its base where it is told to."""
    base = Path(make("python3", installed=True))
    folder = base.parent.parent / "venv"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(base)
    settings = f"home = {base.parent}\nInclude-System-Site-Packages = {str(with_base).lower()}\n"
    (folder / "pyvenv.cfg").write_text(settings)
    told = line(str(folder / "bin" / "python"), "-s", "x.py")
    assert (told is None) is with_base


def test_the_users_site_folder(
    make: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = make("python3", installed=False)
    (tmp_path / "cpythonplus.pth").touch()
    (tmp_path / "cpythonplus").symlink_to(HOME)
    monkeypatch.setattr(site, "getusersitepackages", lambda: str(tmp_path))
    assert line(python, "x.py", PYTHONNOUSERSITE="") is None
    assert leaving.NOT_INSTALLED in (line(python, "-s", "x.py", PYTHONNOUSERSITE="") or "")
    assert leaving.NOT_INSTALLED in (line(python, "x.py") or "")


def test_pythonhome(
    make: Callable[..., str], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    make("python3", installed=True)
    other = tmp_path_factory.mktemp("bare") / "python3"
    other.write_bytes(b"\x7fELF")
    other.chmod(0o755)
    assert line(str(other), "x.py") is not None
    assert line(str(other), "x.py", PYTHONHOME=str(tmp_path)) is None


@pytest.mark.parametrize("name", ["python3.1", "pypy3"])
def test_another_version(make: Callable[..., str], name: str) -> None:
    """Also where it is installed beside one that has the package."""
    python = make(name, installed=True)
    assert leaving.NOT_INSTALLED in (line(python, "x.py") or "")
    assert "another implementation" in (line(python, "x.py", PYTHONPATH=OUTSIDE_SITE) or "")


def test_a_pex_file(make: Callable[..., str]) -> None:
    assert "PEX_INHERIT_PATH" in (line(make("python3", installed=False), "x", PEX="x.pex") or "")


def test_what_is_given_is_wrong() -> None:
    """Exec refuses it; nothing is told."""
    nothing: list[tuple[object, object, object]] = [
        (PYTHON, [], {}),
        (PYTHON, "x", {}),
        ("/", ["x"], {}),
        (os.devnull, ["x"], {}),
        ("/no", [b"x"], {}),
    ]
    for each in nothing:
        assert leaving.line(RUN, *each) is None
    wrong: list[tuple[object, object, object]] = [
        (3, ["x"], {}),
        (PYTHON, [3], {}),
        (PYTHON, ["x"], 3),
    ]
    for each in wrong:
        with pytest.raises(TypeError):
            leaving.line(RUN, *each)


# ---- real PEX files -----------------------------------------------------------------------------

PROGRAM = """\
import sys, threading
def main():
    print(threading.Lock, sys.argv[1:])
"""


@pytest.fixture(scope="module")
def pex(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Make a PEX file of a program, with options."""
    folder = tmp_path_factory.mktemp("pex")
    (folder / "program").mkdir()
    (folder / "program" / "program.py").write_text(PROGRAM)

    def make(*options: str) -> Path:
        file = folder / f"program{len(list(folder.iterdir()))}.pex"
        words = [PYTHON, "-m", "pex", "-D", "program", "-e", "program:main", "-o", str(file)]
        done = execute([*words, *options], cwd=folder, env={"PEX_ROOT": str(folder / "root")})
        assert done.status == 0, done
        return file

    return make


@pytest.mark.slow
@pytest.mark.any_version
@pytest.mark.skipif(sys.prefix == sys.base_prefix, reason="a PEX file stays where there is no venv")
@pytest.mark.parametrize("options", [[], ["--venv"]], ids=["zip", "venv"])
def test_pex(pex: Callable[..., Path], options: list[str]) -> None:
    file = pex(*options)
    variables = {"PEX_ROOT": str(file.parent / "root")}
    result = execute([PYTHON, "-m", "cpythonplus", "run", "--stats", str(file), "x"], env=variables)
    assert result.out.endswith("['x']\n")
    assert "statistics of pid" not in result.err
    assert result.err.startswith(LINE), result
    assert "PEX_VENV=0 PEX_INHERIT_PATH=fallback" in result.err
    assert result.err.count("\n") == 1
    # And that is true.
    variables |= {"PEX_VENV": "0", "PEX_INHERIT_PATH": "fallback"}
    result = execute([PYTHON, "-m", "cpythonplus", "run", "--stats", str(file), "x"], env=variables)
    assert result.out.endswith("['x']\n")
    assert LINE not in result.err
    assert "statistics of pid" in result.err
