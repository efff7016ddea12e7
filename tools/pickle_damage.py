"""Damage pickles of tasklets in every place: they raise, or the tasklet runs; nothing crashes.

    python -m tools.pickle_damage [--every N] [--shape NAME]

Each shape is a function that stops in the middle of something. Of its pickle each byte has each of
its bits flipped, each opcode of an empty container or of None becomes each other one, and it is cut
off everywhere. Then the state itself is damaged: each value of a frame becomes one of another type,
each letter another one, each offset each other one. Whatever can be loaded is run.
`--every 8` takes one of eight of these damages.

A pickle is a program. A damaged one may import another module or loop for long; that is stopped,
and is no failure. Chunks run in children, so that a crash is found and the next chunk begins anew.
"""

# ruff: noqa: ANN401, B008, B023, D101, D103, RET504, TRY301 (the shapes are what they are)

import argparse
import gc
import os
import pickle
import pickletools
import resource
import signal
import sys
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count, islice
from typing import Any

from cpythonplus import _native
from cpythonplus.tasklets import dumps, run, schedule_remove, tasklet

CHUNK = 200
CODE_BYTES = 250  # no shape has more
LIMIT_S = 60  # of a chunk
PATIENCE_S = 0.3  # with one that loops
MEMORY = 4 << 30
SWAPPED = b"])}\x8fN\x88"  # EMPTY_LIST, EMPTY_TUPLE, EMPTY_DICT, EMPTY_SET, NONE, NEWTRUE


# ---- the shapes ---------------------------------------------------------------------------------


def in_list(n: int) -> list[Any]:
    return [(i, schedule_remove()) for i in range(n)]


def in_set(n: int) -> set[Any]:
    return {schedule_remove() or i for i in range(n)}


def in_dict(n: int) -> dict[Any, Any]:
    return {i: schedule_remove() for i in (1, 2, n)}


def in_displays(n: int) -> Any:
    return [*range(n), schedule_remove(), *(n, n)], {"a": n, "b": schedule_remove()}


def in_call(n: int) -> Any:
    return dict(*[[(n, n)]], k=n, l=schedule_remove())


def in_string(n: int) -> str:
    return f"{n} {schedule_remove()!r} {n:>{n}}"


def in_function(n: int) -> Any:
    def inner(a: Any = (n, 1), *, b: Any = schedule_remove()) -> Any:
        return a, b

    return inner()


@contextmanager
def managed(n: int) -> Iterator[int]:
    try:
        yield n
    finally:
        n += 1


def in_with(n: int) -> int:
    with managed(n) as value, suppress(KeyError):
        schedule_remove()
        raise KeyError(value)
    return n


def in_handler(n: int) -> int:
    try:
        raise ValueError(n)
    except ValueError as error:
        try:
            schedule_remove()
        finally:
            n += 1
        raise TypeError(n) from error


def in_finally(n: int) -> int:
    try:
        return n // 0
    finally:
        schedule_remove()


def in_group(n: int) -> int:
    try:
        raise ExceptionGroup("g", [ValueError(n), KeyError(n)])
    except* ValueError:
        schedule_remove()
        raise OSError(n) from None
    except* KeyError:
        n += 1
    return n


def numbers(n: int) -> Iterator[int]:
    got = yield n
    yield from (i + (schedule_remove() or 0) for i in range(n))
    return got


def in_generator(n: int) -> int:
    total = 0
    for value in numbers(n):
        total += value
    return total


def beside_generators(n: int) -> Any:
    begun, new = numbers(n), (i for i in range(n))
    next(begun)
    schedule_remove()
    return list(new), next(begun, None)


class Pause:
    def __await__(self) -> Generator[None, None, int]:
        yield
        return 1


async def later(n: int) -> list[int]:
    return [i for i in range(n) if await Pause()]


async def much_later(n: int) -> list[int]:
    return await later(n) + await later(n)


def beside_coroutines(n: int) -> None:
    coroutine = much_later(n)
    coroutine.send(None)
    schedule_remove()
    coroutine.send(None)
    coroutine.close()


def in_closure(n: int) -> Any:
    def add() -> int:
        nonlocal n
        n += 1
        schedule_remove()
        return n

    return [add() for _ in range(2)], [lambda: (i, n) for i in range(schedule_remove() or n)]


def down(n: int) -> int:
    return 1 + down(n - 1) if n else schedule_remove() or 1


def in_recursion(n: int) -> int:
    return down(5 * n)


