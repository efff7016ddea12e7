"""The evaluation function (PEP 523) stays the interpreter's; calls do without the C stack."""

import copy
import ctypes
import functools
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cpythonplus import _native
from cpythonplus.tasklets import run, schedule_remove, tasklet
from tests.support import SANITIZED, run_child

SEEN: list[bool] = []


@functools.cache
def functions() -> tuple[Callable[[], int], Callable[[int], int | None], int]:
    api = ctypes.pythonapi
    state = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyInterpreterState_Get", api))
    evaluates = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(
        ("_PyInterpreterState_GetEvalFrameFunc", api)
    )
    own = ctypes.cast(api._PyEval_EvalFrameDefault, ctypes.c_void_p).value
    assert own is not None
    return state, evaluates, own


def is_usual() -> bool:
    """Whether frames are evaluated by the interpreter's own function, and no hook."""
    state, evaluates, own = functions()
    return evaluates(state()) == own


def note() -> None:
    SEEN.append(is_usual())


def numbers(n: int) -> Iterator[int]:
    for i in range(n):
        note()
        yield int(schedule_remove(i))
        note()


def delegating(n: int) -> Iterator[int]:
    note()
    yield from numbers(n)
    note()


def plain(n: int) -> int:
    for i in range(n):
        schedule_remove(i)
        note()
    return n


def calls_plain(n: int) -> None:
    note()
    plain(n)
    note()


def asks_generators(n: int) -> None:
    for _ in delegating(n):
        note()
        for _ in numbers(1):
            note()
    note()


def fails(n: int) -> None:
    try:
        for _ in delegating(n):
            note()
    finally:
        note()


def round_trip(task: tasklet) -> tasklet:
    note()
    again = pickle.loads(pickle.dumps(task))
    note()
    assert isinstance(again, tasklet)
    return again


@pytest.fixture(autouse=True)
def _nothing_seen() -> None:
    SEEN.clear()


@pytest.mark.parametrize("hop", [round_trip, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("function", [calls_plain, asks_generators])
def test_no_hook_is_seen(function: Callable[[int], None], hop: Callable[[tasklet], Any]) -> None:
    """Before it is loaded, after that, in the functions that go on, and afterwards."""
    note()
    task = tasklet(function)(3)
    run()
    while task.alive:
        before = task
        task = hop(task)
        before.kill()
        note()
        task.insert()
        run()
        note()
    assert len(SEEN) > 10
    assert all(SEEN)


@pytest.mark.parametrize("function", [fails, calls_plain])
def test_none_is_left_by_exceptions(function: Callable[[int], None]) -> None:
    task = tasklet(function)(3)
    run()
    killed, raised = round_trip(task), round_trip(task)
    killed.kill()
    note()
    with pytest.raises(KeyError):
        raised.throw(KeyError)
    note()
    del killed, raised
    round_trip(task)  # dropped without having run
    note()
    task.kill()
    assert all(SEEN)


def test_only_3_11_can_set_one() -> None:
    """The extension asks the dynamic linker for the function that sets it, or it does not."""
    elf = pytest.importorskip("elftools.elf.elffile")  # not in the environment of tools/arm64.sh
    with Path(_native.__file__).open("rb") as file:
        table = elf.ELFFile(file).get_section_by_name(".dynsym")
        names = {symbol.name for symbol in table.iter_symbols()}
    assert "_PyEval_EvalFrameDefault" in names
    setters = {name for name in names if "SetEvalFrame" in name}
    assert setters == (
        {"_PyInterpreterState_SetEvalFrameFunc"} if sys.version_info < (3, 12) else set()
    )


@pytest.mark.skipif(SANITIZED, reason="each C frame is several times as large")
@pytest.mark.parametrize("function", ["in_a_call", "in_generators"])
def test_calls_in_what_goes_on_use_no_c_stack(function: str) -> None:
    """50,000 deep, where a loop of the interpreter for each would need many times the stack."""
    child = run_child(
        f"""
        import pickle, sys
        from cpythonplus.tasklets import run, schedule_remove, stack_size, tasklet

        sys.setrecursionlimit(100_000)
        stack_size(256 * 1024)

        def down(n):
            return 0 if n == 0 else 1 + down(n - 1)

        def stops():
            schedule_remove()
            return down(50_000)

        def in_a_call():
            print(stops(), down(50_000))

        def numbers():
            schedule_remove()
            yield down(50_000)

        def delegating():
            yield from numbers()
            yield down(50_000)

        def in_generators():
            for number in delegating():
                print(number, down(50_000))

        task = tasklet({function})()
        run()
        again = pickle.loads(pickle.dumps(task))
        task.kill()
        again.insert()
        run()
        """
    )
    lines = 1 if function == "in_a_call" else 2
    assert child.out == "50000 50000\n" * lines


@pytest.mark.skipif(SANITIZED, reason="each C frame is several times as large")
def test_frames_that_are_restored_use_no_c_stack() -> None:
    """20,000 of them, in one loop of the interpreter."""
    child = run_child(
        """
        import pickle, sys
        from cpythonplus.tasklets import run, schedule_remove, stack_size, tasklet

        sys.setrecursionlimit(100_000)
        stack_size(256 * 1024)

        def down(n):
            return schedule_remove(0) if n == 0 else 1 + down(n - 1)

        def work():
            print(down(20_000))

        task = tasklet(work)()
        run()
        again = pickle.loads(pickle.dumps(task))
        task.kill()
        again.insert()
        run()
        """
    )
    assert child.out == "20000\n"
