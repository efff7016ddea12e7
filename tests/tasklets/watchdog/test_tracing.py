"""Trace and profile functions of tasklets: set from outside, inherited, dropped; monitoring."""

# ruff: noqa: ANN401, ARG002, ARG005 (callbacks get more than they need)
# mypy: disable-error-code="attr-defined"
# (3.11 has no such module as sys.monitoring)

import gc
import sys
import threading
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from cpythonplus import tasklets
from cpythonplus.tasklets import (
    channel,
    getcurrent,
    getmain,
    io,
    run,
    schedule,
    schedule_remove,
    tasklet,
)
from tests.support import run_child

Log = list[Any]
KINDS = ["trace", "profile"]


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    """Restore what pytest's own tools have set; fail when the interpreter goes on tracing."""
    before = sys.gettrace(), sys.getprofile()
    sys.settrace(None)
    sys.setprofile(None)
    yield
    left = sys.gettrace(), sys.getprofile()
    tasklets.set_trace_inheritance(None)
    sys.settrace(before[0])
    sys.setprofile(before[1])
    assert left == (None, None)


def leaf() -> None:
    pass


def helper() -> None:
    leaf()


class Recorder:
    """A trace or profile function that notes (who runs, event, function)."""

    def __init__(self) -> None:
        self.log: Log = []

    def __call__(self, frame: FrameType, event: str, arg: object) -> "Recorder":
        if frame.f_code in {helper.__code__, leaf.__code__} and event in {"call", "return"}:
            self.log.append((getcurrent(), event, frame.f_code.co_name))
        return self

    def calls(self) -> Log:
        return [(task, name) for task, event, name in self.log if event == "call"]


def both_calls(task: tasklet) -> Log:
    return [(task, "helper"), (task, "leaf")]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def put(task: tasklet, kind: str, value: object) -> None:
    setattr(task, f"{kind}_function", value)


def of(task: tasklet, kind: str) -> object:
    return getattr(task, f"{kind}_function")


def sys_set(kind: str) -> Callable[[Any], None]:
    return sys.settrace if kind == "trace" else sys.setprofile


def sys_get(kind: str) -> object:
    return sys.gettrace() if kind == "trace" else sys.getprofile()