def in_match(n: int) -> Any:
    for subject in ([1, n], {"k": n}, "word"):
        match subject:
            case [int(a), b] if a == schedule_remove():
                return b
            case {"k": value, **rest}:
                rest[value] = schedule_remove()
            case str():
                schedule_remove()
    return n


def in_deletion(n: int) -> int:
    value = n
    schedule_remove()
    del value
    schedule_remove()
    value = n
    return value


SHAPES: dict[str, Callable[[int], Any]] = {
    name: function
    for name, function in list(globals().items())
    if name.startswith(("in_", "beside_"))
}


def parked(function: Callable[[int], Any], stops: int) -> tasklet | None:
    """One that has stopped so often, or None if it has ended."""
    task = tasklet(function)(3)
    for _ in range(stops):
        with suppress(Exception):
            run()
        if not task.alive:
            return None
        if _ < stops - 1:
            task.insert()
    return task


# ---- damage to bytes ----------------------------------------------------------------------------

Damaged = tuple[str, Callable[[], Any]]
"""What it is, and what loads it."""


def of_bytes(data: bytes) -> Iterator[Damaged]:
    def loads(changed: bytes) -> Callable[[], Any]:
        return lambda: pickle.loads(changed)  # noqa: S301  # that is what is tested

    for place in range(len(data)):
        yield f"cut off at {place}", loads(data[:place])
        for bit in range(8):
            changed = data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :]
            yield f"bit {bit} of byte {place}", loads(changed)
    for _, _, found in pickletools.genops(data):
        at = found or 0
        for other in SWAPPED if data[at] in SWAPPED else b"":
            changed = bytes([other])
            yield f"opcode {changed!r} at {at}", loads(data[:at] + changed + data[at + 1 :])


# ---- damage to states ---------------------------------------------------------------------------


def _cell() -> Any:
    value = None
    return (lambda: value).__closure__[0]  # type: ignore[index]


OTHERS: tuple[Callable[[], Any], ...] = (
    list,
    dict,
    set,
    tuple,
    object,
    _cell,
    ValueError,
    lambda: None,
    lambda: 2,
    lambda: 1 << 70,
    lambda: iter(()),
    lambda: [1],
)
LETTERS = b"oni"


