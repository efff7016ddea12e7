"""`cpythonplus-lint`: what it prints, and the status that it ends with."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cpythonplus_lint import running
from cpythonplus_lint.command import main

BAD = "def f():\n    e = ErrorOf()\n    raise e\n"
HIT = "CYC105 [*] `raise e` leaves `e` on its own traceback; `finally: del e`"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lint(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    status = main(arguments)
    captured = capsys.readouterr()
    return status, captured.out + captured.err


def test_statuses(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.py").write_text("x = 1\n")
    assert lint(capsys) == (0, "All checks passed!\n")
    (folder / "b.py").write_text(BAD)
    found = f"b.py:3:5: {HIT}\nFound 1 error.\n[*] 1 fixable with the `--fix` option.\n"
    assert lint(capsys) == lint(capsys, "a.py", "b.py") == (1, found)
    assert lint(capsys, "--exit-zero", ".") == (0, found)
    assert lint(capsys, "--exclude", "b.py")[0] == 0
    assert lint(capsys, "--ignore", "CYC105")[0] == lint(capsys, "--select", "cyc2,CYC4")[0] == 0
    assert lint(capsys, "--statistics") == (1, "1  CYC105  raised-from-local\n")


def test_a_file_that_does_not_parse_and_the_others(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.py").write_text("def f(:\n")
    (folder / "b.py").write_text(BAD)
    status, text = lint(capsys, "--exit-zero")
    assert status == 1
    first, second, *_ = text.splitlines()
    assert first.startswith("a.py:1:7: invalid-syntax: ")
    assert second.startswith("b.py:3:5: CYC105")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.py"], "none.py: no such file or folder"),
        (["--select", "E501"], "unknown rule 'E501'"),
        (["--explain", "CYC9"], "unknown rule 'CYC9'"),
        (["--format", "xml"], "invalid choice: 'xml'"),
        (["--jobs", "0"], "expected a whole number of 1 or more, got '0'"),
        (["--write-baseline"], "--write-baseline needs --baseline FILE"),
        (["--baseline", "none.json"], "cannot read 'none.json': No such file or directory"),
        (["--nothing"], "unrecognized arguments: --nothing"),
        (["-", "a.py"], "standard input cannot be combined with other paths"),
    ],
)
def test_wrong_usage_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert folder.exists()
    status, text = lint(capsys, *arguments)
    assert status == 2
    assert text.count("\n") == 1
    assert text.startswith("cpythonplus-lint: ")
    assert message in text


def test_fix(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "a.py"
    file.write_bytes(b"# coding: latin-1\n# \xe4\n" + BAD.encode())
    file.chmod(0o640)
    assert lint(capsys, "--fix") == (0, "Found 1 error (1 fixed, 0 remaining).\n")
    assert file.read_bytes().startswith(b"# coding: latin-1\n# \xe4\ndef f")
    assert file.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in folder.iterdir()] == ["a.py"]
    assert lint(capsys) == (0, "All checks passed!\n")


class Stdin:
    """Stands in for `sys.stdin`."""

    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)


@pytest.mark.parametrize("arguments", [["-"], ["--stdin-filename", "x.py"]])
def test_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Stdin(BAD.encode()))
    status, text = lint(capsys, *arguments)
    assert status == 1
    assert text.startswith(f"{arguments[-1]}:3:5: {HIT}\n")


def test_standard_input_fixed(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Stdin(BAD.encode()))
    assert main(["-", "--fix"]) == 0
    out, err = capsysbinary.readouterr()
    assert out == (
        b"def f():\n    e = ErrorOf()\n    try:\n        raise e\n    finally:\n        del e\n"
    )
    assert err == b"Found 1 error (1 fixed, 0 remaining).\n"


def test_formats(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.py").write_text(BAD)
    assert json.loads(lint(capsys, "--format", "json")[1])[0]["code"] == "CYC105"
    sarif = json.loads(lint(capsys, "--format", "sarif")[1])
    assert sarif["runs"][0]["results"][0]["ruleId"] == "CYC105"
    assert lint(capsys, "--format", "json", "--output", "found.json") == (1, "")
    assert json.loads((folder / "found.json").read_text())[0]["code"] == "CYC105"
    status, text = lint(capsys, "--output", "none/found")
    assert (status, text) == (
        2,
        "cpythonplus-lint: cannot write 'none/found': No such file or directory\n",
    )


def test_a_baseline(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.py").write_text(BAD)
    write = ("--baseline", "known.json", "--write-baseline")
    assert lint(capsys, *write) == (0, "Wrote 1 error to known.json.\n")
    assert lint(capsys, "--baseline", "known.json") == (
        0,
        "All checks passed!\n1 more is in the baseline known.json.\n",
    )
    (folder / "a.py").write_text(BAD.replace("f()", "g()"))
    status, text = lint(capsys, "--baseline", "known.json")
    assert status == 1
    assert text.splitlines()[0] == f"a.py:3:5: {HIT}"
    assert text.splitlines()[-2:] == [
        "1 baseline entry is gone; --write-baseline removes:",
        "  a.py: CYC105 f",
    ]
    (folder / "b.py").write_text("def f(:\n")
    status, text = lint(capsys, *write)
    assert status == 1
    assert text.splitlines()[0].startswith("b.py:1:7: invalid-syntax: ")
    assert text.splitlines()[-1] == "Wrote 1 error to known.json."
    status, text = lint(capsys, "--baseline", "known.json", "--exclude", "b.py", "--format", "json")
    assert (status, text) == (0, "[]\n1 more is in the baseline known.json.\n")


def test_from_a_checkout(folder: Path) -> None:
    (folder / "a.py").write_text(BAD)
    hook = Path(__file__).parents[1] / "hook.py"
    # -S: Python does not see what is installed.
    command = [sys.executable, "-S", str(hook)]
    done = subprocess.run([*command, "a.py"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines()[0] == f"a.py:3:5: {HIT}"
    wrong = subprocess.run([*command, "none.py"], capture_output=True, text=True, check=False)
    assert (wrong.returncode, wrong.stderr) == (
        2,
        "cpythonplus-lint: none.py: no such file or folder\n",
    )


def test_a_rule_explained(capsys: pytest.CaptureFixture[str]) -> None:
    status, text = lint(capsys, "--explain", "cyc203")
    assert status == 0
    assert text.startswith("CYC203 (class-in-function, off by default): ")


def test_a_process_that_is_killed_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(51):
        (folder / f"{number}.py").touch()
    monkeypatch.setattr(running, "check_file", lambda *_, **__: os._exit(9))
    status, text = lint(capsys, "--jobs", "2")
    assert (status, text) == (
        2,
        "cpythonplus-lint: a worker process was killed; --jobs 1 starts none\n",
    )
