"""memory.Record: which classes can be made, what their objects are, how they are constructed."""

# mypy: disable-error-code="abstract, assignment, attr-defined, call-arg, comparison-overlap"
# mypy: disable-error-code="metaclass, misc, no-untyped-call, type-abstract, unreachable"

import abc
import gc
import inspect
import sys
import typing
import weakref
from collections.abc import Hashable
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from cpythonplus import _native, memory
from cpythonplus.memory import Record
from tests.support import run_child

pytestmark = pytest.mark.needs_gil

T = TypeVar("T")
WORD = tuple.__itemsize__


class Row(Record):
    id: int
    name: str = ""


class Frozen(Record, frozen=True):
    id: int
    name: str = ""


class Boxed(Record, Generic[T]):
    value: T


def made(
    annotations: dict[str, Any] | None = None,
    /,
    *bases: type,
    frozen: bool = False,
    **names: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Return a new class, as a class statement makes it."""
    body = {"__module__": __name__, "__annotations__": annotations or {}, **names}
    return type(Record)("Made", bases or (Record,), body, frozen=frozen)


# ---- objects ------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 8, 300])
def test_an_object_is_two_words_and_its_fields(count: int) -> None:
    names = [f"field{i}" for i in range(count)]
    kind = made(dict.fromkeys(names, int))
    values = range(count)
    record = kind(*values)
    assert sys.getsizeof(record) == object.__basicsize__ + count * WORD
    assert _native.memory_object_bytes(record) == sys.getsizeof(record)
    assert record == kind(**{name: i for i, name in reversed([*enumerate(names)])})
    assert [getattr(record, name) for name in names] == [*values]


def test_the_collector_does_not_see_it() -> None:
    record = Row([])  # type: ignore[arg-type]
    assert not gc.is_tracked(record)
    assert gc.get_referents(record) == []
    assert record not in gc.get_referrers(record.id)


def test_it_has_fields_only() -> None:
    record = Row(1)
    with pytest.raises(AttributeError):
        record.more = 2
    with pytest.raises(TypeError):
        weakref.ref(record)
    assert not hasattr(record, "__dict__")


def test_fields_are_member_descriptors() -> None:
    assert inspect.ismemberdescriptor(Row.id)
    record = Row(1)
    del record.name
    with pytest.raises(AttributeError):
        _ = record.name
    record.name = "again"
    assert record == Row(1, "again")


def test_its_class_lives_as_long_as_it() -> None:
    kind = made({"a": int})
    before = sys.getrefcount(kind)
    kept = [kind(i) for i in range(100)]
    assert sys.getrefcount(kind) == before + 100
    del kept
    assert sys.getrefcount(kind) == before


def test_classes_are_collected() -> None:
    kind = made({"a": int}, made=made({"b": int}))
    kind.itself = [kind]
    seen = weakref.ref(kind)
    del kind
    gc.collect()
    assert seen() is None


# ---- construction -------------------------------------------------------------------------------


def function(id: int, name: str = "") -> Any:  # noqa: A002, ANN401
    """Take what Row takes."""
    return Row.from_row((id, name))


def outcome(
    call: Any,  # noqa: ANN401
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> object:
    """Return the fields of what it returns, or the words of its error but for its name."""
    try:
        found: dict[str, Any] = call(*args, **kwargs).asdict()
    except TypeError as error:
        return str(error).replace(f"{call.__name__}()", "it")
    return found


CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((1,), {}),
    ((1, "x"), {}),
    ((), {"id": 1}),
    ((), {"name": "x", "id": 1}),
    ((1,), {"name": "x"}),
    ((), {}),
    ((), {"name": "x"}),
    ((1, 2, 3), {}),
    ((1, 2), {"name": 3}),
    ((1,), {"id": 1}),
    ((1,), {"other": 1}),
    ((), {"id": 1, "other": 1}),
]


class Slow(Row):
    """By tp_new and tp_init."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)


@pytest.mark.parametrize("kind", [Row, Frozen, Slow])
@pytest.mark.parametrize(("args", "kwargs"), CALLS)
def test_arguments_are_bound_as_a_function_does_it(
    kind: Any,  # noqa: ANN401
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> None:
    assert outcome(kind, args, kwargs) == outcome(function, args, kwargs)


def test_missing_ones_are_listed() -> None:
    kind = made(dict.fromkeys(["a", "b", "c"], int))
    for args, text in [
        ((), "missing 3 required positional arguments: 'a', 'b', and 'c'"),
        ((1,), "missing 2 required positional arguments: 'b' and 'c'"),
        ((1, 2), "missing 1 required positional argument: 'c'"),
        ((1, 2, 3, 4), "takes 3 positional arguments but 4 were given"),
    ]:
        with pytest.raises(TypeError, match=text):
            kind(*args)


def test_names_need_not_be_interned() -> None:
    name = "NAME".lower()
    assert Row(**{"id": 1, name: "x"}) == Row(1, "x")  # type: ignore[arg-type]


def test_post_init_comes_last() -> None:
    class Area(Record):
        width: int
        height: int
        size: int = 0

        def __post_init__(self) -> None:
            if self.width < 0:
                raise ValueError("negative")
            self.size = self.width * self.height

    assert Area(2, 3).size == Area(width=2, height=3).size == 6
    assert Area.from_rows([(2, 3, 0)]) == [Area(2, 3)]
    for call in (lambda: Area(-1, 2), lambda: Area.from_row((-1, 2, 3))):
        with pytest.raises(ValueError, match="negative"):
            call()


def test_a_class_may_have_its_own_init() -> None:
    class Text(Record):
        number: int
        base: int = 10

        def __init__(self, text: str) -> None:
            super().__init__(int(text))

    assert Text("5").asdict() == {"number": 5, "base": 10}
    with pytest.raises(TypeError):
        Text()
    assert str(inspect.signature(Text)).startswith("(text")


def test_a_class_may_have_its_own_new() -> None:
    class Counted(Record):
        count: ClassVar[int] = 0
        number: int

        def __new__(cls, *args: object) -> typing.Self:  # noqa: ARG004
            cls.count += 1
            return super().__new__(cls)

    assert Counted(5).number == Counted.from_rows([(5,)])[0].number == 5
    assert Counted.count == 2


def test_an_init_may_come_later() -> None:
    kind = made({"a": int})
    assert kind(1).a == 1
    kind.__init__ = lambda self: setattr(self, "a", "later")
    assert kind().a == "later"
    del kind.__init__
    assert kind(2).a == 2


def test_init_again_sets_again_and_changes_nothing_if_it_fails() -> None:
    record = Row(1, "x")
    with pytest.raises(TypeError):
        record.__init__(1, 2, 3)
    with pytest.raises(TypeError):
        record.__init__(5, nothing=3)
    assert record == Row(1, "x")
    record.__init__(name="y", id=2)
    assert record == Row(2, "y")


def test_the_finalizer_of_what_init_replaces_sees_the_record() -> None:
    seen = []

    class Last:
        def __del__(self) -> None:
            seen.append(record.asdict())

    record = made({"a": object, "b": object})(Last(), 1)
    record.__init__(2, 3)
    assert seen == [{"a": 2, "b": 3}]


# ---- classes ------------------------------------------------------------------------------------


class Wide(Row):
    more: int = 3
    name: str = "wide"


def test_fields_are_inherited() -> None:
    class Methods(Row):
        def label(self) -> str:
            return f"{self.id}:{self.name}"

    class Both(Wide, Methods):
        last: int = 4

        def label(self) -> str:
            return super().label() + "!"

    assert Wide(1).asdict() == {"id": 1, "name": "wide", "more": 3}
    assert Both(1).asdict() == {"id": 1, "name": "wide", "more": 3, "last": 4}
    assert Both(1).label() == "1:wide!"
    assert sys.getsizeof(Both(1)) == object.__basicsize__ + 4 * WORD
    assert Both.__record_fields__ == Both.__match_args__ == ("id", "name", "more", "last")
    assert not gc.is_tracked(Both([]))  # type: ignore[arg-type]


def test_the_nearest_default_counts() -> None:
    class Other(Row):
        name: str = "other"

    class Both(Other, Wide):
        pass

    assert Both(1).asdict() == {"id": 1, "name": "other", "more": 3}
    assert Both.__mro__.index(Other) < Both.__mro__.index(Wide)


def test_signature_and_hints() -> None:
    assert str(inspect.signature(Wide)) == "(id: int, name: str = 'wide', more: int = 3)"
    assert typing.get_type_hints(Wide) == {"id": int, "name": str, "more": int}
    assert str(inspect.signature(Record)) == "()"


def test_class_variables_and_private_names_are_no_fields() -> None:
    class Odd(Record):
        one: int
        limit: ClassVar[int] = 5
        written: "typing.ClassVar[int]" = 6
        plain: "ClassVar" = 7
        __private: int = 8
        _protected: int = 9
        undefined: "Undefined" = None  # type: ignore[name-defined]  # noqa: F821

    assert Odd.__record_fields__ == ("one", "_protected", "undefined")
    assert (Odd.limit, Odd.written, Odd.plain, Odd._Odd__private) == (5, 6, 7, 8)


ODD = """
class Node(Record):
    next: Node | None
    value: MARKED = 5
    shared: typing.ClassVar[MARKED] = 6
assert Node.__record_fields__ == ("next", "value"), Node.__record_fields__
assert Node.shared == 6
assert Node(1) == Node(1, 5)
"""


@pytest.mark.skipif(sys.version_info < (3, 14), reason="annotations were evaluated at once")
def test_annotations_may_be_undefined() -> None:
    run_child(f"import typing\nfrom cpythonplus.memory import Record\n{ODD}")


def test_annotations_may_be_strings() -> None:
    head = "from __future__ import annotations\nimport typing\n"
    run_child(f"{head}from cpythonplus.memory import Record\n{ODD}")


def test_generic_records() -> None:
    assert Boxed[int](5) == Boxed(5)
    assert sys.getsizeof(Boxed(5)) == object.__basicsize__ + WORD

    class FrozenBox(Record, Generic[T], frozen=True):
        value: T

    assert hash(FrozenBox[int](5)) == hash(FrozenBox(5))


@pytest.mark.skipif(sys.version_info < (3, 12), reason="syntax of 3.12")
def test_generic_records_by_syntax() -> None:
    names: dict[str, Any] = {"Record": Record}
    exec("class Pair[T](Record):\n    first: T\n    second: list[T] | None = None", names)
    pair = names["Pair"]
    assert pair[int](1) == pair(1, None)
    assert str(inspect.signature(pair)) == "(first: T, second: list[T] | None = None)"
    assert sys.getsizeof(pair(1)) == object.__basicsize__ + 2 * WORD


def test_abstract_records() -> None:
    class Meta(type(Record), abc.ABCMeta):
        pass

    class Shape(Record, metaclass=Meta):
        size: int

        @abc.abstractmethod
        def area(self) -> int: ...

    class Square(Shape):
        def area(self) -> int:
            return self.size**2

    for call in (lambda: Shape(1), lambda: Shape.__new__(Shape), lambda: Shape.from_row((1,))):
        with pytest.raises(TypeError, match="abstract"):
            call()
    assert Square(3).area() == 9


BODIES: dict[str, tuple[Any, str]] = {
    "slots": (lambda: made({}, __slots__=()), "must not have __slots__"),
    "list": (lambda: made({"a": list}, a=[]), "would share this list"),
    "dict": (lambda: made({"a": dict}, a={}), "would share this dict"),
    "record": (lambda: made({"a": Row}, a=Row(1)), "would share this Row"),
    "order": (lambda: made({"a": int, "b": int}, a=1), "Made.b needs a default"),
    "inherited order": (lambda: made({"b": int}, Row), "Made.b needs a default"),
    "method": (lambda: made({"asdict": int}), "a field and an attribute of Record"),
    "property": (lambda: made({"a": int}, a=property()), "a field and a property"),
    "dataclass": (
        lambda: made({"a": int}, a=__import__("dataclasses").field()),
        "not for records",
    ),
    "hidden": (lambda: made({}, Row, name="x"), "annotate it here"),
    "mixin": (lambda: made({}, type("M", (), {"name": 1, "__slots__": ()}), Row), "attribute of M"),
    "dict base": (lambda: made({}, Row, type("Plain", (), {})), "Plain cannot be a base"),
    "int": (lambda: made({}, Row, int), "int cannot be a base"),
    "exception": (lambda: made({}, Row, Exception), "cannot be a base"),
    "two": (lambda: made({}, Wide, Boxed), "lay-out conflict"),
    "enum": (lambda: made({}, Row, __import__("enum").Enum), "attribute of Enum"),
    "thaw": (lambda: made({}, Frozen), "needs frozen=True"),
    "freeze": (lambda: made({}, Row, frozen=True), "cannot be frozen"),
    "setattr": (lambda: made({}, frozen=True, __setattr__=setattr), "must not have __setattr__"),
}


@pytest.mark.parametrize("name", BODIES)
def test_what_cannot_be_is_refused_in_one_line(name: str) -> None:
    make, text = BODIES[name]
    with pytest.raises(TypeError, match=text) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_there_is_no_object_before_the_class_is_complete() -> None:
    early = []

    class Registered(Record):
        def __init_subclass__(cls, *, key: int) -> None:
            for call in (cls, lambda: cls.__new__(cls), lambda: cls.from_rows([])):
                with pytest.raises(TypeError, match="has no instances"):
                    call()
            early.append(key)

    class Part(Registered, key=5):
        a: int

    assert early == [5]
    assert Part(1).a == 1


HOOKS = {
    "init_subclass": (
        "class Base(Bare):\n"
        " __slots__ = ()\n __init_subclass__ = classmethod(lambda cls: attempt(cls))"
    ),
    "set_name": "body['named'] = Named()",
    "keys": "Base = type('Base', (Bare,), {Odd('__slots__'): (), Odd('__call__'): None})",
    "names": "body[Odd('__call__')] = None",
    "mro": "class Meta(Meta):\n def mro(cls): attempt(cls); return super().mro()",
    "metaclass": (
        "class Meta(Meta):\n"
        " def __new__(*args): cls = super().__new__(*args); attempt(cls); return cls"
    ),
    "callback": "gc.callbacks.append(lambda *_: seek()); gc.set_threshold(1)",
    "failing": "body['named'] = Named(); body['fails'] = Failing()",
}


@pytest.mark.parametrize("hook", HOOKS)
def test_no_hook_makes_an_object_before_the_class_is_complete(hook: str) -> None:
    """By object.__new__(), which a base in front of Record leads to, by copyreg, by __class__."""
    run_child(
        f"""
        import copyreg, gc
        from cpythonplus import memory

        class Bare:
            __slots__ = ()
            def __new__(cls, *args): return object.__new__(cls)

        class Other(Bare):
            __slots__ = ("x",)

        Base, Meta, made, body = Bare, type(memory.Record), [], {{"__annotations__": {{"x": int}}}}

        def attempt(cls):
            for make in (
                lambda: object.__new__(cls), lambda: cls.__new__(cls), lambda: cls(5),
                lambda: copyreg._reconstructor(cls, object, None), lambda: cls.from_row([5]),
                lambda: copyreg.__newobj__(cls), lambda: turned(cls),
            ):
                try:
                    made.append(make())
                except (TypeError, AttributeError):  # a class without an __mro__ yet has nothing
                    pass

        def turned(cls):
            other = Other()
            other.x = []
            other.__class__ = cls
            return other

        def seek():
            for cls in Base.__subclasses__():
                if cls.__name__ == "Row":
                    attempt(cls)

        class Odd(str):
            def __hash__(self): return str.__hash__(self)
            def __eq__(self, other): seek(); return str.__eq__(self, other)

        class Named:
            def __set_name__(self, owner, name): attempt(owner)

        class Failing:
            def __set_name__(self, owner, name): raise TypeError

        {hook and HOOKS[hook].replace(chr(10), chr(10) + " " * 8)}
        for _ in range(20):
            try:
                Row = Meta("Row", (Base, memory.Record), dict(body))
                made += [Row(i) for i in range(50)]
            except (TypeError, RuntimeError):  # 3.11 has another one for __set_name__
                pass
            assert not any(map(gc.is_tracked, made)), made
            made.clear()
            gc.collect()
        """
    )


def test_no_object_turns_into_one_of_an_incomplete_class() -> None:
    class Empty(Record):
        pass

    class Bare:
        __slots__ = ()

        def __new__(cls) -> Any:  # noqa: ANN401
            return object.__new__(cls)

    around = type.__new__(type(Record), "Around", (Bare, Empty), {"__slots__": ()})
    for kind in (Record, _native.RecordBase, around):
        with pytest.raises(TypeError, match="__class__"):
            Empty().__class__ = kind
    with pytest.raises(TypeError, match="has no instances"):
        around().__init__(1)
    with pytest.raises(ValueError, match="new class of records"):
        _native.memory_seal_record(around, (), (), None)

    class Plain:
        __slots__ = ()

    class Later(Plain):
        __slots__ = ()

    for base in (Record, Empty, _native.RecordBase):
        with pytest.raises(TypeError, match="__bases__"):
            Later.__bases__ = (base,)


def test_the_body_of_a_class_is_seen_as_it_was_written() -> None:
    seen: list[str] = []

    class Watched(Record):
        def __init_subclass__(cls) -> None:
            seen.extend(vars(cls))

    class Part(Watched):
        a: int

    assert not {"__record_closer__"} & {*seen, *dir(Part)}
    with pytest.raises(ValueError, match="is complete"):
        _native.RecordCloser().__set_name__(Part, "a")
    with pytest.raises(TypeError):
        _native.RecordCloser().__set_name__(int, "a")  # type: ignore[arg-type]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="collections begin between instructions")
def test_a_collection_may_set_what_is_missing() -> None:
    """The list of the missing fields starts it."""
    record = Row(1)
    armed = False

    def callback(*_: object) -> None:
        if armed:
            record.id, record.name = 5, "set"

    def said() -> str:
        nonlocal armed
        armed = True
        try:
            record.__init__()
        except TypeError as error:
            return str(error)
        finally:
            armed = False
        return ""

    threshold = gc.get_threshold()
    gc.callbacks.append(callback)
    try:
        for allocations in range(1, 30):
            gc.collect()
            gc.set_threshold(allocations)
            assert said().endswith("missing 1 required positional argument: 'id'")
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(callback)


def test_a_class_made_around_the_metaclass_has_no_objects() -> None:
    kind = type.__new__(type(Record), "Around", (Row,), {})
    for call in (lambda: kind(1), lambda: kind.__new__(kind), lambda: kind.from_row((1, 2))):
        with pytest.raises(TypeError, match="has no instances"):
            call()
    record = Row(1)
    for other in (kind, Wide):
        with pytest.raises(TypeError, match="__class__"):
            record.__class__ = other
    for call in (Record, lambda: object.__new__(Row)):
        with pytest.raises(TypeError):
            call()


# ---- frozen -------------------------------------------------------------------------------------


def test_frozen_ones_do_not_change() -> None:
    record = Frozen(1, "x")
    for change in (
        lambda: setattr(record, "id", 2),
        lambda: setattr(record, "more", 2),
        lambda: setattr(record, "__class__", Row),
        lambda: delattr(record, "id"),
        lambda: record.__init__(2),
        lambda: record.__setstate__((2, "y")),
    ):
        with pytest.raises(AttributeError):
            change()
    assert record == Frozen(1, "x")
    assert record.__replace__(id=2) == Frozen(2, "x")
    object.__setattr__(record, "id", 5)  # as with dataclasses, for __post_init__
    assert record.id == 5


def test_frozen_ones_have_a_hash() -> None:
    assert hash(Frozen(1, "x")) == hash(Frozen(1, "x"))
    assert {Frozen(1): 2}[Frozen(1, "")] == 2
    assert isinstance(Frozen(1), Hashable)
    with pytest.raises(TypeError, match="unhashable"):
        hash(Frozen([]))  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="'id' of this Frozen is not set"):
        hash(Frozen.__new__(Frozen))


def test_others_have_none() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Row(1))
    assert not isinstance(Row(1), Hashable)

    class ByIdentity(Row):
        __hash__ = object.__hash__

    assert len({ByIdentity(1), ByIdentity(1)}) == 2


