"""No thread of this package makes `os.fork()` warn of a process with several threads.

CPython counts the process's threads in the parent, behind fork(2), from 3.12 on.  What a program
has switched on goes on afterwards.
"""

import sys
from pathlib import Path

import pytest

from tests.support import SANITIZED, run_child

pytestmark = pytest.mark.skipif(sys.version_info < (3, 12), reason="3.11 does not warn")

PROGRAM = """
import os, signal, threading, time, warnings
from cpythonplus import _native, gil, tasklets
from cpythonplus.memory import allocators
from cpythonplus._doctor import agent as _agent

def until(condition, limit=200.0):
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            raise SystemExit("waited too long")
        time.sleep(0.001)

def fork():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0

def spin():
    while True:
        pass

{before}
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for i in range(20):
        {each}
        fork()
assert not seen, seen[0].message
{after}
"""

INTERRUPTED = """
tasklets.tasklet(spin)()
left = tasklets.run_for(0.001)
assert left is not None
left.kill()
"""
TRIMMED = """
before = _native.memory_trim_count()
blocks = [str(i).ljust(600) for i in range(50_000)]
last = "x" * 600
del blocks
until(lambda: sum(range(1000)) and _native.memory_trim_count() > before)
"""
FEATURES = {
    "nothing": ("", "", ""),
    "gil": ("", "gil.uninstall(); gil.install()", ""),
    "run_for": ("", "tasklets.tasklet(int)(); tasklets.run_for(60)", INTERRUPTED),
    "agent": ("_agent.start()", "", "until(_native.memory_agent_path)"),
    "stalls": (
        "from cpythonplus.gil._stall_watch import watch_stalls; gil.install(); watch_stalls()",
        "",
        "until(lambda: 'cpythonplus stalls' in [each.name for each in threading.enumerate()])",
    ),
    "deadlocks": (
        "from cpythonplus.threads._deadlock_watch import watch_deadlocks; watch_deadlocks(60)",
        "",
        "until(lambda: 'cpythonplus deadlocks' in [each.name for each in threading.enumerate()])",
    ),
    "dump_on": (
        "path = {path!r}; tasklets.dump_on(signal.SIGUSR1, open(path, 'w'))",
        "",
        "os.kill(os.getpid(), signal.SIGUSR1); until(lambda: os.path.getsize(path) > 0)",
    ),
    "trim": (
        "assert allocators.trim_regularly(0.01, 1 << 20)",
        "",
        TRIMMED,
    ),
}


@pytest.mark.needs_gil
@pytest.mark.parametrize("name", FEATURES)
def test_forks_do_not_warn(name: str, tmp_path: Path) -> None:
    if name == "trim" and SANITIZED:
        pytest.skip("malloc is the sanitizer's")
    before, each, after = FEATURES[name]
    before = before.format(path=str(tmp_path / "dump"))
    run_child(PROGRAM.format(before=before, each=each or "pass", after=after))


@pytest.mark.needs_gil
def test_a_fork_beside_a_dead_line() -> None:
    """It is kept: in the parent, and in the child."""
    run_child(
        PROGRAM.format(
            before="",
            each="tasklets.tasklet(fork)(); assert tasklets.run_for(60) is None",
            after="""
def fork_and_spin():
    global child
    child = os.fork()
    spin()
child = None
task = tasklets.tasklet(fork_and_spin)()
left = tasklets.run_for(0.01)
while child is None:  # on a busy machine the time may be over before the fork
    left.insert()
    left = tasklets.run_for(0.01)
assert left is task
left.kill()
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
""",
        )
    )
