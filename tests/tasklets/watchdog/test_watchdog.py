"""Interrupting tasklets: run(timeout) and run_for()."""

# ruff: noqa: ANN401 (anything goes through channels)
# mypy: disable-error-code="arg-type, assignment, attr-defined, call-arg, func-returns-value"
# mypy: disable-error-code="union-attr, unreachable, possibly-undefined, misc"
# (wrong calls are part of the tests, and what other versions do not have)

import dis
import gc
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from cpythonplus import tasklets
from cpythonplus.tasklets import (
    TaskletExit,
    atomic,
    channel,
    getcurrent,
    getmain,
    getruncount,
    run,
    run_for,
    schedule,
    schedule_remove,
    tasklet,
)
from tests.support import HAS_JIT, JIT_ON, SANITIZED, run_child

Log = list[Any]
MONITORED = sys.version_info >= (3, 12)
MOMENT = 0.005  # seconds: a dead line that passes soon

# What each of them runs in for ever; `hop` is a function, `ones` a generator.
LOOPS = {
    "one line": "while True: pass",
    "while": "while True:\n    pass",
    "condition": "while hop: pass",
    "counting": "i = 0\nwhile True:\n    i += 1",
    "continue": "while True:\n    if hop:\n        continue",
    "for": "for i in iter(int, 1):\n    pass",
    "generator": "for i in ones():\n    pass",
    "list comprehension": "[i for i in iter(int, 1)][0]",
    "set comprehension": "{i for i in iter(int, 1)}.pop()",
    "dict comprehension": "{i: i for i in iter(int, 1)}.get(0)",
    "calls": "while True:\n    hop()",
    "nested calls": "def down(n):\n    n and down(n - 1)\nwhile True:\n    down(20)",
    "exceptions": "while True:\n    try: raise KeyError\n    except KeyError: pass",
    "with": "while True:\n    with atomic():\n        pass",
    "await": "async def all():\n    while True:\n        await one()\nall().send(None)",
    "async generator": "async def all():\n    async for i in many(): pass\nall().send(None)",
}
NESTED = {"await", "async generator"}  # C runs the coroutine


def looping(kind: str, caught: Callable[[], None] = lambda: None) -> Callable[[], None]:
    """Return a function that calls `caught` when it catches TaskletExit, and returns."""
    names: dict[str, Any] = {"atomic": atomic, "E": TaskletExit, "caught": caught}
    body = LOOPS[kind].replace("\n", "\n    ")
    helpers = """
def hop(): return 1
def ones():
    while True: yield 1
async def one(): return 1
async def many():
    while True: yield 1
"""
    exec(f"{helpers}\ndef endless():\n  try:\n    {body}\n  except E: caught()\n", names)
    endless: Callable[[], None] = names["endless"]
    return endless


def spin() -> None:
    while True:
        pass


def work(rounds: int, log: Log, name: object) -> None:
    for _ in range(rounds):
        pass
    log.append(name)


def in_slices(*args: Any, **kwargs: Any) -> int:
    """Let the runnable ones run to their end; return how often one was interrupted."""
    count = 0
    while getruncount() > 1:
        victim = run(*args, **kwargs)
        if victim is not None:
            victim.insert()
            count += 1
    return count


def tools() -> list[int]:
    used: list[int] = [i for i in range(6) if sys.monitoring.get_tool(i) == "cpythonplus.tasklets"]
    return used


def set_events() -> list[int]:
    """Events of sys.monitoring that are on, by tool."""
    return [sys.monitoring.get_events(tool) for tool in tools()] if MONITORED else []


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """Fail a test after which a watchdog is still at work."""
    before = sys.gettrace()
    yield
    assert not any(set_events())
    assert sys.gettrace() is before


