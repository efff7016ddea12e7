"""Looks at every cache."""

import sys
from abc import ABC
from collections.abc import Iterator
from typing import Any, Final

from cpythonplus import _native
from cpythonplus.memory._caches.free_lists import free_list_rows
from cpythonplus.memory._caches.lru import CACHE_TYPE, lru_rows
from cpythonplus.memory._caches.model import Cache, FixedCost
from cpythonplus.memory._caches.standard_library import abc_row, standard_rows
from cpythonplus.memory._cycles.looking import type_dict

_ABC_DATA: Any = type(type_dict(ABC).get("_abc_impl"))
_FIXED: Final = (
    ("code", "byte code, line tables, constants: grows with each imported module"),
    ("docstrings", "python -OO omits them"),
    ("annotations", "what they refer to is not counted"),
    ("interned strings", "names and similar strings, each stored once"),
)
_TYPE_CACHE: Final = (4096, 3 * 8)
"""Entries, and bytes of each (Include/internal/pycore_typeobject.h, the same from 3.11 to 3.15)."""


def find_rows() -> tuple[list[Cache], list[str]]:
    """Return the caches, the largest first, and sentences on those that were not counted."""
    _native.memory_refuse_free_threaded()
    left_out: list[str] = []
    rows = [*_free_lists(left_out), *standard_rows(), *_of_objects(left_out)]
    return sorted(rows, key=lambda row: -row.size_bytes), left_out


def wrappers() -> list[Any]:
    """Return all functions under lru_cache."""
    return _native.memory_gc_objects_of((CACHE_TYPE,))


def _free_lists(left_out: list[str]) -> Iterator[Cache]:
    text = _native.memory_free_lists_text()
    if text is None or " free Py" not in text:
        left_out.append("Free lists: this interpreter does not report what is in them.")
    else:
        yield from free_list_rows(text)


def _of_objects(left_out: list[str]) -> Iterator[Cache]:
    try:
        found = _native.memory_gc_objects_of((CACHE_TYPE, _ABC_DATA))
    except RuntimeError as e:
        left_out.append(f"Functions under lru_cache: {e}.")
        return
    yield from lru_rows([each for each in found if type(each) is CACHE_TYPE])
    row = abc_row([each for each in found if type(each) is _ABC_DATA])
    if row is not None:
        yield row


def fixed_costs(left_out: list[str]) -> Iterator[FixedCost]:
    """Yield the fixed costs; sentences on those that could not be counted go to `left_out`."""
    entries, size = _TYPE_CACHE
    note = "part of the interpreter; sys._clear_type_cache() frees nothing"
    yield FixedCost("type cache", entries, entries * size, note)
    try:
        *found, immortal = _native.memory_fixed_costs()
    except RuntimeError as e:
        left_out.append(f"Code and docstrings: {e}.")
        return
    for (name, note), (objects, size_bytes) in zip(_FIXED, found, strict=True):
        yield FixedCost(name, objects, size_bytes, note)
    if sys.version_info >= (3, 12):
        note = "those of them that are kept until the process ends"
        yield FixedCost("immortal strings", *immortal, note)
