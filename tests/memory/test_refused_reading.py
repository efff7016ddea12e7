"""What is said where the kernel refuses process_vm_readv, as a seccomp profile may have it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import confined
from tests.prefork.serving import python_path
from tests.support import PYMALLOC, SANITIZED, child_environment

pytestmark = [
    pytest.mark.needs_gil,
    pytest.mark.any_version,
    pytest.mark.skipif(SANITIZED, reason="objects do not come from pymalloc there"),
]

ROOT = Path(__file__).resolve().parent.parent.parent
CALLS = ("process_vm_readv", "process_vm_writev", "ptrace", "perf_event_open")
CODE = """
import errno, sys
from cpythonplus import memory, prefork
from tests import confined
if sys.argv[1:]:
    confined.refuse(sys.argv[2:], getattr(errno, sys.argv[1]))
resident = memory.resident()
print("arenas", resident.arenas.unknown or "told apart")
print("notes", *resident.notes)
print("census", memory.census().left_out)
print("sharing", *memory.key_sharing().left_out)
print("trim", *[step.note for step in memory.trim().steps if "skipped" in step.note])
print("filled", prefork.prepare().filled_bytes > 0)
"""
WHY = "process_vm_readv and /proc/thread-self/mem are refused here"


def said(*words: str) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", CODE, *words],
        check=True,
        capture_output=True,
        text=True,
        env=child_environment({**PYMALLOC, "PYTHONPATH": python_path(ROOT)}),
        timeout=60,
    )
    lines = [line.partition(" ") for line in done.stdout.splitlines()]
    return {name: rest for name, _, rest in lines}


@pytest.mark.parametrize("error", ["EPERM", "ENOSYS", "EACCES"])
def test_it_is_read_another_way(error: str) -> None:
    found = said(error, *CALLS)
    assert found == said()
    assert found["arenas"] == "told apart"


def test_with_both_ways_refused_that_is_the_reason() -> None:
    found = said("EPERM", *CALLS, "pread64")
    assert found["arenas"] == WHY
    assert found["notes"].startswith(f"Python's arenas are not split up: {WHY}.")
    assert found["trim"] == f"skipped: {WHY}"
    assert WHY in found["sharing"]
    assert "pymalloc" not in str(found)


def test_the_doctor_examines_a_confined_process(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import sys\nprint('ready', flush=True)\nsys.stdin.read()\n")
    words = [sys.executable, "-m", "cpythonplus", "run", str(program)]
    with subprocess.Popen(
        confined.command(CALLS, "EPERM", words),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=child_environment({**PYMALLOC, "PYTHONPATH": python_path(ROOT)}),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        done = subprocess.run(
            [sys.executable, "-m", "cpythonplus", "doctor", str(process.pid)],
            check=False,
            capture_output=True,
            text=True,
            env=child_environment(),
            timeout=60,
        )
        process.communicate()
    assert done.returncode == 0, done
    assert "live Python objects" in done.stdout
    assert "refused" not in done.stdout
    assert "pymalloc here" not in done.stdout
