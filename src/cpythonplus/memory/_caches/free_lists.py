"""The interpreter's free lists: freed objects that are kept for reuse."""

import re
import sys
from collections.abc import Iterator
from typing import Final

from cpythonplus import _native
from cpythonplus.memory._caches.model import WORTH_BYTES, Cache

PREFIX: Final = "free list: "
CLEAR: Final = "gc.collect()"
_LINE: Final = re.compile(
    r"^ *(\d+) free (?:\d+-sized )?Py(\w+?)(?:Object)?s? \* (\d+) bytes each", re.MULTILINE
)
_NAMES: Final = {
    "Dict": "dicts",
    "DictKeys": "key tables of dicts",
    "Float": "floats",
    "List": "lists",
    "Tuple": "tuples",
}
_HEADER_BYTES: Final = 16 if sys.version_info < (3, 15) else 0
"""The collector's header, which the figures leave out before 3.15."""
_WITH_HEADER: Final = frozenset({"Dict", "List", "Tuple"})
_KEYS_BYTES: Final = _native.memory_object_bytes({"a": 1}) - _native.memory_object_bytes({})
"""The size of the key tables that are kept; the output has the size of their header only."""


def free_list_rows(text: str) -> Iterator[Cache]:
    """Yield a row for each kind of object.

    text: the output of sys._debugmallocstats().
    """
    found: dict[str, tuple[int, int]] = {}
    for count, kind, size in _LINE.findall(text):
        each = _KEYS_BYTES if kind == "DictKeys" else int(size)
        each += _HEADER_BYTES if kind in _WITH_HEADER else 0
        objects, size_bytes = found.get(kind, (0, 0))
        found[kind] = objects + int(count), size_bytes + int(count) * each
    for kind, (objects, size_bytes) in found.items():
        if objects:
            yield Cache(
                name=PREFIX + _NAMES.get(kind, kind),
                entries=objects,
                size_bytes=size_bytes,
                clear=CLEAR,
                worth_it=size_bytes >= WORTH_BYTES,
                note="",
            )
