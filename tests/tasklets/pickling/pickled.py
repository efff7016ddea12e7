"""Functions for tasklets that are pickled: each stops in the middle of something, and logs."""

import contextlib
import dataclasses
import decimal
import functools
import itertools
import sys
import threading
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any

from cpythonplus.tasklets import channel, getcurrent, schedule_remove, tasklet

Log = list[Any]
RESULTS: list[Log] = []


def stop(value: Any = None) -> Any:
    """Stop, and give the value when the tasklet goes on."""
    return schedule_remove(value)


class Broken(Exception):
    """Raised on purpose."""


def expressions(log: Log) -> None:
    x = 3
    log.append(f"{x}{stop(1)}{[x, stop(2), {'k': stop(3)}]!r}")
    log.append((x if stop(True) else 0, 1 < stop(2) < 3, not stop(0) and 7))
    log.append(dict(a=stop(1), b=stop(2)))
    log.append([*range(stop(2)), *(stop(5), 6)])
    y = (z := stop(4)) + z
    log.append([y, z])


def iterables() -> Iterator[Any]:
    yield range(3)
    yield [1, 2]
    yield (3, 4)
    yield {1: 2, 3: 4}
    yield {1: 2, 3: 4}.values()
    yield {1: 2, 3: 4}.items()
    yield OrderedDict({1: 2, 3: 4}).values()
    yield {5, 6}
    yield "aé"
    yield b"xy"
    yield bytearray(b"z")
    yield deque([1, 2])
    yield zip([1, 2], "ab")
    yield enumerate("cd")
    yield map(str, [1, 2])
    yield filter(None, [0, 1, 2])
    yield reversed([1, 2])
    yield reversed({7: 8})
    yield reversed(deque([1, 2, 3]))
    yield iter(functools.partial(next, iter([1, 2, 3])), 3)


def loops(log: Log) -> None:
    for iterable in iterables():
        for item in iterable:
            log.append(stop(item))
    while len(log) < 60:
        log.append(stop("while"))
    log.append("else")


def changed_values(log: Log) -> None:
    """The loop gives values that were changed since it stopped."""
    counts = {"a": 1, "b": 2, "c": 3}
    for name, count in counts.items():
        log.append((name, stop(count)))
        counts["c"] += 1
    back = reversed(counts.values())
    next(back)
    stop()
    counts["a"] = 7
    log.append(list(back))
    for count in counts.values():
        stop()
        counts["b"] += count
        log.append(count)


def is_small(number: int) -> bool:
    return number < 3


def of_itertools() -> Iterator[Any]:
    """One of each class, some of them behind others."""
    count, repeat, chain = itertools.count, itertools.repeat, itertools.chain
    yield itertools.accumulate([1, 2, 3])
    yield itertools.accumulate([1, 2, 3], max, initial=2)
    yield chain([1], (2, 3), "a")
    yield chain.from_iterable(iter([[1, 2], [3]]))
    yield itertools.combinations("abcd", 2)
    yield itertools.combinations("a", 2)
    yield itertools.combinations_with_replacement("abc", 2)
    yield itertools.compress("abcd", [1, 0, 1, 1])
    yield itertools.islice(count(5), 3)
    yield itertools.islice(count(2.5, 2), 1, 6, 2)
    yield itertools.islice(itertools.cycle("abc"), 8)
    yield itertools.islice(itertools.cycle([]), 8)
    yield itertools.dropwhile(is_small, [1, 2, 3, 1, 4])
    yield itertools.takewhile(is_small, [1, 2, 3, 1, 4])
    yield itertools.filterfalse(is_small, [1, 2, 3, 1, 4])
    yield itertools.pairwise("abcd")
    yield itertools.permutations([1, 2, 3], 2)
    yield itertools.permutations("abc")
    yield itertools.product([1, 2], "ab", repeat=1)
    yield itertools.product([1, 2], [])
    yield itertools.product()
    yield repeat("x", 3)
    yield itertools.islice(repeat("y"), 2)
    yield itertools.starmap(max, [(1, 2), (4, 3)])
    yield itertools.zip_longest([1], [2, 3, 4], "", fillvalue=0)
    if sys.version_info >= (3, 12):
        yield itertools.batched("abcde", 2)


def second(_: Any, of_two: Any) -> Any:
    return of_two


