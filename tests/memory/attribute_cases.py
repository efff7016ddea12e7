"""Which name the growth of a process came with: whom it names, and whom it does not."""

import asyncio
import gc
import random
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from functools import lru_cache
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import Any

import pytest

from cpythonplus import memory
from cpythonplus.memory._attribution import measuring, recording
from cpythonplus.memory._attribution.measuring import Meter
from tests.memory.attribution.attributing import each_call, findings, growing, repeat, rows
from tests.support import SANITIZED, run_child

__all__ = ["each_call"]

pytestmark = [
    pytest.mark.needs_gil,
    pytest.mark.usefixtures("each_call"),
    pytest.mark.skipif(SANITIZED, reason="malloc is the sanitizer's"),
]

KIB = "x" * 1000


class Node:
    """Refers to itself."""

    def __init__(self, payload: str) -> None:
        self.itself = self
        self.payload = payload


class Service:
    """Tasks that differ in what stays of them."""

    def __init__(self) -> None:
        self.kept: list[object] = []
        self.table: dict[int, str] = {}
        self.queue: deque[str] = deque()

    @memory.attribute("leaks")
    def leaks(self, number: int) -> list[int]:
        self.kept.append({"number": number, "payload": f"{KIB}{number}"})
        return [0] * 1000

    @memory.attribute("keeps")
    def kept_by(self, number: int) -> None:
        self.kept.append(f"{KIB}{number}")

    @memory.attribute("works")
    def works(self, number: int) -> list[str]:
        return [f"{number}.{part}" for part in range(200)]

    @memory.attribute("warms")
    def warms(self, number: int) -> int:
        if not self.table:
            self.table.update((key, f"{key:>100}") for key in range(5_000))
        return number

    @memory.attribute("leaves cycles")
    def leaves_cycles(self, number: int) -> None:
        for _ in range(10):
            Node(f"{KIB}{number}")

    @memory.attribute("puts")
    def puts(self, number: int) -> None:
        self.queue.append(f"{KIB}{number}" * 2)

    @memory.attribute("gets")
    def gets(self, number: int) -> int:
        self.queue.popleft()
        return number


def test_the_one_that_leaks_is_named_and_no_other() -> None:
    service = Service()
    repeat(300, service.leaks, service.works, service.warms, service.leaves_cycles)
    found = memory.attributed()
    assert growing(found) == ["leaks"]
    told = rows(found)
    # A string of 1,000 characters and some; a dict, a number and their places in lists.
    assert 1_000 < told["leaks"].bytes_per_call < 2_000
    assert told["leaks"].evidence == "alone"
    assert found.rows[0].name == "leaks"
    assert told["leaks"].grown_bytes > 0.8 * found.grown_bytes  # with a JIT its code is the rest
    assert told["warms"].finding == "warms up"
    assert told["warms"].first_bytes > 500_000
    assert told["works"].finding == told["leaves cycles"].finding == "steady"
    assert all(row.calls == 300 for row in found.rows)
    assert all(row.alone > 250 for row in found.rows)
    assert found.calls == 1_200


def test_nothing_is_named_where_nothing_leaks() -> None:
    service = Service()
    repeat(300, service.works, service.warms, service.leaves_cycles)
    assert growing(memory.attributed()) == []


def test_a_result_that_is_still_there_at_the_end_is_none() -> None:
    @memory.attribute("returns much")
    def much(number: int) -> bytearray:
        return bytearray(1_000_000 + number)

    repeat(100, much, Service().works)
    assert findings(memory.attributed())["returns much"] == "steady"


def test_what_one_hands_over_and_another_frees_is_nobodys_leak() -> None:
    service = Service()
    repeat(200, service.puts, service.works, service.gets)
    found = memory.attributed()
    assert rows(found)["puts"].bytes_per_call > 1_500
    assert rows(found)["gets"].bytes_per_call < -1_500
    assert findings(found)["puts"] == "offset"
    assert growing(found) == []


def test_nor_while_another_one_leaks() -> None:
    service = Service()
    repeat(200, service.puts, service.leaks, service.gets)
    assert growing(memory.attributed()) == ["leaks"] or growing(memory.attributed()) == []
    repeat(2000, service.leaks)
    assert growing(memory.attributed()) == ["leaks"]


def test_garbage_that_survived_a_young_collection_is_nobodys_leak() -> None:
    """It waits for a later one, which no measurement makes; the report does."""

    @memory.attribute("old garbage")
    def old(number: int) -> None:
        node = Node(f"{KIB}{number}")
        gc.collect(0)
        gc.collect(1)
        del node

    gc.collect()
    service = Service()
    repeat(200, old, service.works)
    assert growing(memory.attributed()) == []
    repeat(200, old, service.leaks)
    assert "old garbage" not in growing(memory.attributed())


