"""Files that the command line reads, damaged in every way: one line names the file, no traceback.

`tests/damage.py` damages the contents. Names that lead to no file are tried in a child process
whose memory is limited, as reading /dev/zero takes all.
"""

import contextlib
import io
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from cpythonplus._cli.features import Run
from cpythonplus._cli.main import main
from cpythonplus._doctor.agent.decoding import NoAnswerError, decoded
from cpythonplus.memory._no_cycles.causes import read_baseline
from cpythonplus.memory._owners.spelling import place_of
from cpythonplus_lint import Baseline, Selection, check_files
from tests.damage import damaged, of_other_types
from tests.support import SANITIZED, run_child

pytestmark = pytest.mark.any_version

SOURCE = "def f():\n    e = ErrorOf('\u00e4')\n    raise e\n"
OWNER = {
    "name": "app.KEPT",
    "type": "list",
    "kept_bytes": 2048,
    "amount_bytes": 4096,
    "objects": 20,
    "entries": 7,
    "places": [{"file": "app.py", "line": 3, "function": ""}],
}
REPORT: dict[str, Any] = {
    "target": {
        "pid": 7,
        "started_s": 1.5,
        "when": "2026-11-21 22:40:05+0000",
        "rss_bytes": 1 << 20,
    },
    "owners": {
        "objects": 50,
        "size_bytes": 9000,
        "c_heap_bytes": 10.5,
        "collects": True,
        "frozen_objects": 0,
        "owners": [OWNER],
        "classes": [{"type": "app.Node", "objects": 5, "size_bytes": 600}],
    },
}
BEFORE = {**REPORT, "owners": {**REPORT["owners"], "owners": []}}
KNOWN = "# known\nclosure app:f:g\nexception app.py:f:e\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file of each kind, all of them right."""
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text(SOURCE)
    Path("before.json").write_text(json.dumps(BEFORE))
    Path("after.json").write_text(json.dumps(REPORT, indent=1))
    results = list(check_files(["a.py"], Selection()))
    known = Baseline("known.json").updated(results, Selection().codes())
    Path("known.json").write_text(known.text())
    return tmp_path