class TestHard:
    @pytest.mark.parametrize("kind", LOOPS)
    def test_a_loop_is_interrupted_and_goes_on(self, kind: str) -> None:
        nested = kind in NESTED
        task = tasklet(looping(kind))()
        for timeout in (1000, 1, 2, 3, 1, 100):
            assert run(timeout, ignore_nesting=nested) is task
            assert (task.paused, getruncount()) == (True, 1)
            gc.collect(0)
            task.insert()
        assert run_for(0, ignore_nesting=nested) is task
        task.kill()
        assert not task.alive

    @pytest.mark.parametrize("kind", LOOPS)
    def test_a_loop_is_interrupted_when_its_time_is_over(self, kind: str) -> None:
        task = tasklet(looping(kind))()
        for _ in range(2):
            assert run_for(MOMENT, ignore_nesting=kind in NESTED) is task
            task.insert()
        task.kill()

    def test_nothing_is_lost(self) -> None:
        log: Log = []

        def body(name: str) -> None:
            total = 0
            for i in range(500):
                total += sum([j * j for j in range(3)]) + i
            log.append((name, total))

        for name in "ab":
            tasklet(body)(name)
        assert in_slices(100) > 10
        assert sorted(log) == [("a", 127250), ("b", 127250)]

    @pytest.mark.parametrize("timeout", [0, -1, 100000])
    def test_without_a_time_out_it_returns_none(self, timeout: int) -> None:
        log: Log = []
        tasklet(work)(100, log, "done")
        assert run(timeout) is None
        assert log == ["done"]

    def test_nothing_to_do(self) -> None:
        assert run(1) is None
        assert run_for(0) is None
        assert run_for(1000) is None

    def test_one_that_was_parked_in_its_loop(self) -> None:
        def body() -> None:
            schedule_remove()
            while True:
                pass

        task = tasklet(body)()
        run()
        interrupts: list[Callable[[], object]] = [lambda: run(1000), lambda: run_for(MOMENT)]
        for interrupt in interrupts:
            task.insert()
            assert interrupt() is task
        task.kill()

    def test_each_has_its_own_slice(self) -> None:
        log: Log = []

        def body() -> None:
            for _ in range(20):
                for _ in range(50):
                    pass
                schedule()
            log.append("done")

        for _ in range(2):
            tasklet(body)()
        assert run(200) is None
        assert log == ["done", "done"]

    def test_total_time_out(self) -> None:
        def body() -> None:
            while True:
                for _ in range(50):
                    pass
                schedule()

        both = [tasklet(body)(), tasklet(body)()]
        victim = run(200, totaltimeout=True)
        assert victim in both
        for task in both:
            task.kill()

    def test_the_others_stay_in_the_queue(self) -> None:
        log: Log = []
        first = tasklet(spin)()
        tasklet(log.append)("second")
        assert run(100) is first
        assert getruncount() == 2
        assert log == []
        assert run(100) is None
        first.kill()
        assert log == ["second"]

    def test_what_the_victim_is(self) -> None:
        task = tasklet(spin)()
        assert run(100) is task
        assert (task.alive, task.paused, task.blocked, task.scheduled) == (True, True, False, False)
        assert task.frame.f_code is spin.__code__
        task.kill()

    def test_it_can_be_run_and_thrown_at(self) -> None:
        log: Log = []

        def body() -> None:
            try:
                while True:
                    pass
            except KeyError as error:
                log.append(error.args)
                schedule_remove()
                log.append(sys.exc_info()[0])

        task = tasklet(body)()
        assert run(100) is task
        task.raise_exception(KeyError, 5)
        assert log == [(5,)]
        task.run()
        assert log == [(5,), KeyError]

    def test_the_exception_that_it_handles_stays_its_own(self) -> None:
        def body() -> None:
            try:
                raise KeyError  # noqa: TRY301
            except KeyError:
                for _ in range(500):
                    assert sys.exc_info()[0] is KeyError

        tasklet(body)()
        while getruncount() > 1:
            victim = run(50)
            assert sys.exc_info()[0] is None
            if victim is not None:
                victim.insert()

    def test_forgotten(self) -> None:
        log: Log = []

        def body() -> None:
            try:
                while True:
                    pass
            except TaskletExit:
                log.append("ended")
                raise

        victim = weakref.ref(tasklet(body)())
        assert run(100) is victim()
        gc.collect()
        assert (log, victim()) == (["ended"], None)

    def test_a_cycle_through_its_frame_is_collected(self) -> None:
        def body() -> None:
            me = getcurrent()
            while me is not None:
                pass

        victim = weakref.ref(tasklet(body)())
        assert run(100) is victim()
        gc.collect()
        assert victim() is None

    def test_a_cold_one_goes_on(self) -> None:
        log: Log = []
        task = tasklet(work)(100, log, "done")
        assert run(50) is task
        tasklets.trim_stacks(0)
        assert run(50) is None
        task.insert()
        assert run(30) is task
        task.insert()
        run()
        assert log == ["done"]

    def test_arguments(self) -> None:
        assert run(timeout=0, threadblock=False, soft=False, ignore_nesting=False) is None
        with pytest.raises(TypeError):
            run("x")
        for wrong in (-1, float("nan")):
            with pytest.raises(ValueError, match="seconds must be a non-negative number"):
                run_for(wrong)
        with pytest.raises(TypeError):
            run_for()
        with pytest.raises(TypeError):
            run_for(1, True)
        log: Log = []
        tasklet(log.append)(1)
        assert run_for(float("inf")) is None
        assert log == [1]


