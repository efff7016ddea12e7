"""Functions under functools.lru_cache: their stored entries, and how often these were used.

A cache is read through the referents of its C object: the entries, the function, the dict of
entries, the wrapper's own dict. No key is compared and no attribute of the function is read.
"""

import functools
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Final

from cpythonplus import _native
from cpythonplus.memory._caches.model import WORTH_BYTES, Cache
from cpythonplus.memory._cycles.looking import is_type, type_module, type_name, type_qualname

CACHE_TYPE: Any = type(functools.lru_cache(len))
PREFIX: Final = "lru_cache "
_ENOUGH_HITS: Final = 10
"""An entry that was used so often, on average, is better kept."""
_NO_ENTRIES: Final = _native.memory_object_bytes({})
_info = CACHE_TYPE.cache_info


@dataclass(slots=True)
class _Sum:
    """All caches of one name: closures are made many times."""

    caches: int = 0
    entries: int = 0
    size_bytes: int = 0
    hits: int = 0
    misses: int = 0
    is_unlimited: bool = False


def lru_rows(wrappers: list[Any]) -> Iterator[Cache]:
    """Yield a row for each function whose cache has entries.

    wrappers: all objects of CACHE_TYPE.
    """
    sums: dict[str, _Sum] = {}
    for wrapper in wrappers:
        names = _native.memory_instance_dict(wrapper)
        _add(sums.setdefault(_name_of(names), _Sum()), wrapper, names)
    for name, found in sums.items():
        if found.entries:
            yield _row(name, found)


def clear_lru(wrappers: list[Any], name: str) -> None:
    """Empty the caches of that name."""
    for wrapper in wrappers:
        if _name_of(_native.memory_instance_dict(wrapper)) == name:
            CACHE_TYPE.cache_clear(wrapper)


def _wrapped(names: dict[Any, Any] | None) -> Any:  # noqa: ANN401  # None: the report leaves it out
    return next(
        (v for k, v in (names or {}).items() if type(k) is str and k == "__wrapped__"), None
    )


def _name_of(names: dict[Any, Any] | None) -> str:
    function = _wrapped(names)
    if type(function) is FunctionType:
        module = function.__module__
        prefix = f"{module}." if type(module) is str else ""
        return f"{PREFIX}{prefix}{str.__str__(function.__qualname__)}"
    if is_type(function):
        kind: Any = function
        return f"{PREFIX}{type_module(kind)}.{type_qualname(kind)}"
    return f"{PREFIX}of a {type_name(type(function))}" if function is not None else f"{PREFIX}?"


def _add(total: _Sum, wrapper: Any, names: dict[Any, Any] | None) -> None:  # noqa: ANN401
    stored, is_plain = _look_into(wrapper, names)
    if stored is None:
        return
    total.caches += 1
    total.entries += len(stored)
    total.size_bytes += _size(wrapper, stored, names)
    if is_plain:
        hits, misses, limit, _ = _info(wrapper)
        total.hits += hits
        total.misses += misses
        total.is_unlimited = limit is None


def _look_into(
    wrapper: Any,  # noqa: ANN401
    names: dict[Any, Any] | None,
) -> tuple[dict[Any, Any] | None, bool]:
    """Return the dict of entries, and whether cache_info() runs functools' own code only.

    The list of the wrapper's referents is released here: it would be one more reference.
    """
    referents = gc.get_referents(wrapper)
    # Results, which may be dicts, come before the cache's own dict.
    stored = next((r for r in reversed(referents) if type(r) is dict and r is not names), None)
    return stored, any(r is functools._CacheInfo for r in referents)  # noqa: SLF001


def _size(wrapper: Any, stored: dict[Any, Any], names: dict[Any, Any] | None) -> int:  # noqa: ANN401
    held = _native.memory_exclusively_held((wrapper, stored), (names, _wrapped(names)))[1]
    # In a cache with a limit each entry is also a link of a list, which refers to it again.
    link = next(iter(stored.values()), None)
    links = 0
    if type_name(type(link)) == "_lru_list_elem":
        links = len(stored) * _native.memory_object_bytes(link)
    return held + links - _native.memory_object_bytes(wrapper) - _NO_ENTRIES


def _row(name: str, found: _Sum) -> Cache:
    note = f"hits: {found.hits:,}, misses: {found.misses:,}"
    if found.is_unlimited:
        note += ", no limit"
    if found.caches > 1:
        note += f", {found.caches:,} of that name"
    unused = found.hits < _ENOUGH_HITS * found.entries
    return Cache(
        name=name,
        entries=found.entries,
        size_bytes=max(found.size_bytes, 0),
        clear=f"{name.removeprefix(PREFIX)}.cache_clear()",
        worth_it=found.size_bytes >= WORTH_BYTES and unused,
        note=note,
    )
