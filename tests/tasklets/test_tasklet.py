"""One tasklet: how it is made, bound, run, stopped, ended, and what it tells about itself."""

# ruff: noqa: ANN401 (anything goes through channels)
# mypy: disable-error-code="arg-type, assignment, attr-defined, call-arg, func-returns-value"
# mypy: disable-error-code="union-attr, unreachable, possibly-undefined"
# (wrong calls are part of the tests)

import contextvars
import inspect
import pickle
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Self

import pytest

from cpythonplus import tasklets
from cpythonplus.tasklets import TaskletExit, channel, getcurrent, getmain, run, schedule, tasklet

Log = list[Any]
STATES = ("alive", "paused", "blocked", "scheduled", "is_current", "is_main")


def states(task: tasklet) -> set[str]:
    """Which of the flags are set."""
    return {name for name in STATES if getattr(task, name)}


def fail(error: BaseException) -> None:
    raise error


class TestMaking:
    def test_bound_but_without_arguments(self) -> None:
        it = tasklet(int)
        assert states(it) == set()
        assert it.tempval is int

    def test_call_binds_arguments_and_makes_runnable(self) -> None:
        log: Log = []

        def body(*args: Any, **kwargs: Any) -> None:
            log.append((args, kwargs))

        it = tasklet(body)
        assert it(1, 2, colour=3) is it
        assert states(it) == {"alive", "scheduled"}
        assert log == []
        run()
        assert log == [((1, 2), {"colour": 3})]
        assert states(it) == set()

    def test_setup_is_the_call(self) -> None:
        log: Log = []
        it = tasklet(log.append)
        assert it.setup(1) is it
        run()
        assert log == [1]

    def test_arguments_in_the_constructor_do_not_make_runnable(self) -> None:
        log: Log = []
        it = tasklet(lambda *a, **k: log.append((a, k)), (1,), {"colour": 2})
        assert states(it) == {"alive", "paused"}
        it.insert()
        run()
        assert log == [((1,), {"colour": 2})]

    def test_keywords_of_the_constructor(self) -> None:
        log: Log = []
        tasklet(func=lambda **k: log.append(k), args=(), kwargs={"colour": 2}).run()
        assert log == [{"colour": 2}]

    def test_unbound(self) -> None:
        it = tasklet()
        assert it.tempval is None
        with pytest.raises(RuntimeError, match=r"^the tasklet was not bound to a function$"):
            it()
        with pytest.raises(RuntimeError, match=r"^You cannot run an unbound\(dead\) tasklet$"):
            it.insert()

    def test_bound_without_arguments_cannot_run(self) -> None:
        for call in (tasklet(int).run, tasklet(int).insert, tasklet(int).switch):
            with pytest.raises(RuntimeError, match=r"^You cannot run an unbound\(dead\) tasklet$"):
                call()
        assert tasklets.getruncount() == 1

    def test_a_function_or_none(self) -> None:
        with pytest.raises(TypeError, match=r"^tasklet function must be a callable or None$"):
            tasklet(5)
        with pytest.raises(TypeError):
            tasklet(int, (), {}, 5)
        with pytest.raises(TypeError):
            tasklet(colour=5)

    def test_the_functions_own_argument_errors_go_to_main(self) -> None:
        tasklet(lambda: None)(1)
        with pytest.raises(TypeError, match="takes 0 positional arguments but 1 was given"):
            run()

    def test_it_begins_when_the_scheduler_comes_to_it(self) -> None:
        """A tasklet that starts another one goes on first."""
        log: Log = []

        def outer() -> None:
            tasklet(log.append)("inner")
            log.append("outer")

        tasklet(outer)()
        run()
        assert log == ["outer", "inner"]


