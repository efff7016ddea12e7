"""What is odd: classes that lie, objects that are half built, and very many of them."""

import builtins
import contextlib
import functools
import gc
import sys
import types
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cpythonplus.memory._cycles.looking import is_type
from cpythonplus.memory._cycles.naming import causes
from cpythonplus.memory._cycles.report import Cause, Kind
from tests.memory.cycles.garbage import components_of, garbage_of


def named(leak: Callable[[], object]) -> list[Cause]:
    with garbage_of(leak) as components:
        return [cause for each in components for cause in causes(each)]


def component_of(start: object) -> list[object]:
    """All that it leads to that leads back, garbage or not."""
    found = {id(start): start}
    queue = deque([start])
    while queue:
        for each in gc.get_referents(queue.popleft()):
            if id(each) not in found and not is_type(each) and type(each) is not types.ModuleType:
                found[id(each)] = each
                queue.append(each)
    components = components_of([*found.values()])
    return next(each for each in components if any(one is start for one in each))


# ---- classes that lie ---------------------------------------------------------------------------

called: list[str] = []


def spy(name: str) -> Callable[..., None]:
    def method(*_: object, **__: object) -> None:
        called.append(name)
        raise RuntimeError(name)

    return method


SPIES = [
    "__bool__",
    "__call__",
    "__class_getitem__",
    "__contains__",
    "__dir__",
    "__eq__",
    "__ge__",
    "__get__",
    "__getattr__",
    "__getitem__",
    "__gt__",
    "__hash__",
    "__index__",
    "__int__",
    "__iter__",
    "__le__",
    "__len__",
    "__lt__",
    "__missing__",
    "__ne__",
    "__next__",
    "__repr__",
    "__reversed__",
    "__setitem__",
    "__sizeof__",
    "__str__",
    "items",
    "keys",
    "values",
]
METACLASS_SPIES = [
    "__bool__",
    "__call__",
    "__contains__",
    "__dir__",
    "__eq__",
    "__getattr__",
    "__hash__",
    "__instancecheck__",
    "__iter__",
    "__len__",
    "__ne__",
    "__prepare__",
    "__repr__",
    "__subclasses__",
]


def lying(base: type, *, attributes: bool = True) -> type:
    """A class whose special methods, and whose metaclass's, tell when they are called."""
    meta: Any = type("Meta", (type,), {name: spy(f"meta {name}") for name in METACLASS_SPIES})
    namespace: dict[str, Any] = {name: spy(name) for name in SPIES}
    namespace |= {"__class__": property(spy("__class__")), "kept": property(spy("kept"))}
    if attributes:
        namespace["__dict__"] = property(spy("__dict__"))
    result: type = type.__new__(meta, "Lying", (base,), namespace)
    meta.__getattribute__ = spy("meta __getattribute__")
    # Last, since making the class asks for attributes of it.
    type.__setattr__(result, "__getattribute__", spy("__getattribute__"))
    return result


class Holder:
    held: object = None


LIAR_KINDS = ("object", "list", "dict", "tuple", "set", "deque", "exception")


@functools.cache
def class_of(kind: str) -> type:
    base = {"deque": deque, "exception": Exception}.get(kind) or vars(builtins)[kind]
    return lying(base, attributes=kind not in ("object", "exception"))


@pytest.fixture(autouse=True, scope="module")
def no_liar_stays() -> Iterator[None]:
    """Libraries register every exception class there is when they are imported."""
    yield
    class_of.cache_clear()
    gc.collect()


def liar(kind: str) -> Holder:
    """An instance that refers to a Holder that refers to it."""
    holder = Holder()
    base = type.__dict__["__mro__"].__get__(class_of(kind))[1]
    value: Any = base.__new__(class_of(kind), *([(holder,)] if kind == "tuple" else []))
    if kind == "list":
        list.append(value, holder)
    elif kind == "dict":
        dict.__setitem__(value, "holder", holder)
    elif kind == "set":
        set.add(value, holder)
    elif kind == "deque":
        deque.append(value, holder)
    elif kind in ("object", "exception"):
        object.__setattr__(value, "holder", holder)
    holder.held = value
    return holder


@pytest.mark.parametrize("kind", LIAR_KINDS)
def test_no_code_of_a_class_runs(kind: str) -> None:
    called.clear()
    with garbage_of(lambda: liar(kind)) as components:
        assert len(components) == 1
        found = causes(components[0])
    assert called == []
    assert found
    assert all(".held" in each.variable + each.what for each in found)


