"""The scheduler of a thread, its callbacks, and tasklets of several threads."""

# ruff: noqa: ANN401 (anything goes through channels)
# mypy: disable-error-code="arg-type, assignment, attr-defined, call-arg, func-returns-value"
# mypy: disable-error-code="union-attr, unreachable, possibly-undefined"
# (wrong calls are part of the tests)

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cpythonplus import tasklets
from cpythonplus.tasklets import (
    atomic,
    channel,
    getcurrent,
    getmain,
    getruncount,
    run,
    schedule,
    schedule_remove,
    tasklet,
)
from tests.support import run_child

Log = list[Any]


def in_thread(body: Callable[[], object]) -> None:
    """Run it in a thread, to its end; what it raises is raised here."""
    errors: list[BaseException] = []

    def guarded() -> None:
        try:
            body()
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    thread = threading.Thread(target=guarded)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    if errors:
        raise errors[0]


class TestSchedule:
    def test_alone_it_returns_at_once(self) -> None:
        assert schedule() is getcurrent()
        assert schedule(5) == 5
        assert schedule(retval=6) == 6

    def test_round_robin(self) -> None:
        log: Log = []

        def body(name: str) -> None:
            for step in range(2):
                log.append(f"{name}{step}")
                schedule()

        for name in "ab":
            tasklet(body)(name)
        schedule()
        log.append("main")
        run()
        assert log == ["a0", "b0", "main", "a1", "b1"]

    def test_it_returns_the_callers_own_value(self) -> None:
        log: Log = []

        def body(value: object) -> None:
            log.append(schedule(value))

        for value in (1, 2):
            tasklet(body)(value)
        run()
        assert log == [1, 2]

    def test_remove_pauses_the_caller(self) -> None:
        log: Log = []

        def body() -> None:
            log.append(schedule_remove(5))

        it = tasklet(body)()
        run()
        assert it.paused
        it.insert()
        run()
        assert log == [5]

    def test_main_can_pause_and_be_woken(self) -> None:
        log: Log = []
        main = getcurrent()

        def body() -> None:
            log.append(main.paused)
            main.insert()
            log.append(main.scheduled)

        tasklet(body)()
        assert schedule_remove(7) == 7
        assert log == [True, True]

    def test_a_paused_main_is_woken_by_the_last_ones_end(self) -> None:
        log: Log = []
        tasklet(log.append)(1)
        tasklet(log.append)(2)
        assert schedule_remove(7) == 7
        assert log == [1, 2]

    def test_alone_main_cannot_pause(self) -> None:
        assert schedule_remove(7) == 7
        assert getruncount() == 1

    @pytest.mark.parametrize("call", [schedule, schedule_remove])
    def test_wrong_arguments(self, call: Any) -> None:
        with pytest.raises(TypeError, match=rf"{call.__name__}\(\) takes at most 1 argument"):
            call(1, 2)
        with pytest.raises(TypeError):
            call(colour=1)


class TestRun:
    def test_alone_it_returns_at_once(self) -> None:
        assert run() is None

    def test_it_returns_when_all_have_ended_or_wait(self) -> None:
        log: Log = []
        it = channel()
        tasklet(it.receive)()
        tasklet(log.append)(1)
        assert run() is None
        assert (log, it.balance, getruncount()) == ([1], -1, 1)
        it.send(1)

    def test_main_is_paused_while_it_runs(self) -> None:
        log: Log = []
        tasklet(lambda: log.append((getmain().paused, getruncount())))()
        run()
        assert log == [(True, 1)]

    def test_nested(self) -> None:
        log: Log = []

        def inner() -> None:
            log.append("inner")
            schedule()
            log.append("inner ends")

        def outer() -> None:
            tasklet(inner)()
            run()
            log.append("outer")

        tasklet(outer)()
        run()
        assert log == ["inner", "inner ends", "outer"]

    def test_an_exception_goes_to_the_innermost(self) -> None:
        log: Log = []

        def broken() -> None:
            raise KeyError(1)

        def outer() -> None:
            tasklet(broken)()
            with pytest.raises(KeyError):
                run()
            log.append("outer")

        tasklet(outer)()
        run()
        assert log == ["outer"]

    def test_inserting_its_caller_ends_it(self) -> None:
        log: Log = []
        main = getmain()

        def body() -> None:
            main.insert()
            schedule()
            log.append("later")

        tasklet(body)()
        run()
        assert log == []
        run()
        assert log == ["later"]

    def test_wrong_arguments(self) -> None:
        with pytest.raises(TypeError):
            run("x")
        with pytest.raises(TypeError):
            run(colour=1)


