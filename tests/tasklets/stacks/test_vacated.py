"""Tasklets that are taken off their C stacks, and wait as frames alone: nobody notices."""

import contextlib
import contextvars
import copy
import gc
import pickle
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cpythonplus import tasklets
from cpythonplus.tasklets import TaskletExit, channel, run, schedule_remove, tasklet, trim_stacks
from cpythonplus.tasklets.io import call_later
from tests.support import run_child

Log = list[Any]


@pytest.fixture(autouse=True)
def nobody_else() -> None:
    """Deal with those of earlier tests first."""
    trim_stacks()


def is_vacated(task: tasklet) -> bool:
    """Whether it has no C stack: its frames are an object of their own, with a tuple of them."""
    snapshots = [each for each in gc.get_referents(task) if type(each).__name__ == "_Snapshot"]
    tuples = [each for each in gc.get_referents(*snapshots) if type(each) is tuple]
    return any(all(type(frame) is tuple for frame in each) for each in tuples)


def vacated(body: Callable[..., object], *args: object) -> tasklet:
    """Start it, let it run until it waits, and take it off its C stack."""
    task = tasklet(body)(*args)
    run()
    assert trim_stacks() == 1
    assert is_vacated(task)
    return task


STATES = (
    "alive",
    "atomic",
    "blocked",
    "ignore_nesting",
    "is_current",
    "is_main",
    "nesting_level",
    "paused",
    *(("recursion_depth",) if sys.version_info >= (3, 12) else ()),  # 3.11 counts calls of C, too
    "restorable",
    "scheduled",
    "tempval",
    "thread_id",
)


class Thing:
    """What a weak reference can point to."""


def pause() -> None:
    """Stop once."""
    schedule_remove(None)


def go_on(task: tasklet) -> None:
    """Let a paused one run."""
    task.insert()
    run()


class TestNothingIsExecuted:
    def test_neither_handlers_nor_ends_of_with(self) -> None:
        log = Log()

        @contextlib.contextmanager
        def managed() -> Iterator[None]:
            log.append("in")
            try:
                yield
            finally:
                log.append("out")

        def body() -> None:
            try:
                with managed():
                    try:
                        log.append(schedule_remove("value"))
                    except BaseException:
                        log.append("handled")
                        raise
                    finally:
                        log.append("finally")
            finally:
                log.append("outer")

        task = vacated(body)
        assert log == ["in"]
        go_on(task)
        assert log == ["in", "value", "finally", "out", "outer"]

    def test_nothing_is_freed(self) -> None:
        gate, log = channel(), Log()

        def body(thing: Any, *more: Any) -> None:  # noqa: ANN401
            other = Thing()
            late = weakref.ref(other)
            gate.send(other)
            del other
            log.append((thing is alive(), late(), len(more)))

        thing = Thing()
        alive = weakref.ref(thing, lambda _: log.append("freed"))
        task = vacated(body, thing, 1, 2)
        del thing
        assert log == []
        gate.receive()
        run()
        assert log == [(True, None, 2), "freed"]
        assert not task.alive

    def test_the_arguments_live_as_long_as_it(self) -> None:
        thing = Thing()
        alive = weakref.ref(thing)

        def body(thing: object) -> None:
            del thing
            schedule_remove()
            schedule_remove()

        task = vacated(body, thing)
        del thing
        assert alive() is not None
        go_on(task)
        assert alive() is not None
        go_on(task)
        assert alive() is None

    def test_what_its_call_takes_lives_with_it(self) -> None:
        class Gate(channel):
            pass

        log = Log()

        def body() -> None:
            log.append(Gate().receive())

        task = tasklet(body)()
        run()
        alive = weakref.ref(task._channel)
        assert trim_stacks() == 1
        gc.collect()
        gate = alive()
        assert gate is not None
        gate.send(1)
        del gate
        run()
        assert (log, alive()) == ([1], None)

    def test_the_exception_that_it_handles(self) -> None:
        log = Log()

        def body() -> None:
            try:
                int("first")
            except ValueError:
                try:
                    sys.exc_info()[1].with_traceback(None)  # type: ignore[union-attr]
                    schedule_remove()
                    raise
                except ValueError as error:
                    log.append(type(error))
            log.append(sys.exc_info()[0])

        go_on(vacated(body))
        assert log == [ValueError, None]

    def test_its_context(self) -> None:
        variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable")
        log = Log()

        def body() -> None:
            variable.set(5)
            schedule_remove()
            log.append(variable.get())

        task = vacated(body)
        number = task.context_id
        go_on(task)
        assert log == [5]
        assert number != contextvars.copy_context()

    def test_again_and_again_at_any_depth(self) -> None:
        log = Log()

        def down(depth: int) -> int:
            return schedule_remove(1) if depth == 0 else 1 + down(depth - 1)

        def body() -> None:
            for depth in (0, 1, 50, 400):
                log.append(down(depth))

        depths: list[int] = []
        task = tasklet(body)()
        run()
        while task.alive:
            assert trim_stacks() == 1
            assert is_vacated(task)
            depths.append(task.recursion_depth)
            go_on(task)
        assert log == [1, 2, 51, 401]
        # 3.11 counts what began the evaluation, too.
        spare = sys.version_info < (3, 12)
        for depth, more in zip(depths, (0, 1, 50, 400), strict=True):
            assert more <= depth - depths[0] <= more + spare

    def test_flags_and_states_stay(self) -> None:
        gate = channel()
        task = tasklet(lambda: [gate.receive()])()
        task.set_ignore_nesting(True)
        run()
        before = [getattr(task, name) for name in STATES]
        assert trim_stacks() == 1
        assert is_vacated(task)
        assert [getattr(task, name) for name in STATES] == before
        assert gate.queue is task
        with pytest.raises(RuntimeError, match="scheduled"):
            task.bind(None)
        gate.send(1)
        run()
        assert not task.alive