class TestSoft:
    def test_at_the_next_switch(self) -> None:
        log: Log = []

        def body(name: str) -> None:
            while True:
                log.append(name)
                for _ in range(50):
                    pass
                schedule()

        both = [tasklet(body)("a"), tasklet(body)("b")]
        assert run(20, soft=True) is None
        assert (log, getruncount()) == (["a"], 3)
        assert run(20, soft=True) is None  # the next one comes first
        assert log == ["a", "b"]
        assert run(120, soft=True, totaltimeout=True) is None
        assert log == ["a", "b", "a", "b", "a"]
        for task in both:
            task.kill()

    def test_when_one_ends_or_blocks(self) -> None:
        log: Log = []
        it = channel()
        tasklet(work)(100, log, 1)
        waiting = tasklet(lambda: (work(100, log, 2), it.receive()))()
        tasklet(work)(100, log, 3)
        for expected in ([1], [1, 2], [1, 2, 3]):
            assert run(20, soft=True) is None
            assert log == expected
        waiting.kill()

    def test_a_transfer_is_not_disturbed(self) -> None:
        log: Log = []
        it = channel()

        def receiver() -> None:
            for value in it:
                log.append(("got", value))

        def sender() -> None:
            for i in range(3):
                work(100, log, "worked")
                it.send(i)
            schedule()

        tasks = [tasklet(receiver)(), tasklet(sender)()]
        assert run(20, soft=True, totaltimeout=True) is None
        assert log == ["worked", ("got", 0)]
        for task in tasks:
            task.kill()

    def test_by_time(self) -> None:
        def body() -> None:
            while True:
                schedule()

        both = [tasklet(body)(), tasklet(body)()]
        assert run_for(MOMENT, soft=True) is None
        assert getruncount() == 3
        assert run_for(0, soft=True) is None
        for task in both:
            task.kill()


class TestHeldOff:
    def test_atomic(self) -> None:
        log: Log = []

        def body() -> None:
            with atomic():
                work(1000, log, "whole")
            while True:
                pass

        for total in (False, True):
            task = tasklet(body)()
            assert run(100, totaltimeout=total) is task
            assert task.frame.f_code.co_name == "body"
            task.kill()
        assert log == ["whole"] * 2

    def test_the_first_chance_after_atomic_is_taken(self) -> None:
        log: Log = []

        def body() -> None:
            with atomic():
                work(1000, log, "whole")
            for i in range(100):
                log.append(i)

        task = tasklet(body)()
        assert run(500) is task
        assert len(log) <= 3
        task.kill()

    def test_set_atomic(self) -> None:
        log: Log = []

        def body() -> None:
            old = getcurrent().set_atomic(True)
            work(1000, log, "whole")
            getcurrent().set_atomic(old)
            spin()

        task = tasklet(body)()
        assert run(100) is task
        assert (log, task.atomic) == (["whole"], False)
        task.kill()

    def test_a_later_watchdog_has_no_old_bills(self) -> None:
        log: Log = []

        def body() -> None:
            with atomic():
                work(200, log, "whole")
                schedule_remove()
            work(200, log, "rest")

        task = tasklet(body)()
        assert run(100) is None
        task.insert()
        assert run(100000) is None
        assert log == ["whole", "rest"]

    def test_nesting(self) -> None:
        log: Log = []

        def body() -> None:
            sorted([3, 1, 2] * 20, key=lambda value: work(50, [], 0) or value)
            log.append("sorted")
            while True:
                pass

        task = tasklet(body)()
        assert run(100) is task
        assert log == ["sorted"]
        task.kill()
        task = tasklet(body)()
        assert run(100, ignore_nesting=True) is task
        assert log == ["sorted"]
        task.kill()
        task = tasklet(body)()
        task.set_ignore_nesting(True)
        assert run(100) is task
        assert run_for(0) is None
        task.insert()
        assert run_for(0, ignore_nesting=True) is task
        assert log == ["sorted"]
        task.kill()

    def test_switch_trap(self) -> None:
        log: Log = []

        def body() -> None:
            tasklets.switch_trap(1)
            work(1000, log, "whole")
            tasklets.switch_trap(-1)
            spin()

        task = tasklet(body)()
        assert run(100) is task
        assert log == ["whole"]
        task.kill()

    def test_callbacks(self) -> None:
        log: Log = []
        tasklets.set_schedule_callback(lambda *_: work(200, log, "called"))
        try:
            task = tasklet(spin)()
            assert run(100) is task
        finally:
            tasklets.set_schedule_callback(None)
        assert log == ["called", "called"]
        task.kill()

    def test_an_event_inside_of_c_alone_never_comes(self) -> None:
        log: Log = []
        tasklet(lambda: log.append(sum(range(100000))))()
        assert run_for(0, ignore_nesting=True) is not None
        assert run() is None


