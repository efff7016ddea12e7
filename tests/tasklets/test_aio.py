"""asyncio in both directions: aio.run() in tasklets, aio.spawn() in coroutines."""

# ruff: noqa: ANN401

import asyncio
import contextvars
import gc
import sys
import traceback
import weakref
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import Any

import pytest

from cpythonplus.tasklets import (
    TaskletExit,
    aio,
    channel,
    getcurrent,
    getmain,
    run,
    schedule,
    tasklet,
)
from cpythonplus.tasklets.io import sleep, timeout

Log = list[Any]
SOON = 0.001
NEVER = 1000.0

variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=0)


@pytest.fixture(params=["asyncio", "uvloop"])
def program(request: pytest.FixtureRequest) -> Iterator[Callable[[Any], Any]]:
    """Run a coroutine in a loop of the program's."""
    if request.param == "asyncio":
        yield asyncio.run
        return
    uvloop = pytest.importorskip("uvloop", reason="it has no wheel for this interpreter")

    def run_it(coroutine: Any) -> Any:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(coroutine)

    yield run_it


async def double(number: int) -> int:
    await asyncio.sleep(SOON)
    return 2 * number


class TestRun:
    def test_its_result(self) -> None:
        assert aio.run(double(4)) == 8

    def test_without_waiting(self) -> None:
        async def answer() -> int:
            return 42

        assert aio.run(answer()) == 42

    def test_only_the_tasklet_waits(self) -> None:
        log: Log = []
        gate = channel()

        async def wait() -> None:
            log.append("waits")
            await aio.spawn(gate.receive)

        task = tasklet(aio.run)(wait())
        while not log:
            schedule()
        tasklet(log.append)("another")
        schedule()
        gate.send(None)
        run()
        assert (log, task.alive) == (["waits", "another"], False)

    def test_many_at_once(self) -> None:
        log: Log = []

        def body(number: int) -> None:
            log.append(aio.run(double(number)))

        for number in range(100):
            tasklet(body)(number)
        run()
        assert sorted(log) == [2 * number for number in range(100)]

    def test_beside_many_that_compute(self) -> None:
        """A coroutine gets on while others have their turns; each step is no round of all."""
        turns = [0]
        done: list[int] = []

        async def hops() -> None:
            for _ in range(20):
                await asyncio.sleep(0)

        def computes() -> None:
            while not done:
                turns[0] += 1
                sum(range(20_000))
                schedule()

        def asks() -> None:
            aio.run(hops())  # what the first one loads and begins
            before = turns[0]
            aio.run(hops())
            done.append(turns[0] - before)

        for _ in range(50):
            tasklet(computes)()
        tasklet(asks)()
        run()
        assert done[0] < 20 * 50 / 2  # 20 steps, 50 others

    def test_its_exception_keeps_its_traceback(self) -> None:
        async def deep() -> None:
            raise LookupError

        with pytest.raises(LookupError) as caught:
            aio.run(deep())
        names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert names[-1] == "deep"

    def test_an_exception_is_in_no_cycle(self) -> None:
        class OwnError(Exception):
            pass

        async def fails() -> None:
            raise OwnError

        gone: list[weakref.ref[OwnError]] = []
        gc.disable()
        try:
            try:
                aio.run(fails())
            except OwnError as error:
                gone.append(weakref.ref(error))
            assert gone[0]() is None
        finally:
            gc.enable()

    @pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, TaskletExit])
    def test_what_would_end_the_loop(self, error: type[BaseException]) -> None:
        async def fails() -> None:
            raise error

        with pytest.raises(error):
            aio.run(fails())
        assert aio.run(double(1)) == 2

    def test_cancelled_by_others(self) -> None:
        async def cancelled() -> None:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(NEVER)

        with pytest.raises(asyncio.CancelledError):
            aio.run(cancelled())

    def test_its_context_is_a_copy_of_the_tasklets(self) -> None:
        async def read() -> int:
            seen = variable.get()
            variable.set(7)
            return seen

        def body() -> None:
            variable.set(5)
            log.append((aio.run(read()), variable.get()))

        log: Log = []
        tasklet(body)()
        run()
        assert (log, variable.get()) == ([(5, 5)], 0)

    def test_futures_tasks_and_objects(self) -> None:
        class Own:
            def __await__(self) -> Generator[None, None, None]:
                yield from asyncio.sleep(SOON).__await__()

        async def make() -> asyncio.Future[int]:
            future = asyncio.get_running_loop().create_future()
            future.set_result(3)
            return future

        assert aio.run(aio.run(make())) == 3
        aio.run(Own())

    def test_a_future_of_another_loop(self) -> None:
        loop = asyncio.new_event_loop()
        future = loop.create_future()
        with pytest.raises(RuntimeError, match="different loop"):
            aio.run(future)
        loop.close()

    def test_asynchronous_generators(self) -> None:
        log: Log = []

        async def numbers() -> AsyncIterator[int]:
            try:
                yield 1
                yield 2
            finally:
                log.append("closed")

        async def first() -> int:
            async for number in numbers():
                return number
            return 0

        hooks = sys.get_asyncgen_hooks()
        assert aio.run(first()) == 1
        gc.collect()
        aio.run(asyncio.sleep(SOON))
        assert log == ["closed"]
        assert sys.get_asyncgen_hooks() == hooks

    def test_tasks_go_on_while_somebody_waits(self) -> None:
        log: Log = []

        async def begin() -> None:
            log.append(asyncio.create_task(double(2)))

        aio.run(begin())
        assert aio.run(log[0]) == 4

    def test_refused_in_a_coroutine(self) -> None:
        async def wrong() -> None:
            aio.run(double(1))

        with pytest.raises(RuntimeError, match="use `await`"):
            aio.run(wrong())
        with pytest.raises(RuntimeError, match="use `await`"):
            asyncio.run(wrong())

    def test_refused(self) -> None:
        with pytest.raises(TypeError, match="int"):
            aio.run(5)  # type: ignore[arg-type]