def called(function: Callable[[], Any]) -> Any:
    return function()


def iterators_of_iterators() -> Iterator[Any]:
    """Others of the language, that ask them, or a generator, or call a local function."""
    numbers = itertools.count(3)
    yield map(sum, itertools.permutations([1, 2, 3], 2))
    yield zip(itertools.repeat(7), (n * n for n in range(3)))
    yield enumerate(itertools.pairwise("abcd"))
    yield filter(lambda n: n % 2, itertools.islice(numbers, 5))
    yield iter(lambda: next(numbers), 11)
    yield map(called, itertools.accumulate((lambda: 1, lambda: 2, lambda: 3), second))
    yield map(lambda n: n + 1, filter(None, itertools.chain([0, 1], [2])))


def itertools_loops(log: Log) -> None:
    for items in itertools.chain(of_itertools(), iterators_of_iterators()):
        for item in items:
            log.append(stop(item))
    log.append([(a, stop(b)) for a, b in itertools.product(itertools.islice("abc", 2), [1, 2])])


def groups_and_tees(log: Log) -> None:
    for key, group in itertools.groupby([1, 2, 3, 4, 1], is_small):
        for item in group:
            log.append((key, stop(item)))
    for key, _ in itertools.groupby("aab"):  # no group is asked
        log.append(stop(key))
    source = iter(range(130))
    first, second = itertools.tee(source)
    for item in itertools.islice(first, 125):
        if item % 40 == 1:
            log.append((item, stop(item)))
    log.append(sum(itertools.islice(second, stop(60))))
    log.append((list(first), sum(second), list(source)))


def groups_left_early(log: Log) -> None:
    for key, group in itertools.groupby("aabbca"):
        stop()
        for item in group:
            log.append((key, stop(item)))
            if key == "b":
                break
        stop()
    both = [itertools.groupby([1, 2, 3, 1], is_small)]
    if sys.version_info < (3, 14):  # pickle alone cannot
        _, group = next(both[0])
        log.append((next(group), stop()))
        log.append([key for key, _ in both[0]])


def held_twice(log: Log) -> None:
    """An iterator is in a variable and in a list, and stays one."""
    numbers = iter([1, 2, 3, 4, 5, 6, 7, 8])
    for one in (enumerate(numbers), zip(numbers), map(str, numbers), filter(None, numbers)):
        both = [one]
        next(one)
        stop()
        log.append(next(both[0]))
        del both


def containers(log: Log) -> None:
    """What lies in them shares variables with the function, and is the same as in others."""
    n, missing = 1, (lambda: n)
    functions = [lambda: n, (lambda: n + 1, [lambda: n + 2])]
    by_name: dict[str, Any] = {"f": functions[0], "all": functions}
    queue = deque([missing], 3)
    default = defaultdict(lambda: [n])
    part = functools.partial(missing)
    steps = plain_numbers(3)
    both = [steps, {missing: n}]
    both.append(both)
    numbers = enumerate("abcd")
    where = [numbers, [numbers]]
    next(steps)
    stop()
    n = 5
    log.append((functions[0](), functions[1][0](), functions[1][1][0]()))  # type: ignore[operator, index]
    log.append((by_name["f"] is functions[0], by_name["all"] is functions, queue[0](), part()))
    log.append((default["x"], queue.maxlen, next(both[0]), next(steps), both[2] is both))  # type: ignore[call-overload]
    log.append((next(iter(both[1])) is missing, queue[0] is missing))  # type: ignore[call-overload]
    log.append([next(each) for each in (numbers, where[0], where[1][0])])  # type: ignore[call-overload, index]


def handlers(log: Log) -> None:
    def names() -> list[str]:
        found, error = [], sys.exc_info()[1]
        while error is not None:
            found.append(type(error).__name__)
            error = error.__cause__ or error.__context__
        return found

    for number in range(3):
        try:
            try:
                stop()
                if number:
                    raise Broken(number)
            except Broken as error:
                stop()
                log.append(names())
                if number == 2:
                    raise
                raise KeyError(number) from error
            else:
                log.append("else")
            finally:
                stop()
                log.append("finally")
        except KeyError:
            stop()
            log.append(names())
        except Broken as error:
            stop()
            log.append((names(), error.args))
    log.append(names())


