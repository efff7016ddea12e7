"""The kernel's slice of threads that compute: made long, inherited by nobody, given back."""

import platform

import pytest

from tests.gil.load import run

SLICES = """
import ctypes, struct

LONG_NS = 10_000_000
libc = ctypes.PyDLL(None, use_errno=True)
number = {"x86_64": 315, "aarch64": 275}[os.uname().machine]

def slice_ns(thread=0):
    found = ctypes.create_string_buffer(48)
    assert libc.syscall(number, thread, found, 48, 0) == 0, ctypes.get_errno()
    return struct.unpack_from("=24xQ", found)[0]
"""


def kernel() -> tuple[int, ...]:
    return tuple(map(int, platform.release().split("-")[0].split(".")[:2]))


pytestmark = [
    pytest.mark.needs_gil,
    pytest.mark.skipif(kernel() < (6, 12), reason="the kernel has no slices of a thread's own"),
]


def test_only_who_computes_has_a_long_slice() -> None:
    run(
        SLICES
        + """
usual = slice_ns()
assert usual != LONG_NS
gil.install()
seen = []

def job():
    until_long()
    child = threading.Thread(target=lambda: (time.sleep(0.01), seen.append(slice_ns())))
    child.start()
    child.join()

def until_long():
    while slice_ns() != LONG_NS:
        pass

with Load(cpu=2, io=1) as load:
    threads = load.threads
    until(lambda: [slice_ns(t.native_id) for t in threads] == [LONG_NS, LONG_NS, usual])
    # Another one inherits nothing of it.
    worker = threading.Thread(target=job)
    worker.start()
    worker.join()
    assert seen == [usual], seen
    gil.uninstall()
    assert [slice_ns(t.native_id) for t in threads] == [usual] * 3
""",
        before="",
    )


def test_who_has_a_class_of_its_own_is_left_alone() -> None:
    run(
        SLICES
        + """
gil.install()
os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
usual = slice_ns()
with Load(cpu=1) as load:
    end = time.thread_time() + 0.7
    while time.thread_time() < end:
        pass
    assert slice_ns(load.threads[0].native_id) != LONG_NS  # it inherits the class
    assert (os.sched_getscheduler(0), slice_ns()) == (os.SCHED_BATCH, usual)
""",
        before="",
    )