def test_a_cache_that_fills_levels_off() -> None:
    @lru_cache(maxsize=400)
    def rendered(number: int) -> str:
        return f"{KIB}{number}"

    @memory.attribute("fills")
    def fills(number: int) -> None:
        rendered(number + 10**6)  # a small number is no object of its own

    repeat(500, fills)
    assert findings(memory.attributed())["fills"] == "levels off"
    repeat(1_000, fills)
    assert findings(memory.attributed())["fills"] != "grows"


def test_growth_in_the_background_is_nobodys() -> None:
    """Each name, and the time between, grows as fast as any other."""
    kept: list[bytes] = []

    @memory.attribute("one")
    def one(number: int) -> None:
        background()

    @memory.attribute("other")
    def other(number: int) -> None:
        background()

    def background() -> None:
        clock[0] += 1_000_000
        kept.append(bytes(2_000))

    clock = [time.perf_counter_ns()]

    def between(number: int) -> None:
        background()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cpythonplus.memory._attribution.measuring.perf_counter_ns", lambda: clock[0])
        repeat(200, one, between, other, between)
        assert growing(memory.attributed()) == []


# ---- several at once ----------------------------------------------------------------------------


def run_threads(*threads: Callable[[], object]) -> None:
    started = [threading.Thread(target=each) for each in threads]
    for each in started:
        each.start()
    for each in started:
        each.join()