class Answer(Exception):
    """Its `args` are not what its class takes."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code} {text}")
        self.code = code


class Answers(ExceptionGroup):
    def __new__(cls, code: int, text: str, found: Any) -> Any:
        made = super().__new__(cls, text, found)
        made.code = code
        return made


def exceptions_with_arguments(log: Log) -> None:
    kept: Any = None
    try:
        try:
            raise Answer(404, "not there")
        except Answer as error:
            kept = error
            stop()
            log.append((error is sys.exc_info()[1], error.code, error.args, kept is error))
            raise Answers(3, "all", [KeyError(1)]) from error
    except Answers as group:
        stop()
        log.append((group.code, group.message, len(group.exceptions), group.__cause__ is kept))


def groups(log: Log) -> None:
    try:
        raise ExceptionGroup("both", [Broken(1), KeyError(2), ValueError(3)])
    except* Broken as group:
        stop()
        log.append(group.exceptions[0].args)
    except* (KeyError, ValueError) as group:
        stop()
        log.append(len(group.exceptions))


def groups_again(log: Log) -> None:
    """What one clause raises again stays with what no clause has caught."""
    try:
        try:
            inner = ExceptionGroup("inner", [OSError(3)])
            raise ExceptionGroup("all", [KeyError(1), ValueError(2), inner])
        except* KeyError:
            stop()
            raise
        except* OSError as group:
            stop()
            log.append(repr(group))
            raise Broken("new") from None
    except BaseExceptionGroup as group:
        stop()
        log += [repr(group), repr(group.exceptions[0].__context__)]


class Manager:
    """Swallows Broken."""

    def __init__(self, log: Log) -> None:
        self.log = log

    def __enter__(self) -> int:
        return 5

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> bool:
        self.log.append(kind and kind.__name__)
        return kind is Broken


class Door:
    """Stops while it is left; open when it is an argument of a call."""

    def __init__(self, log: Log, *, swallows: bool) -> None:
        self.log, self.swallows = log, swallows

    def __enter__(self) -> "Door":
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> bool:
        self.log.append((stop(kind and kind.__name__), value and value.args))
        for n in numbers(1, self.log):
            stop(n)
        return self.swallows

    def __call__(self, n: int) -> int:
        with self:
            return n + int(stop(1))


def exits(log: Log) -> None:
    for swallows in (False, True) * 6:  # so that the interpreter has its short way
        door = Door(log, swallows=swallows)
        with door, Door(log, swallows=False):
            log.append("in")
        try:
            with door as same, Door(log, swallows=False):
                raise Broken(swallows)
        except Broken as error:
            log.append((error.args, type(error.__context__)))
        log.append((same is door, sys.exc_info()[1], [door(i) for i in range(2)]))


@contextlib.contextmanager
def managed(log: Log) -> Iterator[int]:
    log.append("in")
    try:
        yield 1
    finally:
        log.append("out")


class Leaving(Manager):
    """Stops at the end of its block."""

    def __exit__(self, *raised: Any) -> bool:
        result = super().__exit__(*raised)
        return bool(stop(result))


def leaving(log: Log) -> None:
    for i in range(2):
        with Leaving(log), Leaving(log) as five:
            log.append(five)
            if i:
                break


def contexts(log: Log) -> None:
    with Manager(log) as five, managed(log) as one, contextlib.suppress(KeyError):
        log.append(stop(five + one))
        raise KeyError
    with Manager(log):
        stop()
        raise Broken


def matches(log: Log) -> None:
    for subject in ([1, 2], {"k": 1}, (1, (2, 3)), "word", 7):
        match subject:
            case [int(a), int(b)] if stop(a) < b:
                log.append((a, b))
            case {"k": value}:
                log.append(stop(value))
            case (a, (b, c)):
                log.append(stop(a + b + c))
            case str():
                log.append(stop("str"))
            case _:
                log.append("other")


def comprehensions(log: Log) -> None:
    n = 2
    log.append([stop(i) * n for i in range(3)])
    log.append({i: stop(i) for i in range(2)})
    log.append({stop(i) for i in range(2)})
    log.append([[stop(j) for j in range(i)] for i in range(3)])


def shared_comprehensions(log: Log) -> None:
    """Inner functions share what belongs to a comprehension only, and what is the function's too."""
    n = i = 5
    log.append([(lambda: i + n + stop(1))() for i in range(2) if stop(1)])
    log.append([(lambda: n + stop(1))() for n in range(2)])
    log.append([last := stop(j) for j in range(3)])

    def both() -> list[int]:
        nonlocal n
        n += 1
        return [(lambda: n * i)() for n in range(2) if stop(1)] + [stop(n)]

    log += [both(), both(), n, i, last]


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **named: Any) -> Any:
        return [function(*args, **named)]

    return wrapper


