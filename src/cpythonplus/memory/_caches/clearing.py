"""Empty caches by the names of their rows."""

import gc
from collections.abc import Sequence

from cpythonplus.memory._caches import free_lists, lru
from cpythonplus.memory._caches.finding import find_rows, wrappers
from cpythonplus.memory._caches.model import Cache
from cpythonplus.memory._caches.standard_library import CLEAR_BY, clear_standard


def clear_rows(rows: Sequence[Cache], names: Sequence[str]) -> dict[str, int]:
    """Clear the named caches, or those worth it; return the bytes that each has given back."""
    # An empty cache has no row.
    clear = dict(CLEAR_BY) | {row.name: row.clear for row in rows}
    for name in names:
        if name not in clear:
            raise ValueError(f"unknown cache {name!r}; expected one of {', '.join(clear)}")
        if not clear[name]:
            raise ValueError(f"the cache {name!r} cannot be cleared")
    chosen = list(dict.fromkeys(names)) if names else [row.name for row in rows if row.worth_it]
    before = _sizes()
    for name in chosen:
        _clear(name)
    after = _sizes()
    return {name: max(before.get(name, 0) - after.get(name, 0), 0) for name in chosen}


def _sizes() -> dict[str, int]:
    return {row.name: row.size_bytes for row in find_rows()[0]}


def _clear(name: str) -> None:
    if name.startswith(free_lists.PREFIX):
        gc.collect()
    elif name.startswith(lru.PREFIX):
        lru.clear_lru(wrappers(), name)
    else:
        clear_standard(name)
