"""`python -m benchmarks malloc`: a script under several allocators."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.command import main
from benchmarks.memory.malloc import command, comparing
from benchmarks.memory.malloc.comparing import Comparison, Round
from cpythonplus.memory import allocators
from tests.support import SANITIZED

SCRIPT = """
import atexit, sys, __main__
assert __main__.__file__ == sys.argv[0] == __file__, sys.argv
assert __name__ == "__main__" and sys.argv[1:] == ["--size", "5"], sys.argv
import beside
kept = bytes(8 << 20)
atexit.register(lambda: kept.count(b"x"))
print("not shown")
"""


@pytest.mark.needs_gil
@pytest.mark.any_version
@pytest.mark.skipif(SANITIZED, reason="malloc is the sanitizer's")
def test_a_script_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allocators, "_folders", lambda: iter(()))
    script = tmp_path / "program.py"
    script.write_text(SCRIPT)
    (tmp_path / "beside.py").touch()
    result = tmp_path / "result.json"
    options = ["--rounds", "1", "--idle", "0.1", "--json", str(result)]
    only = ["--only", "stock,jemalloc,glibc-tuned"]
    assert main(["malloc", *options, *only, str(script), "--size", "5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split("  ")[0] == "allocator"
    assert lines[0].endswith("  0.1 s later")
    assert [line.split()[0] for line in lines[1:]] == ["stock", "jemalloc", "glibc-tuned"]
    assert "jemalloc is not installed (Debian" in lines[2]
    found = json.loads(result.read_text())
    for side in ("stock", "glibc-tuned"):
        (once,) = found["rounds"][side]
        assert once["peak_bytes"] >= once["end_bytes"] - (1 << 20)
        assert once["end_bytes"] > 8 << 20, "what the globals hold is still there"


@pytest.mark.any_version
def test_a_script_that_fails(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("1 / 0\n")
    found = comparing.compare([str(script)], sides=["stock"], rounds=2, idle_s=0)
    assert found.rounds == {"stock": []}
    assert "ZeroDivisionError" in found.notes["stock"]
    script.write_text("import os; os._exit(0)\n")
    found = comparing.compare([str(script)], sides=["stock"], rounds=1, idle_s=0)
    assert "without its last words" in found.notes["stock"]


@pytest.mark.any_version
def test_the_table() -> None:
    mib = 1 << 20
    rounds = [Round(s, 9 * mib, 8 * mib, (3 - s) * mib) for s in (1, 3, 2)]
    found = Comparison("x.py", 5.0, {"stock": rounds, "jemalloc": []}, {"jemalloc": "why not"})
    assert command.table(found) == (
        "allocator    time  at most  at the end  5 s later\n"
        "stock      2.00 s    9 MiB       8 MiB      1 MiB\n"
        "jemalloc   why not\n"
    )


@pytest.mark.any_version
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "the following arguments are required: SCRIPT"),
        (["none.py"], "malloc: the script 'none.py' does not exist"),
        (
            ["--only", "stock,tcmalloc", __file__],
            "there is no side 'tcmalloc'; sides are stock, jemalloc",
        ),
        (["--idle", "nan", __file__], "'nan' is not a number of seconds"),
        (["--rounds", "0", __file__], "'0' is not a number from 1 on"),
        (["--json", "/nowhere/x", __file__], "there is no folder /nowhere"),
    ],
)
def test_wrong_use(words: list[str], message: str, refusal: Callable[..., str]) -> None:
    assert message in refusal("malloc", *words)
