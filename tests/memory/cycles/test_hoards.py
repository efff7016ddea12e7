"""Exceptions that are still held: by whom, how much they keep, and what is left alone."""

import asyncio
import gc
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from functools import partial
from types import TracebackType

import pytest

from cpythonplus import _native
from cpythonplus.memory import cycles
from cpythonplus.memory._cycles.hoards import find_hoards
from cpythonplus.memory.cycles import Hoard

KEPT: list[BaseException] = []
SIZE = 100_000


class TroubleError(Exception):
    """What is looked for."""


def work() -> None:
    big = [bytes(1000) for _ in range(SIZE // 1000)]
    raise TroubleError(len(big))


def keep(into: Callable[[TroubleError], object]) -> None:
    try:
        work()
    except TroubleError as error:
        into(error)


def found() -> list[Hoard]:
    return [hoard for hoard in find_hoards() if hoard.exception == "TroubleError"]


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    KEPT.clear()
    gc.collect()
    assert found() == []


def test_a_traceback_that_was_taken_off() -> None:
    keep(lambda e: KEPT.append(e.with_traceback(None)))
    assert found() == []


def test_no_code_of_a_holders_metaclass_runs() -> None:
    ran: list[str] = []

    class Meta(type):
        def __eq__(cls, other: object) -> bool:
            ran.append("__eq__")
            return True

        def __hash__(cls) -> int:
            ran.append("__hash__")
            return 0

    class Holder(metaclass=Meta):
        __slots__ = ("error",)
        error: BaseException

    holder = Holder()
    keep(partial(setattr, holder, "error"))
    ran.clear()
    (hoard,) = found()
    assert ran == []
    assert hoard.holder.endswith("Holder.error")


# Without a GIL, frozen objects are not seen, and pytest's modules are frozen.
@pytest.mark.needs_gil
def test_in_a_list_of_a_module() -> None:
    keep(KEPT.append)
    keep(KEPT.append)
    (hoard,) = found()
    assert hoard.holder == f"{__name__}.KEPT[]"
    assert (hoard.count, hoard.frames, hoard.place.function) == (2, 4, "work")
    assert hoard.place.file == __file__
    assert 2 * SIZE < hoard.size_bytes < 2.2 * SIZE
    assert "2 x TroubleError from work() held by" in str(hoard)


def test_in_a_variable_of_a_running_function() -> None:
    def drive() -> list[Hoard]:
        last = None
        for _ in range(3):
            try:
                work()
            except TroubleError as error:
                last = error
        assert last is not None
        return found()

    (hoard,) = drive()
    assert hoard.holder.startswith("last in test_in_a_variable_of_a_running_function.<locals>.")
    gc.collect()


def test_in_another_thread() -> None:
    ready, done = threading.Event(), threading.Event()

    def loop() -> None:
        errors: dict[str, TroubleError] = {}
        keep(lambda error: errors.update(latest=error))
        ready.set()
        done.wait()

    thread = threading.Thread(target=loop)
    thread.start()
    ready.wait()
    (hoard,) = found()
    done.set()
    thread.join()
    assert hoard.holder.startswith("errors.latest in ")


def test_handled_for_long() -> None:
    ready, done = threading.Event(), threading.Event()

    def reconnect() -> None:
        try:
            work()
        except TroubleError:
            ready.set()
            done.wait()

    thread = threading.Thread(target=reconnect)
    thread.start()
    ready.wait()
    (hoard,) = found()
    done.set()
    thread.join()
    assert hoard.holder.startswith("the handler in test_handled_for_long")


class Slots:
    __slots__ = ("last_error",)


class Client:
    def __init__(self) -> None:
        self.trouble: TroubleError | None = None

    def call(self) -> None:
        try:
            work()
        except TroubleError as error:
            self.trouble = error


def test_on_instances() -> None:
    # In a list that has no name: what they are is told, not where they are.
    holders: list[list[object]] = [[Slots(), Client()]]
    slots, client = holders[0]
    keep(partial(setattr, slots, "last_error"))
    assert isinstance(client, Client)
    client.call()
    before = client.__sizeof__()
    assert sorted(hoard.holder for hoard in found()) == ["Client.trouble", "Slots.last_error"]
    assert client.__sizeof__() == before
    client.trouble = None


def test_in_a_generator_and_a_future() -> None:
    def generator() -> Generator[None, None, None]:
        kept = None
        try:
            work()
        except TroubleError as error:
            kept = error
        yield
        assert kept

    running = generator()
    next(running)
    loop = asyncio.new_event_loop()
    future: asyncio.Future[None] = loop.create_future()
    keep(future.set_exception)
    first, second = sorted(hoard.holder for hoard in found())
    assert first == "Future"
    assert second.startswith("kept in ")
    future.exception()
    loop.close()
    running.close()


def test_what_is_handled_here_is_no_hoard() -> None:
    try:
        work()
    except TroubleError:
        assert found() == []


def fail(number: int) -> None:
    raise TroubleError(number)


def test_small_ones_are_left_out() -> None:
    try:
        fail(0)
    except TroubleError as error:
        KEPT.append(error)
    assert found() == []
    assert any(h.exception == "TroubleError" for h in find_hoards(min_bytes=1))


def test_what_others_use_is_not_counted() -> None:
    shared = [bytes(1000) for _ in range(100)]

    def use() -> None:
        mine = shared
        fail(len(mine))

    try:
        use()
    except TroubleError as error:
        KEPT.append(error)
        error.__traceback__ = _without_this_frame(error.__traceback__)
    assert found() == []


def _without_this_frame(traceback: TracebackType | None) -> TracebackType | None:
    return traceback and traceback.tb_next


# Without a GIL, frozen objects are not seen, and pytest's modules are frozen.
@pytest.mark.needs_gil
def test_a_watch_reports_them() -> None:
    with cycles.watch() as w:
        keep(KEPT.append)
    (hoard,) = [each for each in w.report.hoards if each.exception == "TroubleError"]
    assert hoard.holder == f"{__name__}.KEPT[]"
    assert str(hoard) in w.report.text()
    with cycles.watch(hoards=False) as w:
        pass
    assert w.report.hoards == ()


def test_the_variables_of_a_frame() -> None:
    value = object()

    def inner() -> dict[str, object]:
        local = value
        if not local:
            unbound = 1
            assert unbound
        return _native.memory_frame_variables(sys._getframe())

    variables = inner()
    assert variables["local"] is value
    assert variables["value"] is value  # through its cell
    assert "unbound" not in variables


# Without a GIL, frozen objects are not seen, and pytest's modules are frozen.
@pytest.mark.needs_gil
def test_looking_leaves_nothing_behind() -> None:
    keep(KEPT.append)
    find_hoards()
    gc.collect()
    find_hoards()
    assert gc.collect() == 0


# Without a GIL, frozen objects are not seen, and pytest's modules are frozen.
@pytest.mark.needs_gil
def test_all_count_of_very_many() -> None:
    for _ in range(600):
        keep(KEPT.append)
    [hoard] = found()
    assert (hoard.count, hoard.holder) == (600, f"{__name__}.KEPT[]")
