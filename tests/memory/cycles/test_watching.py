"""The watch: what it finds, what it leaves as it was, and that it loses nothing."""

import dataclasses
import gc
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from cpythonplus import _native
from cpythonplus.memory import cycles
from cpythonplus.memory._cycles import watching
from cpythonplus.memory._cycles.naming import causes
from cpythonplus.memory.cycles import Cause, Cycle
from tests.support import run_child

TraceFunction = Callable[[FrameType, str, Any], Any]


class Node:
    """Something that can be in a cycle, and be seen to go."""

    other: object = None


def leak(payload: object = None) -> weakref.ref[Node]:
    """Leave a cycle of two objects."""
    first, second = Node(), Node()
    first.other, second.other = second, [first, payload]
    return weakref.ref(first)


def counts(found: tuple[Cycle, ...]) -> list[tuple[int, int]]:
    return [(cycle.count, cycle.objects) for cycle in found]


Settings = tuple[bool, int, tuple[int, int, int], list[object], int]


def settings() -> Settings:
    return gc.isenabled(), gc.get_debug(), gc.get_threshold(), [*gc.callbacks], len(gc.garbage)


@pytest.fixture(scope="module", autouse=True)
def _own_callbacks() -> Iterator[None]:
    # Those of others (hypothesis has one) are out of the way of tests that clear the list.
    callbacks = [*gc.callbacks]
    gc.callbacks.clear()
    yield
    gc.callbacks[:0] = callbacks


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    before = settings()
    yield
    assert settings() == before


# ---- what is found ------------------------------------------------------------------------------


def test_a_cycle_is_counted_and_goes() -> None:
    with cycles.watch() as w:
        gone = leak()
        gc.collect()
        assert gone() is None
    (cycle,) = w.report.cycles
    assert (cycle.count, cycle.objects) == (1, 3)
    assert w.report.collections >= 1
    assert w.report.seconds > 0


def test_equal_cycles_are_one_line() -> None:
    with cycles.watch() as w:
        for _ in range(50):
            leak()
    assert counts(w.report.cycles) == [(50, 150)]


def test_what_hangs_from_a_cycle_is_kept_apart() -> None:
    with cycles.watch() as w:
        leak([bytes(10_000), bytes(20_000)])
    (cycle,) = w.report.cycles
    assert (cycle.objects, cycle.kept_objects) == (3, 3)
    assert 30_000 < cycle.kept_bytes < 31_000
    assert cycle.size_bytes < 1000


def test_what_two_share_hangs_from_one() -> None:
    with cycles.watch() as w:
        shared = [bytes(5000)]
        leak(shared)
        leak(shared)
        del shared
    (cycle,) = w.report.cycles
    assert (cycle.count, cycle.kept_objects) == (2, 2)


def test_clean_code_is_not_reported() -> None:
    with cycles.watch() as w:
        for _ in range(1000):
            [Node(), {"a": [Node()]}]
    assert w.report.cycles == ()
    # What other tests hold is not this one's.
    assert "no cyclic garbage" in dataclasses.replace(w.report, hoards=()).text()


def test_garbage_from_before_is_not_reported() -> None:
    leak()
    with cycles.watch() as w:
        pass
    assert w.report.cycles == ()


def test_one_object_that_refers_to_itself() -> None:
    with cycles.watch() as w:
        itself: list[object] = []
        itself.append(itself)
        del itself
    assert counts(w.report.cycles) == [(1, 1)]


def test_a_long_chain_is_one_cycle() -> None:
    with cycles.watch() as w:
        first = last = Node()
        for _ in range(100_000):
            last.other = last = Node()
        last.other = first
        del first, last
    (cycle,) = w.report.cycles
    assert cycle.objects == 100_001


def test_found_while_the_collector_runs_by_itself() -> None:
    gc.collect()
    old = gc.get_threshold()
    gc.set_threshold(100)
    try:
        with cycles.watch(collect=False) as w:
            for _ in range(1000):
                leak()
        assert sum(cycle.count for cycle in w.report.cycles) > 500
    finally:
        gc.set_threshold(*old)


def test_take_gives_each_cycle_once() -> None:
    with cycles.watch() as w:
        leak()
        gc.collect()
        assert counts(w.take()) == [(1, 3)]
        assert w.take() == ()
        leak()
        leak()
    assert counts(w.report.cycles) == [(2, 6)]