class TestNested:
    def test_the_outermost_with_a_time_out_interrupts(self) -> None:
        log: Log = []

        def inner() -> None:
            assert run(50) is None  # not a watchdog's business
            log.append("inner")

        def outer() -> None:
            log.append(run(1000))

        task = tasklet(spin)()
        waiting = tasklet(inner)()
        tasklet(outer)()
        task.remove()
        waiting.remove()
        tasklet(lambda: (task.insert(), waiting.insert()))()
        assert run() is None
        assert log[0] is task
        run()
        assert log == [task, "inner"]
        task.kill()

    @pytest.mark.parametrize("soft", [False, True])
    def test_who_is_woken(self, soft: bool) -> None:
        order: Log = []
        depth = 3

        def body() -> None:
            while True:
                for _ in range(100):
                    pass
                schedule()

        def runner(level: int) -> None:
            if level:
                tasklet(runner)(level - 1)
            with atomic():
                run(3000, soft=soft, totaltimeout=True, ignore_nesting=True)
                order.append(level)
            for task in both:
                task.kill()

        both = [tasklet(body)(), tasklet(body)()]
        tasklet(runner)(depth)
        run()
        assert order[0] == depth
        assert sorted(order) == [0, 1, 2, 3]

    def test_main_runs_as_a_tasklet(self) -> None:
        log: Log = []

        def runner() -> None:
            log.append(run(100))

        task = tasklet(spin)()
        task.remove()
        tasklet(runner)()
        tasklet(task.insert)()
        main_was_free = channel()
        tasklet(lambda: main_was_free.send(log[0]))().remove()
        assert run() is None
        assert log == [task]
        task.kill()

    def test_woken_by_hand(self) -> None:
        log: Log = []

        def runner() -> None:
            log.append(("inner", run(100000)))

        def waker() -> None:
            getmain().run()
            log.append("waker")

        tasklet(runner)()
        tasklet(waker)()
        assert run() is None
        assert log == []
        assert not any(set_events())
        run()
        assert sorted(map(str, log)) == ["('inner', None)", "waker"]

    def test_a_deeper_one_is_inserted(self) -> None:
        log: Log = []
        tasks: dict[str, tasklet] = {}

        def worker() -> None:
            tasks["second"].insert()
            spin()

        def second() -> None:
            tasks["worker"] = tasklet(worker)()
            run()
            log.append("second")

        def first() -> None:
            tasks["second"] = tasklet(second)()
            assert run(1000, totaltimeout=True, ignore_nesting=True) in tasks.values()
            log.append("first")

        tasklet(first)()
        run()
        assert "first" in log
        for task in tasks.values():
            task.kill()


class TestExceptions:
    def test_in_a_tasklet(self) -> None:
        def body() -> None:
            for _ in range(50):
                pass
            raise KeyError

        tasklet(body)()
        with pytest.raises(KeyError):
            run(1000)
        tasklet(body)()
        with pytest.raises(KeyError):
            run_for(1000)

    def test_from_a_signal_handler(self) -> None:
        def body() -> None:
            for i in range(1000):
                if i == 500:
                    signal.raise_signal(signal.SIGINT)

        interrupts: list[Callable[[], object]] = [lambda: run(100000), lambda: run_for(1000)]
        for interrupt in interrupts:
            tasklet(body)()
            with pytest.raises(KeyboardInterrupt):
                interrupt()

    def test_for_the_owner(self) -> None:
        task = tasklet(spin)()
        tasklet(getmain().throw)(KeyError, pending=True)
        task.remove()
        task.insert()
        with pytest.raises(KeyError):
            run(100)
        assert task.scheduled
        task.kill()

    @pytest.mark.parametrize("kind", LOOPS)
    def test_killed_where_it_was_interrupted(self, kind: str) -> None:
        log: Log = []
        for timeout in range(500, 510):
            task = tasklet(looping(kind, lambda: log.append("caught")))()
            assert run(timeout, ignore_nesting=True) is task
            task.kill()
            assert not task.alive
        assert log == ["caught"] * 10

    def test_killed_in_a_generator(self) -> None:
        log: Log = []

        def endless() -> Iterator[int]:
            while True:
                try:
                    yield 1
                except TaskletExit:
                    log.append("caught")
                    raise

        def body() -> None:
            for _ in endless():
                pass

        for timeout in range(500, 504):
            task = tasklet(body)()
            assert run(timeout) is task
            expected = ["caught"] if task.frame.f_code is endless.__code__ else []
            log.clear()
            task.kill()
            assert log == expected

    def test_the_traceback_tells_where(self) -> None:
        def body() -> None:
            while True:
                pass

        task = tasklet(body)()
        assert run(100) is task
        with pytest.raises(KeyError) as caught:
            task.throw(KeyError)
        assert caught.traceback[-1].frame.code.raw is body.__code__
        assert caught.traceback[-1].lineno - body.__code__.co_firstlineno in (0, 1)

    def test_a_handler_around_the_loop_s_body_is_left(self) -> None:
        log: Log = []

        def body() -> None:
            while True:
                try:
                    continue
                finally:
                    log.append("finally")

        for timeout in range(100, 105):
            task = tasklet(body)()
            assert run(timeout) is task
            rounds = len(log)
            task.kill()
            assert len(log) - rounds <= 1