class TestBinding:
    def test_a_finished_one_is_bound_again(self) -> None:
        log: Log = []
        it = tasklet(log.append)(1)
        run()
        with pytest.raises(RuntimeError, match=r"^the tasklet was not bound to a function$"):
            it(2)
        assert it.bind(log.append) is it
        it(2)
        run()
        assert log == [1, 2]

    def test_with_arguments_it_is_alive(self) -> None:
        log: Log = []
        it = tasklet().bind(log.append, (1,))
        assert states(it) == {"alive", "paused"}
        it.run()
        assert log == [1]

    def test_arguments_for_the_function_it_has(self) -> None:
        log: Log = []
        it = tasklet(log.append)
        it.bind(None, (1,))
        it.run()
        assert log == [1]

    def test_arguments_without_a_function(self) -> None:
        with pytest.raises(RuntimeError, match=r"^the tasklet was not bound to a function$"):
            tasklet().bind(None, (1,))

    def test_unbinding(self) -> None:
        it = tasklet(int)
        it.bind(None)
        assert it.tempval is None
        with pytest.raises(RuntimeError, match="not bound"):
            it()

    def test_refusals(self) -> None:
        it = tasklet(int)()
        with pytest.raises(RuntimeError, match=r"^tasklet is scheduled$"):
            it.bind(int)
        with pytest.raises(RuntimeError, match=r"^tasklet is alive$"):
            it()
        it.remove()
        it.bind(str)  # not started yet
        assert not it.alive
        with pytest.raises(RuntimeError, match=r"^can't \(re\)bind the current tasklet$"):
            getcurrent().bind(int)
        with pytest.raises(TypeError, match=r"^tasklet function must be a callable or None$"):
            it.bind(5)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ((5,), "^tasklet function must be a callable or None$"),
            ((str, [1]), "^tasklet args must be a tuple or None$"),
            ((str, (1,), 5), "^tasklet kwargs must be a dictionary or None$"),
        ],
    )
    def test_refused_it_is_as_before(self, arguments: tuple[Any, ...], message: str) -> None:
        log: Log = []
        it = tasklet(log.append, (1,))
        with pytest.raises(TypeError, match=message):
            it.bind(*arguments)
        with pytest.raises(TypeError, match=message):
            tasklet(*arguments)
        assert states(it) == {"alive", "paused"}
        it.run()
        assert log == [1]

    def test_a_started_one_keeps_its_function(self) -> None:
        it = tasklet(tasklets.schedule_remove)()
        run()
        assert states(it) == {"alive", "paused"}
        with pytest.raises(RuntimeError, match=r"^tasklet has C state on its stack$"):
            it.bind(int)
        it.kill()

    def test_the_main_one_keeps_what_it_does(self) -> None:
        log: Log = []

        def unbind() -> None:
            with pytest.raises(RuntimeError, match=r"^can't unbind the main tasklet$"):
                tasklets.main.bind(None)
            with pytest.raises(RuntimeError, match=r"^tasklet has C state on its stack$"):
                tasklets.main.bind(int)
            log.append(1)

        tasklet(unbind)().switch()
        assert log == [1]

    def test_a_blocked_one_is_scheduled(self) -> None:
        it = tasklet(channel().receive)()
        run()
        with pytest.raises(RuntimeError, match=r"^tasklet is scheduled$"):
            it.bind(int)
        it.kill()


