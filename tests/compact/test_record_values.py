"""Records as values: comparison, repr, copies, pickles; dataclasses as the model."""

# mypy: disable-error-code="arg-type, attr-defined, call-arg, comparison-overlap, misc"
# mypy: disable-error-code="no-untyped-call, operator, var-annotated"

import copy
import dataclasses
import gc
import pickle
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpythonplus.memory import Record
from tests.support import run_child

pytestmark = pytest.mark.needs_gil

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


class Row(Record):
    id: Any
    name: Any = ""


class Same(Record):
    id: Any
    name: Any = ""


class Frozen(Record, frozen=True):
    id: Any
    name: Any = ""


class Doubled(Record):
    one: int
    two: int = 0

    def __post_init__(self) -> None:
        self.two = 2 * self.one


class Node(Record):
    next: Any
    value: int = 0


@dataclasses.dataclass(slots=True)
class Model:
    """What a Row is like."""

    id: Any
    name: Any = ""


@dataclasses.dataclass(frozen=True, slots=True)
class FrozenModel:
    """What a Frozen is like."""

    id: Any
    name: Any = ""


# ---- comparison ---------------------------------------------------------------------------------


def test_equal_are_those_of_one_class_with_equal_fields() -> None:
    assert Row(1, "x") == Row(1.0, "x")
    assert Row(1) != Row(2)
    assert Row(1) != Same(1)
    assert Row(1) != (1, "")
    nan = float("nan")
    assert Row(nan) == Row(nan)  # the same object, as in lists
    assert Row(nan) != Row(float("nan"))


def test_there_is_no_order() -> None:
    with pytest.raises(TypeError):
        _ = Row(1) < Row(2)


def test_unset_fields_are_equal_to_each_other_only() -> None:
    one, other = Row(1), Row(1)
    del one.name
    assert one != other
    del other.name
    assert one == other


def test_fields_may_change_while_they_are_compared() -> None:
    class Changing:
        def __eq__(self, other: object) -> bool:
            one.id = other_one.id = one.name = other_one.name = None
            return True

        __hash__ = None  # type: ignore[assignment]

    one, other_one = Row(Changing(), [1]), Row(Changing(), [2])
    assert one == other_one


def test_an_error_in_eq_is_passed_on() -> None:
    class Failing:
        def __eq__(self, other: object) -> bool:
            raise KeyError("eq")

        __hash__ = None  # type: ignore[assignment]

    with pytest.raises(KeyError):
        _ = Row(Failing()) == Row(Failing())


def test_deep_comparison_ends_in_an_error() -> None:
    one, other = Row(1), Row(1)
    one.id, other.id = other, one
    try:
        with pytest.raises(RecursionError):
            _ = one == other
    finally:
        one.id = other.id = None  # nobody else would free them


def test_the_class_may_change_meanwhile() -> None:
    class Changing:
        def __eq__(self, other: object) -> bool:
            one.__class__ = other_one.__class__ = Row
            return True

        def __repr__(self) -> str:
            one.__class__ = Row
            return "changing"

        __hash__ = None  # type: ignore[assignment]

    def of_a_class_of_its_own() -> Row:
        class Short(Row):
            pass

        return Short(Changing(), [])

    one, other_one = of_a_class_of_its_own(), Row(Changing(), [])
    other_one.__class__ = type(one)
    gc.collect()
    assert one == other_one
    assert type(one) is Row
    one = of_a_class_of_its_own()
    gc.collect()
    assert repr(one).endswith("Short(id=changing, name=[])")


def test_deep_ones_raise_recursion_errors() -> None:
    """Instead of using up the C stack."""
    run_child(
        """
        from cpythonplus.memory import Record

        class Node(Record, frozen=True):
            next: object

        def chain():
            made = None
            for _ in range(200_000):
                made = Node(made)
            return made

        one, other = chain(), chain()
        for call in (lambda: hash(one), lambda: one == other, lambda: repr(one)):
            try:
                call()
            except RecursionError:
                continue
            raise AssertionError("no error")
        """
    )


# ---- repr ---------------------------------------------------------------------------------------


def test_repr() -> None:
    record = Row(1, "x")
    assert repr(record) == "Row(id=1, name='x')"
    del record.id
    assert repr(record) == "Row(id=<not set>, name='x')"
    record.id = [record]
    assert repr(record) == "Row(id=[...], name='x')"
    record.id = None

    class Inner(Record):
        pass

    assert repr(Inner()) == f"{Inner.__qualname__}()"


def test_match() -> None:
    match Row(1, "x"):
        case Row(number, name=text):
            assert (number, text) == (1, "x")
        case _:
            pytest.fail("no match")


# ---- copies -------------------------------------------------------------------------------------


def test_asdict_is_not_recursive() -> None:
    inner = Row(1)
    assert Row(inner, "x").asdict() == {"id": inner, "name": "x"}
    assert Row(inner).asdict()["id"] is inner
    del inner.id
    assert inner.asdict() == {"name": ""}


def test_replace() -> None:
    assert Row(1, "x").__replace__(id=2) == Row(2, "x")
    assert Doubled(1).__replace__(one=5) == Doubled(5)
    for wrong in (lambda: Row(1).__replace__(2), lambda: Row(1).__replace__(more=2)):
        with pytest.raises(TypeError):
            wrong()
    if sys.version_info >= (3, 13):
        assert copy.replace(Row(1), name="y") == Row(1, "y")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("kind", [Row, Frozen])