def test_kinds_choose() -> None:
    with cycles.watch(kinds=["exception"]) as w:
        leak()
    assert w.report.cycles == ()
    with pytest.raises(ValueError, match="rust"):
        cycles.watch(kinds=["rust"])


# ---- what is left as it was ---------------------------------------------------------------------


def test_also_after_an_exception() -> None:
    w = cycles.watch()

    def body() -> None:
        with w:
            leak()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        body()
    assert sum(cycle.count for cycle in w.report.cycles) >= 1


def test_a_disabled_collector_stays_disabled() -> None:
    gc.disable()
    try:
        with cycles.watch() as w:
            leak()
        assert not gc.isenabled()
    finally:
        gc.enable()
    assert counts(w.report.cycles) == [(1, 3)]


def test_flags_that_the_program_sets_meanwhile_stay() -> None:
    with cycles.watch():
        gc.set_debug(gc.get_debug() | gc.DEBUG_UNCOLLECTABLE)
    assert gc.get_debug() == gc.DEBUG_UNCOLLECTABLE
    gc.set_debug(0)


def test_flags_and_callbacks_that_the_program_takes_away() -> None:
    """What it leaves after that is found at the end at the latest."""
    callbacks = [*gc.callbacks]
    with cycles.watch() as w:
        gc.set_debug(0)
        gc.callbacks[:] = callbacks
        leak()
    assert counts(w.report.cycles) == [(1, 3)]


def test_the_programs_own_saveall_keeps_its_garbage() -> None:
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        with cycles.watch() as w:
            gone = leak()
        assert gc.get_debug() == gc.DEBUG_SAVEALL
        assert counts(w.report.cycles) == [(1, 3)]
        assert sum(type(each) is Node for each in gc.garbage) == 2
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    gc.collect()
    assert gone() is None


def test_what_the_program_has_in_garbage_stays() -> None:
    mine = object()
    gc.garbage.append(mine)
    try:
        with cycles.watch():
            leak()
        assert gc.garbage == [mine]
    finally:
        gc.garbage.clear()


# Without a GIL, the outer watch also finds what an earlier test left.
@pytest.mark.needs_gil
def test_watches_within_watches() -> None:
    with cycles.watch() as outer:
        leak()
        with cycles.watch() as inner:
            leak()
        leak()
    assert counts(inner.report.cycles) == [(1, 3)]
    assert sum(cycle.count for cycle in outer.report.cycles) == 3


def test_callbacks_that_the_program_clears() -> None:
    with cycles.watch() as w:
        leak()
        gc.callbacks.clear()
        gone = leak()
        gc.collect()
        assert gone() is None
        assert gc.garbage == []
    assert counts(w.report.cycles) == [(2, 6)]


def test_callbacks_that_the_program_takes_away() -> None:
    with cycles.watch() as w:
        saved = [*gc.callbacks]
        gc.callbacks.clear()
        leak()
        gc.collect()
    assert counts(w.report.cycles) == [(1, 3)]
    assert len(saved) == 1


# Without a GIL, the outer watch also finds what an earlier test left.
@pytest.mark.needs_gil
def test_a_second_watch_finds_what_was_left_without_callbacks() -> None:
    with cycles.watch() as outer:
        saved = [*gc.callbacks]
        gc.callbacks.clear()
        gone = leak()
        gc.collect()
        with cycles.watch(collect=False):
            gc.collect()
            assert gone() is None
    assert counts(outer.report.cycles) == [(1, 3)]
    assert len(saved) == 1


def test_stopped_within_a_collection() -> None:
    def stop(phase: str, _info: dict[str, int]) -> None:
        if phase == "stop" and w.running:
            w.stop()

    def stop_by_finalizer() -> None:
        class Last(Node):
            def __del__(self) -> None:
                w.stop()

        last = Last()
        last.other = last

    w = cycles.watch(hoards=False)
    w.start()
    stop_by_finalizer()
    gc.collect()
    assert not w.running
    w.start()
    gc.callbacks.insert(0, stop)
    try:
        gone = leak()
        gc.collect()
    finally:
        gc.callbacks.remove(stop)
    assert gone() is None