def test_subclasses_stay_frozen() -> None:
    class More(Frozen, frozen=True):
        more: int = 1

        def __eq__(self, other: object) -> bool:
            return self is other

        __hash__ = Frozen.__hash__

    record = More(1)
    with pytest.raises(AttributeError):
        record.more = 2
    assert record != More(1)
    assert hash(record) == hash(More(1))


def test_a_subclass_with_eq_has_no_hash() -> None:
    class Own(Frozen, frozen=True):  # noqa: PLW1641  # that is the point
        def __eq__(self, other: object) -> bool:
            return True

    with pytest.raises(TypeError, match="unhashable"):
        hash(Own(1))


# ---- interpreters -------------------------------------------------------------------------------


def test_subinterpreters_have_their_own() -> None:
    run_child(
        """
        try:
            import _interpreters
            make, run = (lambda: _interpreters.create("legacy")), _interpreters.exec
        except ImportError:
            import _xxsubinterpreters as _interpreters
            make, run = (lambda: _interpreters.create(isolated=False)), _interpreters.run_string
        from cpythonplus.memory import Record

        code = '''if True:
            from cpythonplus.memory import Record
            class Row(Record):
                a: object
            row = None
            for _ in range(100_000):
                row = Row(row)
            del row
            assert Row.from_rows([(1,)]) == [Row(1)]
        '''
        exec(code)
        for _ in range(3):
            each = make()
            failed = run(each, code)
            assert failed is None, failed
            _interpreters.destroy(each)
        exec(code)
        """
    )


def test_record_is_one_name() -> None:
    assert memory.Record is Record
    assert Record.__module__.startswith("cpythonplus._compact")
