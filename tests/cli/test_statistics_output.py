"""`--stats`: what it says, and what it must not disturb."""

import json
import os
import re
import signal
import stat
import sys
from pathlib import Path

import pytest

from cpythonplus import gil
from tests.cli.support import PYTHON, RUNNER, execute, run


def without_addresses(text: str) -> str:
    return re.sub(" at 0x[0-9a-f]+", "", text)


JSON = ("--stats", "--format", "json", "--output")
PARTS = ("statistics of pid", "interactive: waits", "batch: holds", "MainThread", "atomic sections")


@pytest.mark.needs_gil
def test_table() -> None:
    result = run("--stats", "-c", "print('output')")
    assert (result.status, result.out) == (0, "output\n")
    for part in PARTS:
        assert part in result.err
    assert "\x1b" not in result.err
    assert max(map(len, result.err.splitlines())) <= 100


def test_table_without_unicode() -> None:
    result = run("--stats", "-c", "pass", PYTHONIOENCODING="ascii")
    assert result.stderr.isascii()
    assert PARTS[0].encode() in result.stderr


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("import sys; sys.exit(7)", 7),
        ("1 / 0", 1),
        ("raise KeyboardInterrupt", -signal.SIGINT),
        ("import atexit; atexit.register(lambda: 1 / 0)", 0),
        ("import sys; sys.stderr = None", 0),
        ("import sys; sys.argv = None; sys.orig_argv[:] = ['a', '[red]x[/]', 'y\\nz']", 0),
        ("import os; os.chdir('/proc')", 0),
        ("import sys; sys.path[:] = []; sys.meta_path[:] = sys.meta_path[:]", 0),
        ("import threading; threading.Thread(target=print).start()", 0),
        ("import warnings; warnings.simplefilter('error')", 0),
    ],
)
def test_status_stays(code: str, status: int) -> None:
    plain = execute([PYTHON, "-c", code])
    assert plain.status == status
    result = run("--stats", "-c", code)
    assert result.status == status
    assert without_addresses(result.err).startswith(without_addresses(plain.err))
    assert PARTS[0] in result.err


@pytest.mark.parametrize(
    "code",
    [
        "import os; os._exit(5)",
        "import os; os.kill(os.getpid(), 15)",
        "import sys; sys.stderr.close()",
        "import os; os.close(2)",
        "import sys; sys.__stderr__ = None",
    ],
)
def test_nothing_told(code: str) -> None:
    plain = execute([PYTHON, "-c", code])
    assert run("--stats", "-c", code) == plain


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", "2>&1 | true", ">&- 2>&-"])
def test_broken_standard_error(redirection: str) -> None:
    script = f'{{ "$@" ; echo $? >&9; }} 9>&2 {redirection}'
    command = ["/bin/sh", "-c", script, "sh"]
    code = "import signal, sys; signal.signal(13, signal.SIG_DFL); sys.exit(3)"
    assert execute([*command, *RUNNER, "--stats", "-c", code]).err == "3\n"


def test_after_the_program() -> None:
    """The program's last output comes first where both go to one file."""
    code = "import atexit; atexit.register(print, 'late'); print('early')"
    command = ["/bin/sh", "-c", '"$@" 2>&1', "sh", *RUNNER, "--stats", "-c", code]
    assert execute(command).out.startswith("early\nlate\ncpythonplus statistics")


def test_modules_of_the_same_name(tmp_path: Path) -> None:
    """A program's own folder may hold modules with the names that the report needs."""
    for name in ("json", "rich", "statistics", "io"):
        (tmp_path / f"{name}.py").write_text("print('wrong one')\n")
    (tmp_path / "program.py").write_text("print('right')\n")
    file = tmp_path / "out"
    result = run("--stats", str(tmp_path / "program.py"))
    assert result.out == "right\n"
    assert PARTS[0] in result.err
    result = run(*JSON, str(file), str(tmp_path / "program.py"))
    assert (result.out, result.err) == ("right\n", "")
    assert json.loads(file.read_text())["pid"]


def test_json(tmp_path: Path) -> None:
    result = run(*JSON, "out.json", "-c", "import os; os.chdir('/')", "x", cwd=tmp_path)
    assert (result.status, result.out, result.err) == (0, "", "")
    content = json.loads((tmp_path / "out.json").read_text())
    assert content["argv"] == [PYTHON, "-c", "import os; os.chdir('/')", "x"]
    assert content["python"] == sys.version
    assert set(gil.statistics().as_json()) < set(content)
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((tmp_path / "out.json").stat().st_mode) == 0o666 & ~umask


def test_page(tmp_path: Path) -> None:
    file = tmp_path / "out.html"
    result = run("--stats", "--format", "html", "--output", str(file), "-c", "print('output')")
    assert (result.status, result.out, result.err) == (0, "output\n", "")
    page = file.read_text()
    for part in ("<h2>The GIL</h2>", "interactive: waits", "MainThread", "atomic sections"):
        assert part in page


def test_json_without_table_needs_no_rich(tmp_path: Path) -> None:
    code = "import atexit, sys; atexit.register(print)"
    result = run(*JSON, str(tmp_path / "x"), "-X", "importtime", "-c", code)
    assert "| rich" not in result.err


FORK = """\
import os, sys
child = os.fork()
if child == 0:
    sys.exit(0)
os.waitpid(child, 0)
if os.fork() == 0:
    os._exit(0)
os.wait()
"""


def test_forked_children(tmp_path: Path) -> None:
    """Those that end the normal way tell, each under its own pid."""
    pids = re.findall(r"statistics of pid (\d+)", run("--stats", "-c", FORK).err)
    assert len(set(pids)) == 2
    assert run(*JSON, str(tmp_path / "%p.json"), "-c", FORK).err == ""
    found = [json.loads(path.read_text())["pid"] for path in tmp_path.iterdir()]
    assert len(found) == 2
    assert {path.name for path in tmp_path.iterdir()} == {f"{pid}.json" for pid in found}


def test_only_the_program_writes_a_file_without_pid(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    code = f"import subprocess, sys; print(__import__('os').getpid(), flush=True)\n{FORK}"
    code += "subprocess.run([sys.executable, '-c', ''])"
    result = run(*JSON, str(file), "-c", code)
    assert result.err == ""
    assert json.loads(file.read_text())["pid"] == int(result.out)


def test_old_file_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    file.write_text("old")
    with file.open() as old:
        run(*JSON, str(file), "-c", "")
        assert old.read() == "old"
    assert json.loads(file.read_text())


def test_folder_goes_away(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    code = f"import os; os.rmdir({str(folder)!r})"
    result = run(*JSON, str(folder / "x.json"), "-c", code)
    assert (result.status, result.out) == (0, "")
    assert result.err.startswith("cpythonplus: cannot write")
    assert result.err.count("\n") == 1