@pytest.mark.parametrize("first", LIAR_KINDS)
def test_no_code_of_two_classes_runs(first: str) -> None:
    def leak() -> None:
        holder, other = liar(first), liar("object")
        holder.parent, other.parent = other.held, holder.held  # type: ignore[attr-defined]

    with garbage_of(leak) as components:
        called.clear()
        found = [cause for each in components for cause in causes(each)]
    assert called == []
    assert found
    assert "?" not in {each.variable for each in found}


def test_no_code_runs_wherever_the_search_begins() -> None:
    holder = Holder()
    first: object = object.__new__(class_of("object"))
    second: object = object.__new__(class_of("object"))
    object.__setattr__(first, "next", second)
    object.__setattr__(second, "next", holder)
    holder.parent = first  # type: ignore[attr-defined]
    objects = component_of(holder)
    called.clear()
    for i in range(len(objects)):
        assert causes(objects[i:] + objects[:i])
    assert called == []


def test_no_code_of_an_exception_in_a_traceback_runs() -> None:
    def leak() -> None:
        error: BaseException = BaseException.__new__(class_of("exception"))
        with contextlib.suppress(BaseException):
            throw(error)

    def throw(error: BaseException) -> None:
        try:
            raise error
        finally:
            del error

    with garbage_of(leak) as components:
        called.clear()
        (cause,) = causes(components[0])
    assert called == []
    assert (cause.kind, cause.variable, cause.what) == (Kind.EXCEPTION, "error", "Lying")


# ---- half built ---------------------------------------------------------------------------------


def test_functions_with_empty_cells() -> None:
    def leak(never: object = None) -> object:
        def first() -> object:
            return second, never  # noqa: F821  # it is deleted below

        def second() -> object:
            return first

        del never
        return first

    (cause,) = named(leak)
    assert (cause.kind, cause.variable) == (Kind.CLOSURE, "first")


def test_a_generator_that_was_never_started() -> None:
    # Globals of its own: this module's lead to everything that there is.
    space: dict[str, Any] = {"__builtins__": {}}
    exec("def count(me):\n    yield me", space)
    me: list[object] = []
    me.append(space["count"](me))
    (cause,) = causes(component_of(me))
    assert cause.kind is Kind.OTHER
    assert cause.place.function.endswith("count")
    assert cause.variable == "me[]"


def test_a_generator_that_has_itself() -> None:
    def run() -> Iterator[None]:
        me = yield
        yield me
        me = None
        yield

    generator: Any = run()
    next(generator)
    generator.send(generator)
    (cause,) = causes([generator])
    assert cause.variable == "me"
    assert cause.place.function.endswith("run")
    next(generator)  # 3.12.3's collector finds it again and again, and cannot free it


def test_exceptions_without_tracebacks() -> None:
    class UnsetError(Exception):
        __slots__ = ("never", "other")

        def __init__(self) -> None:
            raise NotImplementedError

    def leak() -> None:
        first, second = UnsetError.__new__(UnsetError), UnsetError.__new__(UnsetError)
        first.__cause__, second.__cause__ = second, first

    (cause,) = [each for each in named(leak) if each.kind is not Kind.CLASS]
    assert cause.variable == "UnsetError.__cause__"
    assert cause.what == "UnsetError"


def test_an_exception_that_has_itself() -> None:
    class ValidationError(Exception):
        def __init__(self) -> None:
            self.problems = [self]

    (cause,) = causes(component_of(ValidationError()))
    assert cause.kind is Kind.EXCEPTION
    assert cause.variable == "self.problems[]"
    assert cause.place.function.endswith("ValidationError.__init__")


def test_a_cleared_frame() -> None:
    def fail(me: list[object]) -> None:
        me.append(sys._getframe())
        raise ValueError

    def leak() -> None:
        me: list[Any] = []
        try:
            fail(me)
        except ValueError as e:
            me.append(e)
        me[0].clear()

    assert {each.variable for each in named(leak)} == {"me[]"}


def test_nothing_to_name() -> None:
    assert [each.kind for each in causes([])] == [Kind.OTHER]
    assert [each.kind for each in causes([object()])] == [Kind.OTHER]
    own: list[object] = []
    own.append(own)
    (cause,) = causes([own])
    assert (cause.variable, cause.place.file) == ("list[]", "")