class TestQueue:
    def test_insert_puts_it_last(self) -> None:
        log: Log = []
        first, second = tasklet(log.append, (1,)), tasklet(log.append, (2,))
        assert second.insert() is second
        first.insert()
        run()
        assert log == [2, 1]

    def test_insert_of_one_that_is_there_changes_nothing(self) -> None:
        log: Log = []
        first = tasklet(log.append)(1)
        tasklet(log.append)(2)
        first.insert()
        assert tasklets.getruncount() == 3
        run()
        assert log == [1, 2]

    def test_a_blocked_one_can_be_neither_inserted_nor_removed_nor_run(self) -> None:
        it = channel()
        waiting = tasklet(it.receive)()
        run()
        for call in (waiting.insert, waiting.run, waiting.switch):
            with pytest.raises(RuntimeError, match=r"^You cannot run a blocked tasklet$"):
                call()
        with pytest.raises(RuntimeError, match=r"^You cannot remove a blocked tasklet\.$"):
            waiting.remove()
        assert (it.balance, tasklets.getruncount()) == (-1, 1)
        it.send(1)

    def test_remove_pauses(self) -> None:
        log: Log = []
        it = tasklet(log.append)(1)
        assert it.remove() is it
        assert it.remove() is it
        assert states(it) == {"alive", "paused"}
        run()
        assert log == []
        it.run()
        assert log == [1]

    def test_the_current_one_cannot_be_removed(self) -> None:
        with pytest.raises(RuntimeError, match=r"^The current tasklet cannot be removed\.$"):
            getcurrent().remove()

    def test_run_goes_there_and_its_caller_comes_next(self) -> None:
        log: Log = []
        tasklet(log.append)("first")
        it = tasklet(log.append, ("second",))
        assert it.run() is None
        assert log == ["second"]
        run()
        assert log == ["second", "first"]

    def test_switch_pauses_its_caller(self) -> None:
        log: Log = []
        main = getcurrent()

        def body() -> None:
            log.append(states(main))

        assert tasklet(body, ()).switch() is None
        assert log == [{"alive", "paused", "is_main"}]

    def test_switch_between_two(self) -> None:
        log: Log = []

        def ping() -> None:
            log.append("ping")
            other.switch()
            log.append("pong")

        other = tasklet(lambda: log.append("other") or one.switch(), ())
        one = tasklet(ping, ())
        one.switch()
        assert log == ["ping", "other", "pong"]
        assert other.alive
        other.kill()

    def test_to_itself(self) -> None:
        here = getcurrent()
        assert here.run() is None
        assert here.switch() is None
        assert here.insert() is here
        assert getcurrent() is here
        assert tasklets.getruncount() == 1

    def test_next_and_prev_are_the_circle(self) -> None:
        first, second = tasklet(int)(), tasklet(int)()
        here = getcurrent()
        assert (here.next, first.next, second.next) == (first, second, here)
        assert (here.prev, first.prev, second.prev) == (second, here, first)
        assert tasklet(int).next is None
        run()

    def test_with_the_switch_trap_nothing_changes(self) -> None:
        log: Log = []
        it = tasklet(log.append)(1)
        assert tasklets.switch_trap(1) == 0
        try:
            for call in (it.run, it.switch, it.kill, schedule, channel().receive, run):
                with pytest.raises(RuntimeError, match=r"^switch_trap$"):
                    call()
            assert tasklets.getruncount() == 2
            assert states(it) == {"alive", "scheduled"}
        finally:
            assert tasklets.switch_trap(-1) == 1
        run()
        assert log == [1]