@logged
def once(value: int) -> int:
    return int(stop(value)) + 1


@logged
@logged
def twice(value: int) -> int:
    return int(stop(value)) + 1


class Decorated:
    """Its methods are behind wrappers."""

    @logged
    def method(self, x: int) -> int:
        return int(stop(x))

    @classmethod
    @logged
    def make(cls, x: int) -> tuple[str, int]:
        return cls.__name__, stop(x)

    @staticmethod
    @logged
    def static(x: int) -> int:
        return int(stop(x))


def decorated(log: Log) -> None:
    one = Decorated()
    make, hidden = one.make, once.__wrapped__  # type: ignore[attr-defined]
    log += [once(1), twice(2), one.method(3), make(4), Decorated.static(5), hidden(6)]


def numbers(n: int, log: Log) -> Iterator[int]:
    for i in range(n):
        try:
            yield stop(i)
        finally:
            log.append("yielded")
    return n


def delegating(n: int, log: Log) -> Iterator[int]:
    got = yield from numbers(n, log)
    log.append(got)
    try:
        raise Broken
    except Broken:
        yield stop(8)
        log.append(type(sys.exc_info()[1]).__name__)


def generators(log: Log) -> None:
    early = delegating(1, log)
    for i in delegating(2, log):
        log.append(stop(i))
        for j in numbers(1, log):
            log.append(stop(j))
    log.extend([1 for _ in range(2)])
    for i in early:
        log.append(i)
    ended = iter(())
    log.append(list(ended))


def plain_numbers(n: int) -> Iterator[int]:
    try:
        raise Broken(n)
    except Broken as error:
        for i in range(n):
            yield i
        log: Log = [error.args]
        yield from log


def generator_values(log: Log) -> None:
    begun, fresh, used = plain_numbers(2), plain_numbers(1), plain_numbers(0)
    list(used)
    next(begun)
    stop()
    log.append((list(begun), list(fresh), list(used)))
    expression = (i * 2 for i in [1, 2, 3])
    next(expression)
    stop()
    log.append((list(expression), expression.__name__))


async def answer() -> int:
    return 42


def coroutines(log: Log) -> None:
    waiting = answer()
    stop()
    try:
        waiting.send(None)
    except StopIteration as end:
        log.append(end.value)
    iterator = answer().__await__()
    stop()
    log.append(next(iterator, "nothing"))
    try:
        waiting.send(None)
    except RuntimeError as error:
        log.append((str(error), type(waiting).__name__))


def closures(log: Log) -> None:
    count = 0
    empty: int

    def add(n: int) -> int:
        nonlocal count
        count += n
        stop()
        return count

    def ask() -> int:
        return empty

    first = [add(1), add(2)]
    double: Callable[[int], int] = lambda n, k=2: n * k + count  # noqa: E731
    stop()
    try:
        ask()
    except NameError:
        log.append("empty")
    empty = 1

    def down(n: int) -> int:
        return stop(0) if n == 0 else 1 + down(n - 1)

    log += [first, double(1), count, ask(), down(4), add.__closure__ is not None]


class Base:
    """Two levels of methods."""

    def __init__(self, x: int) -> None:
        self.x: int = stop(x)

    def method(self, y: int) -> int:
        return self.x + int(stop(y))

    @classmethod
    def make(cls, x: int) -> "Base":
        return cls(x)

    @staticmethod
    def static(x: int) -> int:
        return int(stop(x))


class Derived(Base):
    """Calls its base class."""

    def __init__(self, x: int) -> None:
        super().__init__(x + 1)

    def method(self, y: int) -> int:
        return super().method(y) * 2

    def __call__(self, z: int) -> int:
        return int(stop(z))


def methods(log: Log) -> None:
    for i in range(12):  # so that the interpreter has its short way
        one = Derived(i)
        bound = one.method
        log.append((one.x, bound(1), Derived.make(2).method(3), Derived.static(4), one(5)))
    part = functools.partial(one.method, 7)
    log.append(part())


