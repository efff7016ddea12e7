"""Counts all objects, and names the counted ones.

`_native` counts without a break; names are found afterwards, while other threads run.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from cpythonplus import _native
from cpythonplus._interp import walk_losses
from cpythonplus.memory._census.model import Census, CensusRow, largest_first
from cpythonplus.memory._census.naming import namespace_name, source_modules
from cpythonplus.memory._cycles.looking import qualified_name, type_module

_SAME_NAME: Final = 20
_Sum = tuple[int, int]
"""Objects and bytes."""


class _Class(NamedTuple):
    """The sums of one class."""

    type: type
    own: _Sum
    owned: _Sum
    """The part of `own` in dicts that have an owner."""
    dicts: _Sum
    """The dicts of its instances."""
    itself: _Sum
    dict_bytes: int


class _Place(NamedTuple):
    """The sums of one namespace, or of one source file."""

    place: Any
    own: _Sum
    """The functions and the module object of the namespace, or the code of the file."""
    dicts: _Sum
    is_module: bool
    dict_bytes: int


def census() -> Census:
    """Count all objects of this interpreter, and the memory that they take.

    These are the objects that the garbage collector knows (frozen ones, too), their referents, the
    values of variables of executing functions, and built-in classes. No code of the program runs,
    and nothing is changed: no `__dict__` is created. The program is paused meanwhile. Objects that
    only C code refers to, without telling the collector, are not seen, such as the elements of a
    structured numpy array that has objects.

    Raises UnsupportedPlatform if the interpreter's structures are not the known ones; MemoryError
    if there is no memory for counting, 1 % of the heap.
    """
    frozen, immortal, pause_ns, extra_bytes, classes, places, files, sizes, keys, values = (
        _native.memory_census()
    )
    counted = [_Class(*row) for row in classes]
    spaces = [_Place(*row) for row in places]
    names = [qualified_name(each.type) for each in counted]
    return Census(
        objects=sum(each.own[0] for each in counted),
        size_bytes=sum(each.own[1] for each in counted),
        frozen_objects=frozen,
        immortal_objects=immortal,
        pause_ns=pause_ns,
        extra_bytes=extra_bytes,
        by_type=largest_first(
            CensusRow(name, *each.own, id(each.type))
            for each, name in zip(counted, names, strict=True)
            if each.own[0]
        ),
        by_owner=_by_owner(counted, names, spaces),
        by_module=_by_module(counted, spaces, [_Place(*row) for row in files]),
        by_size_class=largest_first(CensusRow(f"{limit:,} B", *sums) for limit, *sums in sizes),
        left_out=_left_out(keys=keys, values=values),
        same_name=_same_name(counted, names),
        losses=walk_losses(),
    )


def _same_name(counted: list[_Class], names: list[str]) -> tuple[CensusRow, ...]:
    sums = _summed(
        (name, (1, each.itself[1] + each.dict_bytes))
        for each, name in zip(counted, names, strict=True)
    )
    return largest_first(
        CensusRow(name, *sum_) for name, sum_ in sums.items() if sum_[0] >= _SAME_NAME
    )


def _by_owner(
    counted: list[_Class], names: list[str], spaces: list[_Place]
) -> tuple[CensusRow, ...]:
    """Return one row for each name, even if several classes have it."""
    owners = _owners(counted, names, spaces)
    sums = _summed((row.name, (row.objects, row.size_bytes)) for row in owners)
    return largest_first(CensusRow(name, *sum_) for name, sum_ in sums.items())


def _owners(counted: list[_Class], names: list[str], spaces: list[_Place]) -> Iterator[CensusRow]:
    for space in spaces:
        if space.is_module and space.dict_bytes:
            yield CensusRow(f"dict of module {namespace_name(space.place)}", 1, space.dict_bytes)
    functions = [space.dicts for space in spaces if space.dicts[0]]
    if functions:
        yield CensusRow("dict of function", *map(sum, zip(*functions, strict=True)))
    for each, name in zip(counted, names, strict=True):
        if each.own[0] - each.owned[0]:
            yield CensusRow(name, *_minus(each.own, each.owned))
        if each.dicts[0]:
            yield CensusRow(f"dict of {name}", *each.dicts)
        if each.dict_bytes:
            yield CensusRow(f"dict of class {name}", 1, each.dict_bytes)


def _by_module(
    counted: list[_Class], spaces: list[_Place], sources: list[_Place]
) -> tuple[CensusRow, ...]:
    sums = _summed(_module_parts(counted, spaces, sources))
    return largest_first(CensusRow(name, *sum_) for name, sum_ in sums.items() if any(sum_))


def _module_parts(
    counted: list[_Class], spaces: list[_Place], sources: list[_Place]
) -> Iterator[tuple[str, _Sum]]:
    """Yield modules with objects and bytes; parts of one module are taken off their class's."""
    for each in counted:
        module = type_module(each.type) or "?"
        yield module, _minus(each.own, each.owned)
        yield module, each.dicts
        yield module, each.itself
        yield type_module(type(each.type)) or "?", _minus((0, 0), each.itself)
        yield module, (1 if each.dict_bytes else 0, each.dict_bytes)
    for space in spaces:
        module = namespace_name(space.place)
        yield module, space.own
        yield "builtins", _minus((0, 0), space.own)
        yield module, space.dicts
        if space.dict_bytes:
            yield module, (1, space.dict_bytes)
    modules = source_modules() if sources else {}
    for source in sources:
        file = str.__str__(source.place)  # may be of a class derived from str
        yield modules.get(file, file), source.own
        yield "builtins", _minus((0, 0), source.own)


def _left_out(*, keys: bool, values: bool) -> str:
    missing = {
        "attributes stored inside or beside instances": not values,
        "dicts whose keys are shared": not keys,
    }
    return ", ".join(what for what, is_missing in missing.items() if is_missing)


def _summed(parts: Iterable[tuple[str, _Sum]]) -> dict[str, _Sum]:
    """Return the sum of each name's parts."""
    sums: dict[str, _Sum] = {}
    for name, (objects, size_bytes) in parts:
        before = sums.get(name, (0, 0))
        sums[name] = before[0] + objects, before[1] + size_bytes
    return sums


def _minus(a: _Sum, b: _Sum) -> _Sum:
    return a[0] - b[0], a[1] - b[1]
