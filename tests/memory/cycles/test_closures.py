"""Inner functions that call themselves, closed by hand and at the end of the function around."""

# What is tested are functions of odd shapes, some of them called with anything.
# ruff: noqa: ANN401, ARG005, B023, C901

import asyncio
import functools
import gc
import inspect
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any

import pytest

from cpythonplus.memory import closures
from cpythonplus.memory.closures import close, closing
from cpythonplus.memory.exceptions import reraise
from tests.memory.cycles.left_over import Payload, collector_off, garbage, payload


@pytest.fixture(autouse=True, scope="module")
def _collector_off() -> Iterator[None]:
    with collector_off():
        yield


# ---- close ---------------------------------------------------------------------------------------


def counts(ending: Callable[[Any], object]) -> int:
    large = payload()

    def walk(n: int) -> int:
        assert large
        return 0 if n == 0 else 1 + walk(n - 1)

    result = walk(5)
    ending(walk)
    return result


def test_close_breaks_the_cycle() -> None:
    assert garbage(lambda: counts(lambda walk: None)) > 0
    assert garbage(lambda: counts(close)) == 0
    assert garbage(lambda: counts(lambda walk: close(walk, only=["walk"]))) == 0


def make() -> Any:
    text, number = "text", 1

    def inner() -> tuple[str, int, Any]:
        return text, number, inner

    return inner


def test_a_closed_function_raises_name_error() -> None:
    inner = make()
    assert close(inner) == 3
    assert close(inner) == 0
    with pytest.raises(NameError, match="'text'"):
        inner()


def test_only_some_names_are_closed() -> None:
    inner = make()
    assert close(inner, only=("number",)) == 1
    with pytest.raises(NameError, match="'number'"):
        inner()
    with pytest.raises(ValueError, match=r"inner\(\) has no 'txt' from an enclosing function"):
        close(inner, only=["txt"])
    assert close(inner, only=[]) == 0
    assert close(inner) == 2


@pytest.mark.any_version
def test_an_object_that_has_every_attribute_is_no_function() -> None:
    class Everything:
        def __getattr__(self, name: str) -> "Everything":
            return Everything()

    with pytest.raises(TypeError, match="not Everything"):
        close(Everything())  # type: ignore[arg-type]


def test_mutual_recursion_needs_one_of_both() -> None:
    def parity(ending: Callable[[Any], object]) -> None:
        large = payload()

        def even(n: int) -> bool:
            return n == 0 or odd(n - 1)

        def odd(n: int) -> bool:
            assert large
            return n != 0 and even(n - 1)

        assert even(10)
        ending(even)

    assert garbage(lambda: parity(lambda even: None)) > 0
    assert garbage(lambda: parity(close)) == 0


def test_wrappers_and_methods() -> None:
    def cached(ending: Callable[[Any], object]) -> None:
        large = payload()

        @functools.cache
        def fib(n: int) -> int:
            assert large
            return n if n < 2 else fib(n - 1) + fib(n - 2)

        assert fib(20) == 6765
        ending(fib)

    assert garbage(lambda: cached(lambda fib: None)) > 0
    assert garbage(lambda: cached(close)) == 0

    shared = 1

    class Thing:
        def method(self) -> object:
            return shared, __class__, super().__repr__()  # type: ignore[name-defined]

    assert close(Thing().method) == 1
    with pytest.raises(NameError, match="'shared'"):
        Thing().method()
    shared = 2
    assert Thing().method()
    assert close(Thing.method, only=["__class__"]) == 1


def plain() -> None:
    pass


def test_a_function_without_variables_of_others_has_nothing_to_close() -> None:
    assert close(plain) == 0


@pytest.mark.parametrize("wrong", [len, [].append, Payload, None, 5, functools.partial(plain)])
def test_something_else_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match=rf"^close\(\) takes a .*, not {type(wrong).__name__}$"):
        close(wrong)
    with pytest.raises(TypeError, match=rf"^closing\(\) takes a .*, not {type(wrong).__name__}$"):
        closing(wrong)


def test_what_a_closed_cell_held_may_look_at_the_function() -> None:
    seen = []

    class Looking:
        def __del__(self) -> None:
            seen.append(inner.__closure__)

    def make() -> Any:
        looking = Looking()
        return lambda: looking

    inner = make()
    assert close(inner) == 1
    with pytest.raises(ValueError, match="empty"):
        assert seen[0][0].cell_contents


# ---- closing: what is freed ----------------------------------------------------------------------


def recursive() -> int:
    large = payload()

    def walk(n: int) -> int:
        assert large
        return 0 if n == 0 else 1 + walk(n - 1)

    return walk(5)


