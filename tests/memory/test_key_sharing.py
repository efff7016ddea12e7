"""Classes whose instances need dicts of their own, and tables that are too large: all are told."""

import copy
import gc
import json
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from cpythonplus import UnsupportedPlatform, _native
from cpythonplus.memory import key_sharing
from cpythonplus.memory._dicts import KeySharing, LostSharing
from cpythonplus.memory._dicts.causes import Counts, explain
from tests.memory.rebuilding import rebuilt
from tests.support import run_child

pytestmark = pytest.mark.needs_gil

COUNT = 600


class Plain:
    def __init__(self) -> None:
        self.a = self.b = self.c = self.d = self.e = 1


def a_class(name: str) -> type[Plain]:
    """Return a class of its own: what instances have done stays with their class."""
    kind = type(name, (Plain,), {})
    for _ in range(40):
        kind()
    return kind


def storage(instance: object) -> tuple[str, int]:
    found = _native.memory_attributes_of(instance)
    assert found is not None
    return found[:2]


def lost(kind: type) -> LostSharing | None:
    rows = [
        row for row in key_sharing(worth_bytes=1000, top=0).lost if row.type.endswith(kind.__name__)
    ]
    return rows[0] if rows else None


def plain(kind: type[Plain]) -> Any:  # noqa: ANN401
    return kind()


def read(kind: type[Plain]) -> Any:  # noqa: ANN401
    instance = kind()
    vars(instance)
    return instance


def assigned(kind: type[Plain]) -> Any:  # noqa: ANN401
    instance = kind()
    instance.__dict__ = dict.fromkeys("abcde", 2)
    return instance


def many(kind: type[Plain]) -> Any:  # noqa: ANN401
    instance = kind()
    for i in range(26):
        setattr(instance, f"more{i}", i)
    return instance


def foreign(kind: type[Plain]) -> Any:  # noqa: ANN401
    instance = kind()
    for i in range(5):
        setattr(instance, f"own{id(instance)}_{i}", i)
    return instance


def numbered(kind: type[Plain]) -> Any:  # noqa: ANN401
    instance = kind()
    instance.__dict__[5] = 5  # type: ignore[index]
    return instance


def test_equal_names_need_not_be_the_same_object() -> None:
    kind = a_class("Equal")
    kind().late = 5  # type: ignore[attr-defined]
    names = [str(b"late", "ascii"), *"abcde"]
    kept = [kind() for _ in range(COUNT)]
    for each in kept:
        each.__dict__ = dict.fromkeys(names, 5)
    row = lost(kind)
    assert row is not None
    assert "assigned or filled" in row.cause


def test_classes_are_no_instances() -> None:
    meta = type("Meta", (type,), {})
    kept = [meta("Made", (), {"a": 1, "b": 2}) for _ in range(100)]
    assert lost(meta) is None
    del kept


def test_this_interpreter_is_as_it_is_known() -> None:
    assert not key_sharing().left_out