class TestStates:
    def test_of_a_life(self) -> None:
        it = channel()
        seen: Log = []

        def body() -> None:
            seen.append(states(task))
            it.receive()

        task = tasklet(body)
        seen.append(states(task))
        task()
        seen.append(states(task))
        run()
        seen.append(states(task))
        it.send(1)
        seen.append(states(task))
        assert seen == [
            set(),
            {"alive", "scheduled"},
            {"alive", "scheduled", "is_current"},
            {"alive", "scheduled", "blocked"},
            set(),
        ]

    def test_of_main(self) -> None:
        assert states(getmain()) == {"alive", "scheduled", "is_current", "is_main"}
        assert getmain() is getcurrent()

    def test_channel_of_a_blocked_one(self) -> None:
        it = channel()
        task = tasklet(it.receive)()
        assert task._channel is None
        run()
        assert task._channel is it
        it.send(1)
        assert task._channel is None

    def test_frame(self) -> None:
        def body() -> None:
            schedule()

        task = tasklet(body)()
        schedule()
        names = []
        frame = task.frame
        while frame is not None:
            names.append(frame.f_code.co_name)
            frame = frame.f_back
        assert names == ["body"]
        assert getcurrent().frame is inspect.currentframe()
        run()
        assert task.frame is None

    def test_thread(self) -> None:
        assert tasklet(int).thread_id == threading.get_ident()
        assert getmain().thread_id == threading.get_ident()

    def test_restorable_is_a_flag(self) -> None:
        assert isinstance(tasklet(int)().restorable, bool)
        run()

    @pytest.mark.parametrize("name", [*STATES, "next", "prev", "frame", "restorable", "thread_id"])
    def test_read_only(self, name: str) -> None:
        with pytest.raises(AttributeError):
            setattr(tasklet(), name, 1)

    def test_tempval_is_what_a_waiting_one_is_given(self) -> None:
        log: Log = []
        task = tasklet(lambda: log.append(schedule()))()
        schedule()
        task.tempval = "given"
        run()
        assert log == ["given"]

    def test_block_trap(self) -> None:
        task = tasklet()
        assert task.block_trap is False
        task.block_trap = 5
        assert task.block_trap is True
        with pytest.raises(TypeError, match=r"^block_trap must be set to a bool or integer$"):
            task.block_trap = "x"
        with pytest.raises((TypeError, AttributeError)):
            del task.block_trap

    @pytest.mark.parametrize("name", ["atomic", "ignore_nesting"])
    def test_flags_for_the_watchdog(self, name: str) -> None:
        task = tasklet()
        set_flag = getattr(task, f"set_{name}")
        assert (set_flag(5), set_flag(False), set_flag(False)) == (False, True, False)
        set_flag(True)
        assert getattr(task, name) is True
        with pytest.raises(TypeError, match=rf"^set_{name} needs exactly one bool or integer$"):
            set_flag("x")

    def test_nesting_and_depth(self) -> None:
        """Each tasklet counts for itself: main is deep within the test runner."""
        depths: Log = []

        def deeper(levels: int) -> None:
            if levels:
                deeper(levels - 1)
            else:
                depths.append(getcurrent().recursion_depth)

        tasklet(deeper)(1)
        tasklet(deeper)(11)
        run()
        assert depths[1] - depths[0] == 10
        assert 0 < depths[0] < getcurrent().recursion_depth

    def test_nesting_level(self) -> None:
        levels: list[int] = []
        gate = channel()

        def within(depth: int) -> int:
            if depth:
                return sum(map(within, [depth - 1]))
            levels.append(getcurrent().nesting_level)
            gate.receive()
            return 0

        tasks = [tasklet(within)(depth) for depth in (0, 3)]
        run()
        assert levels == [task.nesting_level for task in tasks] == [0, 3]
        gate.send(None)
        gate.send(None)
        run()
        assert tasks[1].nesting_level == 0