class TestRunInterrupted:
    @pytest.fixture
    def log(self) -> Log:
        return []

    @staticmethod
    async def tidy(log: Log) -> None:
        log.append("begun")
        try:
            await asyncio.sleep(NEVER)
        except asyncio.CancelledError:
            await asyncio.sleep(SOON)
            log.append("tidied")
            raise

    def started(self, log: Log) -> tasklet:
        def body() -> None:
            try:
                aio.run(self.tidy(log))
            except BaseException as error:
                log.append(type(error).__name__)
                raise

        task = tasklet(body)()
        while "begun" not in log:
            schedule()
        return task

    def test_killed(self, log: Log) -> None:
        self.started(log).kill()
        assert log == ["begun"]  # it waits for the task's end
        run()
        assert log == ["begun", "tidied", "TaskletExit"]

    def test_thrown_to(self, log: Log) -> None:
        self.started(log).throw(KeyError, pending=True)
        with pytest.raises(KeyError):
            run()
        assert log == ["begun", "tidied", "KeyError"]

    def test_killed_twice(self, log: Log) -> None:
        task = self.started(log)
        task.kill()
        task.kill()
        assert log == ["begun", "TaskletExit"]
        aio.run(asyncio.sleep(10 * SOON))

    def test_killed_before_it_begins(self, log: Log) -> None:
        task = tasklet(aio.run)(self.tidy(log))
        task.run()
        task.kill()
        run()
        assert log == []

    def test_a_time_limit(self, log: Log) -> None:
        with pytest.raises(TimeoutError), timeout(SOON):
            aio.run(self.tidy(log))
        assert log in ([], ["begun", "tidied"])

    def test_one_that_will_not_be_cancelled(self) -> None:
        async def stubborn() -> int:
            try:
                await asyncio.sleep(NEVER)
            except asyncio.CancelledError:
                return 5
            return 6

        with pytest.raises(TimeoutError), timeout(10 * SOON):
            aio.run(stubborn())


