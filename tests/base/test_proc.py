"""What /proc tells about other processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cpythonplus._base import proc

# Uses CPU time, starts one that does, and so on, and waits for the end of its standard input.
TREE = """
import subprocess, sys, time
depth = int(sys.argv[1])
while time.process_time() < 0.1:
    pass
if depth:
    child = subprocess.Popen([sys.executable, __file__, str(depth - 1)], stdin=sys.stdin)
else:
    print("ready", flush=True)
sys.stdin.read()
"""


def test_a_tree(tmp_path: Path) -> None:
    program = tmp_path / "a ) b.py"
    program.write_text(TREE)
    command = [sys.executable, str(program), "2"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        first.stdout.readline()
        found = list(proc.descendants(first.pid))
        assert len(found) == 2
        sums = [proc.memory_sums(pid)["Pss"] for pid in (first.pid, *found)]
        assert proc.tree_pss_bytes(first.pid) == pytest.approx(sum(sums), rel=0.2)
        assert min(sums) > 1 << 20
        assert proc.tree_cpu_s(first.pid) >= 0.2
        first.communicate(b"")


def test_a_process_that_has_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(ProcessLookupError, match="no running process"):
            proc.memory_sums(child.pid)
        assert proc.tree_pss_bytes(child.pid) == 0
        assert list(proc.descendants(child.pid)) == []
    assert proc.tree_cpu_s(child.pid) == 0