def test_an_exception_at_any_instruction_of_the_settings() -> None:
    # As a signal handler raises, or Ctrl-C.
    class InterruptError(BaseException):
        pass

    names = {"add", "_attach", "_is_attached", "remove", "_detach", "_end"}
    left = 0

    def trace(frame: FrameType, event: str, _argument: object) -> TraceFunction | None:
        nonlocal left
        code = frame.f_code
        if code.co_filename != watching.__file__ or code.co_name not in names:
            return None
        frame.f_trace_opcodes = True
        # 3.12 has opcodes only where they were asked for before the first call.
        left -= event in {"opcode", "line"}
        if event in {"opcode", "line"} and left == 0:
            raise InterruptError
        return trace

    def interrupted(at: int) -> bool:
        nonlocal left
        left = at
        old = sys.gettrace()
        sys.settrace(trace)
        try:
            with cycles.watch(collect=False, hoards=False):
                pass
        except InterruptError:
            return True
        finally:
            sys.settrace(old)
        return False

    before = settings()
    hits = 0
    while interrupted(hits + 1):
        hits += 1
        assert settings() == before
    assert hits > 20


def test_misuse() -> None:
    w = cycles.watch()
    with pytest.raises(RuntimeError, match="no report"):
        _ = w.report
    with pytest.raises(RuntimeError, match="is not running"):
        w.stop()
    w.start()
    with pytest.raises(RuntimeError, match="already running"):
        w.start()
    w.stop()
    w.start()
    leak()
    assert counts(w.stop().cycles) == [(1, 3)]


# ---- finalizers, references, signals ------------------------------------------------------------


def test_finalizers_run_once_and_may_resurrect() -> None:
    log: list[Node] = []

    class Lazarus(Node):
        def __del__(self) -> None:
            log.append(self)

    with cycles.watch(kinds=["other"]) as w:
        one = Lazarus()
        one.other = one
        del one
        gc.collect()
        assert len(log) == 1
        assert log[0].other is log[0]  # alive and whole
        log.clear()
    assert log == []
    assert counts(w.report.cycles) == [(1, 1)]


def test_weak_references_are_dead_and_called_back_once() -> None:
    calls: list[object] = []
    with cycles.watch():
        node = Node()
        node.other = node
        gone = weakref.ref(node, calls.append)
        del node
        gc.collect()
        assert gone() is None
        assert calls == [gone]


def test_another_callback_may_keep_what_it_finds() -> None:
    kept: list[object] = []

    def keep(phase: str, _info: dict[str, int]) -> None:
        if phase == "stop":
            kept.extend(each for each in gc.garbage if type(each) is Node)

    gc.collect()
    gc.callbacks.insert(0, keep)
    try:
        with cycles.watch(collect=False):
            leak()
            gc.collect()
            assert [type(each) for each in kept] == [Node, Node]
            assert all(type(each) is Node and each.other is not None for each in kept)
    finally:
        gc.callbacks.remove(keep)


def test_the_callback_loses_no_exception_of_a_signal_handler() -> None:
    # On 3.11 and later a pending signal is handled where the callback begins.
    class SignalError(Exception):
        pass

    def handler(_number: int, _frame: object) -> None:
        raise SignalError

    def noisy(phase: str, _info: dict[str, int]) -> None:
        if phase == "start":
            os.kill(os.getpid(), signal.SIGUSR1)

    old = signal.signal(signal.SIGUSR1, handler)
    guarded = _native.memory_guarded(noisy)
    gc.callbacks.append(guarded)
    try:
        with pytest.raises(SignalError):
            gc.collect()
    finally:
        gc.callbacks.remove(guarded)
        signal.signal(signal.SIGUSR1, old)


def test_a_signal_handler_that_raises_leaves_no_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    class SignalError(Exception):
        pass

    def handler(_number: int, _frame: object) -> None:
        raise SignalError

    def interrupted(members: list[object]) -> list[Cause]:
        if signals:
            signals.clear()
            signal.raise_signal(signal.SIGUSR1)
        return causes(members)

    signals = [signal.SIGUSR1]
    monkeypatch.setattr(watching, "causes", interrupted)
    old = signal.signal(signal.SIGUSR1, handler)
    try:
        with cycles.watch() as w:
            gone = leak()
            with pytest.raises(SignalError):
                gc.collect()
            assert gone() is None
            assert gc.garbage == []
    finally:
        signal.signal(signal.SIGUSR1, old)
    assert counts(w.report.cycles) == [(1, 3)]
    assert w.report.cycles[0].cause.variable != "?"