class TestThrowing:
    @pytest.fixture
    def log(self) -> Log:
        return []

    @pytest.fixture
    def paused(self, log: Log) -> tasklet:
        """One that has started, and logs what reaches it."""

        def body() -> None:
            try:
                log.append(tasklets.schedule_remove())
            except BaseException as error:
                log.append(error)
                raise

        it = tasklet(body)()
        run()
        return it

    def test_kill_ends_it_silently(self, paused: tasklet, log: Log) -> None:
        assert paused.kill() is None
        assert not paused.alive
        assert isinstance(log[0], TaskletExit)

    def test_kill_later(self, paused: tasklet, log: Log) -> None:
        assert paused.kill(pending=True) is None
        assert (states(paused), log) == ({"alive", "scheduled"}, [])
        run()
        assert not paused.alive
        assert isinstance(log[0], TaskletExit)

    def test_throw_reaches_main_if_nobody_catches_it(self, paused: tasklet, log: Log) -> None:
        error = KeyError(1)
        with pytest.raises(KeyError) as caught:
            paused.throw(error)
        assert caught.value is error
        assert log == [error]

    def test_throw_later(self, paused: tasklet, log: Log) -> None:
        paused.throw(KeyError, 1, pending=True)
        assert log == []
        with pytest.raises(KeyError):
            run()
        assert log[0].args == (1,)

    def test_throw_later_into_a_blocked_one(self) -> None:
        it = channel()
        waiting = tasklet(it.receive)()
        run()
        waiting.throw(KeyError, pending=True)
        assert (it.balance, states(waiting)) == (0, {"alive", "scheduled"})
        with pytest.raises(KeyError):
            run()

    def test_raise_exception(self, paused: tasklet, log: Log) -> None:
        with pytest.raises(KeyError):
            paused.raise_exception(KeyError, 1, 2)
        assert log[0].args == (1, 2)

    def test_with_a_traceback(self, paused: tasklet) -> None:
        def inner() -> None:
            raise KeyError(1)

        with pytest.raises(KeyError) as first:
            inner()
        with pytest.raises(KeyError) as caught:
            paused.throw(KeyError, 2, first.tb)
        assert "inner" in [entry.name for entry in caught.traceback]

    def test_caught_it_goes_on(self) -> None:
        log: Log = []

        def body() -> None:
            try:
                schedule()
            except KeyError:
                log.append("caught")
            schedule()
            log.append("end")

        it = tasklet(body)()
        schedule()
        it.throw(KeyError)
        assert log == ["caught"]
        run()
        assert log == ["caught", "end"]

    def test_into_oneself_it_is_a_raise(self) -> None:
        for pending in (False, True):
            with pytest.raises(KeyError):
                getcurrent().throw(KeyError, pending=pending)
            with pytest.raises(TaskletExit):
                getcurrent().kill(pending=pending)
        with pytest.raises(KeyError):
            getcurrent().raise_exception(KeyError)

    @pytest.mark.parametrize("pending", [False, True])
    def test_into_one_that_has_not_started(self, pending: bool) -> None:
        log: Log = []
        it = tasklet(log.append)(1)
        it.kill(pending=pending)
        run()
        assert (log, it.alive) == ([], False)
        it = tasklet(log.append)(1)

        def thrown() -> None:
            it.throw(KeyError, pending=pending)
            run()

        with pytest.raises(KeyError):
            thrown()
        assert (log, it.alive) == ([], False)

    def test_into_a_dead_one(self) -> None:
        it = tasklet(int)()
        run()
        for pending in (False, True):
            assert it.kill(pending=pending) is None
            assert it.throw(TaskletExit, pending=pending) is None
            with pytest.raises(RuntimeError, match=r"^You cannot throw to a dead tasklet$"):
                it.throw(KeyError, pending=pending)
        with pytest.raises(RuntimeError, match=r"^You cannot throw to a dead tasklet$"):
            it.raise_exception(KeyError)

    def test_one_that_will_not_die(self) -> None:
        def body() -> None:
            for _ in range(2):
                try:
                    tasklets.schedule_remove()
                except TaskletExit:
                    continue

        it = tasklet(body)()
        run()
        it.kill()
        assert it.alive
        it.kill()
        assert not it.alive

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ((5,), "^exceptions must be classes, or instances, not int$"),
            ((KeyError(1), 2), "^instance exception may not have a separate value$"),
            ((KeyError, 1, 2), "^third argument must be a traceback object$"),
            ((), "throw"),
        ],
    )
    def test_throw_refuses(
        self, paused: tasklet, log: Log, arguments: tuple[Any, ...], message: str
    ) -> None:
        with pytest.raises(TypeError, match=message):
            paused.throw(*arguments)
        assert log == []
        paused.kill()

    def test_raise_exception_refuses(self, paused: tasklet) -> None:
        with pytest.raises(TypeError, match=r"at least (1|one) argument"):
            paused.raise_exception()
        with pytest.raises(TypeError, match=r"^tasklet\.raise_exception needs Exception"):
            paused.raise_exception(5)
        paused.kill()