class TestAsking:
    def test_runcount(self) -> None:
        assert getruncount() == tasklets.runcount == 1
        tasklet(int)()
        assert getruncount() == tasklets.runcount == 2
        run()
        with pytest.raises(TypeError, match=r"takes no arguments \(1 given\)"):
            getruncount(1)

    def test_current_and_main(self) -> None:
        log: Log = []

        def body() -> None:
            log.append((getcurrent(), tasklets.current, getmain(), tasklets.main))

        it = tasklet(body)()
        run()
        assert log == [(it, it, getmain(), getmain())]
        assert tasklets.current is getcurrent()

    def test_thread_info(self) -> None:
        here = threading.get_ident()
        main = getmain()
        for arguments in ((), (here,)):
            assert tasklets.get_thread_info(*arguments) == (main, main, 1)
        with pytest.raises(RuntimeError, match=r"^Thread id not found"):
            tasklets.get_thread_info(1)
        assert here in tasklets.threads

    def test_an_unknown_name_is_an_attribute_error(self) -> None:
        with pytest.raises(AttributeError, match="colour"):
            tasklets.colour  # noqa: B018

    def test_the_other_name(self) -> None:
        from cpythonplus import stackless

        assert stackless.tasklet is tasklet
        assert stackless.channel is channel
        assert stackless.current is getcurrent()
        assert stackless.runcount == 1


class TestAtomic:
    def test_flag_within_the_block(self) -> None:
        here = getcurrent()
        with atomic():
            assert here.atomic
            with atomic():
                assert here.atomic
            assert here.atomic
        assert not here.atomic

    def test_it_is_the_tasklets_own(self) -> None:
        log: Log = []
        tasklet(lambda: log.append(getcurrent().atomic))()
        with atomic():
            schedule()
        assert log == [False]

    def test_after_an_exception(self) -> None:
        with pytest.raises(KeyError), atomic():
            raise KeyError
        assert not getcurrent().atomic

    def test_its_thread_keeps_the_gil_while_it_runs(self) -> None:
        child = run_child(
            """
            import sys, threading, time
            from cpythonplus import UnsupportedPlatform
            from cpythonplus.gil import atomic as gil_atomic
            from cpythonplus.tasklets import atomic, getcurrent, run, schedule, tasklet

            try:
                with gil_atomic():
                    pass
            except UnsupportedPlatform:
                sys.exit("no sections here")
            sys.setswitchinterval(1e-4)
            turns, ended = [0], []

            def other():
                while not ended:
                    turns[0] += 1

            def turns_while(work_s=0.05):
                before, end = turns[0], time.monotonic() + work_s
                while time.monotonic() < end:
                    pass
                return turns[0] - before

            def a_turn(wait=lambda: None):  # comes, however long others have the processor
                before = turns[0]
                while turns[0] == before:
                    wait()
                return True

            seen = {}

            def body():
                getcurrent().set_atomic(True)
                seen["flag"] = turns_while()
                schedule()  # to the one that is not
                seen["again"] = turns_while()
                seen["blocked"] = a_turn(lambda: time.sleep(0.01))
                getcurrent().set_atomic(False)
                seen["no more"] = a_turn()
                with atomic():
                    seen["with"] = turns_while()

            def free():
                seen["beside"] = a_turn()

            thread = threading.Thread(target=other)
            thread.start()
            tasklet(body)()
            tasklet(free)()
            run()
            seen["after"] = a_turn()
            ended.append(True)
            thread.join()
            print(sorted(name for name, count in seen.items() if count))
            """,
            status=None,
        )
        if "no sections here" in child.err:
            pytest.skip("the GIL cannot be held here")
        assert child.out == "['after', 'beside', 'blocked', 'no more']\n", child


@pytest.fixture
def no_callbacks() -> Iterator[None]:
    yield
    tasklets.set_channel_callback(None)
    tasklets.set_schedule_callback(None)