def test_at_the_recursion_limit() -> None:
    def collect_at(depth: int) -> None:
        if depth:
            collect_at(depth - 1)
        else:
            leak()
            gc.collect(0)

    def deepest() -> int:
        depth = sys.getrecursionlimit()
        while True:
            try:
                collect_at(depth)
            except RecursionError:
                depth -= 1
            else:
                return depth

    depth = deepest()
    limit = sys.getrecursionlimit()
    gc.collect()
    with cycles.watch() as w:
        for less in range(8):
            collect_at(depth - less)
    assert sys.getrecursionlimit() == limit
    assert counts(w.report.cycles) == [(8, 24)]
    assert w.report.cycles[0].cause.variable != "?"


# Without a GIL, classes are not collected once a second thread was started.
@pytest.mark.needs_gil
def test_ever_new_code_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_KEYS_MAX", 10)
    with cycles.watch(hoards=False) as w:
        for number in range(30):
            exec(f"class New{number}: pass", {})
            gc.collect(0)
            assert all(len(each) <= 10 for each in watching._tap._known_of.values())
        assert len(w._tallies) <= 11
    assert sum(cycle.count for cycle in w.report.cycles) == 30


def test_threads_go_on() -> None:
    stop = threading.Event()
    made = [0, 0]

    def work(place: int) -> None:
        while not stop.is_set():
            leak()
            made[place] += 1

    with cycles.watch() as w:
        threads = [threading.Thread(target=work, args=(place,)) for place in range(2)]
        for thread in threads:
            thread.start()
        while min(made) < 300:
            gc.collect(0)
        stop.set()
        for thread in threads:
            thread.join()
    assert sum(c.count for c in w.report.cycles if c.objects == 3 * c.count) == sum(made)


# ---- objects that lie ---------------------------------------------------------------------------


def fail(error: type[Exception]) -> None:
    raise error


def test_no_code_of_the_objects_runs() -> None:
    ran: list[str] = []

    def trap(name: str) -> Callable[..., object]:
        def method(*_: object) -> object:
            ran.append(name)
            raise RuntimeError(name)

        return method

    names = ["__eq__", "__hash__", "__repr__", "__getattribute__", "__sizeof__", "__bool__"]
    names += ["__len__", "__iter__", "__getattr__", "__instancecheck__", "__subclasscheck__"]
    methods = {name: trap(name) for name in names}
    meta = type("Meta", (type,), methods)
    liar = meta("Liar", (), {**methods, "__class__": property(trap("__class__"))})
    error = meta("LiarError", (Exception,), methods)

    def make() -> None:
        one = object.__new__(liar)
        object.__setattr__(one, "me", one)
        try:
            fail(error)
        except Exception as e:  # noqa: BLE001
            kept = e  # noqa: F841

    with cycles.watch() as w:
        make()
        ran.clear()  # raising it asked the class
        gc.collect()
        assert ran == []
    assert sum(cycle.count for cycle in w.report.cycles) >= 2
    assert w.report.text()


def test_half_built_objects() -> None:
    kinds: list[Any] = [ValueError, ExceptionGroup, OSError, UnicodeDecodeError]
    with cycles.watch() as w:
        for kind in kinds:
            half = kind.__new__(kind, "message", [ValueError()])
            half.__dict__["me"] = half
        half = None
    assert sum(cycle.count for cycle in w.report.cycles) == len(kinds)


# ---- processes ----------------------------------------------------------------------------------


def test_fork_and_the_end_of_the_interpreter() -> None:
    child = run_child("""
        import atexit, gc, os, sys, weakref
        atexit.register(lambda: print("end", gc.get_debug(), len(gc.callbacks), flush=True))
        from cpythonplus.memory import cycles

        class Node:
            pass

        def leak():
            node = Node()
            node.me = node

        w = cycles.watch()
        w.start()
        leak()
        if os.fork() == 0:
            leak()
            print("child", sum(c.count for c in w.stop().cycles), gc.get_debug(), flush=True)
            os._exit(0)
        os.wait()
        print("parent", sum(c.count for c in w.stop().cycles), gc.get_debug(), flush=True)
        w.start()  # still running when the interpreter ends
        leak()
        sys.me = leak
        """)
    assert child.out.split("\n") == ["child 2 0", "parent 1 0", "end 0 0", ""]
    assert child.err == ""
