"""Nothing stays behind, whatever is called how often; but for what `prepare` makes immortal."""

import json

import pytest

from cpythonplus import prefork
from tests.leaks import MEASURE
from tests.support import SANITIZED, run_child

CALLS = {
    "prepare refused": "refused(KeyError, lambda: prefork.prepare(fail))",
    "prepare frozen": "prefork.prepare(immortal=False, fill_pools=False); gc.unfreeze()",
    "has_grown": "prefork.has_grown()",
    "Budget": "prefork.Budget(5).spent; refused(ValueError, prefork.Budget, -1)",
    "statistics": "prefork.statistics()",
    "PrepareReport": "str(prefork.PrepareReport(True, 1, 2, {'x': 3}, 4, 5, 0.5, ''))",
    "before_fork": "prefork.before_fork(print)",
    "install": "prefork.install(immortal=False)",
    "Options": "prefork.Options(warm_up='a:b'); refused(ValueError, refuse_option)",
    "uninstall": "prefork.uninstall()",
    "child": "prefork.child()",
    "fast_exit": "refused(RuntimeError, elsewhere, prefork.fast_exit)",
    "keep_gc_off": "prefork.keep_gc_off(); prefork.let_gc_run()",
    "let_gc_run": "prefork.let_gc_run()",
    "sharing": "str(prefork.sharing())",
    "sharing refused": "refused(ProcessLookupError, prefork.sharing, 2**22 + 1)",
    "private_bytes": "prefork.private_bytes()",
    "blame": "str(prefork.blame(worker))",
    "blame refused": "refused(ProcessLookupError, prefork.blame, 2**22 + 1)",
}
# Made by the callables above.
DATA = {
    "Blame",
    "Category",
    "CategoryShare",
    "OwnerShare",
    "PrepareStatistics",
    "ProcessMemory",
    "Sharing",
}

PROGRAM = """
import json, os, signal
from cpythonplus import prefork

CALLS = {calls}


def fail():
    raise KeyError


def refuse_option():
    prefork.Options(gil="perhaps")


def refused(kind, call, *args):
    try:
        call(*args)
    except kind:
        pass
    else:
        raise AssertionError(call)


def elsewhere(call):
    raised = []
    def body():
        try:
            call()
        except Exception as error:
            raised.append(error)
    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    raise raised.pop()


prefork.child()
parent = os.getpid()
worker = os.fork()
if worker == 0:
    while os.getppid() == parent:
        time.sleep(0.05)
    os._exit(0)
result = {{}}
for name, line in CALLS.items():
    slow = name.startswith("blame")
    leak = leaks(line, globals(), 3 if slow else 20, spare_bytes=8192 if slow else 0)
    if leak:
        result[name] = leak
os.kill(worker, signal.SIGKILL)
os.waitpid(worker, 0)
print(json.dumps(result))
"""


@pytest.fixture(scope="module")
def leaked() -> dict[str, list[int]]:
    child = run_child(MEASURE + PROGRAM.format(calls=CALLS))
    result: dict[str, list[int]] = json.loads(child.out)
    return result


@pytest.mark.slow
@pytest.mark.skipif(SANITIZED, reason="the sanitizer's allocator does not count like this")
def test_no_leak(leaked: dict[str, list[int]]) -> None:
    """One test for all: of several, each worker of a parallel run would measure anew."""
    assert leaked == {}, "calls, blocks, bytes of each"


def test_each_public_name_is_in_the_list() -> None:
    assert set(prefork.__all__) - CALLS.keys() - DATA == {"prepare"}


@pytest.mark.skipif(SANITIZED, reason="the sanitizer's allocator does not count like this")
def test_preparing_again_keeps_next_to_nothing() -> None:
    # A list and a report are immortal with the rest each time; the heap is not copied.
    child = run_child(
        MEASURE
        + """
from cpythonplus import prefork
for _ in range(3):
    prefork.prepare()
before = used()
for _ in range(50):
    prefork.prepare()
print(*[after - since for after, since in zip(used(), before)])
"""
    )
    blocks, grown_bytes = map(int, child.out.split())
    # A list of all types is not part of what stays. Free blocks may have come together once until
    # taking them is worth it, some 10,000 of them; not each time.
    assert blocks < 20_000, child.out
    assert grown_bytes < 1_000_000, child.out
