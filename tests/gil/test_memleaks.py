"""Nothing stays behind, whatever is called how often."""

import inspect
import json

import pytest

import cpythonplus
from cpythonplus import gil
from cpythonplus.gil import atomic
from tests.gil.load import run
from tests.leaks import MEASURE
from tests.support import SANITIZED

pytestmark = pytest.mark.needs_gil

# Each public callable, as a program's line; `f` and `report` are defined below.
CALLS = {
    "gil.Policy": "gil.Policy(spin_us=5)",
    "gil.Policy wrong": "refused(ValueError, lambda: gil.Policy(spin_us=-1))",
    "gil.install": "gil.install(policy)",
    "gil.uninstall": "gil.uninstall(); gil.install()",
    "gil.active": "gil.active()",
    "gil.statistics": "gil.statistics()",
    "gil.reset_statistics": "gil.reset_statistics()",
    "gil.Statistics": "gil.Statistics().as_json()",
    "gil.ClassStatistics": "gil.ClassStatistics()",
    "gil.ThreadStatistics": "gil.ThreadStatistics('', 0, 0, 'batch', 0, 0, 0, 0, 0)",
    "gil.AtomicStatistics": "gil.AtomicStatistics()",
    "gil.Times": "gil.Times()",
    "gil.OverlongSection": "str(gil.OverlongSection(1, '', stack))",
    "gil.Stall": "str(gil.Stall(0.0, '', 0, 0, 0, 0, 0, 'C', (cpythonplus.Place(),)))",
    "gil.Stall.as_json": "gil.Stall(0.0, '', 0, 0, 0, 0, 0, 'C', ()).as_json()",
    "gil.stalls": "gil.stalls()",
    "gil.atomic": "with atomic(): pass",
    "gil.atomic nested": "with atomic(), atomic(): pass",
    "gil.atomic not used": "atomic()",
    "gil.atomic decorator": "atomic(f)()",
    "gil.atomic decorated raises": "refused(KeyError, atomic(g))",
    "gil.atomic refuses": "refused(TypeError, lambda: atomic(5)); refused(TypeError, atomic(f), 1)",
    "gil.atomic abandoned generator": "next(steps())",
    "atomic.enter": "atomic.enter(); atomic.leave()",
    "atomic.leave": "refused(RuntimeError, atomic.leave)",
    "atomic.inside": "atomic.inside()",
    "atomic.configure": "atomic.configure(limit_ms=50, report=lambda r: None)",
    "atomic.configure wrong": "refused(TypeError, lambda: atomic.configure(report=5))",
    "cpythonplus.UnsupportedPlatform": "UnsupportedPlatform('because')",
    "threads": "t = threading.Thread(target=f); t.start(); t.join()",
    "threads with sections": "t = threading.Thread(target=atomic(f)); t.start(); t.join()",
    "threads ending inside": "t = threading.Thread(target=atomic.enter); t.start(); t.join()",
}

PROGRAM = """
import cpythonplus, json, traceback

CALLS = {calls}
policy = gil.Policy(slice_us=500)
stack = traceback.extract_stack()


def f():
    return 1


def g():
    raise KeyError


def steps():
    with atomic():
        yield 1


def refused(kind, call, *args):
    try:
        call(*args)
    except kind:
        pass
    else:
        raise AssertionError(call)


def used_without_records():
    until(lambda: len(gil.statistics().threads) <= 1)  # threads' records go a little later
    return used()


gil.install()
result = {{}}
for name, line in CALLS.items():
    times = 40 if name.startswith(("threads", "gil.uninstall")) else 200
    leak = leaks(line, globals(), times, used_without_records)
    if leak:
        result[name] = leak
print(json.dumps(result))
"""


@pytest.fixture(scope="module")
def leaked() -> dict[str, list[int]]:
    child = run(MEASURE + PROGRAM.format(calls=CALLS), before="")
    result: dict[str, list[int]] = json.loads(child.out)
    return result


@pytest.mark.skipif(SANITIZED, reason="the sanitizer's allocator does not count like this")
def test_no_leak(leaked: dict[str, list[int]]) -> None:
    """One test for all: of several, each worker of a parallel run would measure anew."""
    assert leaked == {}, "calls, blocks, bytes of each"


def test_each_public_callable_is_in_the_list() -> None:
    public = {f"gil.{name}" for name in gil.__all__ if callable(getattr(gil, name))}
    public |= {
        f"atomic.{name}"
        for name, _ in inspect.getmembers(atomic, callable)
        if not name.startswith("_")
    }
    public |= {
        f"cpythonplus.{name}"
        for name in cpythonplus.__all__
        if name not in ("Place", "__version__") and callable(getattr(cpythonplus, name))
    }
    assert public - CALLS.keys() == set()


def test_as_dict_and_str_are_the_only_other_methods() -> None:
    # Else they belong into the list above.
    methods = {
        f"{name}.{method}"
        for name in gil.__all__
        if inspect.isclass(getattr(gil, name))
        for method, _ in inspect.getmembers(getattr(gil, name), inspect.isfunction)
        if not method.startswith("_")
    }
    assert methods == {"Stall.as_json", "Statistics.as_json"}
