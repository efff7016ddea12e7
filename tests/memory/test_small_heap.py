"""Tests that look at the whole heap again and again, or at some bytes a call: in a small heap."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Behind all the others each look takes seconds, and what they have left is freed meanwhile.
CASES = sorted(path.name for path in Path(__file__).parent.glob("*_cases.py"))


@pytest.mark.slow
@pytest.mark.parametrize("cases", CASES)
def test_in_a_small_heap(cases: str, pytestconfig: pytest.Config) -> None:
    root = pytestconfig.rootpath
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
    # Without a watchdog, which is a thread for each test: one that begins or ends while a look
    # forks holds a lock of the address sanitizer, for which the copy waits. One outside is enough.
    command += ["-o", "faulthandler_timeout=0"]
    command += [f"--rootdir={root}", str(Path(__file__).with_name(cases))]
    done = subprocess.run(
        command,
        cwd=root,
        env={**os.environ, "PYTEST_ADDOPTS": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    # The checks' last lines show the first line of a message.
    _, _, failures = done.stdout.partition(" FAILURES ")
    said = [line for line in failures.splitlines() if line.startswith(("E  ", "FAILED"))]
    assert done.returncode == 0, " ".join(said) + "\n" + done.stdout
    assert " passed" in done.stdout or " skipped" in done.stdout, done.stdout