@pytest.mark.skipif(not MONITORED, reason="3.11 has no sys.monitoring")
class TestMonitoring:
    def test_events_are_on_only_when_needed(self) -> None:
        log: Log = []
        note = lambda: log.append(any(set_events()))  # noqa: E731
        interrupts: list[Callable[[], object]] = [
            lambda: run(100000),
            run,
            lambda: run_for(1000),
            lambda: run_for(0, soft=True),
        ]
        for interrupt in interrupts:
            tasklet(note)()
            interrupt()
            assert not any(set_events())
        # 3.14's compiled loops do not hear of them later.
        early = JIT_ON and sys.version_info < (3, 15)
        assert log == [True, False, early, False]

    def test_a_loop_gets_rid_of_them(self) -> None:
        def body() -> None:
            nonlocal seen
            for _ in range(300):
                pass
            seen = instrumented()

        def instrumented() -> bool:
            code = dis.get_instructions(body, adaptive=True)
            return any(each.opname.startswith("INSTRUMENTED") for each in code)

        seen = None
        task = tasklet(body)()
        assert run(100) is task
        assert instrumented()
        task.insert()
        run()
        assert seen is False

    def test_another_tool_sees_what_it_saw_before(self) -> None:
        events = sys.monitoring.events
        tool = next(i for i in range(6) if sys.monitoring.get_tool(i) is None)
        lines: Log = []

        def body() -> None:
            for i in range(200):
                str(i)

        def one_run(timeout: int) -> Log:
            lines.clear()
            task = tasklet(body)()
            while task.alive:
                if run(timeout) is task:
                    task.insert()
            return list(lines)

        def on_line(code: object, line: int) -> None:
            if code is body.__code__:
                lines.append(line)

        sys.monitoring.use_tool_id(tool, "test")
        try:
            sys.monitoring.register_callback(tool, events.LINE, on_line)
            sys.monitoring.set_events(tool, events.LINE)
            plain = one_run(0)
            assert one_run(20) == plain
            assert len(plain) > 200
            assert sys.monitoring.get_events(tool) == events.LINE
        finally:
            sys.monitoring.set_events(tool, 0)
            sys.monitoring.free_tool_id(tool)

    def test_no_tool_is_free(self) -> None:
        run_child(
            """
            import sys
            from cpythonplus.tasklets import run, run_for, schedule, tasklet
            for i in range(6):
                sys.monitoring.use_tool_id(i, "somebody")
            for call in (lambda: run(5), lambda: run_for(5)):
                tasklet(schedule)()
                try:
                    call()
                except RuntimeError as error:
                    assert "sys.monitoring" in str(error) and "\\n" not in str(error)
                else:
                    raise AssertionError
            assert run_for(5, soft=True) is None
            sys.monitoring.free_tool_id(2)
            def spin():
                while True: pass
            task = tasklet(spin)()
            assert run(100) is task
            sys.monitoring.free_tool_id(2)  # somebody thinks that it is his
            task.insert()
            assert run(100) is task
            """
        )