class TestEnding:
    def test_an_exception_goes_to_main(self) -> None:
        log: Log = []

        def body() -> None:
            raise KeyError(1)

        tasklet(body)()
        tasklet(log.append)("others stay")
        with pytest.raises(KeyError) as caught:
            run()
        assert [entry.name for entry in caught.traceback][-1] == "body"
        assert log == []
        run()
        assert log == ["others stay"]

    def test_tasklet_exit_is_silent(self) -> None:
        def body() -> None:
            raise TaskletExit

        tasklet(body)()
        assert run() is None
        assert issubclass(TaskletExit, SystemExit)

    def test_system_exit_is_raised_in_main(self) -> None:
        tasklet(sys.exit)(5)
        with pytest.raises(SystemExit) as caught:
            run()
        assert caught.value.code == 5

    @pytest.mark.parametrize("kind", [KeyboardInterrupt, GeneratorExit, MemoryError])
    def test_others_too(self, kind: type[BaseException]) -> None:
        def body() -> None:
            raise kind

        tasklet(body)()
        with pytest.raises(kind):
            run()

    def test_the_error_handler_sees_it_first(self) -> None:
        log: Log = []

        def handler(kind: Any, value: Any, traceback: Any) -> None:
            log.append((kind, value.args, traceback.tb_frame.f_code.co_name))

        def body() -> None:
            raise KeyError(1)

        assert tasklets.set_error_handler(handler) is None
        try:
            tasklet(body)()
            run()
        finally:
            assert tasklets.set_error_handler(None) is handler
        assert log == [(KeyError, (1,), "body")]

    def test_what_the_handler_raises_goes_to_main(self) -> None:
        def handler(*_: Any) -> None:
            raise ValueError(2)

        def body() -> None:
            raise KeyError(1)

        tasklets.set_error_handler(handler)
        try:
            tasklet(body)()
            with pytest.raises(ValueError, match="2"):
                run()
        finally:
            tasklets.set_error_handler(None)

    def test_the_result_is_dropped(self) -> None:
        class Result:
            pass

        made: list[weakref.ref[Result]] = []

        def body() -> Result:
            result = Result()
            made.append(weakref.ref(result))
            return result

        it = tasklet(body)()
        run()
        assert made[0]() is None
        assert it.tempval is None


class TestObject:
    def test_weak_reference(self) -> None:
        it = tasklet(int)
        reference = weakref.ref(it)
        assert reference() is it
        del it
        assert reference() is None

    def test_the_run_queue_holds_it(self) -> None:
        reference = weakref.ref(tasklet(int)())
        assert reference() is not None
        run()
        assert reference() is None

    def test_a_paused_one_that_nobody_knows_is_ended(self) -> None:
        log: Log = []

        def body() -> None:
            try:
                tasklets.schedule_remove(None)
            except TaskletExit:
                log.append("ended")
                raise

        reference = weakref.ref(tasklet(body)())
        run()
        assert (log, reference()) == (["ended"], None)

    def test_subclass_with_attributes(self) -> None:
        class Own(tasklet):
            def __init__(self, name: str) -> None:
                super().__init__(self.body)
                self.name = name

            def body(self, log: Log) -> None:
                log.append((self.name, getcurrent() is self))

        log: Log = []
        Own("mine")(log)
        run()
        assert log == [("mine", True)]

    def test_a_subclass_of_its_own_new(self) -> None:
        """Stackless programs make them run at once like this."""

        class Started(tasklet):
            def __new__(cls, func: Callable[..., Any], *_args: Any) -> Self:
                return super().__new__(cls, func)

            def __init__(self, func: Callable[..., Any], *args: Any) -> None:
                super().__init__(func)
                self(*args)

        log: Log = []
        Started(log.append, 1)
        run()
        assert log == [1]

    def test_no_attributes_of_one_s_own(self) -> None:
        with pytest.raises(AttributeError):
            tasklet().colour = 1

    def test_one_in_c_code_only_cannot_be_pickled(self) -> None:
        it = tasklet(tasklets.schedule_remove)()
        run()
        with pytest.raises(pickle.PicklingError, match="C code only"):
            pickle.dumps(it)
        it.kill()

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda it: it.insert(1), r"insert\(\) takes no arguments \(1 given\)"),
            (lambda it: it.remove(1), r"remove\(\) takes no arguments \(1 given\)"),
            (lambda it: it.run(1), r"run\(\) takes no arguments \(1 given\)"),
            (lambda it: it.switch(1), r"switch\(\) takes no arguments \(1 given\)"),
            (lambda it: it.kill(1, 2), r"kill\(\) takes at most 1 .*argument"),
            (lambda it: it.kill(colour=2), r"kill\(\)"),
            (lambda it: it.throw(KeyError, colour=2), r"throw\(\)"),
            (lambda it: it.set_atomic(), r"set_atomic\(\) takes exactly one argument \(0 given\)"),
            (
                lambda it: it.bind(int, (), {}, 1),
                r"bind\(\) takes at most 3 .*arguments \(4 given\)",
            ),
        ],
    )
    def test_wrong_arguments(self, call: Callable[[Any], object], message: str) -> None:
        with pytest.raises(TypeError, match=message):
            call(tasklet(int))


