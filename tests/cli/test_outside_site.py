"""The package where no .pth file is read: found by PYTHONPATH, as by `pip install --target`."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cpythonplus._cli.startup import HOME
from tests.cli.support import NOTHING, Result, assert_refused, execute
from tests.support import FREE_THREADED

# An interpreter that has no cpythonplus of its own; outside of a venv there is none.
BARE = str(getattr(sys, "_base_executable", sys.executable))
FACTS = """\
import os, sys
print(sys.path)
print(sys.argv, sys.flags, sys.orig_argv)
print("sitecustomize" in sys.modules, getattr(sys, "marked", None))
path = os.environ.get("PYTHONPATH", "").split(":")
print([entry for entry in path if entry and "outside_site" not in entry])
"""
ACTIVE = "from cpythonplus import gil; print(gil.active(), flush=True)"
SCHEDULED = f"{not FREE_THREADED}\n"

Bare = Callable[..., Result]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as `pip install --target` leaves it."""
    if execute([BARE, "-c", "import cpythonplus"]).status == 0 or sys.executable == BARE:
        pytest.skip("this interpreter has cpythonplus in its own site folder")
    target = tmp_path_factory.mktemp("target")
    shutil.copytree(HOME, target / "cpythonplus")
    shutil.copy(Path(HOME).parent / "cpythonplus.pth", target)
    return target


@pytest.fixture
def bare(target: Path, tmp_path: Path) -> Bare:
    """Run the bare interpreter with that folder on PYTHONPATH, in a folder with `facts.py`."""
    (tmp_path / "facts.py").write_text(FACTS)

    def run(*words: str, path: str | None = None, **env: str) -> Result:
        path = str(target) if path is None else path
        return execute([BARE, *words], cwd=tmp_path, env={"PYTHONPATH": path, **env})

    return run


RUN = ("-m", "cpythonplus", "run")


def test_of_two_copies_the_one_that_runs_nothing_is_told(tmp_path: Path) -> None:
    """`-m` finds the copy in the current folder, and `site` the one that is installed."""
    copy = tmp_path / "cpythonplus"
    shutil.copytree(HOME, copy)
    result = execute([sys.executable, *RUN, "-c", ACTIVE], cwd=tmp_path)
    assert (result.status, result.out) == (0, "False\n")
    said = f"nothing is switched on: `run` is in {copy}, and this process has {HOME}"
    assert result.err == f"cpythonplus run: {said}\n"


def test_active(bare: Bare) -> None:
    assert bare("-c", ACTIVE).out == "False\n"
    result = bare(*RUN, "-c", ACTIVE)
    assert (result.out, result.err) == (SCHEDULED, "")


@pytest.mark.parametrize("options", [[], ["-P"], ["-s"], ["-O", "-Xdev"], ["-W", "error"]])
def test_same_as_python(bare: Bare, options: list[str]) -> None:
    assert bare(*options, *RUN, "facts.py", "x") == bare(*options, "facts.py", "x")


def test_found_by_the_current_folder(bare: Bare, target: Path) -> None:
    """`cd TARGET; python -m cpythonplus run`: nothing is on PYTHONPATH at all."""
    (target / "facts.py").write_text(FACTS)
    plain = execute([BARE, "facts.py"], cwd=target)
    assert execute([BARE, *RUN, "facts.py"], cwd=target) == plain
    assert execute([BARE, *RUN, "-c", ACTIVE], cwd=target).out == SCHEDULED
    script = target / "folder" / "active.py"
    script.parent.mkdir()
    script.write_text("import sys; print(sys.modules['cpythonplus.gil._control'].active())")
    assert execute([BARE, *RUN, str(script)], cwd=target).out == SCHEDULED


@pytest.mark.parametrize("ours_first", [True, False])
def test_own_sitecustomize(bare: Bare, target: Path, tmp_path: Path, ours_first: bool) -> None:
    """The user's own still runs, once, and stays in sys.modules."""
    own = tmp_path / "own"
    own.mkdir()
    text = "import sys\nsys.marked = getattr(sys, 'marked', 0) + 1\nprint('own', __file__)\n"
    (own / "sitecustomize.py").write_text(text)
    path = ":".join([str(target), str(own)][:: 1 if ours_first else -1])
    plain = bare("facts.py", path=path)
    assert b"True 1\n" in plain.stdout
    # The runner has run it too, for it is an interpreter of its own; what it printed is lost.
    assert bare(*RUN, "facts.py", path=path) == plain


