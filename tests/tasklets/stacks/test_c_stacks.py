"""What a thread can do on its C stack a tasklet can do on its own."""

import json
import pickle
import sys
import threading
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest

from cpythonplus.tasklets import channel, run, stack_size, tasklet, trim_stacks
from tests.support import JIT_ON, SANITIZED, run_child

pytestmark = [pytest.mark.skipif(SANITIZED, reason="its frames are larger")]

Result = Any


def in_tasklet(function: Callable[[], Result]) -> Result:
    results: list[Result] = []
    tasklet(lambda: results.append(function()))()
    run()
    return results[0]


def in_thread(function: Callable[[], Result]) -> Result:
    results: list[Result] = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


def deepest(attempt: Callable[[int], object], most: int) -> int:
    """Return the greatest depth below `most` that works; more ends in an exception."""
    works, fails = 0, most
    while fails - works > 1:
        depth = (works + fails) // 2
        try:
            attempt(depth)
        except (RecursionError, MemoryError):
            fails = depth
        else:
            works = depth
    return works


def load_json(depth: int) -> None:
    json.loads("[" * depth + "]" * depth)


def nested(depth: int) -> list[object]:
    found: list[object] = []
    for _ in range(depth):
        found = [found]
    return found


def dump_pickle(depth: int) -> None:
    pickle.dumps(nested(depth))


def to_text(depth: int) -> None:
    repr(nested(depth))


def compile_signs(depth: int) -> None:
    compile("-" * depth + "1", "nested", "eval")


def sort_within_sort(depth: int) -> None:
    def key(level: int) -> int:
        return sorted([level - 1], key=key)[0] if level else 0  # noqa: FURB192  # it calls back

    sorted([depth], key=key)


@pytest.mark.parametrize(
    "attempt", [load_json, dump_pickle, to_text, compile_signs, sort_within_sort]
)
def test_depth_ends_where_a_thread_s_does_or_deeper(attempt: Callable[[int], object]) -> None:
    def find() -> int:
        return deepest(attempt, 6_000)

    assert in_tasklet(find) >= in_thread(find) * 0.95


def test_source_that_is_too_deep() -> None:
    def attempt() -> str:
        try:
            compile("-" * 50_000 + "1", "", "eval")
        except (MemoryError, RecursionError) as error:
            return type(error).__name__
        return "compiled"

    assert in_tasklet(attempt) == in_thread(attempt) != "compiled"


def test_iterators_of_iterators() -> None:
    def attempt() -> list[int]:
        found: Any = iter(range(3))
        for _ in range(20_000):
            found = islice(found, None)
        result = list(found)
        while found is not None:  # or they are let go one within the other
            found = None
        return result

    assert in_tasklet(attempt) == [0, 1, 2]


def test_linear_algebra() -> None:
    numpy = pytest.importorskip("numpy")

    def attempt() -> tuple[int, bool]:
        inverse = numpy.linalg.inv(numpy.eye(100) * 2)
        return inverse.shape[0], bool(numpy.isfinite(numpy.linalg.det(numpy.eye(300))))

    assert in_tasklet(attempt) == (100, True)


def test_models_within_models() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Node(pydantic.BaseModel):  # type: ignore[misc,name-defined]
        child: "Node | None" = None

    Node.model_rebuild(_types_namespace={"Node": Node})

    def attempt() -> int:
        node: Any = Node.model_validate_json('{"child":' * 200 + "{}" + "}" * 200)
        depth = 0
        while node is not None:
            node, depth = node.child, depth + 1
        return depth

    assert in_tasklet(attempt) == 201


def test_the_size_is_a_thread_s() -> None:
    child = run_child(
        """
        import resource, threading
        from cpythonplus.tasklets import stack_size
        soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
        print(stack_size() >> 20)
        threading.stack_size(3 << 20)
        stack_size(0)
        print(stack_size() >> 20)
        """
    )
    assert child.out.splitlines()[1] == "3"


def test_where_the_address_space_has_no_room_they_are_smaller_and_that_is_told() -> None:
    child = run_child(
        """
        import resource, sys, warnings
        from cpythonplus.tasklets import channel, run, stack_size, tasklet

        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, resource.RLIM_INFINITY))
        if resource.getrlimit(resource.RLIMIT_AS)[0] != 2 << 30:
            sys.exit("not limited")
        gate, ended = channel(), []
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for number in range(2000):
                tasklet(lambda: ended.append(gate.receive()))()
            run()
            for number in range(2000):
                gate.send(number)
            run()
        assert ended == list(range(2000))
        assert [each.category for each in told] == [RuntimeWarning], told
        assert "not enough address space for C stacks of 8192 KiB" in str(told[0].message)
        assert 64 << 10 <= stack_size() < 8 << 20
        """,
        status=None,
    )
    if child.err == "not limited\n":
        pytest.skip("qemu's user mode does not limit the address space")
    assert (child.status, child.out) == (0, ""), child


