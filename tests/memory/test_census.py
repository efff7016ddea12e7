"""The census: what is counted, under which names, and that it leaves everything as it was."""

import array
import gc
import json
import sys
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cpythonplus import _native, memory
from cpythonplus.memory._census import Census, CensusRow, Difference
from tests.memory.growths import NUMBER
from tests.memory.heaps import HEAPS, Plain, Slotted
from tests.memory.rebuilding import rebuilt
from tests.support import SANITIZED, finish_child, run_child, start_child

pytestmark = pytest.mark.needs_gil

_NAMES = [sys.intern(f"name{i}") for i in range(50)]


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """No collection in the middle, which would free what others left behind."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def own_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def rows(table: tuple[CensusRow, ...]) -> dict[str, CensusRow]:
    return {row.name: row for row in table}


def grown(make: Callable[[], object]) -> tuple[object, Difference]:
    """What is there more after `make`, its result being kept."""
    before = memory.census()
    kept = make()
    return kept, memory.census() - before


# ---- counts -------------------------------------------------------------------------------------


Growths = dict[str, dict[str, dict[str, int]]]


@pytest.fixture(scope="module")
def growths() -> Growths:
    """What two censuses say that was made between them, in a process that does nothing else.

    A thread of the test runner's may make or free lists and dicts between two looks.
    """
    child = finish_child(start_child(Path(__file__).with_name("growths.py")), timeout=60)
    assert child.status == 0, child
    return dict(json.loads(child.out))


def test_counts_are_exact(growths: Growths) -> None:
    found = growths["instances"]["by_type"]
    assert found["__main__.Plain"] == NUMBER
    assert found["__main__.Slotted"] == 10
    assert found["float"] == NUMBER
    assert found["list"] == 1


def test_nested_containers_are_counted_once(growths: Growths) -> None:
    found = growths["nested"]["by_type"]
    assert found["list"] == NUMBER + 2
    assert found["dict"] == NUMBER
    assert found["tuple"] == 3 * NUMBER


def test_tables_sum_to_the_total() -> None:
    census = memory.census()
    for table in (census.by_type, census.by_owner, census.by_module):
        assert sum(row.objects for row in table) == census.objects
        assert sum(row.size_bytes for row in table) == census.size_bytes
        assert all(row.objects >= 0 for row in table), [row for row in table if row.objects < 0]
    assert sum(row.size_bytes for row in census.by_size_class) == census.size_bytes
    sizes = [row.size_bytes for row in census.by_type]
    assert sizes == sorted(sizes, reverse=True)


def test_frozen_objects_are_counted() -> None:
    before = memory.census()
    kept = [Plain(i) for i in range(NUMBER)]
    gc.freeze()
    try:
        most = gc.get_freeze_count()  # a thread of the test runner's may free some meanwhile
        frozen = memory.census()
        fewest = gc.get_freeze_count()
    finally:
        gc.unfreeze()
    assert fewest <= frozen.frozen_objects <= most
    assert rows((frozen - before).by_type)[own_name(Plain)].objects == NUMBER
    assert frozen.frozen_objects >= before.frozen_objects + NUMBER
    assert kept


@pytest.mark.skipif(sys.version_info < (3, 12), reason="nothing is immortal there")
def test_immortal_objects_are_counted() -> None:
    assert memory.census().immortal_objects > 100


# ---- bytes --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def heaps() -> dict[str, dict[str, Any]]:
    """What a process that does nothing else measured of each heap."""
    child = finish_child(start_child(Path(__file__).with_name("heaps.py")), timeout=60)
    assert child.status == 0, child
    return dict(json.loads(child.out))


@pytest.mark.skipif(SANITIZED, reason="the sanitizer has a memory allocator of its own")
@pytest.mark.parametrize("name", HEAPS)
def test_bytes_are_those_of_tracemalloc(name: str, heaps: dict[str, dict[str, Any]]) -> None:
    measured = heaps[name]
    expected = pytest.approx(measured["traced_bytes"], rel=0.01, abs=2000)
    assert measured["counted_bytes"] == expected, measured["grown"]


def samples() -> list[object]:
    """One of each kind that is measured in a way of its own."""
    code = compile("x = 1\ny = [x for x in range(9)]", "file", "exec")
    generator = (x for x in (1, 2))
    return [
        *(0, 1, -1, 2**30, -(2**90), 0.5, 2j, None, Ellipsis, NotImplemented),
        *("", "a", "\xe9", "\u20ac" * 5, "\U0001f600", b"", b"abc", bytearray(b"abc")),
        *((), (1,), [], [1], [None] * 9, {}, {1: 2}, {"a": 1}, dict.fromkeys(range(300))),
        *(set(), set(range(99)), frozenset((1, 2)), range(3), slice(1), memoryview(b"x")),
        *(deque(), deque(range(99)), array.array("d", range(9)), OrderedDict(a=1)),
        *(code, samples, generator, types.SimpleNamespace(a=1), len, "".join, iter([]), Slotted()),
        *(int, Plain, types, defaultdict(int), sys._getframe(), property(), object()),
    ]


def test_bytes_are_as_sizeof_says() -> None:
    """Each object's bytes, against the slow way to ask for them."""
    different = []
    for each in samples():
        fast = sum(_native.memory_object_parts(each))
        slow = _native.memory_object_bytes(each)
        if isinstance(each, type | types.CodeType):
            assert fast <= slow
        elif isinstance(each, int):
            assert slow <= fast <= slow + 4  # room for a second digit
        elif fast != slow:
            different.append((type(each), fast, slow))
    assert different == []