class TestTracing:
    @pytest.mark.parametrize("timeout", [0, 7])
    def test_a_trace_function_sees_what_it_saw_before(self, timeout: int) -> None:
        log: Log = []

        def tracer(frame: FrameType, event: str, arg: object) -> Any:
            if frame.f_code.co_name != "inner":
                return None
            log.append((event, frame.f_lineno - frame.f_code.co_firstlineno))
            return tracer

        def inner() -> None:
            for _ in range(10):
                len("")

        def body() -> None:
            sys.settrace(tracer)
            schedule()  # on 3.11 that is where the watchdog comes back
            assert sys.gettrace() is tracer
            inner()
            sys.settrace(None)

        task = tasklet(body)()
        while task.alive:
            if run(timeout) is task:
                task.insert()
        lines = [("line", 1), ("line", 2)] * 10
        assert log == [("call", 0), *lines, ("line", 1), ("return", 1)]

    def test_main_keeps_its_own(self) -> None:
        tracer = lambda *_: None  # noqa: E731
        before = sys.gettrace()
        task = tasklet(spin)()
        sys.settrace(tracer)
        try:
            victim = run(100)
            after = sys.gettrace()
        finally:
            sys.settrace(before)
        assert (victim, after) == (task, tracer)
        task.kill()

    def test_opcode_events_only_for_who_asked(self) -> None:
        seen: set[str] = set()

        def tracer(frame: FrameType, event: str, arg: object) -> Any:
            seen.add(event)
            return tracer

        other = tasklet(looping("one line"))()

        def body() -> None:
            sys.settrace(tracer)
            schedule()
            looping("one line")()

        task = tasklet(body)()
        for _ in range(3):
            victim = run(200, totaltimeout=True)
            assert victim is not None
            victim.insert()
        assert "opcode" not in seen
        for each in (task, other):
            each.remove()
        for each in (task, other):
            each.kill()