class TestSetting:
    def test_one_that_has_not_begun(self, kind: str) -> None:
        seen = Recorder()
        it, other = tasklet(helper)(), tasklet(helper)()
        put(it, kind, seen)
        assert of(it, kind) is seen
        assert sys_get(kind) is None
        helper()
        run()
        assert seen.calls() == both_calls(it)
        assert (of(it, kind), of(other, kind)) == (None, None)

    def test_a_parked_one(self, kind: str) -> None:
        seen = Recorder()

        def body() -> None:
            helper()
            schedule()
            assert sys_get(kind) is seen
            helper()

        it, other = tasklet(body)(), tasklet(schedule)()
        schedule()
        put(it, kind, seen)
        assert (of(it, kind), of(other, kind), sys_get(kind)) == (seen, None, None)
        helper()
        run()
        assert seen.calls() == both_calls(it)

    def test_the_current_one(self, kind: str) -> None:
        seen = Recorder()

        def body() -> None:
            put(getcurrent(), kind, seen)
            helper()
            schedule()
            assert sys_get(kind) is seen
            helper()
            put(getcurrent(), kind, None)
            helper()

        it = tasklet(body)()
        schedule()
        assert sys_get(kind) is None
        helper()
        run()
        assert seen.calls() == both_calls(it) * 2

    def test_main_from_a_tasklet(self, kind: str) -> None:
        seen = Recorder()
        tasklet(put)(getmain(), kind, seen)
        run()
        assert sys_get(kind) is seen
        helper()
        sys_set(kind)(None)
        assert seen.calls() == both_calls(getmain())

    def test_taken_away_from_a_parked_one(self, kind: str) -> None:
        seen = Recorder()

        def body() -> None:
            sys_set(kind)(seen)
            schedule()
            helper()

        it = tasklet(body)()
        schedule()
        assert of(it, kind) is seen
        put(it, kind, None)
        assert of(it, kind) is None
        run()
        assert seen.calls() == []

    def test_taken_away_from_one_that_has_not_begun(self, kind: str) -> None:
        seen = Recorder()
        it = tasklet(helper)()
        put(it, kind, seen)
        delattr(it, f"{kind}_function")
        assert of(it, kind) is None
        run()
        assert seen.calls() == []

    def test_who_sets_keeps_their_own(self, kind: str) -> None:
        """Here and there, in turns; nothing of the setting itself is traced."""
        here, there = Recorder(), Recorder()

        def body() -> None:
            schedule()
            helper()

        it = tasklet(body)()
        schedule()
        sys_set(kind)(here)
        put(it, kind, there)
        helper()
        run()
        helper()
        sys_set(kind)(None)
        assert here.calls() == both_calls(getmain()) * 2
        assert there.calls() == both_calls(it)

    def test_line_events_of_a_frame_that_is_there_already(self) -> None:
        lines: list[int] = []

        def body() -> None:
            schedule()
            lines.append(0)
            leaf()

        def tracer(frame: FrameType, event: str, arg: object) -> Any:
            if event == "line":
                lines.append(frame.f_lineno - body.__code__.co_firstlineno)
            return tracer

        it = tasklet(body)()
        schedule()
        it.trace_function = tracer
        frame = it.frame
        assert frame is not None
        frame.f_trace = tracer
        del frame
        run()
        assert lines[:3] == [2, 0, 3]

    def test_not_alive(self, kind: str) -> None:
        it = tasklet(int)
        put(it, kind, None)
        with pytest.raises(RuntimeError, match=r"^tasklet is not alive$"):
            put(it, kind, print)
        it()
        run()
        with pytest.raises(RuntimeError, match=r"^tasklet is not alive$"):
            put(it, kind, print)

    def test_what_never_runs_is_dropped(self, kind: str) -> None:
        seen = Recorder()
        it = tasklet(helper).bind(None, ())
        put(it, kind, seen)
        gone = weakref.ref(seen)
        del seen
        assert gone() is not None
        it.bind(None)
        assert gone() is None
        it.bind(helper, ())
        seen = Recorder()
        put(it, kind, seen)
        gone = weakref.ref(seen)
        del seen
        del it
        assert gone() is None

    def test_of_one_that_is_killed_before_it_begins(self, kind: str) -> None:
        it = tasklet(helper)()
        seen = Recorder()
        put(it, kind, seen)
        gone = weakref.ref(seen)
        del seen
        it.kill()
        assert gone() is None

    def test_a_cycle_through_its_tracer(self, kind: str) -> None:
        class Tracer(Recorder):
            task: tasklet

        seen = Tracer()
        seen.task = tasklet(schedule_remove)()
        run()
        put(seen.task, kind, seen)
        gone = weakref.ref(seen)
        del seen
        gc.collect()
        assert gone() is None

    def test_the_old_ones_destructor_may_switch(self, kind: str) -> None:
        log: Log = []

        class Switching(Recorder):
            def __del__(self) -> None:
                schedule()
                log.append(sys_get(kind))

        it = tasklet(helper)()
        put(it, kind, Switching())
        seen = Recorder()
        put(it, kind, seen)
        run()
        assert log == [None]
        assert seen.calls() in ([], both_calls(it))

    def test_another_one_from_within_a_trace_function(self) -> None:
        there = Recorder()
        it = tasklet(helper)()

        def tracer(frame: FrameType, event: str, arg: object) -> Any:
            it.trace_function = there

        sys.settrace(tracer)
        leaf()
        sys.settrace(None)
        run()
        assert there.calls() == both_calls(it)

    def test_switching_inside_of_a_trace_function(self) -> None:
        """The other one is traced as ever; the one inside goes on where it was."""
        here, there = Recorder(), Recorder()

        def body() -> None:
            sys.settrace(there)
            for _ in range(3):
                helper()
                schedule()
            sys.settrace(None)

        def tracer(frame: FrameType, event: str, arg: object) -> Any:
            if frame.f_code is helper.__code__ and event == "call":
                schedule()
            return here(frame, event, arg)

        it = tasklet(body)()
        sys.settrace(tracer)
        helper()
        sys.settrace(None)
        run()
        assert here.calls() == both_calls(getmain())
        assert there.calls() == both_calls(it) * 3


