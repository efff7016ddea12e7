"""Atomic sections."""

import asyncio
import functools
import inspect
import threading
import time
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from cpythonplus.gil import atomic
from cpythonplus.gil._sections import LockAtomic
from tests.gil.load import STATES, run
from tests.support import run_child

LOCK = LockAtomic()


@pytest.fixture(params=["atomic", "LockAtomic"])
def section(request: pytest.FixtureRequest) -> LockAtomic:
    """Return what `atomic` is here, and what it is on a free-threaded build."""
    return LOCK if request.param == "LockAtomic" else atomic  # type: ignore[return-value]


def test_with_and_nesting(section: LockAtomic) -> None:
    assert section.inside() is False
    with section() as outer:
        assert outer is not None
        assert section.inside() is True
        with section(), outer:
            assert section.inside() is True
        assert section.inside() is True
    assert section.inside() is False


def test_enter_and_leave(section: LockAtomic) -> None:
    for _ in range(3):
        assert section.enter() is None  # type: ignore[func-returns-value]
    with section():
        pass
    for _ in range(3):
        assert section.inside()
        assert section.leave() is None  # type: ignore[func-returns-value]
    assert not section.inside()


def test_leave_without_enter(section: LockAtomic) -> None:
    with pytest.raises(RuntimeError, match="without"):
        section.leave()
    with section():
        pass
    with pytest.raises(RuntimeError, match="without"):
        section.leave()
    assert not section.inside()


@pytest.mark.needs_gil
def test_exit_without_enter() -> None:
    with pytest.raises(RuntimeError, match="not been entered"):
        atomic().__exit__(None, None, None)
    assert not atomic.inside()


def test_an_exception_leaves(section: LockAtomic) -> None:
    with pytest.raises(ZeroDivisionError), section(), section():
        _ = 1 / 0
    assert not section.inside()


def test_each_thread_has_its_own(section: LockAtomic) -> None:
    seen: list[bool] = []
    with section():
        thread = threading.Thread(target=lambda: seen.append(section.inside()))
        thread.start()
        thread.join()
    assert seen == [False]


def test_decorator(section: LockAtomic) -> None:
    @section
    def add(a: int, *rest: int, factor: int = 1) -> int:
        """Add them up."""
        assert section.inside()
        return factor * sum(rest, a)

    assert add(1, 2, 3, factor=2) == 12
    assert not section.inside()
    assert add.__name__ == "add"
    assert add.__doc__ == "Add them up."
    assert add.__module__ == __name__
    assert inspect.signature(add).parameters.keys() == {"a", "rest", "factor"}
    assert hasattr(add, "__wrapped__")


def test_decorated_exception_and_recursion(section: LockAtomic) -> None:
    @section
    def down(n: int) -> int:
        if n == 0:
            raise KeyError(n)
        return down(n - 1)

    with pytest.raises(KeyError):
        down(5)
    assert not section.inside()


def test_decorated_methods(section: LockAtomic) -> None:
    class Account:
        total = 0

        @section
        def pay(self, amount: int) -> int:
            self.total += amount
            return self.total

        @staticmethod
        @section
        def fee() -> int:
            return 3

    account = Account()
    assert account.pay(4) == 4
    assert account.fee() == 3


def test_what_is_suspended_cannot_be_decorated(section: LockAtomic) -> None:
    async def coroutine() -> None:
        pass

    async def asynchronous_generator() -> AsyncGenerator[int]:
        yield 1

    def generator() -> Generator[int]:
        yield 1

    for unfit in (coroutine, asynchronous_generator, generator, functools.partial(coroutine)):
        with pytest.raises(TypeError, match="suspended"):
            section(unfit)


@pytest.mark.parametrize("wrong", [5, "f", None])
def test_what_cannot_be_called_cannot_be_decorated(section: LockAtomic, wrong: object) -> None:
    if wrong is None and section is LOCK:
        return  # atomic(None) is atomic() there
    with pytest.raises(TypeError):
        section(wrong)  # type: ignore[call-overload]


def test_none_is_no_function(section: LockAtomic) -> None:
    with pytest.raises(TypeError, match="not NoneType"):
        section(None)  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        section(function=len)  # type: ignore[call-overload]