def test_objects_written_in_c() -> None:
    def leak() -> None:
        holder = Holder()
        holder.held = map(functools.partial(isinstance, holder), iter([types.MappingProxyType({})]))

    (cause,) = named(leak)
    assert "Holder.held" in cause.what


# ---- several causes, and one for several --------------------------------------------------------


def fail() -> None:
    raise ConnectionError


def test_each_frame_that_has_to_let_go_is_named() -> None:
    def attempt() -> Exception | None:
        caught = None
        try:
            fail()
        except ConnectionError as e:
            caught = e
        return caught

    def leak() -> None:
        outcome = attempt()
        assert outcome

    assert {each.variable for each in named(leak)} == {"caught", "outcome"}


# Without a GIL, classes are not collected once a second thread was started.
@pytest.mark.needs_gil
def test_what_another_cut_opens_is_not_named() -> None:
    def leak() -> None:
        class Registry:
            errors: list[Exception] = []  # noqa: RUF012

        try:
            fail()
        except ConnectionError as e:
            Registry.errors.append(e)

    (cause,) = named(leak)
    assert (cause.kind, cause.variable) == (Kind.CLASS, "Registry")


def test_a_recursive_function_and_what_it_raised() -> None:
    def leak() -> None:
        def walk(n: int) -> None:
            if n == 0:
                fail()
            walk(n - 1)

        try:
            walk(2)
        except ConnectionError as e:
            last = e
            str(last)

    assert {(each.kind, each.variable) for each in named(leak)} == {
        (Kind.EXCEPTION, "last"),
        (Kind.CLOSURE, "walk"),
    }


def test_frames_of_one_function_are_one_cause() -> None:
    def walk(n: int) -> None:
        try:
            fail() if n == 0 else walk(n - 1)
        except ConnectionError as e:
            problem = e
            raise problem from None

    def leak() -> None:
        with contextlib.suppress(ConnectionError):
            walk(5)

    (cause,) = named(leak)
    assert cause.variable == "problem"


class Node:
    next: "Node | None" = None
    prev: "Node | None" = None

    def link(self, other: "Node") -> None:
        self.next = other
        other.prev = self


def test_a_doubly_linked_list_is_one_cause() -> None:
    def leak() -> None:
        node = Node()
        for _ in range(50):
            other = Node()
            node.link(other)
            node = other

    (cause,) = named(leak)
    assert cause.variable == "other.prev"
    assert cause.place.function == "Node.link"


# ---- many ---------------------------------------------------------------------------------------


def test_a_ring_too_long_to_follow() -> None:
    nodes = [Node() for _ in range(20_000)]
    for i, node in enumerate(nodes):
        node.next = nodes[i - 1]
    (cause,) = causes([*nodes])
    assert (cause.kind, cause.variable) == (Kind.OTHER, "self.next")
    assert cause.place.function == "Node.link"


def test_many_exceptions_in_a_list() -> None:
    def leak() -> None:
        errors = []
        for _ in range(2_000):
            try:
                fail()
            except ConnectionError as e:
                errors.append(e)

    (cause,) = named(leak)
    assert cause.variable == "errors[]"


# ---- copies of variables ------------------------------------------------------------------------


def test_a_copy_of_variables_is_named_by_its_frame() -> None:
    def leak() -> None:
        try:
            fail()
        except ConnectionError as e:
            str(e)
            str(sys._getframe().f_locals.keys())

    found = [(each.variable, each.place.function.rpartition(".")[2]) for each in named(leak)]
    assert found == ([("e", "leak")] if sys.version_info < (3, 13) else [])


# ---- nothing is changed or kept -----------------------------------------------------------------


def test_nothing_is_kept() -> None:
    def leak() -> None:
        holder = Holder()
        holder.other = [holder]  # type: ignore[attr-defined]
        try:
            fail()
        except ConnectionError as e:
            holder.held = e

    with garbage_of(leak) as components:
        (component,) = components
        before = [sys.getrefcount(each) for each in component]
        causes(component)
        after = [sys.getrefcount(each) for each in component]
        kinds = [type(each).__name__ for each in component]
    assert dict(zip(kinds, after, strict=True)) == dict(zip(kinds, before, strict=True))


def test_no_garbage_of_its_own() -> None:
    def leak() -> None:
        last = None
        try:
            fail()
        except ConnectionError as e:
            last = e
        str(last)

    with garbage_of(leak) as components:
        mine = len(gc.garbage)
        causes(components[0])
        gc.collect()
        assert len(gc.garbage) == mine