def counted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Counts calls, with a lock, in a variable that is the function's."""
    lock, count = threading.Lock(), 0

    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        nonlocal count
        with lock:
            count += 1
        result = function(*args)
        with lock:
            count += 1
        return result, wrapper.count() % 2  # type: ignore[attr-defined]

    wrapper.count = lambda: count  # type: ignore[attr-defined]
    return wrapper


@counted
def counted_stop(value: int) -> int:
    return int(stop(value))


@counted
def counted_numbers(value: int) -> Iterator[int]:
    yield int(stop(value))
    yield from plain_numbers(2)


@functools.singledispatch
def by_kind(value: Any) -> Any:
    return stop(value)


@by_kind.register
def _(value: int) -> Any:
    return stop(value + 1)


def behind_decorators(log: Log) -> None:
    before = counted_stop.count()  # type: ignore[attr-defined]
    log.append(counted_stop(3))
    log.append(counted_stop.count() - before)  # type: ignore[attr-defined]
    numbers, _ = counted_numbers(4)
    log.append([stop(number) for number in numbers])
    log.append((by_kind("a"), by_kind(1)))


class Passing(Derived):
    """Passes on whatever arguments it gets."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)

    def method(self, *args: Any, **kwargs: Any) -> int:
        return super().method(*args, **kwargs)

    def kept(self, *args: Any) -> tuple[Any, ...]:
        return (lambda: (self, *stop(args)))()[1:]

    @classmethod
    def make(cls, *args: Any) -> "Passing":
        return super().make(*args)  # type: ignore[return-value]


def passed_on(log: Log) -> None:
    for i in range(12):
        one = Passing(i)
        log.append((one.x, one.method(y=1), one.method(*[2]), one.kept(*"ab"), one(*[3])))
        log.append((Passing.make(*[i]).x, stop(*[one.x]), Passing(**{"x": i}).x))


def takes_all(*args: Any, **kwargs: Any) -> Any:
    return stop((args, kwargs))


PART = functools.partial(takes_all, 0)


def partials(log: Log) -> None:
    parts = [functools.partial(takes_all, *args) for args in ((), (1,), ({"a": 1},), (2, 3))]
    for i in range(12):
        for part in parts:
            with_name = functools.partial(part, name=i)
            log.append((part(4), part(), part(k=5), part(*[6]), with_name(7)))
        log.append(PART(i))
    of_function = functools.partial(takes_all, is_small)
    log.append(len(of_function(8)))
    of_partial = functools.partial(of_function)
    log.append(len(of_partial(9)))


MISSING = object()


class Nothing:
    """Without state."""

    __slots__ = ()
    marker = object()


class Empty:
    """Has no state by now, but may get some."""


NOTHING = Nothing()


def sentinels(log: Log) -> None:
    def asked(value: Any = MISSING, *, other: Any = NOTHING) -> bool:
        stop()
        return value is MISSING and other is NOTHING

    own = object()
    both = [own, Nothing.marker, dataclasses.MISSING, {"deep": MISSING}]
    log += [asked(), asked(own)]
    log.append((both[0] is own, both[1] is Nothing.marker, both[2] is dataclasses.MISSING))
    stop()
    log.append((both[0] is own, both[1] is Nothing.marker, both[2] is dataclasses.MISSING))
    log.append((both[3]["deep"] is MISSING, own is MISSING))  # type: ignore[index]


def decimals(log: Log) -> None:
    def third() -> str:
        return str(decimal.Decimal(1) / 3)

    with decimal.localcontext() as here:
        here.prec = 4
        stop()
        log.append(third())
        here.prec = 6
        stop()
        log.append(third())
    log.append(third())


def exit_stacks(log: Log) -> None:
    with contextlib.ExitStack() as stack, contextlib.nullcontext(lambda: log) as same:
        stack.callback(log.append, "called")
        stack.callback(lambda: log.append("called, too"))
        stack.enter_context(contextlib.suppress(Broken))
        log.append(stack.enter_context(managed(log)))
        stop()
        log.append(same() is log)
        with stack.pop_all():
            stop()
            raise Broken


def methods_in_c(log: Log) -> None:
    """A variable has a method of an object that is the frame's."""
    numbers = iter([1, 2, 3])
    step, add, functions = numbers.__next__, log.append, [lambda: log]
    add_function, steps = functions.append, plain_numbers(3)
    send = steps.send
    step()
    next(steps)
    stop()
    add((step(), next(numbers), send(None), next(steps)))
    add_function(lambda: [])
    log.append((len(functions), functions[0]() is log))