class TestEnds:
    def test_exceptions_reach_it(self) -> None:
        log = Log()

        def body() -> None:
            try:
                schedule_remove()
            except ValueError as error:
                log.append(error.args)

        task = vacated(body)
        task.throw(ValueError, ValueError("sent"))
        assert log == [("sent",)]
        assert not task.alive

    def test_nobody_knows_it_any_more(self) -> None:
        log = Log()

        def body() -> None:
            try:
                schedule_remove(None)
            except TaskletExit:
                log.append("exit")
                raise
            finally:
                log.append("finally")

        task = vacated(body)
        del task
        assert log == ["exit", "finally"]

    def test_a_channel_that_nobody_knows(self) -> None:
        log = Log()

        def body(gate: channel) -> None:
            try:
                gate.receive()
            finally:
                log.append("finally")

        vacated(body, channel())
        gc.collect()
        assert log == ["finally"]

    def test_its_thread_ends(self) -> None:
        log = Log()
        gate = channel()

        def body(wait: Callable[[], object]) -> None:
            try:
                wait()
            finally:
                log.append(type(sys.exc_info()[1]))

        def work() -> None:
            kept.append(tasklet(body)(gate.receive))
            kept.append(tasklet(body)(pause))
            kept.append(tasklet(body)(lambda: [gate.receive()]))
            run()
            log.append(trim_stacks())

        kept: list[tasklet] = []
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert log == [3, TaskletExit, TaskletExit, TaskletExit]
        assert gate.balance == 0
        assert not any(task.alive for task in kept)

    @pytest.mark.parametrize("where", ["main", "thread"])
    def test_the_interpreter_ends(self, where: str) -> None:
        out = run_child(
            f"""
            import threading
            from cpythonplus.tasklets import channel, run, tasklet, trim_stacks

            gate = channel()

            def body():
                try:
                    gate.receive()
                finally:
                    print("finally")

            def work():
                tasklet(body)()
                run()
                print(trim_stacks())

            if {where!r} == "main":
                work()
            else:
                thread = threading.Thread(target=work)
                thread.start()
                thread.join()
            """
        ).out
        assert out.split() == ["1", "finally"]

    def test_in_the_call_of_a_class_where_nothing_was_pickled(self) -> None:
        out = run_child(
            """
            from cpythonplus.tasklets import channel, run, tasklet, trim_stacks

            gate, got = channel(), []

            class Waits:
                def __init__(self):
                    self.got = gate.receive()

            tasks = [tasklet(lambda: got.append(Waits().got))() for _ in range(3)]
            run()
            trim_stacks()
            gate.send(1)
            print(tasks[1].restorable)
            trim_stacks()
            gate.send(2)
            gate.send(3)
            run()
            print(got)
            """
        ).out
        assert out.splitlines() == ["True", "[1, 2, 3]"]

    def test_after_a_fork(self) -> None:
        run_child(
            """
            import os
            from cpythonplus.tasklets import channel, run, tasklet, trim_stacks

            gate, seen = channel(), []
            tasklet(lambda: seen.append(gate.receive()))()
            run()
            assert trim_stacks() == 1
            child = os.fork()
            gate.send(child)
            run()
            assert seen == [child]
            if child:
                assert os.waitpid(child, 0)[1] == 0
            """
        )