@pytest.mark.usefixtures("no_callbacks")
class TestCallbacks:
    def test_of_channels(self) -> None:
        it = channel()
        log: Log = []
        assert tasklets.set_channel_callback(lambda *a: log.append(a)) is None
        here = getcurrent()
        partner = tasklet(it.receive)()
        schedule()
        it.send(1)
        partner.bind(it.send)(2)
        schedule()
        it.receive()
        run()
        assert log == [
            (it, partner, 0, 1),
            (it, here, 1, 0),
            (it, partner, 1, 1),
            (it, here, 0, 0),
        ]

    def test_the_value_can_be_seen_in_them(self) -> None:
        it = channel()
        log: Log = []
        tasklets.set_channel_callback(lambda *about: log.append(about[1].tempval))
        tasklet(it.send)("value")
        run()
        it.receive()
        run()
        assert log == ["value", None]

    def test_of_switches(self) -> None:
        log: Log = []
        here = getcurrent()
        it = tasklet(int)()
        assert tasklets.set_schedule_callback(lambda *a: log.append(a)) is None
        run()
        assert log == [(here, it), (it, here)]

    @pytest.mark.parametrize("kind", ["channel", "schedule"])
    def test_setting_returns_the_previous_one(self, kind: str) -> None:
        set_it = getattr(tasklets, f"set_{kind}_callback")
        get_it = getattr(tasklets, f"get_{kind}_callback")

        def first(*_: Any) -> None: ...

        assert set_it(first) is None
        assert get_it() is first
        with pytest.raises(TypeError, match=rf"^{kind} callback must be callable$"):
            set_it(5)
        assert set_it(None) is first
        assert get_it() is None

    @pytest.mark.parametrize("kind", ["channel", "schedule"])
    def test_their_exceptions_do_not_harm(self, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
        log: Log = []
        it = channel()
        monkeypatch.setattr(sys, "unraisablehook", lambda info: log.append(info.exc_type))

        def broken(*_: Any) -> None:
            raise KeyError

        getattr(tasklets, f"set_{kind}_callback")(broken)
        tasklet(it.send)(1)
        run()
        assert it.receive() == 1
        run()
        assert log
        assert set(log) == {KeyError}

    @pytest.mark.parametrize("kind", ["channel", "schedule"])
    def test_nothing_is_switched_within_them(self, kind: str) -> None:
        log: Log = []
        it, other = channel(), channel()
        bystander = tasklet(log.append)("ran")

        def callback(*_: Any) -> None:
            for call in (other.receive, bystander.run):
                with pytest.raises(RuntimeError, match=r"^Recursive .* due to callbacks!$"):
                    call()
                log.append("refused")

        getattr(tasklets, f"set_{kind}_callback")(callback)
        if kind == "channel":
            bystander.remove()
            with pytest.raises(RuntimeError, match=r"^Deadlock"):
                it.receive()
        else:
            schedule()
        getattr(tasklets, f"set_{kind}_callback")(None)
        bystander.kill()
        assert log[:2] == ["refused", "refused"]


class TestThreads:
    def test_each_has_its_main(self) -> None:
        log: Log = []

        def body() -> None:
            log.append((getmain(), getcurrent(), getruncount(), getmain().thread_id))
            log.append(threading.get_ident())

        in_thread(body)
        main, current, count, ident = log[0]
        assert main is current is not getmain()
        assert (count, ident) == (1, log[1])
        assert main.thread_id == -1

    def test_each_has_its_queue(self) -> None:
        log: Log = []

        def body() -> None:
            tasklet(log.append)("there")
            run()

        tasklet(log.append)("here")
        in_thread(body)
        assert log == ["there"]
        run()
        assert log == ["there", "here"]

    def test_sending_to_a_thread_that_waits(self) -> None:
        there, back = channel(), channel()
        log: Log = []

        def body() -> None:
            for _ in range(3):
                back.send(there.receive() * 10)

        def talk() -> None:
            for value in range(3):
                there.send(value)
                log.append(back.receive())

        thread = threading.Thread(target=body)
        thread.start()
        talk()
        thread.join()
        assert log == [0, 10, 20]

    def test_an_exception_crosses_too(self) -> None:
        it = channel()
        thread = threading.Thread(target=it.send_exception, args=(KeyError, 1))
        thread.start()
        with pytest.raises(KeyError):
            it.receive()
        thread.join()

    def test_the_tasklet_stays_in_its_thread(self) -> None:
        it = channel()
        log: Log = []

        def body() -> None:
            it.receive()
            log.append(threading.get_ident())

        def other() -> None:
            it.send(1)

        tasklet(body)()
        schedule()
        in_thread(other)
        run()
        assert log == [threading.get_ident()]

    def test_inserting_into_another_one(self) -> None:
        log: Log = []
        ready, wait = threading.Event(), channel()
        made: list[tasklet] = []

        def body() -> None:
            made.append(tasklet(lambda: log.append(threading.get_ident()), ()))
            tasklet(wait.receive)()
            ready.set()
            run(threadblock=True)
            while getruncount() > 1 or not log:
                schedule()

        thread = threading.Thread(target=body)
        thread.start()
        ready.wait()
        made[0].insert()
        wait.send(None)
        thread.join(60)
        assert log == [thread.ident]

    def test_switching_into_another_one_is_refused(self) -> None:
        made = tasklet(int, ())
        with pytest.raises(RuntimeError, match=r"^can't switch to a different thread\.$"):
            in_thread(made.switch)
        assert made.paused

    def test_of_a_thread_that_has_ended(self) -> None:
        made: list[tasklet] = []
        in_thread(lambda: made.append(tasklet(int, ())))
        it = made[0]
        assert it.thread_id == -1
        assert (it.is_current, it.is_main) == (False, False)
        for call in (it.run, it.insert):
            with pytest.raises(RuntimeError, match="thread"):
                call()
        with pytest.raises(RuntimeError, match=r"^tasklet has no thread$"):
            it.throw(KeyError)
        # Not alive, or who loops while it is would never end; in another thread it is again.
        assert (it.alive, it.paused, it.scheduled) == (False, False, False)
        it.bind_thread()
        assert it.paused
        it.run()
        assert not it.alive

    def test_killed_after_the_end_of_its_thread(self) -> None:
        made: list[tasklet] = []
        in_thread(lambda: made.append(tasklet(int, ())))
        it = made[0]
        it.kill()
        it.bind_thread()
        assert not it.alive
        with pytest.raises(RuntimeError, match=r"^You cannot run an unbound\(dead\) tasklet$"):
            it.run()

    def test_what_refuses_to_end_with_its_thread_cannot_be_thrown_at(self) -> None:
        code = """
import threading
from cpythonplus.tasklets import TaskletExit, run, schedule_remove, tasklet

def stays():
    while loops:
        try:
            schedule_remove()
        except TaskletExit:
            pass

def begin():
    made.append(tasklet(stays)())
    run()

loops, made = True, []
thread = threading.Thread(target=begin)
thread.start()
thread.join()
it, loops = made[0], False
while it.thread_id != -1:
    pass
for exception in KeyError, TaskletExit:
    try:
        it.throw(exception, pending=True)
    except RuntimeError as error:
        print(error)
it.kill()
print(it.alive, it.scheduled, it.blocked)
for call in lambda: it.bind(None), lambda: it.bind(print, ("x",)), it.bind_thread:
    try:
        call()
    except RuntimeError as error:
        print(error)
"""
        assert run_child(code).out.splitlines() == [
            *["tasklet has no thread"] * 2,
            "False False False",
            *["tasklet has C state on its stack"] * 3,
        ]

    def test_binding_to_this_thread(self) -> None:
        log: Log = []
        made: list[tasklet] = []
        in_thread(lambda: made.append(tasklet(lambda: log.append(threading.get_ident()), ())))
        made[0].bind_thread()
        assert made[0].thread_id == threading.get_ident()
        made[0].run()
        assert log == [threading.get_ident()]

    def test_a_started_one_cannot_change_its_thread(self) -> None:
        it = tasklet(schedule_remove)()
        run()
        with pytest.raises(RuntimeError, match=r"^tasklet has C state on its stack$"):
            in_thread(it.bind_thread)
        with pytest.raises(ValueError, match=r"^bad thread$"):
            tasklet(int).bind_thread(1)
        with pytest.raises(OverflowError, match=r"^no thread has a negative number$"):
            tasklet(int).bind_thread(-2)
        runnable = tasklet(int)()
        with pytest.raises(RuntimeError, match=r"^can't \(re\)bind a runnable tasklet$"):
            in_thread(runnable.bind_thread)
        run()
        it.kill()

    def test_killing_from_another_thread(self) -> None:
        log: Log = []

        def body() -> None:
            try:
                schedule_remove()
            except tasklets.TaskletExit:
                log.append(threading.get_ident())
                raise

        it = tasklet(body)()
        run()
        in_thread(it.kill)
        assert log == []
        assert it.scheduled
        run()
        assert log == [threading.get_ident()]

    def test_a_thread_that_ends_ends_its_tasklets(self) -> None:
        log: Log = []
        made: list[tasklet] = []

        def body() -> None:
            try:
                schedule_remove()
            except tasklets.TaskletExit:
                log.append(threading.get_ident())
                raise

        def thread() -> None:
            made.append(tasklet(body)())
            run()
            log.append(threading.get_ident())

        in_thread(thread)
        assert not made[0].alive
        assert log[0] == log[1]
        assert len(log) == 2