class TestEvents:
    def test_c_calls_that_switch_are_seen_from_both_sides(self) -> None:
        log: Log = []

        def profiler(frame: FrameType, event: str, arg: Any) -> None:
            if event in {"c_call", "c_return"} and arg is schedule:
                log.append((getcurrent(), event))

        def body() -> None:
            sys.setprofile(profiler)
            schedule()
            schedule()
            sys.setprofile(None)

        made = [tasklet(body)(), tasklet(body)()]
        run()
        for it in made:
            assert [event for task, event in log if task is it] == ["c_call", "c_return"] * 2

    def test_what_is_thrown_into_one(self) -> None:
        log: Log = []

        def tracer(frame: FrameType, event: str, arg: Any) -> Any:
            if event in {"exception", "return"}:
                log.append((getcurrent(), event, frame.f_code.co_name))
            return tracer

        def inner() -> None:
            schedule_remove(None)

        def body() -> None:
            inner()

        def untraced() -> None:
            inner()

        it, other = tasklet(body)(), tasklet(untraced)()
        it.trace_function = tracer
        run()
        with pytest.raises(KeyError):
            other.throw(KeyError)
        it.kill()
        assert log == [
            (it, "exception", "inner"),
            (it, "return", "inner"),
            (it, "exception", "body"),
            (it, "return", "body"),
        ]

    def test_a_tracer_that_raises_is_dropped_in_its_tasklet_only(self) -> None:
        seen, log = Recorder(), []

        def fails(frame: FrameType, event: str, arg: Any) -> Any:
            raise KeyError

        def body() -> None:
            schedule()
            try:
                helper()
            except KeyError:
                log.append(sys.gettrace())

        def other() -> None:
            schedule()
            schedule()
            helper()

        one, two = tasklet(body)(), tasklet(other)()
        schedule()
        one.trace_function, two.trace_function = fails, seen
        run()
        assert log == [None]
        assert seen.calls() == both_calls(two)


class TestSettingThreads:
    def test_the_current_one_of_another_thread(self, kind: str) -> None:
        errors: list[str] = []
        main = getmain()

        def body() -> None:
            try:
                put(main, kind, print)
            except RuntimeError as error:
                errors.append(str(error))

        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        assert errors == [
            f"You cannot set the {kind} function of the current tasklet of another thread"
        ]

    def test_a_parked_one_of_another_thread(self, kind: str) -> None:
        seen = Recorder()

        def body() -> None:
            schedule()
            helper()

        it = tasklet(body)()
        schedule()
        thread = threading.Thread(target=put, args=(it, kind, seen))
        thread.start()
        thread.join()
        run()
        assert seen.calls() == both_calls(it)

    def test_one_whose_thread_has_ended(self, kind: str) -> None:
        made: list[tasklet] = []
        thread = threading.Thread(target=lambda: made.append(tasklet(int).bind(None, ())))
        thread.start()
        thread.join()
        with pytest.raises(RuntimeError, match=r"^tasklet is not alive$"):
            put(made[0], kind, print)


