"""`cpythonplus doctor cycles`: what it tells at exit, and what it must not disturb."""

import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from cpythonplus._cli import at_exit
from cpythonplus._cli.commands import doctor
from cpythonplus._cli.features import FEATURES
from tests.cli.support import MODULE, PYTHON, Result, assert_refused, execute

PROGRAM = '''\
import sys


def fetch():
    """Keeps its error."""
    last = None
    try:
        int("x")
    except ValueError as error:
        last = error


def walk():
    def inner(depth):
        if depth:
            inner(depth - 1)
    inner(2)


for _ in range(4):
    fetch()
walk()
print("done", *sys.argv[1:])
'''


def cycles(*arguments: str, cwd: Path | None = None) -> Result:
    return execute([*MODULE, "doctor", "cycles", *arguments], cwd=cwd)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


@pytest.mark.needs_gil
def test_one_line_for_each_root_cause(program: Path) -> None:
    done = cycles("program.py", "a", "b", cwd=program.parent)
    assert (done.status, done.out) == (0, "done a b\n")
    heading, causes, *lines = done.err.splitlines()
    assert re.fullmatch(r"cpythonplus doctor cycles, pid \d+: program.py a b", heading)
    assert causes.startswith("cyclic garbage: 2 root causes")
    assert len(lines) == 2
    told = {line.strip().partition(" keeps ")[0]: line for line in lines}
    fetch = told[f"{program}:10: exception: in fetch(): last"]
    assert "; 4 times, " in fetch
    assert f"{program}:14: closure: in walk(): inner" in told


@pytest.mark.needs_gil
def test_json(program: Path, tmp_path: Path) -> None:
    """Standard output is the program's; a file is written whole, under the pid if so wished."""
    done = cycles("--format", "json", "--kinds", "exception", "--no-hoards", str(program))
    assert done.out == "done\n"
    content = json.loads(done.err)
    assert content["argv"] == [PYTHON, str(program)]
    assert [cycle["cause"]["variable"] for cycle in content["cycles"]] == ["last"]
    assert content["cycles"][0]["count"] == 4
    done = cycles("--format=json", "--output", "%p.json", str(program), cwd=tmp_path)
    assert done.err == ""
    [path] = tmp_path.glob("*.json")
    content = json.loads(path.read_text())
    assert path.stem == str(content["pid"])
    assert len(content["cycles"]) == 2
    done = cycles("--format", "html", "--output", "page.html", str(program), cwd=tmp_path)
    assert (done.out, done.err) == ("done\n", "")
    page = (tmp_path / "page.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "fetch" in page


def test_a_pipe_is_written_to_and_a_device_is_not_replaced(tmp_path: Path) -> None:
    """Both would be regular files afterwards, if the name were given to a new file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    at_exit.write_file(str(pipe), "report\n")
    assert os.read(reader, 100) == b"report\n"
    os.close(reader)
    assert pipe.is_fifo()
    at_exit.write_file("/dev/null", "report\n")
    assert Path("/dev/null").is_char_device()
    with (tmp_path / "out").open("w+") as file:
        file.write("program\n")
        file.flush()
        at_exit.write_file(f"/proc/self/fd/{file.fileno()}", "report\n")
        assert (tmp_path / "out").read_text() == "program\nreport\n"


def test_a_pipe_without_a_reader_is_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "__stderr__", sys.stderr)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    at_exit.write_file(str(pipe), "report\n")
    [line] = capfd.readouterr().err.splitlines()
    assert line == f"cpythonplus: cannot write '{pipe}': No such device or address"


ENDINGS = """\
import sys, threading
{program}
def ends():
    raise SystemExit(5)
thread = threading.Thread(target=ends)
thread.start()
thread.join()
{end}
"""


@pytest.mark.needs_gil
@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("sys.exit(7)", 7),
        ("1 / 0", 1),
        ("raise KeyboardInterrupt", -signal.SIGINT),
        ("import gc; gc.set_debug(0); gc.disable(); gc.set_threshold(0)", 0),
        ("sys.orig_argv = None", 0),
    ],
)
def test_the_ending_is_the_programs(tmp_path: Path, end: str, status: int) -> None:
    path = tmp_path / "program.py"
    path.write_text(ENDINGS.format(program=PROGRAM, end=end))
    plain = execute([PYTHON, str(path)])
    done = cycles(str(path))
    assert plain.status == done.status == status
    assert done.out == plain.out
    assert done.err.startswith(plain.err)
    assert "cpythonplus doctor cycles, pid" in done.err.removeprefix(plain.err)


CHILDREN = """\
import os, subprocess, sys
if os.fork() == 0:
    sys.exit()
os.wait()
subprocess.run([sys.executable, "-c", "print('child')"], check=True)
"""


@pytest.mark.needs_gil
@pytest.mark.parametrize(("options", "processes"), [([], 1), (["--children"], 3)])
def test_children(options: list[str], processes: int) -> None:
    done = cycles(*options, "-c", CHILDREN)
    assert done.out == "child\n"
    assert len(set(re.findall(r"doctor cycles, pid (\d+)", done.err))) == processes


@pytest.mark.needs_gil
def test_other_features_are_off_unless_asked_for() -> None:
    code = (
        "import os; print([x for x in os.environ['CPYTHONPLUS_RUN'].split(';') if x[-2:] == '=1'])"
    )
    assert (
        cycles("--children", "-c", code).out == "['children=1', 'cycles=1', 'cycles.children=1']\n"
    )
    found = cycles("--children", "--gil", "--threads", "-c", code).out
    assert found.startswith("['children=1', 'gil=1', 'threads=1', 'cycles=1'")


@pytest.mark.any_version
def test_wrong_input_is_one_line(tmp_path: Path) -> None:
    for words, told in (
        (["cycle"], "unknown examination 'cycle' (did you mean cycles?); see cpythonplus doctor"),
        (["--help me"], "unknown option '--help me'"),
        (["cycles"], "expected a script, -m MODULE"),
        (["cycles", "--top", "0", "x.py"], "--top: expected a number of 1 or more, got '0'"),
        (["cycles", "--top"], "--top: expected a value"),
        (["cycles", "--kinds", "x", "x.py"], "exception, closure, class, other, got 'x'"),
        (["cycles", "--output", "no/x", "x.py"], f"the folder '{tmp_path}/no' does not exist"),
        (
            ["cycles", "--format", "htm", "x.py"],
            "text or json or html, got 'htm' (did you mean html?)",
        ),
        (["cycles", "--policy", "spin_us=1", "x.py"], "see cpythonplus doctor cycles --help"),
        (["cycles", "none.py"], "the script 'none.py' does not exist"),
        (["cycles", "-S", "-c", ""], "nothing could be activated (omit -S)"),
    ):
        assert_refused(execute([*MODULE, "doctor", *words], cwd=tmp_path), told)


@pytest.mark.any_version
def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main([]) == 0
    assert "cycles" in capsys.readouterr().out
    assert doctor.main(["cycles", "--help"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 100
    feature = next(feature for feature in FEATURES if feature.name == "cycles")
    for option in feature.options:
        assert f"  {option.flag} " in text
