"""The standard library's own caches: dicts of modules that have been imported."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from types import ModuleType
from typing import Any, Final

from cpythonplus import _native
from cpythonplus.memory._caches.model import WORTH_BYTES, Cache

_names_of_module = vars(ModuleType)["__dict__"].__get__
_EMPTY_BYTES: Final = _native.memory_object_bytes({})


@dataclass(frozen=True, slots=True)
class _Known:
    """A cache that is one or more dicts of a module."""

    name: str
    module: str
    attributes: tuple[str, ...]
    clear: str
    note: str = ""


_KNOWN: Final = (
    _Known("re", "re", ("_cache", "_cache2"), "re.purge()", "patterns are compiled again"),
    _Known(
        "linecache",
        "linecache",
        ("cache",),  # not the sources of `-c` and the prompt: no file has them
        "linecache.clearcache()",
        "source lines that tracebacks have shown",
    ),
    _Known(
        "import paths",
        "sys",
        ("path_importer_cache",),
        "sys.path_importer_cache.clear()",
        "names of files in sys.path, read again by the next import",
    ),
    _Known(
        "zip directories",
        "zipimport",
        ("_zip_directory_cache",),
        "zipimport._zip_directory_cache.clear()",
    ),
    _Known("encodings", "encodings", ("_cache",), "encodings._cache.clear()"),
    _Known("strptime", "_strptime", ("_regex_cache",), "_strptime._regex_cache.clear()"),
    _Known("filecmp", "filecmp", ("_cache",), "filecmp.clear_cache()"),
    _Known("ctypes", "ctypes", ("_c_functype_cache",), "", "classes that ctypes has made"),
)
_WARNINGS: Final = "warnings shown"
_CLEAR_WARNINGS: Final = "each module's __warningregistry__.clear()"
CLEAR_BY: Final = {known.name: known.clear for known in _KNOWN} | {_WARNINGS: _CLEAR_WARNINGS}
"""How each of them is cleared, whether it has entries or not."""


def standard_rows() -> Iterator[Cache]:
    """Yield a row for each cache that has entries."""
    for known in _KNOWN:
        found = _dicts_of(known)
        if any(found):
            yield _row(known.name, found, known.clear, known.note)
    registries = _registries()
    if any(registries):
        note = "those shown once are shown again"
        yield _row(_WARNINGS, registries, _CLEAR_WARNINGS, note)


def clear_standard(name: str) -> None:
    """Empty one of these caches."""
    if name == _WARNINGS:
        for registry in _registries():
            registry.clear()
    for known in _KNOWN:
        if known.name == name and known.module in sys.modules:
            module, _, path = known.clear.removesuffix("()").partition(".")
            attrgetter(path)(sys.modules[module])()


def abc_row(impls: list[Any]) -> Cache | None:
    """Return the row of the caches of abstract base classes.

    impls: the objects that have these caches, all of type(ABC._abc_impl).
    """
    if not impls:
        return None
    own = sum(map(_native.memory_object_bytes, impls))
    size = _native.memory_exclusively_held(tuple(impls), ())[1] - own
    return Cache(
        name="abstract base classes",
        entries=len(impls),
        size_bytes=max(size, 0),
        clear="",
        worth_it=False,
        note="answers of isinstance(); abc._reset_caches() costs memory",
    )


def _namespace(module: str) -> dict[str, Any]:
    found = sys.modules.get(module)
    # An object of another class in sys.modules could run its own code here.
    return _names_of_module(found) if type(found) is ModuleType else {}


def _dicts_of(known: _Known) -> list[dict[Any, Any]]:
    names = _namespace(known.module)
    found = [names[attribute] for attribute in known.attributes if attribute in names]
    return [each for each in found if type(each) is dict]


def _registries() -> list[dict[Any, Any]]:
    names = [name for name in list(sys.modules) if type(name) is str]
    found = [_namespace(name).get("__warningregistry__") for name in names]
    found.append(_namespace("warnings").get("onceregistry"))
    unique = {id(each): each for each in found if type(each) is dict}
    return list(unique.values())


def _row(name: str, found: list[dict[Any, Any]], clear: str, note: str) -> Cache:
    size = _native.memory_exclusively_held(tuple(found), ())[1] - len(found) * _EMPTY_BYTES
    return Cache(
        name=name,
        entries=sum(map(len, found)),
        size_bytes=max(size, 0),
        clear=clear,
        worth_it=bool(clear) and size >= WORTH_BYTES,
        note=note,
    )