@pytest.mark.parametrize(
    ("make", "state", "words"),
    [
        (read, "split", "vars() or __dict__"),
        (assigned, "combined", "assigned or filled"),
        (many, "combined", "more than 30 attributes"),
        (foreign, "combined", "others and no more"),
        (numbered, "combined", "not strings"),
    ],
)
def test_each_cause_is_told(make: Callable[[type[Plain]], Any], state: str, words: str) -> None:
    kind = a_class(f"Lost_{make.__name__}")
    kept = [make(kind) for _ in range(COUNT)]
    kept_plain = [kind() for _ in range(COUNT // 2)]
    row = lost(kind)
    assert row is not None
    assert storage(kept[-1])[0] == state
    # `foreign`: the first ones find room in the class's table.
    dicts_found = row.split if state == "split" else row.combined
    assert COUNT - 40 <= dicts_found <= COUNT
    assert row.instances == COUNT + len(kept_plain)
    assert row.inline >= len(kept_plain)
    assert words in row.cause
    assert row.remedy
    assert row.cost_bytes >= dicts_found * 48


@pytest.mark.parametrize("make", [plain, read, assigned, many, numbered])
def test_what_an_instance_takes_is_what_was_allocated(
    make: Callable[[type[Plain]], Any],
) -> None:
    kind = a_class("Sized")
    count = 1000
    kept: list[Any] = [None] * count
    gc.collect()  # the free lists are empty
    tracemalloc.start()
    try:
        for i in range(count):
            kept[i] = make(kind)
        allocated = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    told = sum(_native.memory_object_bytes(each) + size_of_attributes(each) for each in kept)
    assert told == pytest.approx(allocated, rel=0.03)


def size_of_attributes(instance: object) -> int:
    found = _native.memory_attributes_of(instance)
    assert found is not None
    return found[2]


def test_looking_makes_no_dict() -> None:
    kind = a_class("Untouched")
    kept = [kind() for _ in range(COUNT)]
    assert lost(kind) is None
    assert {storage(each) for each in kept} == {("inline", 5)}


def test_a_copy_and_a_deletion() -> None:
    kind = a_class("Copied")
    instance = kind()
    del instance.a
    assert storage(instance) == ("inline", 4)
    assert storage(copy.copy(kind()))[0] in ("split", "combined")
    assert _native.memory_attributes_of(5) is None
    assert _native.memory_attributes_of(KeyError()) is None


def test_oversized_tables_are_told_with_their_holders() -> None:
    global BIG, BIG_SET  # noqa: PLW0603
    BIG = dict.fromkeys(range(20000))
    BIG_SET = set(range(20_000))
    for i in range(19_000):
        del BIG[i]
        BIG_SET.discard(i)
    try:
        found = {row.holder.rpartition(".")[2]: row for row in key_sharing().oversized}
        big, big_set = found["BIG"], found["BIG_SET"]
        assert (big.kind, big.entries) == ("dict", 1000)
        assert (big_set.kind, big_set.entries) == ("set", 1000)
        assert big.size_bytes == sys.getsizeof(BIG)
        assert big.could_be_bytes == sys.getsizeof(dict(BIG))
        assert big_set.size_bytes == sys.getsizeof(BIG_SET)
        assert big_set.could_be_bytes == sys.getsizeof(set(BIG_SET))
        assert big.remedy == "replace it by dict(it)"
        BIG = dict(BIG)
        BIG_SET = set(BIG_SET)
        assert not {"BIG", "BIG_SET"} & {
            row.holder.rpartition(".")[2] for row in key_sharing().oversized
        }
    finally:
        BIG, BIG_SET = {}, set()


BIG: dict[int, None] = {}
BIG_SET: set[int] = set()


@pytest.mark.parametrize("entries", [0, 1, 5, 6, 30, 100, 342, 700, 5000, 70_000])
def test_the_sizes_of_tables_are_the_interpreters(entries: int) -> None:
    tables: tuple[Any, ...] = (
        {str(i): i for i in range(entries)},
        {i: i for i in range(entries)},
        set(range(entries)),
    )
    for table in tables:
        found = _native.memory_table_of(table)
        smaller = type(table)(table)
        if found is None:
            assert entries <= 4
            continue
        assert found[0] == entries
        assert found[2] == sys.getsizeof(table)
        assert found[3] <= sys.getsizeof(smaller)
        assert found[1] >= entries


def test_frozen_instances_count() -> None:
    run_child(
        """
        import gc
        from cpythonplus.memory import key_sharing

        class Lost:
            def __init__(self):
                self.a = self.b = 1

        kept = [Lost() for _ in range(1000)]
        for each in kept:
            vars(each)
        gc.freeze()
        row, = [row for row in key_sharing(worth_bytes=1000).lost if row.type == "__main__.Lost"]
        assert (row.instances, row.split) == (1000, 1000), row
        """
    )


def test_no_code_of_the_program_runs() -> None:
    class Loud(type):
        def __getattribute__(cls, name: str) -> Any:  # noqa: ANN401
            raise AssertionError(name)

        def __eq__(cls, other: object) -> bool:
            raise AssertionError(other)

        __hash__ = None  # type: ignore[assignment]

    class Lost(metaclass=Loud):
        def __getattribute__(self, name: str) -> Any:  # noqa: ANN401
            raise AssertionError(name)

        def __eq__(self, other: object) -> bool:
            raise AssertionError(other)

        __hash__ = None  # type: ignore[assignment]

    kept = [Lost() for _ in range(COUNT)]
    for each in kept:
        object.__getattribute__(each, "__dict__")["a"] = 1
    rows = [row for row in key_sharing(worth_bytes=1000).lost if row.type.endswith("Lost")]
    assert [row.split for row in rows] == [COUNT]


def test_forms() -> None:
    kind = a_class("Told")
    kept = [read(kind) for _ in range(COUNT)]
    found = key_sharing(worth_bytes=1000)
    assert rebuilt(KeySharing, json.loads(json.dumps(found.as_json()))) == found
    assert str(found) == found.text()
    assert "Told" in found.text()
    assert found.cost_bytes >= COUNT * 48
    assert "too much" not in KeySharing((), (), 0, 0, left_out=("why",)).text()
    del kept


def test_a_bad_argument_is_refused() -> None:
    for bad in ({"worth_bytes": -1}, {"top": -1}):
        with pytest.raises(ValueError, match="must not be negative"):
            key_sharing(**bad)


def test_one_instance_is_told_as_one() -> None:
    cause, _ = explain(
        Counts(split=1, combined=0, many=0, general=0, foreign=0, put=0, names=5, room=1)
    )
    assert cause.startswith("1 instance has a dict")


def test_what_is_not_as_it_is_known_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise UnsupportedPlatform("the heap cannot be walked")

    monkeypatch.setattr(_native, "memory_walk_dicts", refuse)
    with pytest.raises(UnsupportedPlatform, match="cannot be walked"):
        key_sharing()


def gains(program: str) -> list[dict[str, Any]]:
    """What a program is told of its own dicts; its last line has them in `found`."""
    child = run_child(
        f"""
        import dataclasses, json, tracemalloc
        from cpythonplus import memory

        def parse(count):
            text = ", ".join('{{"id": %d, "name": "x", "price": 5}}' % i for i in range(count))
            return json.loads(f"[{{text}}]")

        {program}
        print(json.dumps([dataclasses.asdict(gain) for gain in found.gains]))
        """
    )
    return list(json.loads(child.out))


def one(found: list[dict[str, Any]], what: str) -> dict[str, Any]:
    (gain,) = [each for each in found if what in each["what"]]
    return gain


def test_rows_with_the_same_keys() -> None:
    gain = one(gains("rows = parse(3000); found = memory.key_sharing()"), "id, name, price")
    assert gain["count"] == 3000
    assert gain["holder"].startswith("__main__.rows[")
    assert gain["size_bytes"] > gain["shared_bytes"] > gain["record_bytes"] > 0
    assert gain["saves_bytes"] == gain["size_bytes"] - gain["shared_bytes"]
    assert "memory.share_keys" in gain["change"]
    assert gain["made_at"] == ""


def test_the_line_that_made_them_and_what_to_write_there() -> None:
    program = "tracemalloc.start(5); rows = parse(3000); found = memory.key_sharing()"
    gain = one(gains(program), "id, name, price")
    assert gain["made_at"].endswith("program.py:7")
    assert "object_pairs_hook=memory.shared_dict" in gain["change"]


def test_what_it_says_comes_true() -> None:
    """Rows that were shared are told of no more; the figure is what they took."""
    program = "rows = list(memory.share_keys(parse(3000))); found = memory.key_sharing()"
    assert not [gain for gain in gains(program) if "price" in gain["what"]]


def test_an_instances_dict_is_its_classs_business() -> None:
    program = """
        class Order: pass
        orders = [Order() for _ in range(3000)]
        for each in orders:
            each.__dict__ = {"id": 1, "name": 2, "price": 3}
        found = memory.key_sharing(worth_bytes=1000)
    """
    found = gains(program.strip())
    assert not [gain for gain in found if "price" in gain["what"]]
    gain = one(found, "Order")
    assert gain["count"] == 3000
    assert gain["size_bytes"] > gain["record_bytes"] == 3000 * 48
    assert "class Order(memory.Record)" in gain["change"]


def test_one_large_dict_and_many_small_ones_without_common_keys() -> None:
    program = """
        large = {number: number for number in range(100_000)}
        small = [{f"{number}": 1, f"other {number}": 2} for number in range(5000)]
        found = memory.key_sharing()
    """
    found = gains(program.strip())
    large, small = one(found, "dict of 100,000"), one(found, "small dicts")
    assert large["holder"] == "__main__.large"
    assert small["count"] >= 5000
    for gain in (large, small):
        assert gain["size_bytes"] > gain["compact_bytes"]
        assert "CompactDict" in gain["change"]


def test_too_many_keys_to_share() -> None:
    program = (
        "rows = [{f'k{i}': i for i in range(40)} for _ in range(500)]; found = memory.key_sharing()"
    )
    gain = one(gains(program), "k0, k1")
    assert gain["shared_bytes"] is None
    assert "memory.Record" in gain["change"]


def test_what_modules_classes_and_functions_keep_their_names_in() -> None:
    """Nobody has written these dicts, so that there is nothing to write in their place."""
    program = """
        import types
        kept = []
        for i in range(3000):
            space = {f"name_{i}_{j}": j for j in range(3)}
            kept.append(type(f"Kind{i}", (), space))
            exec(f"def f(a{i}: int, *, b{i}: int = 1, c{i}=2): pass", space)
            kept.append(space.pop("f"))
            vars(kept[-1])[f"mark{i}"] = 1
            space.clear()
            module = types.ModuleType("m")
            vars(module).update({f"n{i}_{j}": j for j in range(100)})
            kept.append(module)
        found = memory.key_sharing(worth_bytes=100_000)
    """
    found = gains(program.strip())
    assert not [gain for gain in found if "dict" in gain["what"]], found