class TestSpawn:
    def test_its_result(self, program: Callable[[Any], Any]) -> None:
        async def main() -> int:
            return await aio.spawn(lambda a, b: a + b, 1, b=2)

        assert program(main()) == 3

    def test_in_a_tasklet_that_waits(self, program: Callable[[Any], Any]) -> None:
        def body(number: int) -> int:
            assert getcurrent() is not getmain()
            sleep(SOON)
            return aio.run(double(number))

        async def main() -> list[int]:
            return await asyncio.gather(*(aio.spawn(body, number) for number in range(50)))

        assert program(main()) == [2 * number for number in range(50)]

    def test_the_loop_runs_meanwhile(self, program: Callable[[Any], Any]) -> None:
        async def main() -> list[str]:
            log: Log = []

            def compute() -> None:
                while len(log) < 3:
                    schedule()

            async def ticks() -> None:
                for _ in range(3):
                    await asyncio.sleep(SOON)
                    log.append("tick")

            await asyncio.gather(aio.spawn(compute), ticks())
            return log

        assert program(main()) == ["tick"] * 3

    def test_its_exception(self, program: Callable[[Any], Any]) -> None:
        def fails() -> None:
            raise LookupError

        async def main() -> None:
            await aio.spawn(fails)

        with pytest.raises(LookupError) as caught:
            program(main())
        names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert names[-1] == "fails"

    def test_stop_iteration(self) -> None:
        async def main() -> None:
            await aio.spawn(next, iter(()))

        with pytest.raises(RuntimeError, match="StopIteration"):
            asyncio.run(main())

    def test_cancelled(self, program: Callable[[Any], Any]) -> None:
        log: Log = []

        def body() -> None:
            try:
                channel().receive()
            except TaskletExit:
                log.append("killed")
                raise

        async def main() -> None:
            future = aio.spawn(body)
            await aio.spawn(schedule)  # it has begun
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(future, 10 * SOON)
            await aio.spawn(schedule)

        program(main())
        assert log == ["killed"]

    def test_cancelled_before_it_begins(self) -> None:
        log: Log = []

        async def main() -> None:
            aio.spawn(log.append, 1).cancel()
            await aio.spawn(schedule)

        asyncio.run(main())
        assert log == []

    def test_killed(self, program: Callable[[Any], Any]) -> None:
        tasks: list[tasklet] = []

        def body() -> None:
            tasks.append(getcurrent())
            channel().receive()

        async def main() -> None:
            future = aio.spawn(body)
            await aio.spawn(schedule)
            tasks[0].kill(pending=True)
            with pytest.raises(asyncio.CancelledError):
                await future

        program(main())

    def test_its_context_is_a_copy(self) -> None:
        async def main() -> int:
            variable.set(3)
            seen = await aio.spawn(variable.get)
            await aio.spawn(variable.set, 4)
            assert variable.get() == 3
            return seen

        assert asyncio.run(main()) == 3

    def test_there_and_back_again(self, program: Callable[[Any], Any]) -> None:
        async def there(depth: int) -> int:
            return 0 if depth == 0 else await aio.spawn(back, depth)

        def back(depth: int) -> int:
            return 1 + aio.run(there(depth - 1))

        assert program(there(10)) == 10

    def test_channels_between_them(self, program: Callable[[Any], Any]) -> None:
        async def main() -> list[int]:
            it = channel()
            senders = [aio.spawn(it.send, number) for number in range(5)]
            received = [await aio.spawn(it.receive) for _ in range(5)]
            await asyncio.gather(*senders)
            return sorted(received)

        assert program(main()) == [0, 1, 2, 3, 4]

    def test_one_loop_after_the_other(self, program: Callable[[Any], Any]) -> None:
        async def main() -> int:
            return await aio.spawn(aio.run, double(1))

        for _ in range(3):
            assert program(main()) == 2
            assert aio.run(double(2)) == 4

    def test_tasklets_that_outlive_the_loop(self, program: Callable[[Any], Any]) -> None:
        log: Log = []
        gate = channel()

        def body() -> None:
            gate.receive()
            log.append(aio.run(double(3)))

        async def main() -> None:
            tasklet(body)()
            await aio.spawn(schedule)

        program(main())
        gate.send(None)
        run()
        assert log == [6]

    @pytest.mark.parametrize("ends", ["returns", "is killed", "raises"])
    def test_one_that_ends_after_the_loop(self, ends: str) -> None:
        go_on = channel()

        def waits() -> None:
            go_on.receive()
            if ends == "raises":
                raise LookupError

        async def begin() -> None:
            futures.append(aio.spawn(waits))
            await aio.spawn(schedule)

        futures: list[asyncio.Future[None]] = []
        asyncio.run(begin())
        assert go_on.balance == -1
        if ends == "is killed":
            assert go_on.queue is not None
            go_on.queue.kill()
        elif ends == "raises":
            with pytest.raises(LookupError):
                go_on.send(None)
        else:
            go_on.send(None)
            run()
        assert go_on.balance == 0
        assert not futures[0].done()

    def test_a_loop_that_ends_while_tasklets_wait_for_it(self) -> None:
        log: Log = []

        def body() -> None:
            try:
                aio.run(asyncio.sleep(NEVER))
            except asyncio.CancelledError:
                log.append("cancelled")

        async def main() -> None:
            tasklet(body)()
            await asyncio.sleep(SOON)
            await aio.spawn(schedule)

        asyncio.run(main())
        run()
        assert log == ["cancelled"]

    def test_a_tasklet_that_waits_for_the_other_loop(self) -> None:
        """The program's loop takes the place of the hub's, and gives it back."""
        log: Log = []
        task = tasklet(lambda: log.append(aio.run(double(5))))()
        schedule()

        async def main() -> None:
            await aio.spawn(schedule)

        asyncio.run(main())
        run()
        assert (log, task.alive) == ([10], False)

    def test_refused(self) -> None:
        with pytest.raises(RuntimeError, match="no running event loop"):
            aio.spawn(print)  # type: ignore[unused-awaitable]

        async def main() -> None:
            await aio.spawn(5)  # type: ignore[arg-type]

        with pytest.raises(TypeError, match="int"):
            asyncio.run(main())