def test_threads_that_overlap_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Always two are open at once: what grew meanwhile is shared out by who ran how often."""
    service, chosen = Service(), random.Random(5)
    monkeypatch.setattr(recording, "_LEAST_CALLS", 4)
    turn = threading.Barrier(2)
    plan = [[chosen.choice("lwc") for _ in range(800)] for _ in range(2)]
    by_letter: dict[str, Any] = {"l": service.leaks, "w": service.works, "c": service.leaves_cycles}

    def thread(letters: list[str]) -> None:
        with memory.attribute("whole thread"):
            pass
        for number, letter in enumerate(letters):
            turn.wait()
            function = by_letter[letter]
            with memory.attribute(f"around {letter}"):
                turn.wait()
                if letter == "l":
                    service.kept.append(f"{KIB}{number}")
                else:
                    function.__wrapped__(service, number)
                turn.wait()

    run_threads(*(lambda letters=letters: thread(letters) for letters in plan))
    found = memory.attributed()
    told = rows(found)
    assert growing(found) == ["around l"]
    assert told["around l"].evidence == "together"
    assert 700 < told["around l"].bytes_per_call < 2_000
    assert told["around l"].alone < 20


def test_two_that_always_run_together_cannot_be_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recording, "_LEAST_CALLS", 4)
    service = Service()
    turn = threading.Barrier(2)

    def thread(name: str, work: Callable[[int], object]) -> None:
        for number in range(400):
            turn.wait()
            with memory.attribute(name):
                turn.wait()
                work(number)
                turn.wait()

    run_threads(
        lambda: thread("leaks", lambda number: service.kept.append(f"{KIB}{number}")),
        lambda: thread("runs beside", str),
    )
    found = memory.attributed()
    assert growing(found) == []
    assert findings(found) == {"leaks": "unclear", "runs beside": "unclear"}
    assert rows(found)["leaks"].beside == "runs beside"
    assert "cannot be told from" in found.text()


def test_tasks_of_asyncio_that_interleave() -> None:
    service = Service()

    @memory.attribute("leaks a little")
    async def leaks(number: int) -> None:
        await asyncio.sleep(0)
        service.kept.append(f"{KIB}{number}")
        await asyncio.sleep(0)

    @memory.attribute("awaits")
    async def awaits(number: int) -> list[str]:
        await asyncio.sleep(0)
        return [str(part) for part in range(100 + number % 7)]

    async def main() -> None:
        chosen = random.Random(6)
        for number in range(600):
            picked = [chosen.choice((leaks, awaits))(number) for _ in range(3)]
            await asyncio.gather(*picked)

    asyncio.run(main())
    found = memory.attributed()
    assert growing(found) == ["leaks a little"]
    assert all(row.alone == 0 for row in found.rows)


def test_a_task_begun_inside_of_a_span_is_not_nested_in_it() -> None:
    """It inherits the context, and may run while the other goes on."""

    async def inner() -> None:
        with memory.attribute("inner"):
            await asyncio.sleep(0)

    async def main() -> None:
        for _ in range(20):
            with memory.attribute("outer"):
                task = asyncio.create_task(inner())
                await asyncio.sleep(0)
                await task

    asyncio.run(main())
    assert rows(memory.attributed())["inner"].alone == 0


# ---- nested -------------------------------------------------------------------------------------


def test_what_an_inner_one_leaks_is_not_the_outer_ones() -> None:
    service = Service()

    @memory.attribute("route")
    def route(number: int) -> None:
        service.warms(number)
        service.kept_by(number)

    repeat(200, route)
    found = memory.attributed()
    assert growing(found) == ["keeps"]
    assert rows(found)["route"].alone > 150
    assert abs(rows(found)["route"].bytes_per_call) < 100


def test_the_same_name_and_the_same_object_inside_itself() -> None:
    kept = []
    same = memory.attribute("same")

    def again(depth: int) -> None:
        with same:
            kept.append(f"{KIB}{depth}")
            if depth:
                again(depth - 1)

    repeat(100, lambda _: again(2))
    found = memory.attributed()
    assert rows(found)["same"].calls == 300
    assert growing(found) == ["same"]
    assert 900 < rows(found)["same"].bytes_per_call < 1_500


def test_exceptions_pass_and_the_call_counts() -> None:
    kept = []

    @memory.attribute("fails")
    def fails(number: int) -> None:
        kept.append(f"{KIB}{number}")
        raise KeyError(number)

    for number in range(400):
        with pytest.raises(KeyError):
            fails(number)
    found = memory.attributed()
    assert growing(found) == ["fails"]
    assert rows(found)["fails"].calls == 400


# ---- what can be decorated ----------------------------------------------------------------------


def test_generators_count_until_they_end() -> None:
    @memory.attribute("generator")
    def generate(count: int) -> Iterator[int]:
        got = 0
        while got < count:
            got += (yield got) or 1
        return "end"  # type: ignore[return-value]

    generator: Any = generate(4)
    assert next(generator) == 0
    assert generator.send(2) == 2
    with pytest.raises(StopIteration, match="end"):
        generator.send(9)
    assert rows(memory.attributed())["generator"].calls == 1


def test_a_generator_left_unfinished_is_open_until_it_is_closed() -> None:
    @memory.attribute("unfinished")
    def generate() -> Iterator[int]:
        yield 1
        yield 2

    service = Service()
    generator = generate()
    next(generator)
    repeat(20, service.works)
    assert rows(memory.attributed())["works"].alone == 0
    del generator
    repeat(20, service.works)
    found = rows(memory.attributed())
    assert found["works"].alone > 10
    assert found["unfinished"].calls == 1


def test_a_block_in_a_generator_left_unfinished() -> None:
    def generate() -> Iterator[int]:
        with memory.attribute("block"):
            yield 1

    left = [generate() for _ in range(10)]
    assert [next(each) for each in left] == [1] * 10
    Service().works(1)
    left.clear()
    Service().works(1)
    assert recording.recorder().active == 0
    assert rows(memory.attributed())["block"].calls == 10


def test_asynchronous_generators() -> None:
    closed = []

    @memory.attribute("asynchronous")
    async def generate() -> AsyncIterator[int]:
        try:
            try:
                sent = yield 1
            except KeyError:
                sent = 5
            yield sent  # type: ignore[misc]
        finally:
            closed.append(True)

    async def main() -> list[int]:
        got = [each async for each in generate()]
        generator: Any = generate()
        got.append(await anext(generator))
        got.append(await generator.asend(3))
        await generator.aclose()
        generator = generate()
        got.append(await anext(generator))
        got.append(await generator.athrow(KeyError()))
        await generator.aclose()
        return got

    assert asyncio.run(main()) == [1, None, 1, 3, 1, 5]
    assert closed == [True] * 3
    assert rows(memory.attributed())["asynchronous"].calls == 3


def test_what_cannot_be_attributed_is_refused() -> None:
    for wrong in (5, None, b"name"):
        with pytest.raises(TypeError, match="expected a name"):
            memory.attribute(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="an empty one"):
        memory.attribute("")
    things: list[Any] = [Node, classmethod(lambda _: None), property(len), 5]
    for thing in things:
        with pytest.raises(TypeError, match="expected a function"):
            memory.attribute("name")(thing)
    for share, names in ((0, 5), (1.5, 5), (0.5, 0), (0.5, 1001)):
        with pytest.raises(ValueError, match="expected"):
            memory.attribute.configure(share=share, names=names)


def test_a_decorated_function_is_still_itself() -> None:
    @memory.attribute("name")
    def documented(one: int, *, two: int = 2) -> int:
        """Return a sum."""
        return one + two

    assert documented(1, two=4) == 5
    assert documented.__doc__ == "Return a sum."
    assert documented.__name__ == "documented"


def test_nothing_was_attributed() -> None:
    with pytest.raises(LookupError, match="nothing has been attributed"):
        memory.attributed()


# ---- limits -------------------------------------------------------------------------------------


def test_names_do_not_grow_without_bound() -> None:
    memory.attribute.configure(names=3)
    for number in range(5_000):
        with memory.attribute(f"user {number}"):
            pass
    found = rows(memory.attributed())
    assert list(found) == ["(other)", "user 0", "user 1", "user 2"]
    assert found["(other)"].calls == 4_997
    assert len(recording.recorder().guesses) <= 1_024


def test_names_are_cut_and_shown_visibly() -> None:
    with memory.attribute("\x1b[2J" + "n" * 5_000):
        pass
    found = memory.attributed()
    assert len(found.rows[0].name) == 200
    assert "\x1b" not in found.text()


def test_a_measurement_is_not_made_inside_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A finalizer that the collector runs may be attributed, too."""

    class Finalized:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            with memory.attribute("finalizer"):
                pass

    service = Service()

    def leaves(number: int) -> None:
        Finalized()

    repeat(50, service.works, leaves)
    gc.collect()
    found = rows(memory.attributed())
    assert found["finalizer"].calls == 50
    assert recording.recorder().active == 0


