"""Tasklets without pages for their stacks: they come back as they were; which of them go.

Two ways, and what is seen of both is the same: the thread itself takes them off their C stacks, as
frames alone; another thread has what is in use of the stacks copied.
"""

import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cpythonplus import tasklets
from cpythonplus.tasklets import (
    TaskletExit,
    channel,
    run,
    schedule,
    schedule_remove,
    tasklet,
    trim_stacks,
)
from tests.support import run_child

Log = list[Any]


@pytest.fixture(autouse=True)
def nobody_else() -> None:
    """Deal with those of earlier tests first."""
    trim_stacks()


def trim_from_outside(*args: Any, **kwargs: Any) -> int:  # noqa: ANN401
    """Call it in another thread, which cannot switch to the tasklets of this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(tasklets.trim_stacks, *args, **kwargs).result()


@pytest.fixture(autouse=True, params=["frames", "copies"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have both ways tried."""
    if request.param == "copies":
        monkeypatch.setattr(f"{__name__}.trim_stacks", trim_from_outside)


class Thing:
    """What a weak reference can point to."""


def parked(body: Callable[..., object], *args: object) -> tasklet:
    """Start it and let it run until it waits."""
    task = tasklet(body)(*args)
    run()
    assert task.alive
    return task


def wait(gate: channel, log: Log) -> None:
    """Wait once."""
    log.append(gate.receive())


def descend(depth: int, bottom: Callable[[], Any]) -> Any:  # noqa: ANN401
    """Call bottom so many calls further down."""
    here = [depth]
    value = bottom() if depth == 0 else descend(depth - 1, bottom)
    assert here == [depth]
    return value


class TestBack:
    def test_it_goes_on_with_what_it_had(self) -> None:
        gate, log = channel(), Log()

        def body(first: str) -> None:
            local = {"one": 1}
            log.append((first, f"{local['one']}{gate.receive()}", local))

        parked(body, "a")
        assert trim_stacks() == 1
        gate.send("b")
        run()
        assert log == [("a", "1b", {"one": 1})]

    def test_again_and_again(self) -> None:
        gate, log = channel(), Log()

        def body() -> None:
            log.extend(gate)

        parked(body)
        for number in range(5):
            assert (trim_stacks(), trim_stacks()) == (1, 0)
            gate.send(number)
            run()
        gate.send_exception(StopIteration)
        run()
        assert log == [0, 1, 2, 3, 4]

    def test_many_calls_deep(self) -> None:
        gate, log = channel(), Log()
        task = parked(lambda: log.append(descend(40, gate.receive)))
        assert (trim_stacks(), task.recursion_depth > 40) == (1, True)
        gate.send("up")
        run()
        assert log == ["up"]

    def test_a_paused_one(self) -> None:
        log = Log()
        task = parked(lambda: log.append(schedule_remove(7)))
        assert trim_stacks() == 1
        task.insert()
        run()
        assert log == [7]

    def test_switch_and_run_reach_it(self) -> None:
        log = Log()

        def body() -> None:
            log.append(schedule_remove(1))
            log.append(schedule_remove(2))

        task = parked(body)
        assert trim_stacks() == 1
        task.run()
        assert (log, trim_stacks()) == ([1], 1)
        helper = tasklet(task.switch)()
        run()
        assert log == [1, 2]
        helper.kill()

    def test_after_one_that_ends(self) -> None:
        """The switch from a tasklet's end is another path."""
        gate, log = channel(), Log()
        gate.preference = 1
        parked(wait, gate, log)
        assert trim_stacks() == 1
        tasklet(gate.send)("last words")
        run()
        assert log == ["last words"]

    def test_exceptions_reach_it_and_leave_it(self) -> None:
        gate = channel()

        def body() -> None:
            try:
                gate.receive()
            except KeyError as error:
                raise LookupError from error

        parked(body)
        assert trim_stacks() == 1
        with pytest.raises(LookupError) as caught:
            gate.send_exception(KeyError, "there")
        assert isinstance(caught.value.__cause__, KeyError)

    def test_killing_it(self) -> None:
        gate, log = channel(), Log()

        def body() -> None:
            try:
                gate.receive()
            finally:
                log.append("ended")

        task = parked(body)
        assert trim_stacks() == 1
        task.kill()
        assert (log, task.alive, gate.balance) == (["ended"], False, 0)

    def test_the_exception_that_it_handles(self) -> None:
        gate, log = channel(), Log()

        def body() -> None:
            gate.receive()
            log.append(sys.exc_info()[0])

        parked(body)
        trim_stacks()
        try:
            int("no")
        except ValueError:
            gate.send(None)
            run()
        assert log == [None]