class TestInheritance:
    def test_off_if_asked_for(self, kind: str) -> None:
        seen = Recorder()
        assert tasklets.set_trace_inheritance(0) is None
        sys_set(kind)(seen)
        tasklet(helper)()
        run()
        sys_set(kind)(None)
        assert seen.calls() == []
        assert tasklets.set_trace_inheritance(True) is False
        assert tasklets.set_trace_inheritance(None) is True

    def test_the_loop_s_tasklet_has_none(self, kind: str) -> None:
        seen = set()

        def note(*_: object) -> object:
            seen.add(getcurrent())
            return note

        def sleeper() -> None:
            io.sleep(0.01)

        sys_set(kind)(note)
        it = tasklet(sleeper)()
        run()
        sys_set(kind)(None)
        assert seen == {getmain(), it}

    def test_new_ones_have_their_maker_s(self, kind: str) -> None:
        seen = Recorder()
        made: list[tasklet] = []

        def body(levels: int) -> None:
            helper()
            if levels:
                made.append(tasklet(body)(levels - 1))
            schedule()
            helper()

        sys_set(kind)(seen)
        made.append(tasklet(body)(2))
        sys_set(kind)(None)
        untraced = tasklet(helper)()
        run()
        assert [seen.calls().count((it, "helper")) for it in made] == [2, 2, 2]
        assert [of(it, kind) for it in made] == [None] * 3
        assert seen.calls().count((untraced, "helper")) == 0

    def test_what_new_threads_have_comes_first(self, kind: str) -> None:
        """Coverage tools need a tracer of its own for each, as they follow the stack."""
        made: list[tuple[tasklet, Recorder]] = []

        def install(frame: FrameType, event: str, arg: object) -> Any:
            seen = Recorder()
            made.append((getcurrent(), seen))
            sys_set(kind)(seen)
            return seen(frame, event, arg)

        tasklets.set_trace_inheritance(True)
        change = threading.settrace if kind == "trace" else threading.setprofile

        def body() -> None:
            helper()
            schedule()
            helper()

        change(install)
        both = [tasklet(body)(), tasklet(body)()]
        change(None)
        run()
        assert [task for task, _ in made] == both
        assert [seen.calls() for _, seen in made] == [both_calls(it) * 2 for it in both]

    def test_one_that_is_bound_again(self) -> None:
        seen = Recorder()
        tasklets.set_trace_inheritance(True)
        it = tasklet(helper)
        sys.settrace(seen)
        it()
        sys.settrace(None)
        run()
        it.bind(helper, ())
        it.insert()
        run()
        assert seen.calls() == both_calls(it)

    def test_the_interpreter_stops_tracing_when_the_last_one_has_ended(self, kind: str) -> None:
        """From 3.12 on it counts them: too few is a lost tracer, too many a slow program."""
        seen = Recorder()
        tasklets.set_trace_inheritance(True)

        def body() -> None:
            schedule()

        sys_set(kind)(seen)
        for _ in range(5):
            tasklet(body)()
            tasklet(body).bind(None, ())
        run()
        helper()
        assert seen.calls() == both_calls(getmain())
        sys_set(kind)(None)
        if sys.version_info >= (3, 12):
            tool = 7 if kind == "trace" else 6
            instrumented = {
                event
                for event, tools in sys.monitoring._all_events().items()
                if tools & (1 << tool)
            }
            assert instrumented == set()
            sys_set(kind)(seen)
            assert sys.monitoring._all_events() != {}
            sys_set(kind)(None)


class TestAudit:
    """An audit hook in Python runs in the middle of it."""

    def test_refusal_and_switching(self) -> None:
        child = run_child(
            """
            import sys
            from cpythonplus import tasklets
            from cpythonplus.tasklets import run, schedule, tasklet

            mode = "switch"

            def hook(event, args):
                if event in ("sys.settrace", "sys.setprofile"):
                    if mode == "switch":
                        try:
                            schedule()
                        except RuntimeError as error:
                            print(error)
                    elif mode == "refuse":
                        raise OSError("no")

            sys.addaudithook(hook)
            it = tasklet(print)("ran")
            it.trace_function = lambda *args: None
            assert it.trace_function is not None
            mode = "refuse"
            try:
                it.trace_function = None
            except OSError as error:
                print(error)
            sys.unraisablehook = lambda info: print("unraisable", info.exc_value)
            assert sys.gettrace() is None
            mode = None
            run()
            tasklets.set_trace_inheritance(True)
            sys.settrace(lambda *args: None)
            mode = "refuse"
            tasklet(lambda: print("ran", sys.gettrace()))()
            mode = None
            sys.settrace(None)
            run()
            """
        )
        assert child.out.splitlines()[:3] == [
            "Recursive scheduler call due to callbacks!",
            "no",
            "ran",
        ]
        assert child.out.splitlines()[-1] == "ran None"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="3.11 has no sys.monitoring")
