"""memory.in_subprocess: what comes back from the child, and that nothing of it stays."""

import json

import pytest

from tests.leaks import MEASURE
from tests.support import SANITIZED, run_child

PROGRAM = """
import array, ctypes, multiprocessing, os, pickle, signal, sys, threading
from cpythonplus.memory import in_subprocess
from cpythonplus.memory._subprocesses import ChildEndedError

FORK = {"context": "fork"}
MIB = 1024 * 1024


class Array:
    # What numpy does: the contents go beside the pickle.
    def __init__(self, contents):
        self.contents = memoryview(contents)

    def __reduce_ex__(self, protocol):
        return Array, (pickle.PickleBuffer(self.contents),)


class Unreadable(Exception):
    def __init__(self, one, two):
        super().__init__(one)


def files():
    return sorted(os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")[:-1])


def mapped():
    with open("/proc/self/maps") as maps:
        return sum("cpythonplus-result" in line for line in maps)


def private_kib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))


def raises(kind, *args, **kwargs):
    try:
        in_subprocess(*args, **FORK, **kwargs)
    except kind as error:
        return error
    raise AssertionError(f"no {kind}")


def failing():
    secret_line = {}
    return secret_line["missing"]


def unreadable():
    raise Unreadable(1, 2)


def hungry():
    return len([object() for _ in range(MIB)])


def busy():
    signal.pause()


def segfault():
    ctypes.string_at(1)


def killed():
    os.kill(os.getpid(), signal.SIGKILL)


def interrupting():
    os.kill(os.getppid(), signal.SIGINT)
    signal.pause()


def grandchild():
    # It keeps open what it inherits, but for what the test itself reads to its end.
    if os.fork() == 0:
        os.close(1)
        os.close(2)
        signal.alarm(50)
        signal.pause()
    return "done"
"""


def program(body: str, *, timeout: float = 60) -> str:
    return run_child(f"SANITIZED = {SANITIZED}\n{PROGRAM}{body}", timeout=timeout).out


def test_results_come_back() -> None:
    program(
        """
before = files()
given = in_subprocess(lambda *args, **kw: (args, kw), (1, [2]), {"c": 3}, **FORK)
assert given == ((1, [2]), {"c": 3})
assert in_subprocess(os.getpid, **FORK) != os.getpid()
assert in_subprocess(lambda: None, context=multiprocessing.get_context("fork"), timeout=60) is None
big = in_subprocess(lambda: b"x" * MIB + b"y", **FORK)
assert big == b"x" * MIB + b"y"
assert mapped() == 0, "only buffers need the mapping"

given = in_subprocess(lambda: {"a": Array(bytearray(b"ab" * MIB)), "b": Array(b"z")}, **FORK)
assert given["a"].contents == b"ab" * MIB and given["b"].contents == b"z"
assert not given["a"].contents.readonly and given["b"].contents.readonly
given["a"].contents[0] = 7
assert mapped() == 1
del given
assert mapped() == 0, "gone with the last object"

for made in (array.array("d", [1.5, 2.5]), array.array("i", range(100)), bytes(5)):
    view = in_subprocess(lambda: memoryview(made), **FORK)
    assert view == memoryview(made) and view.format == memoryview(made).format
table = in_subprocess(lambda: memoryview(bytes(range(12))).cast("B", (3, 4)), **FORK)
assert table.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
assert in_subprocess(lambda: memoryview(bytes(range(9)))[::2], **FORK).tolist() == [0, 2, 4, 6, 8]
assert in_subprocess(lambda: bytearray(b"grows"), **FORK) + b"!" == b"grows!"
del view, table
assert files() == before and mapped() == 0
assert multiprocessing.active_children() == []
"""
    )


def test_what_goes_wrong_is_told() -> None:
    program(
        """
before = files()
error = raises(KeyError, failing)
assert error.args == ("missing",), error
assert 'return secret_line["missing"]' in str(error.__cause__), error.__cause__
error = raises(ChildEndedError, unreadable)
assert "Unreadable: 1" in str(error) and "unreadable" in str(error.__cause__), error
error = raises(Exception, lambda: threading.Lock())
assert "cannot pickle" in str(error), error
error = raises(ChildEndedError, sys.exit, (3,))
assert error.status == 3 and "status 3" in str(error), error
error = raises(ChildEndedError, os._exit, (0,))
assert error.status == 0 and "without a result" in str(error), error
assert pickle.loads(pickle.dumps(error)).status == 0
error = raises(ChildEndedError, killed)
assert error.status == -9 and "SIGKILL" in str(error) and "memory" in str(error), error
error = raises(ChildEndedError, segfault)
assert SANITIZED or "SIGSEGV" in str(error), error  # a sanitizer makes an exit of it
error = raises(TimeoutError, busy, timeout=0.01)
assert "0.01 s" in str(error), error
assert files() == before and multiprocessing.active_children() == [] and mapped() == 0
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    pass
else:
    raise AssertionError("a child is left")
"""
    )


