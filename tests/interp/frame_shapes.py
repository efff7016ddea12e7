"""Programs of test_frames.py: run in a process of their own, with frames_probe on sys.path.

A marker is referenced by nothing but frames, so a report is exact when each was visited as often as
it is referenced.  A visit too many is what must not be: the collector would free what is in use.
"""

import functools
import io
import signal
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import frames_probe  # type: ignore[import-not-found]

Marker: Any = frames_probe.Marker
Report = list[tuple[str, int, int]]
take: Callable[..., Report] = frames_probe.take
ROUNDS = 30  # calls until the interpreter has specialised them

EXACT: list[Callable[[], Report]] = []
PARTLY: list[Callable[[], Report]] = []


def first(report: Report, *_others: object) -> Report:
    """Return the first argument."""
    return report


def last(*values: object) -> Report:
    """Return the last argument, a report."""
    report = values[-1]
    assert isinstance(report, list)
    return report


# ---- calls whose operands are all known ---------------------------------------------------------


@EXACT.append
def variables() -> Report:
    one = Marker("one")
    other = one
    return first(take(), one, other)


@EXACT.append
def arguments() -> Report:
    return take(Marker("a"), Marker("b"), key=Marker("c"))


@EXACT.append
def one_argument() -> Report:
    return last(frames_probe.take_one(Marker("a")))


@EXACT.append
def methods() -> Report:
    it = Marker("self")
    return last(it.take(Marker("a")), it.take_one(it), Marker("b").take_none())


@EXACT.append
def nested() -> Report:
    return last(Marker("a"), last(Marker("b"), take(Marker("c"))))


@EXACT.append
def python_calls() -> Report:
    def inner(_one: object, *_more: object, key: object) -> Report:
        return first(take(), key)

    return last(Marker("a"), inner(Marker("b"), 1, key=Marker("d")))


@EXACT.append
def recursion() -> Report:
    def descend(depth: int, it: object) -> Report:
        if depth:
            return last(it, Marker("stack"), descend(depth - 1, Marker("argument")))
        return take()

    return descend(20, None)


@EXACT.append
def after_an_exception() -> Report:
    for _ in (1,):
        try:
            next(iter(()))
        except StopIteration:
            return last(Marker("a"), take(Marker("b")))
    raise AssertionError


@EXACT.append
def loop() -> Report:
    for _ in (1,):
        for report in Marker("iterator"):
            return last(report)
    raise AssertionError


@EXACT.append
def python_iterator() -> Report:
    class Once:
        def __iter__(self) -> "Once":
            return self

        def __next__(self) -> Report:
            return take()

    for _ in Marker("outer"):
        for report in Once():
            return report
    raise AssertionError


@EXACT.append
def key_function() -> Report:
    seen: list[Report] = []

    def key(_item: int) -> int:
        seen.append(take())
        return 0

    last(Marker("a"), sorted([1], key=key), [])
    return seen[0]


@EXACT.append
def comprehension() -> Report:
    reports = [last(Marker("a"), frames_probe.take_one(Marker("b"))) for _ in (1,)]
    return reports[0]


@EXACT.append
def moved() -> Report:
    def inner(_argument: object) -> Report:
        return last(frames_probe.take_moved())

    return last(Marker("a"), inner(Marker("b")))


# ---- what may be left out -----------------------------------------------------------------------


@PARTLY.append
def constructor() -> Report:
    class It:
        def __init__(self, *_arguments: object) -> None:
            self.report = take()

    return It(Marker("a"), Marker("b")).report


@PARTLY.append
def unpacked() -> Report:
    def inner(*values: object, **more: object) -> Report:
        return last(take(*values, **more), take(*Marker("gone")), take(*(Marker("a"), *values)))

    return inner(Marker("b"), key=Marker("c"))


@PARTLY.append
def generator() -> Report:
    def produce() -> Iterator[Report]:
        it = Marker("variable")
        yield last(take(), it, take())

    return last(Marker("a"), next(produce()))


@PARTLY.append
def uncalled() -> Report:
    return last(Marker("a"), frames_probe.take_uncalled())


# ---- taken while a call is over but its arguments are not all gone ------------------------------

taken: list[Report] = []
references: list[object] = []


class Noisy:
    """Takes a report when it goes."""

    def __del__(self) -> None:
        taken.append(take())


class Closed:
    """Takes a report when it goes, in a method that has another name."""

    def close(self) -> None:
        taken.append(take())

    __del__ = close


def key(_item: object) -> int:
    """Take a report."""
    taken.append(take())
    return 0


def watched_in_c() -> object:
    """Return an object whose weak reference calls a function in C that calls key(1)."""

    class Watched:
        pass

    it = Watched()
    references.append(weakref.ref(it, functools.partial(min, 1, key=key)))
    return it