class TestMonitoring:
    """A tool's events are those of all tasklets: also in frames that were there before."""

    TOOL = 1  # that of coverage tools, and the last that the watchdog would take

    @pytest.fixture(autouse=True)
    def tool(self) -> Iterator[None]:
        sys.monitoring.use_tool_id(self.TOOL, "test")
        yield
        sys.monitoring.set_events(self.TOOL, 0)
        for event in ("LINE", "CALL", "PY_START", "PY_RETURN"):
            sys.monitoring.register_callback(self.TOOL, getattr(sys.monitoring.events, event), None)
        sys.monitoring.free_tool_id(self.TOOL)

    def listen(self, events: str, callback: Callable[..., Any]) -> None:
        number = getattr(sys.monitoring.events, events)
        sys.monitoring.register_callback(self.TOOL, number, callback)
        sys.monitoring.set_events(self.TOOL, number)

    def test_lines_of_parked_ones(self) -> None:
        log: Log = []

        def one() -> None:
            schedule()
            leaf()
            schedule()
            leaf()

        def other() -> None:
            schedule()
            leaf()

        def line(code: Any, number: int) -> None:
            if code in {one.__code__, other.__code__}:
                log.append((getcurrent(), number - code.co_firstlineno))

        both = [tasklet(one)(), tasklet(other)()]
        schedule()
        self.listen("LINE", line)
        run()
        assert log == [(both[0], 2), (both[0], 3), (both[1], 2), (both[0], 4)]

    def test_switched_off_while_parked(self) -> None:
        log: Log = []

        def body() -> None:
            schedule()
            leaf()
            schedule()
            leaf()

        def line(code: Any, number: int) -> None:
            if code is body.__code__:
                log.append(number - code.co_firstlineno)

        self.listen("LINE", line)
        tasklet(body)()
        schedule()
        assert log == [1]
        sys.monitoring.set_events(self.TOOL, 0)
        schedule()
        assert log == [1]
        self.listen("LINE", line)
        run()
        assert log == [1, 4]

    def test_main_while_a_tasklet_asks_for_events(self) -> None:
        log: Log = []
        tasklet(self.listen)("LINE", lambda code, number: log.append(code.co_name))
        run()
        leaf()
        sys.monitoring.set_events(self.TOOL, 0)
        assert log.count("test_main_while_a_tasklet_asks_for_events") >= 1

    def test_a_callback_that_switches(self) -> None:
        """The others' events come meanwhile, and after it the rest of its own."""
        log: Log = []

        def body(rounds: int) -> None:
            for _ in range(rounds):
                helper()

        def start(code: Any, offset: int) -> None:
            if code is helper.__code__:
                log.append(("begin", getcurrent()))
                schedule()
                log.append(("end", getcurrent()))

        both = [tasklet(body)(2), tasklet(body)(2)]
        self.listen("PY_START", start)
        run()
        for it in both:
            assert [what for what, task in log if task is it] == ["begin", "end"] * 2
        assert log[:2] == [("begin", both[0]), ("begin", both[1])]

    def test_returns_and_calls_belong_to_who_runs(self) -> None:
        log: Log = []

        def body(it: channel) -> None:
            it.receive()
            leaf()

        it = channel()
        waiting = tasklet(body)(it)
        schedule()
        self.listen(
            "PY_RETURN",
            lambda code, offset, value: log.append((getcurrent(), code.co_name)),
        )
        it.send(None)
        run()
        sys.monitoring.set_events(self.TOOL, 0)
        assert [name for task, name in log if task is waiting] == ["leaf", "body"]

    def test_while_memory_is_traced(self) -> None:
        """What is allocated for the events asks for the stack, which has strange frames then."""
        seen: set[int] = set()

        def body(number: int) -> None:
            schedule()
            leaf()

        def line(code: Any, number: int) -> None:
            if code is body.__code__:
                seen.add(number - code.co_firstlineno)

        for number in range(20):
            tasklet(body)(number)
        schedule()
        tracemalloc.start(50)
        self.listen("LINE", line)
        run()
        tracemalloc.take_snapshot()
        tracemalloc.stop()
        assert seen == {2}

    def test_many_parked_ones_and_events_that_change(self) -> None:
        seen: set[int] = set()

        def body(number: int) -> None:
            for _ in range(3):
                schedule()
                leaf()

        def call(code: Any, offset: int, function: object, argument: object) -> None:
            if code is body.__code__ and function is leaf:
                seen.add(id(getcurrent()))

        made = [tasklet(body)(number) for number in range(200)]
        schedule()
        for _ in range(2):
            seen.clear()
            self.listen("CALL", call)
            schedule()
            assert seen == {id(it) for it in made}
            sys.monitoring.set_events(self.TOOL, 0)
        run()

    def test_two_threads_make_their_tasklets_known_once(self) -> None:
        """And not in turns, each telling the other of a change."""
        child = run_child(
            """
            import sys, threading
            from cpythonplus.tasklets import run, schedule, schedule_remove, tasklet

            restarts = []
            restart = sys.monitoring.restart_events
            sys.monitoring.restart_events = lambda: restarts.append(restart())
            meet = threading.Barrier(2).wait
            waits = "def wait(f): f()"
            turns = "def turns(f, g):\\n for _ in range(20):\\n  f()\\n  g()"

            def work(number):
                own = {}  # code that the other thread does not run
                exec(waits, own)
                exec(turns, own)
                parked = tasklet(own["wait"])(schedule_remove)
                run()
                meet()
                if number:
                    sys.monitoring.use_tool_id(3, "test")
                    sys.monitoring.set_events(3, sys.monitoring.events.PY_START)
                meet()
                tasklet(own["turns"])(schedule, meet)
                tasklet(own["turns"])(schedule, int)
                run()
                parked.kill()

            threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            print(len(restarts))
            """
        )
        assert int(child.out) == 1