def mutual() -> int:
    large = payload()

    def even(n: int) -> bool:
        return n == 0 or odd(n - 1)

    def odd(n: int) -> bool:
        assert large
        return n != 0 and even(n - 1)

    return even(10)


def decorated() -> int:
    large = payload()

    def twice(function: Callable[[int], int]) -> Callable[[int], int]:
        @functools.wraps(function)
        def wrapper(n: int) -> int:
            return 2 * function(n)

        return wrapper

    @functools.lru_cache(maxsize=16)
    @twice
    def walk(n: int) -> int:
        assert large
        return 0 if n == 0 else 1 + walk(n - 1)

    return walk(3)


def dispatching() -> int:
    large = payload()

    def leaf(node: Any) -> int:
        return 1

    def branch(node: Any) -> int:
        assert large
        return sum(table[type(child)](child) for child in node)

    table: dict[type, Callable[[Any], int]] = {int: leaf, list: branch}
    return table[list]([1, [1, 1], [[1]]])


def raises_inside() -> None:
    large = payload()

    def walk(n: int) -> None:
        assert large
        if n == 0:
            raise LookupError
        walk(n - 1)

    def through(function: Callable[[int], None]) -> None:
        function(3)

    through(walk)


def with_parameters(n: int, *args: Any, factor: int = 2, **kwargs: Any) -> Any:
    large = payload()

    def walk(m: int) -> int:
        assert large
        return len(args) + len(kwargs) if m == 0 else factor + walk(m - 1)

    return walk(n)


def call(function: Callable[[], int]) -> int:
    return function()


def comprehensions() -> list[int]:
    large = payload()

    def walk(n: int) -> int:
        assert large
        return sum(map(call, [lambda: walk(k) for k in range(n)]))

    return list(map(call, [lambda: walk(n) + n for n in range(4)]))


class Holder:
    factor = 3

    def method(self) -> int:
        large = payload()

        def walk(n: int) -> int:
            assert large
            return 0 if n == 0 else self.factor + walk(n - 1)

        return walk(4) + len(super().__repr__()) * 0


def generating() -> Iterator[int]:
    large = payload()

    def walk(n: int) -> Iterator[int]:
        assert large
        if n:
            yield n
            yield from walk(n - 1)

    yield from walk(3)


async def awaiting() -> int:
    large = payload()

    async def walk(n: int) -> int:
        assert large
        await asyncio.sleep(0)
        return 0 if n == 0 else 1 + await walk(n - 1)

    return await walk(3)


async def streaming() -> AsyncIterator[int]:
    large = payload()

    async def walk(n: int) -> AsyncIterator[int]:
        assert large
        if n:
            yield n
            async for m in walk(n - 1):
                yield m

    async for n in walk(3):
        yield n


def run(coroutine: Any) -> Any:
    """Run a coroutine that never really waits."""
    try:
        while True:
            coroutine.send(None)
    except StopIteration as e:
        return e.value


async def collected(stream: AsyncIterator[int]) -> list[int]:
    return [n async for n in stream]


def raised(call: Callable[[], object], kind: type[BaseException] = LookupError) -> str:
    try:
        call()
    except kind as e:
        return traceback.extract_tb(e.__traceback__)[-1].name
    raise AssertionError("it did not raise")


CASES: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "recursive": (lambda f: f(), recursive, 5),
    "mutual": (lambda f: f(), mutual, True),
    "decorated": (lambda f: f(), decorated, 14),
    "dispatching": (lambda f: f(), dispatching, 4),
    "raises inside": (raised, raises_inside, "walk"),
    "parameters": (lambda f: f(3, 0, 0, factor=5, a=1), with_parameters, 18),
    "comprehensions": (lambda f: f(), comprehensions, [3, 3, 3, 3]),
    "method": (lambda f: f(Holder()), Holder.method, 12),
    "generator": (lambda f: list(f()), generating, [3, 2, 1]),
    "closed generator": (lambda f: next(f()), generating, 3),
    "coroutine": (lambda f: run(f()), awaiting, 3),
    "closed coroutine": (lambda f: f().send(None), awaiting, None),
    "asynchronous generator": (lambda f: run(collected(f())), streaming, [3, 2, 1]),
}


@pytest.mark.needs_gil
@pytest.mark.parametrize("name", CASES)
def test_closing_leaves_nothing_to_the_collector(name: str) -> None:
    use, function, expected = CASES[name]
    assert use(function) == expected
    assert garbage(lambda: use(function)) > 0
    assert use(closing(function)) == expected
    assert garbage(lambda: use(closing(function))) == 0
    once = closing(function)
    assert garbage(lambda: [use(once) for _ in range(3)]) == 0