class Dispatching:
    """Has a method for each class of its argument."""

    def __init__(self) -> None:
        self.value = 3

    @functools.singledispatchmethod
    def method(self, it: Any) -> Any:
        return stop(it), self.value

    @method.register
    def _(self, it: int) -> Any:
        return stop(it) + self.value


def dispatching_methods(log: Log) -> None:
    one = Dispatching()
    bound = one.method
    log += [one.method("a"), one.method(1), Dispatching.method(one, 2)]
    stop()
    log.append(bound(4))


def unbound_locals(log: Log) -> None:
    gone = kept = 1
    del gone
    stop()
    try:
        log.append(gone)  # type: ignore[name-defined]
    except UnboundLocalError:
        log.append(kept)


def deep(n: int) -> int:
    return int(stop(1)) if n == 0 else 1 + deep(n - 1)


def recursion(log: Log) -> None:
    result = deep(900)
    log.append(result)


def defaults(log: Log) -> None:
    def local(a: int, /, b: int = 2, *more: int, c: int = 3, **named: int) -> tuple[Any, ...]:
        stop()
        return a, b, more, c, named

    log.append((local(1), local(1, 5, 6, c=7, d=8), local(*[1, 2, 3], c=4)))


CASES = (
    *(itertools_loops, groups_and_tees, exceptions_with_arguments),
    *(shared_comprehensions, decorated, groups_again, leaving),
    *(expressions, loops, handlers, groups, contexts, exits, matches, comprehensions, generators),
    *(changed_values, sentinels, decimals, exit_stacks, methods_in_c, dispatching_methods),
    *(groups_left_early, held_twice, passed_on, partials, behind_decorators, containers),
    *(generator_values, coroutines, closures, methods, unbound_locals, recursion, defaults),
)


def about_itself(log: Log) -> None:
    """Its frames lead to the tasklet, and to one that leads to it."""
    me = getcurrent()
    other = tasklet(stop)
    other.bind(stop, (me,))
    for _ in plain_numbers(1):
        stop()
    log.append(me is getcurrent())
    other.kill()


def program(which: Callable[[Log], None], log: Log) -> None:
    which(log)
    RESULTS.append(log)


def receives(gate: channel, log: Log) -> None:
    value = gate.receive()
    log.append(value)


def sends(gate: channel, value: Any) -> None:
    gate.send(value)


def iterates(gate: channel, log: Log) -> None:
    for value in gate:
        log.append(value)
    log.append("end")


def spins_far(n: int, log: Log) -> None:
    """Jumps so far back that the jump needs a prefix."""
    a = b = c = d = e = f = 0
    for i in range(n):
        a, b, c, d, e, f = b + i, c + a, d + b, e + c, f + d, a + e
        a, b, c, d, e, f = a % 7, b % 11, c % 13, d % 17, e % 19, f % 23
        a, b, c, d, e, f = b + i, c + a, d + b, e + c, f + d, a + e
        a, b, c, d, e, f = a % 7, b % 11, c % 13, d % 17, e % 19, f % 23
        a, b, c, d, e, f = b + i, c + a, d + b, e + c, f + d, a + e
        a, b, c, d, e, f = a % 7, b % 11, c % 13, d % 17, e % 19, f % 23
        a, b, c, d, e, f = b + i, c + a, d + b, e + c, f + d, a + e
        a, b, c, d, e, f = a % 7, b % 11, c % 13, d % 17, e % 19, f % 23
        a, b, c, d, e, f = b + i, c + a, d + b, e + c, f + d, a + e
        a, b, c, d, e, f = a % 7, b % 11, c % 13, d % 17, e % 19, f % 23
        a, b, c, d, e, f = b + i, c + a, d + b, e + c, f + d, a + e
        a, b, c, d, e, f = a % 7, b % 11, c % 13, d % 17, e % 19, f % 23
    log.append((a, b, c, d, e, f))


def spins(n: int, log: Log) -> None:
    total = 0
    for i in range(n):
        try:
            total += i
        finally:
            total += 1
    log.append(total)