# ---- names --------------------------------------------------------------------------------------


def test_dicts_have_owners(growths: Growths) -> None:
    found = growths["owned_dicts"]["by_owner"]
    assert found["dict of __main__.Plain"] == NUMBER
    assert found["dict of function"] == 1
    assert found["dict of module made_up"] == 1
    assert found["dict of class __main__.MadeUp"] == 1
    assert "dict" not in found


def test_a_shared_dict_is_counted_once(growths: Growths) -> None:
    found = growths["shared_dict"]["by_owner"]
    assert found["dict of __main__.ManyNames"] == 1
    assert "dict" not in found


def test_modules_have_their_functions_code_and_classes() -> None:
    source = "def f():\n    pass\nclass C:\n    def g(self): pass\n"

    def make() -> object:
        module = types.ModuleType("made_up")
        sys.modules["made_up"] = module
        module.__file__ = "/nowhere/made_up.py"
        exec(compile(source, module.__file__, "exec"), vars(module))
        return module

    try:
        _, difference = grown(make)
    finally:
        del sys.modules["made_up"]
    # The module and its dict, two functions, their code, a class and its dict.
    assert rows(difference.by_module)["made_up"].objects == 8


def test_size_classes(growths: Growths) -> None:
    assert growths["bytes_"]["by_type"]["bytes"] == NUMBER
    assert growths["bytes_"]["by_size_class"]["2,048 B"] == NUMBER


# ---- differences and forms ----------------------------------------------------------------------


def test_classes_of_one_name_are_apart() -> None:
    first, second = (type("Twin", (), {}) for _ in range(2))
    kept = [first(), first()]
    before = memory.census()
    kept[:] = [second()]
    changed = [row for row in (memory.census() - before).by_type if row.name.endswith(".Twin")]
    assert [row.objects for row in changed] == [-2, 1]
    as_read = [rebuilt(Census, json.loads(json.dumps(x.as_json()))) for x in (before, before)]
    assert (as_read[0] - as_read[1]).by_type == ()


def test_forms_can_be_read_back() -> None:
    before = memory.census()
    census = memory.census()
    read = rebuilt(Census, json.loads(json.dumps(census.as_json())))
    assert read.as_json() == census.as_json()
    assert read.text() == census.text()
    difference = census - before
    again = rebuilt(Difference, json.loads(json.dumps(difference.as_json())))
    assert again.as_json() == difference.as_json()
    with pytest.raises(TypeError):
        census - 5  # type: ignore[operator]


CANNED = Census(
    objects=1234,
    size_bytes=2**20,
    frozen_objects=7,
    immortal_objects=0,
    pause_ns=1_500_000,
    extra_bytes=1,
    by_type=(
        CensusRow("app.Session", 1000, 2**19),
        CensusRow("str", 200, 2**18),
        CensusRow("int", 34, 2**18),
    ),
    by_owner=(),
    by_module=(),
    by_size_class=(),
)


def test_text() -> None:
    assert CANNED.text(2, "type").splitlines()[-7:] == [
        "1,234 objects of 1 MiB, 7 of them frozen; the program was paused for 1.5 ms",
        "",
        "By type:",
        "     size   share  objects  type",
        "  512 KiB  50.0 %    1,000  app.Session",
        "  256 KiB  25.0 %      200  str",
        "  and 1 more",
    ]
    difference = Difference(5, -100, (CensusRow("str", 5, -100),), (), (), ())
    assert difference.text(by="type").splitlines() == [
        "+5 objects, -100 B",
        "",
        "By type:",
        "  change  objects  type",
        "  -100 B       +5  str",
    ]
    with pytest.raises(ValueError, match="by must be one of type, owner, module, size_class"):
        CANNED.text(by="colour")


# ---- nothing happens to the program -------------------------------------------------------------