class TestWho:
    def test_those_that_run_do_not(self) -> None:
        log = Log()
        tasklet(lambda: log.append(schedule(1)))()
        schedule()
        assert trim_stacks() == 0
        run()
        assert log == [1]

    def test_only_those_that_wait_so_long(self) -> None:
        gate = channel()
        parked(wait, gate, Log())
        assert trim_stacks(parked_s=3600) == 0
        assert trim_stacks(parked_s=0) == 1
        gate.send(None)
        run()

    @pytest.mark.parametrize("wrong", [-1, float("nan"), float("inf"), "1"])
    def test_wrong_times(self, wrong: Any) -> None:  # noqa: ANN401
        with pytest.raises((ValueError, TypeError)):
            trim_stacks(wrong)

    def test_not_inside_of_c_code_that_calls_back(self) -> None:
        gate, log = channel(), Log()

        def key(_value: int) -> Any:  # noqa: ANN401
            return gate.receive()

        parked(lambda: log.append(sorted([5, 6], key=key)))
        assert trim_stacks() == 0
        gate.send(2)
        gate.send(1)
        run()
        assert log == [[6, 5]]

    def test_not_with_a_frame_object(self) -> None:
        gate, log = channel(), Log()

        def body() -> None:
            frame = sys._getframe()
            gate.receive()
            log.append(frame.f_locals["frame"] is frame)

        parked(body)
        assert trim_stacks() == 0
        gate.send(None)
        run()
        assert log == [True]

    def test_not_inside_of_the_collector(self) -> None:
        """It has the heads of its lists on the C stack; a channel's method was its callback."""
        gate, kept = channel(), Log()

        def body() -> None:
            thing: Any = Thing()
            thing.me = thing
            kept.append(weakref.ref(thing, gate.send))
            del thing
            gc.collect()

        parked(body)
        assert (gate.balance, trim_stacks()) == (1, 0)
        assert gate.receive() is kept[0]
        run()

    def test_not_in_a_generator(self) -> None:
        gate, log = channel(), Log()

        def generate() -> Iterator[Any]:
            yield gate.receive()

        parked(lambda: log.extend(generate()))
        assert trim_stacks() == 0
        gate.send(3)
        run()
        assert log == [3]


class TestLooking:
    def test_its_frame_warms_it(self) -> None:
        gate, log = channel(), Log()
        task = parked(wait, gate, log)
        assert trim_stacks() == 1
        frame = task.frame
        assert frame is not None
        assert frame.f_code is wait.__code__
        assert frame.f_locals["gate"] is gate
        assert trim_stacks() == 0
        gate.send(1)
        run()
        assert log == [1]

    def test_the_collector_sees_what_it_refers_to(self) -> None:
        gate, log = channel(), Log()

        def body() -> None:
            thing: Any = Thing()
            thing.me = thing
            alive = weakref.ref(thing)
            gate.receive()
            log.append(alive() is thing)

        parked(body)
        assert trim_stacks() == 1
        gc.collect()
        gate.send(None)
        run()
        assert log == [True]

    def test_the_collector_ends_what_nobody_knows(self) -> None:
        log = Log()

        def body(holder: Any) -> None:  # noqa: ANN401
            try:
                schedule_remove(None)
            finally:
                log.append(holder.name)

        holder: Any = Thing()
        holder.name = "ended"
        holder.task = tasklet(body)(holder)
        gone = weakref.ref(holder)
        run()
        assert trim_stacks() == 1
        del holder
        gc.collect()
        assert (log, gone()) == (["ended"], None)


class TestMemory:
    def test_the_pages_are_given_back(self) -> None:
        """json's scanner in C takes 100 KiB of stack in 200 nested lists."""
        run_child(
            """
            import gc, json
            from cpythonplus.tasklets import channel, run, tasklet, trim_stacks

            def resident():
                with open("/proc/self/smaps_rollup") as lines:
                    return next(int(line.split()[1]) for line in lines if line.startswith("Rss:"))

            nested = "[" * 200 + "]" * 200
            gate, seen = channel(), []

            def body():
                json.loads(nested)
                seen.append(gate.receive())

            for _ in range(256):
                tasklet(body)()
            run()
            before = resident()
            assert trim_stacks() == 256
            assert before - resident() > 256 * 16, (before, resident())
            for number in range(256):
                gate.send(number)
            run()
            assert seen == list(range(256))
            """
        )

    def test_stacks_of_a_size_that_comes_again(self) -> None:
        """They are used again; a mapping of 64 stacks is made for each size."""
        run_child(
            """
            from cpythonplus.tasklets import run, stack_size, tasklet

            def mapped():
                with open("/proc/self/maps") as lines:
                    spans = [line.split()[0].split("-") for line in lines]
                return sum(int(end, 16) - int(start, 16) for start, end in spans)

            def both():
                for size_bytes in (1 << 20, 2 << 20):
                    stack_size(size_bytes)
                    tasklet(lambda: None)()
                    run()

            both()
            before = mapped()
            for _ in range(20):
                both()
            assert mapped() - before < 10 * (64 << 20)
            """
        )

    @pytest.mark.slow
    def test_a_growing_number_trims_itself(self) -> None:
        """Beyond 98,304 stacks some that wait are taken off theirs for the next ones."""
        source = Path(__file__).with_name("many_parked.py").read_text()
        assert "go cold: True" in run_child(source).out


class TestThreads:
    def test_those_of_another_thread(self) -> None:
        gate, log = channel(), Log()
        ready, go = threading.Event(), threading.Event()

        def work() -> None:
            parked(wait, gate, log)
            ready.set()
            go.wait()
            gate.send("x")
            run()

        thread = threading.Thread(target=work)
        thread.start()
        ready.wait()
        assert trim_stacks() == 1
        go.set()
        thread.join()
        assert log == ["x"]

    def test_a_thread_ends_with_cold_ones(self) -> None:
        gate, log = channel(), Log()

        def body() -> None:
            try:
                gate.receive()
            except TaskletExit:
                log.append("ended")
                raise

        def work() -> None:
            parked(body)
            assert trim_stacks() == 1

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert log == ["ended"]

    def test_both_sides_of_a_fork(self) -> None:
        run_child(
            """
            import os
            from cpythonplus.tasklets import channel, run, tasklet, trim_stacks

            gate, seen = channel(), []
            for _ in range(100):
                tasklet(lambda: seen.append(gate.receive()))()
            run()
            assert trim_stacks() == 100
            child = os.fork()
            for number in range(100):
                gate.send(number)
            run()
            assert seen == list(range(100))
            if child:
                assert os.waitpid(child, 0)[1] == 0
            """
        )
