"""What is said where the kernel refuses process_vm_readv, as a seccomp profile may have it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.prefork.serving import python_path
from tests.support import LOAD, PYMALLOC, SANITIZED, child_environment, run_child

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
WHY = "process_vm_readv and pipe2 are refused here"


def said(*words: str) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", CODE, *words],
        check=True,
        capture_output=True,
        text=True,
        env=child_environment({**PYMALLOC, "PYTHONPATH": python_path(ROOT)}),
        timeout=LOAD * 60,
    )
    lines = [line.partition(" ") for line in done.stdout.splitlines()]
    return {name: rest for name, _, rest in lines}


@pytest.mark.parametrize("error", ["EPERM", "ENOSYS", "EACCES"])
def test_it_is_read_another_way(error: str) -> None:
    found = said(error, *CALLS)
    assert found == said()
    assert found["arenas"] == "told apart"


def test_with_both_ways_refused_that_is_the_reason() -> None:
    program = """
        import errno
        from cpythonplus import UnsupportedPlatform, memory
        from tests import confined
        confined.refuse(["process_vm_readv", "pipe2"], errno.EPERM)
        print(memory.resident().arenas.unknown)
        try:
            memory.census()
        except UnsupportedPlatform as error:
            print(error)
        print(*[step.note for step in memory.trim().steps if "skipped" in step.note])
        """
    environment = {**PYMALLOC, "PYTHONPATH": python_path(ROOT)}
    lines = run_child(program, env=environment).out.splitlines()
    assert len(lines) == 3
    assert all(WHY in line for line in lines)