class Raw(io.RawIOBase):
    """Takes a report when what is buffered before it goes."""

    def writable(self) -> bool:
        return True

    def write(self, data: memoryview) -> int:  # type: ignore[override]
        taken.append(take())
        return len(data)


def buffered() -> object:
    """Return a buffer with something in it."""
    it = io.BufferedWriter(Raw())  # type: ignore[type-var]
    it.write(b"x")
    return it


def noisy_generator() -> Iterator[int]:
    """Take a report when it is closed."""
    try:
        yield 1
        yield 2
    finally:
        taken.append(take())


def started(it: Iterator[int]) -> Iterator[int]:
    """Return the generator, stopped at its first yield."""
    next(it)
    return it


def watched() -> object:
    """Return an object that has a weak reference with a callback, which takes a report."""

    class Watched:
        pass

    it = Watched()
    references.append(weakref.ref(it, lambda _dead: taken.append(take())))
    return it


def finalisers() -> None:
    """Let arguments go after calls of C functions, Python functions and constructors."""
    for noisy in (Noisy, watched, lambda: started(noisy_generator())):
        take(Marker("a"), noisy(), Marker("b"))
        take(noisy(), Marker("a"), key=Marker("b"))
        take(*(Marker("a"), noisy(), Marker("b")))
        id(noisy())
        len([noisy(), Marker("a")])
        isinstance(noisy(), type(Marker("a")))
        Marker("a").take(Marker("b"), noisy())
        first([], noisy(), Marker("b"))
        weakref.ref(watched(), lambda _dead: taken.append(take()))


def finalisers_that_are_arguments() -> None:
    """Let arguments go, among them the function that runs because another one goes."""
    take(Marker("a"), Closed.close, Closed(), Marker("b"))
    take(Marker("a"), key, watched_in_c(), Marker("b"))
    take(Marker("a"), Raw.write, buffered(), Marker("b"))
    take(Marker("a"), Marker("b"), key, watched_in_c())


def clearing() -> None:
    """Let variables go at the end of a function."""
    one, noisy, other = Marker("a"), Noisy(), Marker("b")
    len([one, noisy, other])


def errors() -> None:
    """Let arguments go after a call that failed."""
    functions: tuple[Any, ...] = (frames_probe.take_one, int)
    for function in functions:
        with suppress(TypeError):
            function(Marker("a"), Noisy(), Marker("b"))


def handle_signal(*_signal: object) -> None:
    """Take a report."""
    taken.append(take())


def signals() -> None:
    """Run a signal handler after a call that got the handler, and take a report in it."""
    frames_probe.interrupt(handle_signal, Marker("a"))
    len([frames_probe.interrupt(handle_signal, Marker("a"), Marker("b")), Marker("c")])


def watch_events(run: Callable[[], None]) -> None:
    """Run with a callback that takes a report at each event, one kind after the other."""
    sys.settrace(lambda *_: taken.append(take()))
    run()
    sys.settrace(None)
    if sys.version_info >= (3, 12):
        monitoring = sys.monitoring
        monitoring.use_tool_id(monitoring.DEBUGGER_ID, "test")
        for name in ("CALL", "LINE", "INSTRUCTION", "RAISE", "PY_START", "PY_RETURN"):
            event = getattr(monitoring.events, name)
            monitoring.register_callback(
                monitoring.DEBUGGER_ID, event, lambda *_: taken.append(take())
            )
            monitoring.set_events(monitoring.DEBUGGER_ID, event)
            run()
            monitoring.set_events(monitoring.DEBUGGER_ID, 0)
        monitoring.free_tool_id(monitoring.DEBUGGER_ID)


def check_shapes() -> None:
    """Each shape of call: the counts agree, or are too small where that is said."""
    for _ in range(ROUNDS):
        for shape in EXACT:
            report = shape()
            wrong = [row for row in report if row[1] != row[2]]
            assert not wrong, (shape.__name__, wrong)
        for shape in PARTLY:
            check(shape())
    assert frames_probe.take_late() == 0


def check(report: Report) -> None:
    """Nothing was visited too often."""
    wrong = [row for row in report if row[1] > row[2]]
    assert not wrong, wrong


def check_endings() -> None:
    """Reports from finalisers, signal handlers and callbacks never have too much."""

    def run() -> None:
        for _ in range(2):
            finalisers()
            finalisers_that_are_arguments()
            clearing()
            errors()
            signals()

    signal.signal(signal.SIGUSR1, handle_signal)
    for _ in range(ROUNDS // 2):
        run()
    watch_events(run)
    assert len(taken) > 100
    for report in taken:
        check(report)
    assert frames_probe.take_late() == 0