@pytest.mark.parametrize("text", ["1 / 0\n", "import does_not_exist\n", "x = (\n"])
def test_own_sitecustomize_fails(bare: Bare, target: Path, tmp_path: Path, text: str) -> None:
    """It is reported by `site`, as without us: by both interpreters."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text(text)
    path = f"{target}:{own}"
    plain = bare("facts.py", path=path)
    result = bare(*RUN, "facts.py", path=path)
    assert (result.status, result.out) == (plain.status, plain.out)
    assert result.err == plain.err * 2


def test_children(bare: Bare) -> None:
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {ACTIVE!r}]); {ACTIVE}"
    assert bare(*RUN, "-c", child).out == SCHEDULED * 2
    assert bare(*RUN, "--no-children", "-c", child).out == "False\n" + SCHEDULED


def test_no_children_restores_the_path(bare: Bare, target: Path) -> None:
    code = "import os; print(os.environ.get('PYTHONPATH'), 'CPYTHONPLUS_RUN' in os.environ)"
    assert bare(*RUN, "--no-children", "-c", code).out == f"{target} False\n"
    assert bare(*RUN, *NOTHING, "-c", code).out == f"{target} False\n"


def test_run_inside_of_run(bare: Bare, target: Path) -> None:
    """The folder is not put on the path twice, and is taken off where it is not needed."""
    code = "import os, sys; sys.exit(os.system(sys.argv[1]) >> 8)"
    show = "import os; print(os.environ['PYTHONPATH'].count('outside_site'))"
    inner = f"{BARE} -m cpythonplus run"
    assert bare(*RUN, "-c", code, f'{inner} -c "{show}"').out == "1\n"
    switched_off = " ".join(NOTHING)
    assert bare(*RUN, "-c", code, f'{inner} {switched_off} -c "{show}"').out == "0\n"


@pytest.mark.parametrize("option", ["-I", "-E", "-S"])
def test_refused(bare: Bare, option: str) -> None:
    """PYTHONPATH is not read, so nothing could be activated."""
    assert_refused(bare(*RUN, option, "-c", "print(1)"), "cpythonplus run: ", option)
    assert bare(*RUN, *NOTHING, option, "-c", "print(1)").out == "1\n"


def test_other_python(bare: Bare, target: Path) -> None:
    """A Python of another version that inherits PYTHONPATH: the old ones too."""
    others = [
        path
        for path in sorted(Path.home().glob(".pyenv/versions/*/bin/python"))
        if subprocess.run([path, "-c", ""], check=False, capture_output=True).returncode == 0
    ]
    if not others:
        pytest.skip("no other Python found")
    for other in others:
        code = "import sys; print([p for p in sys.path if 'outside_site' in p]); "
        code += (
            "print(sorted(m for m in sys.modules if m.startswith(('sitec', 'cpythonplus.gil'))))"
        )
        if Path(BARE).samefile(other):
            continue
        child = f"import subprocess; subprocess.run([{str(other)!r}, '-c', {code!r}])"
        result = bare(*RUN, "-c", child)
        assert (result.out, result.err) == ("[]\n[]\n", ""), other


@pytest.fixture
def unsupported(target: Path, tmp_path: Path) -> Path:
    """Return a copy whose scheduler finds that it cannot work here."""
    copy = tmp_path / "unsupported"
    shutil.copytree(target, copy)
    with (copy / "cpythonplus" / "gil" / "_control.py").open("a") as file:
        file.write(
            "\ndef install_numbers(values):\n"
            "    raise UnsupportedPlatform('the moon is\\nin the wrong phase')\n"
            "from cpythonplus import UnsupportedPlatform\n"
        )
    return copy


def test_unsupported_platform(bare: Bare, unsupported: Path) -> None:
    result = bare(*RUN, "-c", "print(1)", path=str(unsupported))
    assert_refused(result, "cpythonplus run: gil: the moon is in the wrong phase", "--no-gil")
    assert bare(*RUN, "--no-gil", "-c", "print(1)", path=str(unsupported)).out == "1\n"


def test_unsupported_platform_without_stderr(bare: Bare, unsupported: Path) -> None:
    env = {"PYTHONPATH": str(unsupported)}
    command = ["/bin/sh", "-c", 'exec "$@" 2>&-', "sh", BARE, *RUN, "-c", "print(1)"]
    result = execute(command, env=env)
    assert (result.status, result.stdout, result.stderr) == (2, b"", b"")