class Hostile(type):
    """A class that is angry whenever it is asked anything."""

    def __getattribute__(cls, name: str) -> object:
        raise AssertionError(name)

    def __eq__(cls, other: object) -> bool:
        raise AssertionError

    def __hash__(cls) -> int:
        raise AssertionError

    def __instancecheck__(cls, instance: object) -> bool:
        raise AssertionError


class Angry(metaclass=Hostile):
    def __getattribute__(self, name: str) -> object:
        raise AssertionError(name)

    def __sizeof__(self) -> int:
        raise AssertionError

    def __repr__(self) -> str:
        raise AssertionError


def test_no_code_of_the_program_runs() -> None:
    kept, difference = grown(lambda: [Angry() for _ in range(30)])
    assert rows(difference.by_type)[f"{__name__}.Angry"].objects == 30
    assert kept


def test_what_is_no_measuring_is_not_called() -> None:
    kept = type("Clears", (list,), {"__sizeof__": list.clear})([1, 2, 3])
    memory.census()
    _native.memory_object_bytes(kept)
    assert kept == [1, 2, 3]


def test_no_dict_appears() -> None:
    kept = [Plain(i) for i in range(NUMBER)]
    before = rows(memory.census().by_owner)
    after = rows(memory.census().by_owner)
    name = f"dict of {own_name(Plain)}"
    assert name not in before
    assert name not in after
    assert after[own_name(Plain)].size_bytes == before[own_name(Plain)].size_bytes
    assert kept


ODD_KEYS = """
import sys, types
from cpythonplus import _native

ran = []


class Key(str):
    def __hash__(self):
        return hash(str.__str__(self))

    def __eq__(self, other):
        ran.append(str.__str__(self))
        return False


names = {Key(name): 1 for name in ("__sizeof__", "__module__")}
held = types.ModuleType("held")
sys.modules[Key("numpy")] = held
looks = {
    "census": lambda: _native.memory_census(),
    "dicts": lambda: _native.memory_walk_dicts(1, 10),
    "bytes": lambda: _native.memory_object_bytes(held.odd),
    "pins": lambda: _native.memory_arenas([], 1, {"held": vars(held)}),
}
for name, look in looks.items():
    held.odd = type("Odd", (list,), names)()
    ran.clear()
    look()
    print(name, ran)
"""


def test_no_key_of_the_programs_own_is_compared() -> None:
    child = run_child(ODD_KEYS)
    assert child.out == "census []\ndicts []\nbytes []\npins []\n", child


COLLECTIONS = """
import gc, io
from cpythonplus import _native

file = io.BytesIO()
file.write(b"a buffer of its own")
began = []
gc.callbacks.append(lambda phase, info: began.append(gc.get_threshold()[0] > 0))
_native.memory_object_bytes(file)
for more in range(-5, 20):
    gc.set_threshold(0)
    gc.collect()
    kept = [[] for _ in range(50)]
    gc.set_threshold(gc.get_count()[0] + more)
    _native.memory_object_bytes(file)
print(any(began), gc.isenabled())
"""


def test_no_collection_begins_meanwhile() -> None:
    """Up to 3.11 a collection begins where an object is made, and the walk is along its lists."""
    child = run_child(COLLECTIONS)
    assert child.out == "False True\n", child


ODD_PLACES = """
import gc, signal, threading, types
from cpythonplus import memory

done = []


class Ends:
    def __del__(self):
        done.append(memory.census().objects)


class Watched:
    pass


def in_collection(phase, info):
    done.append(memory.census().objects)


def in_signal(signum, frame):
    done.append(memory.census().objects)


Ends()
ring = Ends()
ring.itself = ring
del ring
gc.collect()
gc.callbacks.append(in_collection)
gc.collect()
gc.callbacks.clear()
signal.signal(signal.SIGUSR1, in_signal)
signal.raise_signal(signal.SIGUSR1)
stop = threading.Event()


def busy():
    while not stop.is_set():
        kept = [{str(i): [i]} for i in range(50)]


# Each its own code: 3.15's JIT crashes where threads share some (python/cpython#157740).
codes = [busy.__code__.replace() for _ in range(3)]
threads = [threading.Thread(target=types.FunctionType(code, globals())) for code in codes]
for thread in threads:
    thread.start()
done += [memory.census().objects for _ in range(5)]
stop.set()
for thread in threads:
    thread.join()
[].sort(key=lambda x: x)
numbers = [3, 1, 2]
numbers.sort(key=lambda x: done.append(memory.census().objects) or x)
assert len(done) == 13 and min(done) > 1000, done
print("ok")
"""


def test_it_can_be_called_from_anywhere() -> None:
    child = run_child(ODD_PLACES, timeout=60)
    assert child.out == "ok\n", child