def of_frame(
    offset: int, kinds: bytes, values: tuple[Any, ...], handled: Any
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Each of these with one thing changed."""
    for i in range(len(values)):
        for j, other in enumerate(OTHERS):
            changed = (*values[:i], other(), *values[i + 1 :])
            yield f"value {i} is {j}", (offset, kinds, changed, handled)
    for place, letter in enumerate(kinds):
        index = sum(each != ord("n") for each in kinds[:place])
        rest = values[index + (letter != ord("n")) :]
        for other_letter in LETTERS:
            new = kinds[:place] + bytes([other_letter]) + kinds[place + 1 :]
            for value in [(), (1,), (None,)] if other_letter != ord("n") else [()]:
                yield f"letter {place}", (offset, new, (*values[:index], *value, *rest), handled)
    for at in range(-CODE_BYTES, CODE_BYTES):
        yield f"offset {at}", (at, kinds, values, handled)
    for other in OTHERS:
        yield "handled", (offset, kinds, values, other())
        yield "offset", (other(), kinds, values, handled)
        yield "kinds", (offset, other(), values, handled)
        yield "values", (offset, kinds, other(), handled)


def loading(data: bytes, target: int, change: Callable[[Any], Any]) -> Any:
    """Load it; the frame of that number, of those that are restored, is changed before."""
    seen = 0

    def changed(frame: Any) -> Any:
        nonlocal seen
        seen += 1
        return change(frame) if seen == target else frame

    def restore_frames(task: Any, frames: Any, handled: Any, value: Any) -> None:
        frames = tuple([(frame[0], *changed(frame[1:])) for frame in frames])
        real_frames(task, frames, handled, value)

    def restore_generator(generator: Any, state: Any) -> None:
        real_generator(generator, state and (*changed(state[:4]), state[4]))

    real_frames, real_generator = _native.tasklets_restore, _native.generator_restore
    _native.tasklets_restore, _native.generator_restore = restore_frames, restore_generator
    try:
        return pickle.loads(data)  # noqa: S301
    finally:
        _native.tasklets_restore, _native.generator_restore = real_frames, real_generator


def of_state(data: bytes) -> Iterator[Damaged]:
    """Of each frame that `loads` gives to its tasklet or generator."""
    frames: list[Any] = []
    for target in count(1):
        frames.clear()
        loading(data, target, lambda frame: frames.insert(0, frame) or frame)  # type: ignore[func-returns-value]
        if not frames:
            return
        for number, (what, _) in enumerate(of_frame(*frames[0])):

            def change(frame: Any, number: int = number) -> Any:
                return next(islice(of_frame(*frame), number, None))[1]

            yield f"frame {target}: {what}", partial(loading, data, target, change)


def all_damages(data: bytes) -> Iterator[Damaged]:
    yield from of_bytes(data)
    yield from of_state(data)


# ---- one after the other ------------------------------------------------------------------------


class Loops(BaseException):
    """Enough of it."""


def _stop(*_: object) -> None:
    raise Loops


def _refuse_what_stock_crashes_on(frame: Any, event: str, _: object) -> None:
    """The function of a comprehension is called by a damaged pickle, and not with an iterator."""
    iterated = frame.f_locals.get(".0", iter(())) if event == "call" else iter(())
    if sys.version_info < (3, 15) and not hasattr(iterated, "__next__"):
        raise Loops


def try_one(load: Callable[[], Any]) -> None:
    """Load it, and let it run."""
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_S, PATIENCE_S)
    try:
        sys.setprofile(_refuse_what_stock_crashes_on)
        task = load()
        sys.setprofile(None)
        for _ in range(20):
            if type(task) is not tasklet or not task.alive:
                break
            task.insert()
            run()
        task.kill()
    except BaseException:  # noqa: BLE001, S110  # whatever a program does
        pass
    finally:
        sys.setprofile(None)
        signal.setitimer(signal.ITIMER_REAL, 0)


def try_chunk(damages: list[Damaged], note: Callable[[str], None]) -> None:
    """In a child."""
    if "CPYTHONPLUS_SANITIZER" not in os.environ:  # which reserves far more addresses than that
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    warnings.simplefilter("ignore")
    sys.unraisablehook = lambda _: None
    signal.signal(signal.SIGALRM, _stop)
    for what, load in damages:
        note(what)
        with suppress(Loops):
            try_one(load)
    with suppress(Loops):
        gc.collect()


def _chunks(damages: Iterator[Damaged], every: int) -> Iterator[list[Damaged]]:
    chunk: list[Damaged] = []
    for number, damaged in enumerate(damages):
        if number % every == 0 or damaged[0].startswith("opcode"):
            chunk.append(damaged)
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    yield chunk


def run_chunk(damages: list[Damaged]) -> str | None:
    """What was wrong, or None."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        status = 1
        try:
            with os.fdopen(writing, "w", buffering=1) as told:
                try_chunk(damages, lambda what: print(what, file=told))
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(pid, signal.SIGKILL))
    signal.alarm(LIMIT_S)
    with os.fdopen(reading) as pipe:
        last = ""
        for line in pipe:
            last = line.strip()
    _, status = os.waitpid(pid, 0)
    signal.alarm(0)
    if os.WIFSIGNALED(status):
        return f"{last}: signal {os.WTERMSIG(status)}"
    return None  # a damaged pickle may end the process: os._exit() is a callable, too


def run_shape(name: str, *, every: int) -> tuple[list[str], int]:
    """Return what was wrong, and how much was tried."""
    wrong, tried = [], 0
    for stops in (1, 2):
        task = parked(SHAPES[name], stops)
        if task is None:
            break
        try:
            data = dumps(task)
        except pickle.PicklingError:  # in C code: next(generator)
            break
        finally:
            with suppress(BaseExceptionGroup):  # 3.11.2 wraps what leaves an `except*`
                task.kill()
        for chunk in _chunks(all_damages(data), every):
            tried += len(chunk)
            found = run_chunk(chunk)
            if found is not None:
                wrong.append(f"{name}, stop {stops}: {found}")
    return wrong, tried


def main(arguments: list[str] | None = None) -> int:
    """Run the shapes; 1 if one of them crashes."""
    parser = argparse.ArgumentParser(prog="pickle_damage", description=(__doc__ or "")[:100])
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--shape", choices=SHAPES, action="append")
    options = parser.parse_args(arguments)
    status = 0
    for name in options.shape or SHAPES:
        wrong, tried = run_shape(name, every=options.every)
        print(f"{tried:9,} {name}: {len(wrong)} wrong", *wrong[:5], sep="\n    ", flush=True)
        status |= bool(wrong)
    return status


if __name__ == "__main__":
    sys.modules["tools.pickle_damage"] = sys.modules["__main__"]
    for _shape in [*SHAPES.values(), numbers, managed, later, much_later, down, Pause]:
        _shape.__module__ = "tools.pickle_damage"
    sys.exit(main())