def test_where_malloc_takes_too_long_private_memory_stands_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = Service()
    repeat(10, service.works)
    monkeypatch.setattr("cpythonplus.memory._attribution.measuring._TOO_LONG_NS", -1)
    repeat(10, service.works)
    found = memory.attributed()
    assert not found.malloc
    assert "private memory, which is coarse" in found.text()
    assert found.block_bytes == 0


def test_private_memory_stands_in_for_an_allocator_that_tells_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cpythonplus._native.memory_malloc_bytes", lambda: -1)
    meter = Meter()
    assert not meter.uses_malloc
    before = meter.read()
    # Not from malloc, which may have free pages in memory.
    with mmap(-1, 16 << 20, flags=MAP_PRIVATE | MAP_ANONYMOUS) as kept:
        kept.write(b"x" * len(kept))
        assert meter.read().used_bytes - before.used_bytes > 5_000_000


# ---- processes ----------------------------------------------------------------------------------


def test_a_child_begins_anew_and_a_span_around_the_fork_is_the_parents() -> None:
    run_child(
        """
        import os
        from cpythonplus import memory

        with memory.attribute("parent"):
            pid = os.fork()
        if not pid:
            try:
                memory.attributed()
            except LookupError:
                pass
            else:
                os._exit(1)
            with memory.attribute("child"):
                pass
            os._exit([row.name for row in memory.attributed().rows] != ["child"])
        assert os.waitpid(pid, 0)[1] == 0
        assert [row.name for row in memory.attributed().rows] == ["parent"]
        """
    )


def test_spans_that_are_open_at_the_end_of_the_interpreter() -> None:
    run_child(
        """
        import threading
        from cpythonplus import memory

        def generate():
            with memory.attribute("open"):
                yield 1

        kept = generate()
        next(kept)
        memory.attribute("never left").__enter__()

        class Late:
            def __del__(self):
                with memory.attribute("late"):
                    pass

        late = Late()
        late.itself = late
        memory.attributed()
        """
    )


def test_measuring_leaves_nothing_behind() -> None:
    """Its own figures are in tables that do not grow."""
    service = Service()
    repeat(600, service.works)
    blocks = recording.recorder().last[1]
    repeat(1_000, service.works)
    assert recording.recorder().last[1] - blocks < 50


def test_a_finalizer_may_ask_while_its_thread_measures() -> None:
    asked = []

    class Asks:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            asked.append(memory.attributed())

    @memory.attribute("asks")
    def asks(_: int) -> None:
        Asks()

    repeat(3, asks)  # what one leaves is collected by the measurement at the start of the next
    assert asked
    assert not all(report.collected for report in asked)
    assert memory.attributed().collected


def test_another_measure_begins_with_its_own_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "_TOO_LONG_NS", -1)

    @memory.attribute("steady")
    def steady(_: int) -> None:
        """Leave nothing."""

    repeat(20, steady)
    home = recording.recorder()
    assert not home.meter.uses_malloc
    entries = home.names["steady"].series.entries()
    assert entries
    assert max(abs(entry.used_bytes) for entry in entries) < 1 << 20


def test_an_asynchronous_generator_ends_whatever_its_end_raises() -> None:
    @memory.attribute("raises")
    async def raises() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            raise ValueError

    async def main() -> None:
        numbers = raises()
        async for _ in numbers:
            break
        with pytest.raises(ValueError):  # noqa: PT011  # the bare one above
            await numbers.aclose()  # type: ignore[attr-defined]

    asyncio.run(main())
    assert recording.recorder().active == 0


def test_a_time_limit_that_comes_while_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*_: object) -> None:
        raise TimeoutError

    with memory.attribute("job"):
        pass
    with monkeypatch.context() as patched:
        patched.setattr(recording.Recorder, "starts", late)
        for name in ("job", "new"):
            with pytest.raises(TimeoutError), memory.attribute(name):
                pass
    assert recording.recorder().active == 0
    with memory.attribute("job"):
        pass
    assert recording.recorder().active == 0