# ---- closing: what stays usable ------------------------------------------------------------------


def test_what_escapes_stays_usable() -> None:
    stored: list[Callable[[int], int]] = []

    @closing
    def outer(how: str) -> Any:
        def walk(n: int) -> int:
            return 0 if n == 0 else step() + walk(n - 1)

        def step() -> int:
            return 1

        def api(n: int) -> int:
            return walk(n)

        def generate(n: int) -> Iterator[int]:
            yield n
            yield from generate(n - 1)

        if how == "returned":
            return walk
        if how == "needed":
            return api
        if how == "stored":
            stored.append(walk)
            return stored[-1]
        if how == "bound":
            return functools.partial(walk)
        if how == "raised":
            raise KeyError(walk)
        if how == "running":
            return generate(5)
        return {"walk": [walk]}

    for how in ("returned", "needed", "stored", "bound"):
        assert outer(how)(4) == 4
        assert stored == [] or stored.pop()(4) == 4
    assert outer("in a table")["walk"][0](4) == 4
    with pytest.raises(KeyError) as info:
        outer("raised")
    assert info.value.args[0](4) == 4
    info.value.args = ()
    running = outer("running")
    assert [next(running) for _ in range(3)] == [5, 4, 3]


def test_a_variable_outside_of_cycles_stays() -> None:
    """For who looks at the frames of an exception."""

    @closing
    def outer() -> None:
        text = "kept"

        def inner() -> str:
            raise LookupError(text)

        inner()

    with pytest.raises(LookupError) as info:
        outer()
    frame = info.traceback[-2].frame.raw
    assert frame.f_code.co_name == "outer"
    assert frame.f_locals["text"] == "kept"
    assert callable(frame.f_locals["inner"])


def test_each_call_has_cells_of_its_own() -> None:
    @closing
    def outer(n: int) -> list[int]:
        seen = [n]

        def walk(m: int) -> None:
            seen.append(m)
            if m:
                walk(m - 1)

        result = outer(n - 1) if n else []
        walk(n)
        return seen + result

    assert outer(2) == [2, 2, 1, 0, 1, 1, 0, 0, 0]


def test_variables_of_functions_around_are_shared() -> None:
    total = 0

    @closing
    def outer() -> None:
        def walk(n: int) -> None:
            nonlocal total
            total += n
            if n:
                walk(n - 1)

        walk(3)

    outer()
    outer()
    assert total == 12


def test_an_exception_in_a_generator_is_handed_in() -> None:
    @closing
    def generator() -> Generator[Any, Any, str]:
        large = payload()

        def walk(n: int) -> int:
            assert large
            return n and walk(n - 1)

        sent = yield walk(3)
        try:
            yield sent
        except LookupError as e:
            yield type(e).__name__
        return "done"

    def drive() -> None:
        running: Any = generator()
        assert next(running) == 0
        assert running.send("sent") == "sent"
        assert running.throw(LookupError()) == "LookupError"
        with pytest.raises(StopIteration) as info:
            next(running)
        assert info.value.value == "done"

    assert inspect.isgeneratorfunction(generator)
    drive()
    drive()


def test_an_asynchronous_generator_is_driven_as_without() -> None:
    events: list[object] = []

    @closing
    async def stream() -> AsyncIterator[Any]:
        def walk(n: int) -> int:
            return n and walk(n - 1)

        try:
            sent = yield walk(2)
            events.append(sent)
            try:
                yield 1
            except LookupError:
                yield "thrown"
            yield 2
        finally:
            await asyncio.sleep(0)
            events.append("closed")

    async def drive() -> None:
        running: Any = stream()
        events.append(await running.asend(None))
        events.append(await running.asend("sent"))
        events.append(await running.athrow(LookupError()))
        await running.aclose()
        with pytest.raises(StopAsyncIteration):
            await anext(running)

    run(drive())
    assert events == [0, "sent", 1, "thrown", "closed"]


# ---- closing: what does not change ---------------------------------------------------------------


def test_name_signature_and_kind_stay() -> None:
    for function in (with_parameters, generating, awaiting, streaming, Holder.method):
        wrapper: Any = closing(function)
        assert wrapper is not function
        assert wrapper.__wrapped__ is function
        assert (wrapper.__name__, wrapper.__doc__) == (function.__name__, function.__doc__)
        assert inspect.signature(wrapper) == inspect.signature(function)
        assert wrapper.__annotations__ == function.__annotations__
        for kind in ("isgeneratorfunction", "iscoroutinefunction", "isasyncgenfunction"):
            assert getattr(inspect, kind)(wrapper) == getattr(inspect, kind)(function)
    with pytest.raises(TypeError, match=r"with_parameters\(\) missing 1 required"):
        closing(with_parameters)()  # type: ignore[call-arg]


