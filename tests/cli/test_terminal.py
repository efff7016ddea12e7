"""What a program named its files and threads reaches a terminal as text, and as nothing else."""

import json
from pathlib import Path

import pytest

from cpythonplus._cli.main import main
from tests.cli.support import MODULE, PYTHON, execute, run

NAME = "\x1b]0;title\x07\x9b2J\r\u202e"
SHOWN = "\\x1b]0;title\\x07\\x9b2J\\r\\u202e"
CYCLE = """\
def fetch():
    try:
        int("x")
    except ValueError as error:
        last = error
for _ in range(3):
    fetch()
"""


def is_plain(text: str) -> bool:
    return text.replace("\n", "").isprintable()


@pytest.mark.any_version
@pytest.mark.parametrize(
    "source", ["def f():\n    e = ErrorOf()\n    raise e\n", "def f(:\n", "\0"]
)
def test_lint(
    source: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    name = f"{NAME}.py"
    Path(name).write_text(source)
    assert main(["lint"]) == 1
    text = capsys.readouterr().out
    assert text.startswith(f"{SHOWN}.py:")
    assert is_plain(text)
    # For a program it stays what it is.
    assert main(["lint", "--format", "json"]) == 1
    text = capsys.readouterr().out
    assert Path(json.loads(text)[0]["filename"]).name == name
    assert is_plain(text)
    for words in (["none" + NAME], ["--select", NAME], [f"--{NAME}"]):
        assert main(["lint", *words]) == 2
        err = capsys.readouterr().err
        assert "title" in err.lower()
        assert is_plain(err)
        assert err.count("\n") == 1


@pytest.mark.any_version
def test_lines_of_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (
        ["x" + NAME],
        ["doctor", NAME],
        ["run", f"--{NAME}"],
    ):
        assert main(words) == 2
        told = "".join(capsys.readouterr())
        assert "title" in told.lower()
        assert is_plain(told)


def test_a_program_that_is_missing(tmp_path: Path) -> None:
    done = execute([*MODULE, "run", NAME], cwd=tmp_path)  # python's own line
    assert done.status == 2
    assert "title" in done.err
    assert is_plain(done.err)


def test_reports_at_exit(tmp_path: Path) -> None:
    name = f"{NAME}.py"
    (tmp_path / name).write_text(CYCLE)
    for command in ("cycles", "run"):
        done = execute([*MODULE, "doctor", command, name], cwd=tmp_path)
        assert done.status == 0
        assert f"{SHOWN}.py" in done.err, done.err
        assert is_plain(done.err)
        words = ["--format", "json", "--output", "found.json"]
        assert execute([*MODULE, "doctor", command, *words, name], cwd=tmp_path).status == 0
        assert json.loads((tmp_path / "found.json").read_text())["argv"] == [PYTHON, name]


def test_names_of_threads(tmp_path: Path) -> None:
    code = f"""\
import threading
ready, done = threading.Event(), threading.Event()
def wait():
    ready.set()
    done.wait()
thread = threading.Thread(target=wait, name={NAME!r}, daemon=True)
thread.start()
ready.wait()
try:
    from cpythonplus import tasklets
except Exception:
    print("Thread {SHOWN.replace(chr(92), chr(92) * 2)} ")
else:
    import sys
    tasklets.dump(sys.stdout)
"""
    program = tmp_path / "program.py"
    program.write_text(code)
    done = run("--stats", str(program))
    assert done.status == 0, done.err
    assert f"Thread {SHOWN} " in done.out
    assert is_plain(done.out)
    assert SHOWN in done.err
    assert is_plain(done.err)