def test_pickles(kind: type[Row], protocol: int) -> None:
    inner = [1]
    record = kind(inner, {"a": inner})
    again = pickle.loads(pickle.dumps(record, protocol))
    assert again == record
    assert again.name["a"] is again.id
    unset = kind.__new__(kind)
    assert pickle.loads(pickle.dumps(unset, protocol)) == unset
    object.__setattr__(unset, "name", 1)
    assert pickle.loads(pickle.dumps(unset, protocol)) == unset


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_record_in_itself(protocol: int) -> None:
    record = Row(None)
    record.id = [record]
    for again in (pickle.loads(pickle.dumps(record, protocol)), copy.deepcopy(record)):
        assert again is not record
        assert again.id[0] is again
        again.id = None
    record.id = None


def test_copies() -> None:
    record = Row([1], "x")
    shallow, deep = copy.copy(record), copy.deepcopy(record)
    assert shallow == deep == record
    assert shallow.id is record.id
    assert deep.id is not record.id


def test_post_init_is_for_new_records() -> None:
    record = Doubled(1)
    record.two = 5
    assert pickle.loads(pickle.dumps(record)) == copy.copy(record) == record


def test_pickles_outlive_new_fields() -> None:
    """Those with defaults, at the end."""
    old, new = Row(1, "x"), Node.__new__(Node)
    new.__setstate__(old.__reduce__()[2][:1])
    assert new.asdict() == {"next": 1, "value": 0}
    for state in ((), (1, 2, 3), {"other": 1}, [1, 2]):
        with pytest.raises(TypeError):
            Node.__new__(Node).__setstate__(state)


# ---- dataclasses as the model -------------------------------------------------------------------

VALUES = st.one_of(
    st.integers(), st.text(), st.none(), st.lists(st.integers(), max_size=3), st.floats()
)


@given(st.lists(VALUES, min_size=1, max_size=2), st.lists(VALUES, min_size=1, max_size=2))
def test_it_is_like_a_dataclass(first: list[Any], second: list[Any]) -> None:
    one, other, model = Row(*first), Row(*second), Model(*first)
    assert repr(one) == repr(model).replace("Model", "Row")
    assert one.asdict() == {name: getattr(model, name) for name in Row.__record_fields__}
    # As tuples compare; dataclasses do from 3.13 on not ask for identity first.
    both = [*first, ""][:2], [*second, ""][:2]
    assert (one == other) is (tuple(both[0]) == tuple(both[1]))
    assert hash(Frozen(*map(repr, first))) == hash(FrozenModel(*map(repr, first)))
    assert repr(pickle.loads(pickle.dumps(one))) == repr(pickle.loads(pickle.dumps(model))).replace(
        "Model", "Row"
    )


NAMES = st.lists(
    st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True).filter(
        lambda name: name not in __import__("keyword").kwlist and not hasattr(Record, name)
    ),
    max_size=12,
    unique=True,
)


@given(NAMES, NAMES, st.randoms(use_true_random=False))
def test_fields_lie_where_their_names_say(
    names: list[str],
    more: list[str],
    random: Any,  # noqa: ANN401
) -> None:
    base: Any = type(Record)("Base", (Record,), {"__annotations__": dict.fromkeys(names, int)})
    kind: Any = type(Record)("Kind", (base,), {"__annotations__": dict.fromkeys(more, int)})
    fields = [*dict.fromkeys(names + more)]
    assert kind.__record_fields__ == (*fields,)
    values = dict(zip(fields, range(len(fields)), strict=True))
    shuffled = [*values.items()]
    random.shuffle(shuffled)
    for record in (
        kind(*values.values()),
        kind(**dict(shuffled)),
        kind.from_row(dict(shuffled)),
        kind.from_row([*values.values()]),
    ):
        assert record.asdict() == values
        assert [*record.asdict()] == fields
        assert all(getattr(record, name) == value for name, value in values.items())


# ---- death --------------------------------------------------------------------------------------


def test_long_chains_use_a_bounded_stack() -> None:
    """Through records alone, and through whatever else may hold one."""
    run_child(
        """
        import functools, resource, threading, types
        from cpythonplus.memory import Record

        class Node(Record):
            next: object
            other: object = None

        class Frozen(Record, frozen=True):
            next: object

        class Counted(Record):
            next: object
            def __del__(self):
                global died
                died += 1

        class Plain:
            def __init__(self, next):
                self.next = next

        died = 0

        def chain(count, *links):
            made = None
            for _ in range(count):
                for link in links:
                    made = link(made)
            return made

        def tree(depth):
            return Node(tree(depth - 1), tree(depth - 1)) if depth else None

        def all_of_them():
            chain(1_000_000, Node)
            for links in (
                (Node, Frozen), (Counted,), (Node, lambda x: [x]), (Node, lambda x: (x,)),
                (Node, lambda x: {1: x}), (Node, Plain), (Plain, Counted),
                (Node, lambda x: functools.partial(print, x)), (lambda x: Node(x, x),),
                (Node, lambda x: types.CellType(x)),
            ):
                chain(100_000, *links)
            tree(14)

        all_of_them()
        assert died == 200_000, died
        threading.stack_size(256 * 1024)
        threads = [threading.Thread(target=all_of_them) for _ in range(2)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert died == 600_000, died
        """,
        timeout=180,
    )


def test_a_finalizer_may_bring_it_back() -> None:
    class Back(Record):
        a: int

        def __del__(self) -> None:
            kept.append(self)

    kept: list[Back] = []
    Back(5)
    assert kept == [kept[0]]
    assert kept[0].a == 5
    del Back.__del__
    kept.clear()


def test_a_finalizer_may_be_added() -> None:
    class Later(Record):
        a: int

    died = []
    one = Later(1)
    Later.__del__ = lambda self: died.append(self.a)
    del one
    assert died == [1]
