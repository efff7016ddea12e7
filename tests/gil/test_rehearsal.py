"""The installation is tried out in a child, so that a single-threaded process stays one."""

import ctypes

import pytest

from tests.gil.load import run

pytestmark = pytest.mark.needs_gil

try:
    ctypes.c_char.in_dll(ctypes.CDLL(None), "__libc_single_threaded")
except ValueError:
    pytest.skip("this libc does not say whether it is single-threaded", allow_module_level=True)

SINGLE = """
import ctypes, signal

def single():
    return ctypes.c_char.in_dll(ctypes.CDLL(None), "__libc_single_threaded").value == b"\\x01"
"""


def test_the_process_stays_single_threaded() -> None:
    run(
        SINGLE
        + """
assert single()
gil.install()
assert single() and gil.active()
assert len(os.listdir("/proc/self/task")) == 1
os.stat("/")
with Load(cpu=2, io=2) as load:
    load.progress()
    until(lambda: gil.statistics().immediate_requests > 0)
assert not single()
gil.uninstall()
gil.install()
assert gil.active()
""",
        before="",
    )


def test_the_program_sees_no_child() -> None:
    run(
        SINGLE
        + """
seen = []
signal.signal(signal.SIGCHLD, lambda *_: seen.append(1))
mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
descriptors = set(os.listdir("/proc/self/fd"))
gil.install()
assert single()
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    pass
else:
    raise SystemExit("a child is left")
assert not seen
assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == mask
assert set(os.listdir("/proc/self/fd")) == descriptors
if os.fork() == 0:
    os._exit(0)
os.wait()
assert seen == [1], "a SIGCHLD of the program's own was lost"
""",
        before="",
    )


def test_ignored_children_do_not_disturb_it() -> None:
    run(
        SINGLE
        + """
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
assert gil.install() and gil.active() and single()
""",
        before="",
    )


def test_no_process_to_be_had_falls_back_to_a_thread() -> None:
    run(
        SINGLE
        + """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))), 512))
assert gil.install() and gil.active()
assert not single()
""",
        before="",
    )