class TestWhatBelongsToIt:
    def test_context_is_a_copy_of_its_makers(self) -> None:
        variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="none")
        log: Log = []

        def body() -> None:
            log.append(variable.get())
            variable.set("its own")
            schedule()
            log.append(variable.get())

        token = variable.set("inherited")
        tasklet(body)()
        variable.set("changed by main")
        schedule()
        assert variable.get() == "changed by main"
        run()
        variable.reset(token)
        assert log == ["inherited", "its own"]

    def test_exception_that_is_being_handled(self) -> None:
        log: Log = []

        def body(error: Exception) -> None:
            log.append(sys.exc_info()[1])
            try:
                fail(error)
            except KeyError as caught:
                schedule()
                log.append(sys.exc_info()[1] is caught is error)
            log.append(sys.exc_info()[1])

        try:
            fail(ZeroDivisionError())
        except ZeroDivisionError as here:
            tasklet(body)(KeyError(1))
            tasklet(body)(KeyError(2))
            run()
            log.append(sys.exc_info()[1] is here)
        assert sys.exc_info()[1] is None
        assert log == [None, None, True, None, True, None, True]

    def test_a_bare_raise_raises_its_own(self) -> None:
        log: Log = []

        def body(error: Exception) -> None:
            try:
                try:
                    raise error
                except KeyError:
                    schedule()
                    raise
            except KeyError as again:
                log.append(again is error)

        for number in range(3):
            tasklet(body)(KeyError(number))
        run()
        assert log == [True] * 3

    def test_no_foreign_context_is_added(self) -> None:
        def body() -> None:
            raise KeyError(1)

        try:
            fail(ZeroDivisionError())
        except ZeroDivisionError:
            tasklet(body)()
            with pytest.raises(KeyError) as caught:
                run()
        # Raised while nothing was handled there; main's own comes in where it passes main.
        assert caught.value.__context__ is None

    def test_generators_suspended_inside(self) -> None:
        log: Log = []
        it = channel()

        def values() -> Iterator[int]:
            for value in range(3):
                try:
                    schedule()  # in the middle of a generator
                    yield value
                finally:
                    log.append(("left", value))

        def body() -> None:
            for value in values():
                it.send(value)

        task = tasklet(body)()
        assert [it.receive(), it.receive()] == [0, 1]
        task.kill()
        assert log == [("left", 0), ("left", 1)]

    def test_a_generator_goes_from_one_to_another(self) -> None:
        log: Log = []

        def values() -> Iterator[int]:
            yield from range(3)

        shared = values()

        def body() -> None:
            log.append(next(shared))
            schedule()
            log.append(next(shared, None))

        tasklet(body)()
        tasklet(body)()
        run()
        assert log == [0, 1, 2, None]

    def test_recursion_limit_is_its_own(self) -> None:
        log: Log = []

        def deep(levels: int) -> None:
            if levels:
                deep(levels - 1)
            else:
                schedule()

        def body() -> None:
            try:
                deep(10**9)
            except RecursionError:
                log.append("too deep")

        for _ in range(3):
            tasklet(deep)(300)  # together more than the limit
        run()
        tasklet(body)()
        run()
        assert log == ["too deep"]

    def test_one_that_starts_the_next_is_not_deeper(self) -> None:
        log: Log = []

        def body(left: int) -> None:
            if left:
                tasklet(body)(left - 1)
            else:
                log.append(getcurrent().recursion_depth)

        tasklet(body)(0)
        tasklet(body)(2000)
        run()
        assert log[0] == log[1]