def told(*words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(list(words))
    return status, out.getvalue(), err.getvalue()


def assert_answered(file: str, *words: str, statuses: Iterable[int] = (0, 1)) -> int:
    """Assert that a command gives a report, or one line that names the file and status 2."""
    before = Path(file).read_bytes()
    status, out, err = told(*words)
    assert Path(file).read_bytes() == before
    if status == 2:
        assert (out, err.count("\n")) == ("", 1), (before, err)
        assert file in err
        assert len(err) < 300
    else:
        assert status in statuses
        assert err == "", before
        assert out
        assert "internal error" not in out, (before, out)
    return status


# ---- contents -----------------------------------------------------------------------------------


def test_contents_that_are_right(folder: Path) -> None:
    """Else nothing below would tell anything."""
    assert folder.exists()
    assert told("lint", "a.py")[0] == 1
    assert told("lint", "a.py", "--baseline", "known.json")[0] == 0
    status, out, _ = told("doctor", "growth", "before.json", "after.json")
    assert status == 0
    assert "app.KEPT" in out
    assert len(read_baseline(_written("known.txt", KNOWN.encode()))) == 2


def _written(name: str, data: bytes) -> Path:
    Path(name).write_bytes(data)
    return Path(name)


def test_sources(folder: Path) -> None:
    for data in damaged((folder / "a.py").read_bytes()):
        _written("b.py", data)
        status, out, err = told("lint", "b.py")
        assert status in (0, 1)
        assert err == ""
        assert out.startswith("b.py:" if status else "All checks passed!")
        assert "internal error" not in out, (data, out)


def test_baselines_of_lint(folder: Path) -> None:
    right = (folder / "known.json").read_bytes()
    refused = 0
    for data in [*damaged(right), *of_other_types(json.loads(right))]:
        _written("b.json", data)
        refused += assert_answered("b.json", "lint", "a.py", "--baseline", "b.json") == 2
    assert refused > len(right)


def test_a_damaged_baseline_is_not_written_over(folder: Path) -> None:
    right = (folder / "known.json").read_bytes()
    for data in (b"", right[:-2], right.replace(b'"version": 1', b'"version": 2')):
        _written("b.json", data)
        words = ("lint", "a.py", "--baseline", "b.json", "--write-baseline")
        assert assert_answered("b.json", *words) == 2


def test_saved_reports(folder: Path) -> None:
    right = (folder / "after.json").read_bytes()
    for number, data in enumerate([*damaged(right), *of_other_types(REPORT)]):
        _written("b.json", data)
        kind = ("text", "json", "html")[number % 3]
        words = [("before.json", "b.json"), ("b.json", "after.json")][number % 2]
        out = ("--format", kind, "--output", "out")
        status, shown, err = told("doctor", "growth", *words, *out)
        assert (folder / "b.json").read_bytes() == data
        assert status in (0, 2)
        assert shown == ""
        assert err.count("\n") == (status == 2), (data, err)
        assert ("b.json" in err) == (status == 2)
        assert len(err) < 300
        if status == 0 and kind == "json":
            json.loads((folder / "out").read_text(), parse_constant=pytest.fail)


def test_baselines_of_pytest(tmp_path: Path) -> None:
    path = tmp_path / "known.txt"
    for data in damaged(KNOWN.encode()):
        path.write_bytes(data)
        with contextlib.suppress(ValueError):
            read_baseline(path)
    path.write_bytes(b"\xff")
    with pytest.raises(ValueError, match=r"the baseline .*known\.txt cannot be read: "):
        read_baseline(path)


def test_answers_of_a_process() -> None:
    right = json.dumps(REPORT).encode()
    for data in [*damaged(right), *of_other_types(REPORT)]:
        with contextlib.suppress(NoAnswerError):
            json.dumps(decoded(data), indent=1, allow_nan=False)


def test_a_source_of_one_long_line(tmp_path: Path) -> None:
    """The work of searching it grew with the square: hours for this one."""
    path = tmp_path / "table.py"
    path.write_text("x: " * 1_000_000)
    assert place_of([("variable", ("x", "f", str(path), 7), "list")]).line == 7


def test_the_variable_that_carries_the_features() -> None:
    run = Run("/home/%;=", "cpython-313", 7, {"gil": {"policy": "fair"}}, children=True)
    for data in damaged(run.encode().encode()):
        with contextlib.suppress(ValueError):
            Run.decode(data.decode("utf-8", "surrogateescape"))


# ---- what a name leads to -----------------------------------------------------------------------

SPECIAL = """
import contextlib, io, json, os, resource, sys
from pathlib import Path
from cpythonplus._cli.main import main
from cpythonplus.memory import allocators
from cpythonplus_lint.running import check_file
from cpythonplus.memory._no_cycles.causes import read_baseline
from cpythonplus.memory._owners.spelling import _lines

os.chdir(sys.argv[1])
if sys.argv[2] == "limited":
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
COMMANDS = {
    "lint FILE": 1,
    "lint FILE --format json": 1,
    "lint FILE --format sarif": 1,
    "lint a.py --baseline FILE": 2,
    "lint a.py --baseline FILE --write-baseline": 2,
    "doctor growth FILE after.json": 2,
    "doctor growth before.json FILE": 2,
    "doctor growth FILE FILE --format json": 2,
    "run --malloc ./FILE -c pass": 2,
    "compare -- ./FILE": 2,
}
SHOWN = {"new\\nline.json": "new\\\\nline.json", "sur\\udcffrogate.json": "sur\\\\udcffrogate.json"}

def told(command, name):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([word.replace("FILE", name) for word in command.split(" ")])
    return status, out.getvalue(), err.getvalue()

def state(name):
    found = os.lstat(name)
    return found.st_mode, found.st_ino, found.st_size, found.st_mtime_ns

def tried(name):
    before = state(name)
    for command, wanted in COMMANDS.items():
        if name == "folder.json" and command.startswith("lint FILE"):
            continue  # it is gone into
        status, out, err = told(command, name)
        if "--format" in command and wanted == 1:
            assert (status, len(json.loads(out)) > 0, err) == (1, True, ""), (command, name, out)
            continue
        text = out if wanted == 1 else err
        about = (command, name, status, out, err)
        assert status == wanted, about
        assert text.count("\\n") == wanted % 2 + 1 and "Traceback" not in text, about
        assert SHOWN.get(name, name) in text and "internal" not in text, about
        assert (err if wanted == 1 else out) == "", about
    try:
        read_baseline(Path(name))
    except ValueError as error:
        assert SHOWN.get(name, name) in str(error), error
    else:
        raise AssertionError(name)
    assert len(_lines(name)) < 2
    assert state(name) == before

for command in ("lint a.py --baseline known.json", "doctor growth before.json after.json"):
    assert told(command, "")[0] < 2  # all is imported
os.mkfifo("fifo.json", 0o777)
os.mkdir("folder.json")
os.symlink("loop.json", "loop.json")
os.symlink("/dev/zero", "zero.json")
os.symlink("/dev/null", "null.json")
for name in ("long.json", "new\\nline.json", "sur\\udcffrogate.json", "closed.json"):
    Path(name).write_bytes(b"")
    os.chmod(name, 0o755)
os.truncate("long.json", 1 << 40)
for name in ("new\\nline.json", "sur\\udcffrogate.json"):
    Path(name).write_bytes(b"\\xff{")
os.chmod("closed.json", 0o311)
for name in ("fifo", "folder", "loop", "zero", "null", "long"):
    tried(name + ".json")
for name in SHOWN:
    tried(name)
user = os.geteuid()
os.seteuid(user or 65534)
tried("closed.json")
os.seteuid(user)
"""


def test_what_is_no_file(folder: Path) -> None:
    folder.chmod(0o755)
    limited = "unlimited" if SANITIZED else "limited"
    run_child(SPECIAL, args=[str(folder), limited], timeout=60)


@pytest.mark.parametrize("file", ["/dev/full", "fifo", "folder", "loop", "none/out"])
def test_where_no_report_can_be_written(folder: Path, file: str) -> None:
    os.mkfifo(folder / "fifo")
    (folder / "folder").mkdir()
    (folder / "loop").symlink_to("loop")
    for words in (["lint", "a.py"], ["doctor", "growth", "before.json", "after.json"]):
        status, out, err = told(*words, "--output", file)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert Path(file).parts[0] in err
    words = ["lint", "a.py", "--baseline", file, "--write-baseline"]
    if file != "loop":
        status, out, err = told(*words)
        assert (status, out, err.count("\n")) == (2, "", 1)


def test_a_pipe_that_is_written_to_is_read(folder: Path) -> None:
    """As a shell has it: `cpythonplus lint <(generate)`."""
    there, here = os.pipe()
    os.write(here, (folder / "a.py").read_bytes())
    os.close(here)
    status, out, _ = told("lint", f"/dev/fd/{there}")
    os.close(there)
    assert status == 1
    assert "CYC105" in out