@pytest.mark.needs_gil
def test_wrong_calls() -> None:
    with pytest.raises(TypeError):
        atomic(len, len)  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        atomic(function=len)  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        type(atomic)()
    with pytest.raises(TypeError):
        type(atomic())()


def test_wrong_configuration(section: LockAtomic) -> None:
    for limit in (0, -1, float("nan"), float("inf"), 1e10):
        with pytest.raises(ValueError, match="limit_ms"):
            section.configure(limit_ms=limit)
    with pytest.raises(TypeError):
        section.configure(limit_ms="5")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="report"):
        section.configure(report=5)
    with pytest.raises(TypeError):
        section.configure(5)  # type: ignore[call-arg]
    section.configure(limit_ms=20.0, report=None)


@pytest.mark.needs_gil
def test_lock_atomic_excludes_other_sections() -> None:
    inside = 0
    seen: set[int] = set()

    def body() -> None:
        nonlocal inside
        for _ in range(300):
            with LOCK():
                inside += 1
                seen.add(inside)
                for _ in range(20):
                    pass
                inside -= 1

    threads = [threading.Thread(target=body) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {1}


# ------------------------------------------------------------------------------------------------
# Suspended inside


def _steps(log: list[bool]) -> Generator[int]:
    with atomic():
        log.append(atomic.inside())
        yield 1
        log.append(atomic.inside())
        yield 2
    log.append(atomic.inside())


@pytest.mark.needs_gil
def test_a_generator_resumed_in_its_thread() -> None:
    log: list[bool] = []
    steps = _steps(log)
    assert next(steps) == 1
    assert atomic.inside()  # the thread is inside while the generator is suspended there
    assert next(steps) == 2
    assert list(steps) == []
    assert log == [True, True, False]
    assert not atomic.inside()


@pytest.mark.needs_gil
@pytest.mark.parametrize("end", ["close", "throw", "collected"])
def test_a_generator_that_ends_while_suspended(end: str) -> None:
    steps = _steps([])
    next(steps)
    if end == "close":
        steps.close()
    elif end == "throw":
        with pytest.raises(KeyError):
            steps.throw(KeyError())
    del steps
    assert not atomic.inside()


@pytest.mark.needs_gil
def test_a_generator_resumed_in_another_thread() -> None:
    steps = _steps([])
    next(steps)
    caught: list[BaseException] = []
    inside: list[bool] = []

    def other() -> None:
        next(steps)
        inside.append(atomic.inside())
        try:
            next(steps)
        except RuntimeError as error:
            caught.append(error)
        inside.append(atomic.inside())

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert inside == [False, False]
    assert "a different thread" in str(caught[0])
    assert not atomic.inside()  # it has been ended here


@pytest.mark.needs_gil
def test_a_section_belongs_to_one_thread() -> None:
    section = atomic()
    caught: list[BaseException] = []

    def other() -> None:
        try:
            section.__enter__()
        except RuntimeError as error:
            caught.append(error)

    with section, section:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert atomic.inside()
    assert "another thread" in str(caught[0])
    assert not atomic.inside()


@pytest.mark.needs_gil
def test_left_in_another_thread_after_the_first_has_ended() -> None:
    section = atomic()
    thread = threading.Thread(target=section.__enter__)
    thread.start()
    thread.join()
    with pytest.raises(RuntimeError, match="a different thread"):
        section.__exit__(None, None, None)
    with section:  # it can be used again
        assert atomic.inside()
    assert not atomic.inside()


@pytest.mark.needs_gil
def test_entered_after_its_thread_has_ended_inside() -> None:
    section = atomic()
    thread = threading.Thread(target=section.__enter__)
    thread.start()
    thread.join()
    while Path(f"/proc/self/task/{thread.native_id}").exists():
        time.sleep(0.001)  # up to 3.12 join() returns while it still has a few things to do
    with section:
        assert atomic.inside()
    assert not atomic.inside()
    with pytest.raises(RuntimeError, match="has not been entered"):
        section.__exit__(None, None, None)


@pytest.mark.needs_gil
def test_a_forked_child_enters_what_another_thread_was_inside_of() -> None:
    run(
        """
        section, inside, over = atomic(), threading.Event(), threading.Event()

        def work():
            with section:
                inside.set()
                over.wait()

        thread = threading.Thread(target=work)
        thread.start()
        inside.wait()
        pid = os.fork()
        if pid == 0:
            with section:
                os._exit(0 if atomic.inside() else 1)
        assert os.waitpid(pid, 0)[1] == 0
        over.set()
        thread.join()
        """
    )


@pytest.mark.needs_gil
def test_a_reporter_that_configures_when_it_goes() -> None:
    run(
        """
        told = []

        class Reporter:
            def __call__(self, section):
                pass
            def __del__(self):
                atomic.configure(limit_ms=0.001, report=told.append)

        atomic.configure(limit_ms=1e6, report=Reporter())
        atomic.configure(report=None)  # what it says now counts: it is later
        with atomic():
            time.sleep(0.03)
        assert len(told) == 1, told
        """
    )


@pytest.mark.needs_gil
def test_configured_without_its_other_half() -> None:
    child = run_child(
        """
        from cpythonplus import _native
        try:
            _native.atomic.configure(report=print)
        except RuntimeError as error:
            print(error)
        """
    )
    assert child.out == "atomic is not set up\n"


@pytest.mark.needs_gil
def test_a_coroutine_suspended_inside() -> None:
    order: list[tuple[str, bool]] = []

    async def careless() -> None:
        with atomic():
            order.append(("in", atomic.inside()))
            await asyncio.sleep(0)
            order.append(("back", atomic.inside()))
        order.append(("out", atomic.inside()))

    async def other() -> None:
        # Same thread: the section goes on, and this runs inside it.
        order.append(("other", atomic.inside()))
        await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(careless(), other())
        cancelled = asyncio.ensure_future(careless())
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
        assert not atomic.inside()

    asyncio.run(main())
    assert order[:4] == [("in", True), ("other", True), ("back", True), ("out", False)]
    assert not atomic.inside()


# ------------------------------------------------------------------------------------------------
# Beside other threads


@pytest.mark.needs_gil
@pytest.mark.parametrize("state", STATES)
def test_nobody_gets_in_between(state: str) -> None:
    run(
        """
        with Load(cpu=2, io=2) as load:
            for _ in range(20):
                with atomic():
                    before = sum(load.counts)
                    end = time.perf_counter() + 0.012  # longer than the interpreter's own patience
                    while time.perf_counter() < end:
                        pass
                    assert sum(load.counts) == before
            load.progress()
        s = gil.statistics().atomic
        assert s.sections == 20 and 0 < s.contended <= 20, s
        """,
        before=STATES[state],
    )


@pytest.mark.needs_gil
@pytest.mark.parametrize("state", STATES)
def test_a_blocking_call_inside_lets_others_run(state: str) -> None:
    run(
        """
        with Load(cpu=1, io=2) as load:
            with atomic():
                load.progress()
                assert atomic.inside()
                with atomic():
                    load.progress()
        """,
        before=STATES[state],
    )


@pytest.mark.needs_gil
def test_across_install_and_uninstall() -> None:
    run(
        """
        def quiet(load):
            before = sum(load.counts)
            for _ in range(20_000):
                pass
            assert sum(load.counts) == before

        with Load(cpu=2, io=1) as load:
            with atomic():
                gil.install()
                quiet(load)
                with atomic():
                    gil.uninstall()
                    quiet(load)
                    load.progress()
                gil.install()
                quiet(load)
                gil.uninstall()
                quiet(load)
            load.progress()
            atomic.enter()
            gil.install()
            atomic.leave()
            load.progress()
        """,
        before="",
    )


@pytest.mark.needs_gil
@pytest.mark.parametrize("state", STATES)
def test_a_thread_that_ends_inside(state: str) -> None:
    run(
        """
        with Load(cpu=1, io=1) as load:
            for _ in range(3):
                thread = threading.Thread(target=atomic.enter)
                thread.start()
                thread.join()
            until(lambda: gil.statistics().atomic.abandoned == 3)
            load.progress()
            together(lambda i: [None for _ in range(50) if atomic.enter() or atomic.leave()])
            load.progress()
        assert gil.statistics().atomic.abandoned == 3
        assert not atomic.inside()
        """,
        before=STATES[state],
    )


@pytest.mark.needs_gil
def test_threads_that_wait_for_ever_inside() -> None:
    run(
        """
        never = threading.Lock()
        never.acquire()

        def waits():
            with atomic():
                never.acquire()

        for _ in range(5):
            threading.Thread(target=waits, daemon=True).start()
        with Load(cpu=2, io=2) as load:
            for _ in range(3):
                with atomic():
                    load.progress()
        """
    )


@pytest.mark.needs_gil
def test_overlong_sections_are_counted_and_reported() -> None:
    child = run(
        """
        from cpythonplus.gil import OverlongSection

        def hold(seconds):
            with atomic():
                end = time.perf_counter() + seconds
                while time.perf_counter() < end:
                    pass

        reports = []
        atomic.configure(limit_ms=60_000, report=reports.append)
        hold(0)
        assert gil.statistics().atomic.overlong == 0 and not reports
        atomic.configure(limit_ms=15)
        hold(0.05)
        s = gil.statistics().atomic
        assert s.overlong == 1 and s.longest_ns >= 40_000_000, s
        (report,) = reports
        assert isinstance(report, OverlongSection) and report.thread == "MainThread"
        assert report.duration_ns == s.longest_ns
        assert any(frame.name == "hold" for frame in report.stack), report.stack
        assert "MainThread" in str(report) and "hold" in str(report)
        assert "reporter" not in str(report)
        # A limit alone leaves the report as it is, and the other way round.
        atomic.configure(limit_ms=1e6)
        hold(0.05)
        assert len(reports) == 1
        atomic.configure(limit_ms=15)
        hold(0.05)
        assert len(reports) == 2
        # The exception that leaves the section is not lost.
        try:
            with atomic():
                hold(0.05)
                raise KeyError("mine")
        except KeyError as error:
            assert error.args == ("mine",)
        assert len(reports) == 3
        atomic.configure(report=None)
        hold(0.05)
        assert len(reports) == 3 and gil.statistics().atomic.overlong == 4
        # A report may use sections itself, and may fail.
        unraisable = []
        sys.unraisablehook = lambda problem: unraisable.append(problem.exc_value)

        def fails(report):
            with atomic():
                pass
            raise ValueError("in the report")

        atomic.configure(report=fails)
        hold(0.05)
        assert [str(problem) for problem in unraisable] == ["in the report"]
        assert not atomic.inside()
        try:
            atomic.configure(limit_ms=5, report=3)
        except TypeError:
            pass
        hold(0.05)
        assert len(unraisable) == 2  # neither was changed
        """,
        before="",
    )
    assert child.err == ""


@pytest.mark.needs_gil
def test_a_forked_child_inside_goes_on_inside() -> None:
    run(
        """
        with Load(cpu=2, io=2) as load:
            with atomic():
                pid = os.fork()
                if pid == 0:
                    ok = atomic.inside()
                    atomic.leave()
                    os._exit(0 if ok and not atomic.inside() else 1)
                assert atomic.inside()
            assert os.waitpid(pid, 0)[1] == 0
            load.progress()
        """
    )


@pytest.mark.needs_gil
def test_sections_one_after_the_other_let_others_in() -> None:
    """Nobody is kept waiting longer than the section that he stands before."""
    for state in STATES:
        run(
            """
            stop = False

            def sections():
                while not stop:
                    with atomic():
                        for _ in range(20_000):
                            pass

            thread = threading.Thread(target=sections)
            thread.start()
            while gil.statistics().atomic.contended < 20:
                os.stat("/")
            stop = True
            thread.join()
            """,
            before=STATES[state],
        )


@pytest.mark.needs_gil
def test_leave_inside_a_with_block_is_an_error() -> None:
    run(
        """
        for _ in range(3):
            try:
                with atomic():
                    atomic.leave()
            except RuntimeError as error:
                assert "leave" in str(error)
            else:
                raise SystemExit("accepted")
            assert not atomic.inside()
        with Load(cpu=1, io=1) as load:
            load.progress()
        """,
        before="",
    )


@pytest.mark.needs_gil
def test_one_section_object_for_many_threads() -> None:
    """Whoever finds it entered by another gets an error; nobody's depth is changed."""
    run(
        """
        shared = atomic()
        refused = []

        def use(i):
            for _ in range(3000):
                try:
                    with shared:
                        for _ in range(20):
                            pass
                except RuntimeError:
                    refused.append(i)
                assert not atomic.inside()

        with Load(cpu=2) as load:
            together(use, 4)
            load.progress()
        """,
        before="",
    )