def test_free_stacks_that_were_used_to_their_depth_give_their_pages_back() -> None:
    child = run_child(
        """
        import os
        from cpythonplus.tasklets import channel, io, run, tasklet

        def resident():
            return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        text = "-" * 2000 + "1"
        gate = channel()

        def body():
            compile(text, "deep", "eval")
            gate.receive()

        for _ in range(300):
            tasklet(body)()
        run()
        deep = resident()
        for _ in range(300):
            gate.send(None)
        run()
        io.sleep(0.1)
        assert deep - resident() > 300 * 32768, (deep, resident())
        """
    )
    assert child.out == ""


@pytest.mark.parametrize("size_bytes", [64 << 10, 1 << 20, 0])
def test_trimmed_ones_come_back(size_bytes: int) -> None:
    """Cold and hot ones beside each other share pages of page tables."""
    if size_bytes == 64 << 10 and JIT_ON:
        pytest.skip("so small ones are refused")
    before = stack_size(size_bytes)
    try:
        gates = [channel() for _ in range(200)]
        woken: list[int] = []

        def body(number: int) -> None:
            for _ in range(3):
                gates[number].receive()
                woken.append(number)

        for number in range(200):
            tasklet(body)(number)
        run()
        for step in (3, 2, 1):
            trim_stacks()
            for number in range(0, 200, step):
                gates[number].send(None)
            run()
        for number in range(200):
            while gates[number].balance < 0:
                gates[number].send(None)
                run()
        assert sorted(woken) == sorted(list(range(200)) * 3)
    finally:
        stack_size(before)


def test_a_collection_while_a_trimmed_one_comes_back() -> None:
    """On 3.11 each allocation may begin one, and its callbacks are Python functions."""
    run_child(
        """
        import gc
        from cpythonplus.tasklets import channel, run, tasklet, trim_stacks

        gates, woken, collections = [channel() for _ in range(200)], [], []

        def collected(phase, info):
            collections.append([phase, info, *map(str, range(3))])

        def receive(depth, gate, *more):
            if depth:
                return receive(depth - 1, gate, depth, *more)
            gate.receive()
            return more

        def body(number):
            for _ in range(3):
                woken.append((number, receive(number % 5, gates[number])))

        for number in range(200):
            tasklet(body)(number)
        run()
        gc.callbacks.append(collected)
        gc.set_threshold(1)
        for _ in range(3):
            trim_stacks()
            for gate in gates:
                gate.send(None)
            run()
        gc.set_threshold(0)
        expected = [(n, tuple(range(1, n % 5 + 1))) for n in range(200)]
        assert sorted(woken) == sorted(expected * 3)
        assert collections
        """
    )


def test_an_exception_in_a_trimmed_one_while_something_is_traced() -> None:
    """From 3.15 on each function that it leaves is asked whom to tell."""
    run_child(
        """
        import sys
        from cpythonplus.tasklets import channel, run, tasklet, trim_stacks

        gate, caught = channel(), []

        def body():
            try:
                gate.receive()
            except ValueError as error:
                caught.append(str(error))

        for _ in range(20):
            tasklet(body)()
        run()
        trim_stacks()
        sys.settrace(lambda *_: None)
        for number in range(20):
            gate.send_exception(ValueError, number)
        run()
        sys.settrace(None)
        assert len(caught) == 20, caught
        """
    )


def test_an_overrun_is_told() -> None:
    """Neither recursion limits nor the interpreter's own checks keep this one away."""
    child = run_child(
        """
        import ctypes, sys
        from cpythonplus.tasklets import run, stack_size, tasklet

        stack_size(256 << 10)
        sys.setrecursionlimit(1_000_000)
        compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        qsort = ctypes.CDLL(None).qsort

        def deeper(*_):
            # The C library sorts on its stack what has less than a KiB or so.
            qsort(ctypes.create_string_buffer(1000), 2, 500, compare(deeper))
            return 0

        tasklet(deeper)()
        run()
        """,
        status=None,
    )
    if child.status == 0 or "RecursionError" in child.err:
        assert sys.version_info >= (3, 12)  # counted or measured by the interpreter
    else:
        assert "a tasklet has overrun its C stack of" in child.err
