"""What the reports must not do to the program that they look at."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cpythonplus import _native, memory
from cpythonplus.memory._cycles import hoards
from cpythonplus.memory._dicts import finding
from tests.support import run_child

pytestmark = pytest.mark.needs_gil


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[list[object]]:
    """Return the lists of all objects in which holders are looked for: as if that took long."""
    lists: list[list[object]] = []

    def keep(objects: list[object], targets: list[object], own: list[object]) -> list[str]:
        del own
        lists.append(objects)
        return ["?"] * len(targets)

    for module in (finding, hoards):
        monkeypatch.setattr(module, "find_holders", keep)
    return lists


@pytest.mark.parametrize(
    "look",
    [lambda: memory.key_sharing(worth_bytes=1), lambda: hoards.find_hoards(min_bytes=0)],
    ids=["dicts", "hoards"],
)
def test_a_tuple_that_is_being_filled(
    look: Callable[[], object], listed: list[list[object]]
) -> None:
    """tuple() must make it larger, which fails if somebody else refers to it."""
    sparse = dict.fromkeys(range(1000))
    for key in range(990):
        del sparse[key]

    def items() -> Iterator[int]:
        for i in range(20):
            if i in (3, 10):  # half full, and full
                look()
            yield i

    assert tuple(items()) == tuple(range(20))
    assert len(listed) == 2


def test_the_path_to_what_is_in_such_a_tuple() -> None:
    class Target:
        pass

    paths = []

    def items() -> Iterator[object]:
        yield Target()
        for i in range(20):
            if i == 3:
                paths.append(_native.memory_root_path(Target, True, None, None))
            yield i

    assert len(tuple(items())) == 21
    assert [(path[0], [type(each) for each in path[2]]) for path in paths] == [(None, [Target])]


def test_tuples_that_somebody_has_are_listed(listed: list[list[object]]) -> None:
    class Owner:
        held: Any

    owner = Owner()
    owner.held = ([1],)
    variable = ([2],)
    memory.key_sharing(worth_bytes=1)
    # Neither has a second reference but for the list's.
    assert {id(owner.held), id(variable)} <= {id(each) for each in listed[0]}


# Up to 3.11 each object that is made may start the collector.
GARBAGE = """
import gc
from cpythonplus import _native
gc.disable()
_native.memory_census()
kinds = [type(f"Kind{i}", (), {"__slots__": ("itself", "a", "b")}) for i in range(50)]
kept = []
for i in range(60000):
    each = kinds[i % 50]()
    if i % 3000 < 50:
        each.itself = each
    else:
        kept.append(each)
del kinds, each, kept
arguments = ([], 64)  # the call makes nothing, and so starts no collection
kept_for_reuse = [tuple([i] * n) for n in (2, 3, 5, 6, 7) for i in range(2000)]
kept_for_reuse.append([[] for i in range(100)])
gc.set_threshold(1)
gc.enable()
rows = _native.memory_arenas(*arguments)[3]
gc.disable()
names = {row[0].__name__ for row in rows if row[0] is not None}
print(len([name for name in names if name.startswith("Kind")]) > 10)
"""


def test_what_pins_is_garbage() -> None:
    """The collector runs while the report is written, which must not lose what it is about."""
    child = run_child(GARBAGE, env={"PYTHONMALLOC": "pymalloc_debug"})
    assert child.out == "True\n"