class TestCold:
    def test_setting_one_that_is_cold(self, kind: str) -> None:
        seen = Recorder()

        def body() -> None:
            schedule_remove(None)
            helper()

        it = tasklet(body)()
        run()
        assert tasklets.trim_stacks() == 1
        put(it, kind, seen)
        it.run()
        assert seen.calls() == both_calls(it)

    @pytest.mark.skipif(sys.version_info < (3, 12), reason="3.11 has no sys.monitoring")
    def test_events_of_one_that_is_cold(self) -> None:
        lines: list[int] = []

        def body() -> None:
            schedule_remove(None)
            leaf()

        def line(code: Any, number: int) -> None:
            if code is body.__code__:
                lines.append(number - code.co_firstlineno)

        it = tasklet(body)()
        run()
        assert tasklets.trim_stacks() == 1
        sys.monitoring.use_tool_id(1, "test")
        sys.monitoring.register_callback(1, sys.monitoring.events.LINE, line)
        sys.monitoring.set_events(1, sys.monitoring.events.LINE)
        it.run()
        sys.monitoring.set_events(1, 0)
        sys.monitoring.register_callback(1, sys.monitoring.events.LINE, None)
        sys.monitoring.free_tool_id(1)
        assert lines == [2]


class TestScheduleCallback:
    def test_one_that_traces_whoever_comes_next(self) -> None:
        """As debuggers for Stackless do it."""
        seen = Recorder()

        def callback(previous: tasklet | None, following: tasklet | None) -> None:
            if following is not None and following.alive and not following.is_main:
                following.trace_function = seen

        def body() -> None:
            helper()
            schedule()
            helper()

        made = [tasklet(body)() for _ in range(3)]
        tasklets.set_schedule_callback(callback)
        run()
        tasklets.set_schedule_callback(None)
        assert [seen.calls().count((it, "leaf")) for it in made] == [2, 2, 2]

    def test_one_that_traces_who_has_just_ended(self) -> None:
        gone: list[weakref.ref[Recorder]] = []

        def callback(previous: tasklet | None, following: tasklet | None) -> None:
            seen = Recorder()
            gone.append(weakref.ref(seen))
            sys.settrace(seen)

        tasklets.set_schedule_callback(callback)
        tasklet(helper)()
        tasklet(helper)()
        run()
        tasklets.set_schedule_callback(None)
        sys.settrace(None)
        assert [reference() for reference in gone] == [None] * 3


def test_one_that_is_freed_where_tracers_cannot_be_changed() -> None:
    child = run_child(
        """
        import sys
        from cpythonplus.tasklets import tasklet

        forbidden = False

        def hook(event, args):
            if forbidden and event in ("sys.settrace", "sys.setprofile"):
                raise RuntimeError("not here")

        sys.addaudithook(hook)
        sys.settrace(lambda *args: None)
        never_run = tasklet(print, ())
        sys.settrace(None)
        forbidden = True
        del never_run
        forbidden = False
        sys.settrace(lambda *args: None)
        sys.kept = tasklet(print, ())  # is freed when the modules have been
        sys.settrace(None)
        print("ended")
        """
    )
    assert child.out == "ended\n"
    assert "not here" in child.err