def test_times_that_poll_does_not_take() -> None:
    program(
        """
for timeout in (float("inf"), 1e15):
    assert in_subprocess(int, timeout=timeout, **FORK) == 0
from cpythonplus.memory import _subprocesses as subprocesses
subprocesses._LONGEST_POLL_MS = 1
assert in_subprocess(bytes, (5,), timeout=60, **FORK) == bytes(5)
raises(TimeoutError, busy, timeout=0.01)
"""
    )


def test_children_that_somebody_else_waits_for() -> None:
    program(
        """
before = files()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
from cpythonplus.memory import _subprocesses as subprocesses
subprocesses._STATUS_S = 1e9  # nobody waits for a status that is not needed
for _ in range(3):
    assert in_subprocess(bytes, (5,), **FORK) == bytes(5)
subprocesses._STATUS_S = 0.01
error = raises(ChildEndedError, killed)
assert error.status is None and "taken by another" in str(error), error
assert files() == before and multiprocessing.active_children() == []
"""
    )


def test_an_interrupt_ends_the_child() -> None:
    program(
        """
raises(KeyboardInterrupt, interrupting)
assert multiprocessing.active_children() == []
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    pass
else:
    raise AssertionError("the child is left")
"""
    )


def test_the_memory_stays_in_the_child() -> None:
    program(
        """
in_subprocess(int, **FORK)
before = private_kib()
assert in_subprocess(hungry, **FORK) == MIB
grown = private_kib() - before
assert grown < 8 * 1024, f"{grown} KiB of some 24 MiB"
"""
    )


def test_many_at_once_do_not_wait_for_each_other() -> None:
    # No child is waited for by a pipe that others keep open: that would take a grace period.
    program(
        """
from cpythonplus.memory import _subprocesses as subprocesses
subprocesses._GRACE_S = 1000
assert in_subprocess(grandchild, **FORK) == "done"
results = []
threads = [
    threading.Thread(target=lambda i=i: results.append(in_subprocess(divmod, (i, 3), **FORK)))
    for i in range(6)
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert sorted(results) == sorted(divmod(i, 3) for i in range(6)), results
""",
        timeout=40,
    )


@pytest.mark.slow
def test_other_ways_to_start_a_child() -> None:
    program(
        """
import math
if __name__ == "__main__":
    assert in_subprocess(math.factorial, (5,), context="spawn") == 120
    try:
        in_subprocess(lambda: 5, context="spawn")
    except (AttributeError, pickle.PicklingError):
        pass
    else:
        raise AssertionError("a lambda cannot be sent")
    assert multiprocessing.active_children() == []
"""
    )


@pytest.mark.slow
@pytest.mark.skipif(SANITIZED, reason="the sanitizer's allocator does not count like this")
def test_no_leak() -> None:
    calls = {
        "returned": "assert in_subprocess(divmod, (7, 3), **FORK) == (2, 1)",
        "raised": "raises(KeyError, failing)",
        "view": "assert in_subprocess(lambda: memoryview(bytes(9)), **FORK).nbytes == 9",
    }
    body = f"""
import gc, json
result = {{}}
gc.disable()
for name, line in {calls!r}.items():
    found = files()
    leak = leaks(line, {{**globals()}}, 8)
    if leak or files() != found:
        result[name] = leak
print(json.dumps(result))
"""
    assert json.loads(program(MEASURE + body)) == {}, "calls, blocks, bytes of each"


def test_a_status_that_somebody_else_took() -> None:
    program(
        """
from cpythonplus.memory import _subprocesses as subprocesses
subprocesses._STATUS_S = 0.01
signal.signal(signal.SIGCHLD, lambda *_: os.waitpid(-1, os.WNOHANG))  # as servers do
poll = subprocesses._poll
def poll_and_lose(*args):
    found = poll(*args)
    try:
        os.waitpid(-1, 0)
    except ChildProcessError:
        pass
    return found
subprocesses._poll = poll_and_lose
assert in_subprocess(divmod, (7, 3), **FORK) == (2, 1)
error = raises(ChildEndedError, os._exit, (3,))
assert error.status is None and "taken by another" in str(error), error
"""
    )