class TestThreads:
    def test_several_at_once(self) -> None:
        failures: Log = []

        def body() -> None:
            try:
                task = tasklet(spin)()
                for _ in range(30):
                    assert run(200) is task
                    task.insert()
                    assert run_for(0) is task
                    task.insert()
                assert run_for(MOMENT) is task
                task.kill()
            except BaseException as error:  # noqa: BLE001
                failures.append(error)

        threads = [threading.Thread(target=body) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        assert failures == []

    def test_one_that_was_parked_when_another_thread_began_to_count(self) -> None:
        counting, over = threading.Event(), threading.Event()

        def body() -> None:
            begun = False
            while True:
                if not begun:
                    begun = True
                    schedule_remove()

        def count() -> None:
            def counted() -> None:
                counting.set()
                while not over.is_set():
                    pass

            tasklet(counted)()
            assert run(10**9) is None

        task = tasklet(body)()
        run()
        thread = threading.Thread(target=count)
        thread.start()
        assert counting.wait(60)
        task.insert()
        victim = run_for(MOMENT)
        over.set()
        thread.join(60)
        assert victim is task
        task.kill()

    def test_a_thread_ends_within_its_watch(self) -> None:
        def body() -> None:
            tasklet(lambda: run(100000))().run()

        def outer() -> None:
            tasklet(body)()
            tasklet(schedule_remove)()
            run()

        thread = threading.Thread(target=outer)
        thread.start()
        thread.join(60)
        assert not thread.is_alive()

    def test_time_ends_waiting_for_other_threads(self) -> None:
        for soft in (False, True):
            waiting = tasklet(channel().receive)()
            assert run_for(MOMENT, threadblock=True, soft=soft) is None
            assert waiting.blocked
            waiting.kill()

    def test_a_dead_line_far_away_does_not_hold_up_others(self) -> None:
        it = channel()
        tasklet(it.receive)()
        thread = threading.Thread(target=lambda: it.send(None))
        thread.start()
        assert run_for(1000, threadblock=True) is None
        thread.join(60)
        assert not thread.is_alive()


class TestMoments:
    @pytest.mark.skipif(not HAS_JIT, reason="this interpreter has no JIT")
    @pytest.mark.parametrize("kind", ["one line", "while", "counting", "calls"])
    def test_a_loop_that_is_compiled(self, kind: str) -> None:
        """The second time it has been compiled by then, unless it must not be."""
        body = LOOPS[kind].replace("\n", "\n" + 16 * " ")
        run_child(
            f"""
            import sys
            from cpythonplus.tasklets import run_for, tasklet
            assert sys._jit.is_enabled()

            def hop(): return 1
            def body():
                {body}

            task = tasklet(body)()
            for seconds in (0.2, 0.1, 0):
                assert run_for(seconds) is task
                task.insert()
            task.kill()
            """,
            env={"PYTHON_JIT": "1"},
        )

    def test_the_first_watch_of_a_process(self) -> None:
        """What was parked then has run before any tool of sys.monitoring asked for events."""
        run_child(
            """
            from cpythonplus.tasklets import run, schedule_remove, tasklet

            def body():
                schedule_remove()
                while True:
                    pass

            task = tasklet(body)()
            run()
            task.insert()
            assert run(1000) is task
            task.kill()
            """
        )

    @pytest.mark.parametrize("kind", ["one line", "while"])
    @pytest.mark.parametrize("parks", [False, True])
    def test_the_time_passes_in_a_handler_that_a_loop_called(self, kind: str, parks: bool) -> None:
        """The loop is not what runs, or what was parked, then."""
        if JIT_ON and sys.version_info < (3, 15) and parks and kind == "one line":
            pytest.skip("3.14's JIT never leaves it: it was compiled before there was a watch")
        body = LOOPS[kind].replace("\n", "\n" + 16 * " ")
        run_child(
            f"""
            import signal, time
            from cpythonplus.tasklets import channel, run, run_for, tasklet
            go_on = channel()

            def handler(signum, frame):
                if {parks}:
                    go_on.receive()
                end = time.monotonic() + 0.2
                while time.monotonic() < end:
                    pass

            def body():
                {body}

            def spin():
                while True: pass

            signal.signal(signal.SIGALRM, handler)
            task = tasklet(body)()
            # A handler that parks is called in the loop, not before main has got to it.
            signal.setitimer(signal.ITIMER_REAL, {0.5 if parks else 0.05})
            if {parks}:
                run()
                tasklet(go_on.send)(None)
            assert run_for(0.1) is task
            task.insert()
            assert run_for(0.01) is task
            task.kill()
            """
        )

    @pytest.mark.parametrize("after_an_end", [False, True])
    def test_the_time_passes_in_a_schedule_callback(self, after_an_end: bool) -> None:
        """On the way to a parked loop."""
        run_child(
            f"""
            import time
            from cpythonplus.tasklets import *
            from cpythonplus.tasklets import run, run_for, schedule_remove, set_schedule_callback

            def body():
                schedule_remove()
                while True:
                    pass

            task = tasklet(body)()
            run()
            if {after_an_end}:
                tasklet(int)()
            task.insert()
            set_schedule_callback(lambda before, after: after is task and time.sleep(0.05))
            assert run_for(0.01) is task
            set_schedule_callback(None)
            task.kill()
            """
        )

    def test_killed_with_another_one_in_the_same_loop(self) -> None:
        """By a signal handler that comes before the first one's next instruction."""
        child = run_child(
            """
            import _thread, operator, signal
            from functools import partial
            from cpythonplus.tasklets import run, tasklet

            def spin(name):
                try:
                    while True:
                        pass
                finally:
                    print(name)

            def victim(name):
                task = tasklet(spin)(name)
                assert run(100) is task
                return task

            one, two = victim(1), victim(2)
            signal.signal(signal.SIGUSR1, lambda *_: two.kill())
            at_once = [partial(_thread.interrupt_main, signal.SIGUSR1), one.kill]
            list(map(operator.call, at_once))
            assert not one.alive and not two.alive
            """
        )
        assert sorted(child.out.split()) == ["1", "2"]

    def test_one_that_was_stopped_on_its_way_in_goes_to_another_thread(self) -> None:
        """It got a stack here, and brings none along."""
        log: Log = []

        def busy() -> None:
            for _ in range(100):
                pass
            schedule()

        def there() -> None:
            late.bind_thread()
            late.insert()
            run()

        tasklet(busy)()
        late = tasklet(log.append)("late")
        assert run(10, soft=True) is None
        assert log == []
        late.remove()
        thread = threading.Thread(target=there)
        thread.start()
        thread.join(60)
        assert log == ["late"]
        run()

    def test_destructors_at_the_end_of_a_watched_thread(self) -> None:
        """Main returns from its thread in a watch of another tasklet."""
        run_child(
            """
            import threading
            from cpythonplus.tasklets import run, schedule, tasklet

            class Loud:
                def __del__(self):
                    for _ in range(3):
                        log.append(1)

            def work():
                tasklet(lambda: run(10**9))()
                schedule()
                local.loud = Loud()

            log, local = [], threading.local()
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            assert log == [1, 1, 1]
            """
        )


# gcc's AddressSanitizer does not know fork: the child's helper thread would wait for it for ever.
FORKED = "another thread may have held a lock of the sanitizer's allocator"


class TestEnds:
    @pytest.mark.skipif(SANITIZED, reason=FORKED)
    def test_a_fork_within_a_watch(self) -> None:
        child = run_child(
            """
            import os
            from cpythonplus.tasklets import run, run_for, tasklet
            def body():
                child = os.fork()
                while child == 0: pass
                assert os.waitpid(child, 0)[1] == 0
            def spin():
                while True: pass
            for call in (lambda: run(500), lambda: run_for(0.2)):
                task = tasklet(body)()
                victim = call()
                if victim is not None:  # the child
                    assert victim is task
                    task.kill()
                    again = tasklet(spin)()
                    assert run_for(0.01) is again
                    again.insert()
                    assert run(100) is again
                    os._exit(0)
                print("parent")
            """
        )
        assert child.out.split() == ["parent", "parent"]

    @pytest.mark.skipif(SANITIZED, reason=FORKED)
    def test_a_fork_beside_a_watch(self) -> None:
        run_child(
            """
            import os, sys, threading
            from cpythonplus.tasklets import channel, run, run_for, tasklet
            def spin():
                ready.set()
                while not over: pass
            def body():
                tasklet(spin)()
                call()
            for call in (lambda: run(10**9), lambda: run_for(1000)):
                ready, over = threading.Event(), False
                thread = threading.Thread(target=body)
                thread.start()
                ready.wait()
                child = os.fork()
                if child == 0:
                    if sys.version_info >= (3, 12):
                        assert not any(sys.monitoring.get_events(i) for i in range(6)
                                       if sys.monitoring.get_tool(i))
                    try:
                        channel().receive()
                    except RuntimeError:
                        task = tasklet(spin)()
                        assert run(100) is task
                        task.insert()
                        assert run_for(0.01) is task
                        os._exit(0)
                    os._exit(1)
                assert os.waitpid(child, 0)[1] == 0
                over = True
                thread.join()
            """
        )

    def test_a_debugger_inside(self) -> None:
        child = run_child(
            """
            import io, pdb, sys
            from cpythonplus.tasklets import run, tasklet
            commands = io.StringIO("next\\nstep\\nprint('here', x)\\nreturn\\ncontinue\\n")
            def double(x):
                for _ in range(100): pass
                return 2 * x
            def body():
                pdb.Pdb(stdin=commands, stdout=io.StringIO(), nosigint=True).set_trace()
                x = 1
                x = double(x)
                done.append(x)
            done = []
            task = tasklet(body)()
            while task.alive:
                if run(20) is task:
                    task.insert()
            print(done)
            """
        )
        assert child.out.splitlines()[-1] == "[2]"

    def test_a_program_ends_with_a_victim(self) -> None:
        child = run_child(
            """
            import atexit
            from cpythonplus.tasklets import run, run_for, tasklet
            def body(name):
                try:
                    while True: pass
                finally:
                    print("ended", name)
            kept = [tasklet(body)(1), tasklet(body)(2)]
            assert run(100) is kept[0]
            assert run_for(0.01) is kept[1]
            """
        )
        assert child.out.splitlines() == ["ended 1", "ended 2"]

    def test_a_program_ends_while_a_thread_is_watched(self) -> None:
        run_child(
            """
            import threading
            from cpythonplus.tasklets import run, run_for, tasklet
            def spin():
                ready.set()
                while True: pass
            def body(call):
                tasklet(spin)()
                call()
            for call in (lambda: run(10**9), lambda: run_for(0.01)):
                ready = threading.Event()
                threading.Thread(target=body, args=(call,), daemon=True).start()
                ready.wait()
            """
        )

    def test_no_dead_lines_after_the_last_exit_function(self) -> None:
        child = run_child(
            """
            import atexit
            @atexit.register
            def last():
                tasklets.tasklet(print)("never")
                try:
                    tasklets.run_for(5)
                except RuntimeError as error:
                    print(error)
            from cpythonplus import tasklets
            """
        )
        assert child.out == "run_for(): the interpreter is ending\n"

    def test_the_helper_is_nobody_who_could_wake_a_blocked_one(self) -> None:
        child = run_child(
            """
            from cpythonplus.tasklets import channel, run_for, tasklet
            def spin():
                while True: pass
            task = tasklet(spin)()
            assert run_for(0.01) is task
            task.kill()
            try:
                channel().receive()
            except RuntimeError as error:
                print(str(error)[:8])
            """
        )
        assert child.out == "Deadlock\n"


@pytest.mark.skipif(not MONITORED, reason="there are no numbered changes before 3.12")
def test_the_interpreters_numbers_do_not_run_out() -> None:
    """After a million changes the events stay on from one watch to the next."""
    run_child(
        """
        import sys
        from cpythonplus import _native
        from cpythonplus.tasklets import run, schedule, tasklet

        def watch():
            task = tasklet(spin)()
            assert run(100) is task
            task.kill()
            return any(sys.monitoring.get_events(tool) for tool in range(6))

        def spin():
            while True:
                pass

        def quiet():
            while not over:
                steps.append(1)
                schedule()

        assert not watch()
        assert _native.tasklets_event_changes(1 << 20) == 2
        assert watch()
        after = _native.tasklets_event_changes()
        over, steps = [], []
        resting = tasklet(quiet)()
        for _ in range(20):
            assert watch()
        assert _native.tasklets_event_changes() == after
        assert run(100) is None or len(steps) > 20
        over.append(1)
        """
    )