class TestBesideOthers:
    def test_a_copy_and_a_pickle(self) -> None:
        log = Log()
        task = vacated(logs_twice, log)
        twin = copy.copy(task)
        data = pickle.dumps(task)
        go_on(task)
        go_on(twin)
        assert log == ["first", "first"]
        assert pickle.loads(data).restorable

    def test_its_frame_puts_it_on_a_stack(self) -> None:
        log = Log()
        task = vacated(logs_twice, log)
        frame = task.frame
        assert not is_vacated(task)
        assert frame is not None
        assert frame.f_code is logs_twice.__code__
        with pytest.raises(pickle.PicklingError):
            pickle.dumps(task)
        gc.collect()
        go_on(task)
        assert log == ["first"]
        del frame
        assert trim_stacks() == 1
        assert is_vacated(task)
        go_on(task)
        assert log == ["first", "second"]

    def test_its_frame_and_then_its_end(self) -> None:
        log = Log()
        task = vacated(logs_twice, log)
        assert task.frame is not None
        task.kill()
        assert not task.alive
        assert log == []

    @pytest.mark.parametrize("seat", [False, True])
    def test_a_lower_recursion_limit_is_for_new_calls(self, *, seat: bool) -> None:
        def down(depth: int) -> int:
            return schedule_remove(1) if depth == 0 else 1 + down(depth - 1)

        log = Log()
        task = vacated(lambda: log.append(down(290)))
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(250)
        try:
            assert not seat or task.frame is not None
            go_on(task)
        finally:
            sys.setrecursionlimit(limit)
        assert log == [291]

    def test_at_the_recursion_limit(self) -> None:
        def down(depth: int, log: Log) -> None:
            try:
                if depth == 0:
                    log.append(schedule_remove("on"))
                else:
                    down(depth - 1, log)
            except RecursionError:
                log.append("too deep")
                raise

        limit = sys.getrecursionlimit()
        for depth in range(limit - 20, limit + 20):
            log = Log()
            task = tasklet(down)(depth, log)
            with contextlib.suppress(RecursionError):
                run()
            if not task.alive:
                break
            trim_stacks()
            go_on(task)
            assert log == ["on"]
        else:
            pytest.fail("the limit was not met")

    @pytest.mark.parametrize("named", [False, True])
    def test_garbage_that_was_put_on_a_stack(self, *, named: bool) -> None:
        log = Log()

        class Gate(channel):
            pass

        def body() -> None:
            gate = Gate()
            wait = gate.receive
            if not named:
                del gate
            try:
                wait()
            finally:
                log.append("finally")

        task = vacated(body)
        assert task.frame is not None
        gc.collect()
        del task
        gc.collect()
        assert log == ["finally"]

    def test_the_collector_waits_while_it_is_put_on_a_stack(self) -> None:
        log = Log()

        class Garbage:
            def __init__(self) -> None:
                self.itself = self

            def __del__(self) -> None:
                log.append(tasklets.getcurrent())
                tasklets.schedule()

        task = vacated(pause)
        other = tasklet(pause)()
        threshold = gc.get_threshold()
        gc.disable()
        try:
            Garbage()
            gc.set_threshold(1, 1, 1)
            gc.enable()
            assert task.frame is not None
        finally:
            gc.enable()
            gc.set_threshold(*threshold)
        gc.collect()
        assert log == [tasklets.getcurrent()]
        go_on(task)
        go_on(other)

    def test_what_locals_keeps(self) -> None:
        log = Log()

        def body() -> None:
            there = locals()
            there["more"] = 1
            schedule_remove()
            log.append((locals() is there, locals().get("more")))

        result = [(False, None)] if sys.version_info >= (3, 13) else [(True, 1)]
        task = tasklet(body)()
        run()
        trim_stacks()
        go_on(task)
        assert log == result

    def test_it_stays_in_its_thread(self) -> None:
        log = Log()
        first, second, third = (tasklet(logs_twice)(log) for _ in range(3))
        run()
        assert trim_stacks() == 3
        begun, done = threading.Event(), threading.Event()

        def work() -> None:
            tasklets.getcurrent()
            begun.set()
            done.wait()

        thread = threading.Thread(target=work)
        thread.start()
        begun.wait()
        try:
            with pytest.raises(RuntimeError, match="C state"):
                second.bind_thread(thread.ident or 0)
        finally:
            done.set()
            thread.join()
        for task in (second, first, third):
            go_on(task)
            task.kill()
        assert log == ["first"] * 3

    def test_a_timer_that_has_begun_is_not_cancelled(self) -> None:
        gate, log = channel(), Log()
        timer = call_later(0, lambda: log.append(gate.receive()))
        run()
        assert trim_stacks() == 1
        active = Log()
        thread = threading.Thread(target=lambda: active.append(timer.active))
        thread.start()
        thread.join()
        assert active == [False]
        timer.cancel()
        gate.send(1)
        run()
        assert log == [1]

    def test_reports_say_that_it_has_begun(self) -> None:
        task = vacated(logs_twice, Log())
        [thread] = [each for each in tasklets.report() if each.ident == threading.get_ident()]
        assert all(each.begun for each in thread.tasklets)
        task.kill()

    def test_reports_name_it(self) -> None:
        task = vacated(logs_twice, Log())
        text = tasklets.dump_text() if hasattr(tasklets, "dump_text") else repr(task)
        assert "logs_twice" in text or "paused" in text

    @pytest.mark.parametrize("install", [sys.settrace, sys.setprofile])
    def test_tracers_see_nothing_of_it(self, install: Callable[[Any], None]) -> None:
        log, seen = Log(), Log()
        task = tasklet(logs_twice)(log)
        run()

        def report(_frame: object, event: str, _argument: object) -> None:
            seen.append(event)

        install(report)
        trim_stacks()
        install(None)
        assert not {"exception", "return"} & set(seen)
        go_on(task)
        assert log == ["first"]

    @pytest.mark.skipif(sys.version_info < (3, 12), reason="3.11 has no sys.monitoring")
    @pytest.mark.parametrize("local", [False, True])
    def test_monitoring_tools_see_nothing_of_it(self, *, local: bool) -> None:
        log, seen = Log(), Log()
        monitoring: Any = getattr(sys, "monitoring")  # noqa: B009  # checked for 3.11 as well
        events = monitoring.events
        tool = next(number for number in range(6) if monitoring.get_tool(number) is None)
        monitoring.use_tool_id(tool, "test")
        try:
            for event in (events.PY_UNWIND, events.RAISE, events.C_RAISE):
                monitoring.register_callback(tool, event, lambda *_: seen.append(_))
            if local:
                monitoring.set_local_events(tool, logs_twice.__code__, events.CALL)
            else:
                monitoring.set_events(tool, events.PY_UNWIND | events.RAISE | events.CALL)
            task = tasklet(logs_twice)(log)
            run()
            assert trim_stacks() == 1
            assert seen == []
            go_on(task)
        finally:
            monitoring.set_events(tool, 0)
            monitoring.set_local_events(tool, logs_twice.__code__, 0)
            monitoring.free_tool_id(tool)
        assert log == ["first"]
        go_on(task)

    def test_not_in_the_middle_of_a_callback(self) -> None:
        log = Log()
        task = tasklet(logs_twice)(log)
        run()
        counts: list[int] = []
        tasklets.set_schedule_callback(lambda *_: counts.append(trim_stacks()))
        try:
            tasklet(lambda: None)()
            run()
        finally:
            tasklets.set_schedule_callback(None)
        assert not is_vacated(task)
        assert counts
        go_on(task)
        assert log == ["first"]


def logs_twice(log: Log) -> None:
    """Stop before each entry."""
    schedule_remove()
    log.append("first")
    schedule_remove()
    log.append("second")


def test_not_in_a_finaliser_at_its_end() -> None:
    log, gate = Log(), channel()

    class Late:
        def __call__(self) -> None:
            log.append("called")

        def __del__(self) -> None:
            log.append(gate.receive())

    task = tasklet(Late())()
    run()
    assert task.blocked
    with pytest.raises(pickle.PicklingError, match="in C code only"):
        pickle.dumps(task)
    trim_stacks()
    assert not is_vacated(task)
    gate.send("freed")
    run()
    assert log == ["called", "freed"]
    assert not task.alive