def test_a_function_without_inner_variables_is_returned_as_it_is() -> None:
    assert closing(plain) is plain

    def only_a_parameter(n: int) -> Callable[[], int]:
        return lambda: n

    assert closing(only_a_parameter) is only_a_parameter


def test_the_rewritten_code_tells_the_same_lines() -> None:
    code = with_parameters.__code__
    opened = closures._opened(code, closures._own_cells(code))
    assert list(opened.co_lines()) == list(code.co_lines())
    assert list(opened.co_positions()) == list(code.co_positions())
    assert opened.co_exceptiontable == code.co_exceptiontable
    different = [
        i
        for i, (old, new) in enumerate(zip(code.co_code, opened.co_code, strict=True))
        if old != new
    ]
    assert max(different) < 2 * (len(code.co_cellvars) + 1)


def generated(cells: int, parameters: int) -> Any:
    """Make a function with that many variables of inner functions."""
    names = [f"c{i}" for i in range(cells)]
    arguments = [f"p{i}" for i in range(parameters)]
    captured = [*names, *arguments[-3:]]
    lines = [
        f"def outer({', '.join(arguments)}):",
        *[f"    {name} = {i}" for i, name in enumerate(names)],
        f"    def walk(n): return large and ({', '.join(captured)}) if n == 0 else walk(n - 1)",
        "    large = payload()",
        "    return sum(walk(3))",
    ]
    namespace: dict[str, Any] = {"payload": payload}
    exec("\n".join(lines), namespace)
    return namespace["outer"]


@pytest.mark.needs_gil
@pytest.mark.parametrize(("cells", "parameters"), [(3, 2), (200, 0), (10, 300), (200, 300)])
def test_many_variables(cells: int, parameters: int) -> None:
    outer = generated(cells, parameters)
    arguments = range(parameters)
    assert garbage(lambda: outer(*arguments)) > 0
    wrapped = closing(outer)
    assert wrapped(*arguments) == outer(*arguments)
    gc.collect()
    assert garbage(lambda: wrapped(*arguments)) == 0


def test_too_many_variables_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"^closing\(\) does not accept a function with 30\d variables"
    ):
        closing(generated(300, 0))


def test_code_that_begins_differently_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closures, "_MAKE_CELL", 0)
    with pytest.raises(
        ValueError, match=r"^closing\(\) does not recognise the first instructions of recursive"
    ):
        closing(recursive)


@pytest.mark.needs_gil
def test_a_traced_function_is_closed_too() -> None:
    lines = []

    def trace(frame: Any, event: str, argument: Any) -> Any:
        if frame.f_code.co_name == "walk" and event == "line":
            lines.append(frame.f_lineno)
        return trace

    wrapped = closing(recursive)

    def traced() -> None:
        sys.settrace(trace)
        try:
            wrapped()
        finally:
            sys.settrace(None)

    before = sys.gettrace()
    try:
        assert garbage(traced) == 0
    finally:
        sys.settrace(before)
    assert len(lines) == 12


@pytest.mark.needs_gil
def test_an_argument_that_is_raised_makes_no_cycle() -> None:
    @closing
    def outer(error: BaseException) -> None:
        large = payload()

        def walk(n: int) -> None:
            assert large
            walk(n - 1) if n else reraise(error)

        walk(3)

    def start() -> None:
        with suppress(LookupError):
            outer(LookupError())

    assert garbage(start) == 0


def test_an_exception_at_the_recursion_limit_stays_what_it_is() -> None:
    ran: list[int] = []

    @closing
    def outer(spare: int) -> None:
        def walk() -> None:
            ran.append(spare)
            raise LookupError(walk.__name__)

        walk()

    raised = []
    limit, depth = sys.getrecursionlimit(), len(inspect.stack(0))
    try:
        for spare in range(40):
            try:
                sys.setrecursionlimit(depth + spare)
                outer(spare)
            except LookupError:
                raised.append(spare)
            except RecursionError:
                pass
    finally:
        sys.setrecursionlimit(limit)
    assert 10 < len(ran) < 40
    assert raised == ran


def test_code_is_not_shared_between_decorated_functions() -> None:
    wrapped = closing(recursive)
    assert isinstance(wrapped, FunctionType)
    assert isinstance(recursive.__code__, CodeType)
    assert wrapped() == recursive() == 5
    gc.collect()
