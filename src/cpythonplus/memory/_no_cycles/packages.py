"""Tells whether a cycle is closed in one of the packages that a session checks."""

import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from os.path import realpath
from pathlib import Path
from types import ModuleType

from cpythonplus.memory._no_cycles import allowing


class Packages:
    """The packages or modules whose cycles count; without names: all.

    A file is compared with their places, so they may be installed, into an environment below the
    project's folder for instance, or lie beside the tests.
    """

    def __init__(self, names: Sequence[str]) -> None:
        """names: as in an import; ValueError if one cannot be found.

        If none were found, every test would pass.
        """
        self._names = tuple(names)
        self._places = [place for name in names for place in _places(name)]
        self._known: dict[str, bool] = {}

    def have(self, file: str) -> bool:
        """Return whether a source file is one of theirs.

        If it is no file (`<string>`, or a path that no longer exists), it may be theirs: it counts.
        """
        if not self._names:
            return True
        if file not in self._known:
            self._known[file] = not Path(file).is_file() or self._lies_in(file)
        return self._known[file]

    def _lies_in(self, file: str) -> bool:
        path = realpath(file)
        if any(path == place or path.startswith(f"{place}/") for place in self._places):
            return True
        return any(
            module == name or module.startswith(f"{name}.")
            for module in allowing.module_names(file)
            for name in self._names
        )


def _places(name: str) -> Iterator[str]:
    """Yield the folders of a package, or the file of a module."""
    found = False
    for place in (*_of_module(sys.modules.get(name)), *_of_spec(name)):
        found = True
        yield realpath(place)
    if not found:
        raise ValueError(
            f"no_cycles_packages has {name!r}, which is no package or module that can be imported"
        )


def _of_module(module: object) -> Iterator[str]:
    if isinstance(module, ModuleType):
        places = list(getattr(module, "__path__", ()))
        file = getattr(module, "__file__", None)
        yield from places or ([file] if isinstance(file, str) else [])


def _of_spec(name: str) -> Iterator[str]:
    try:
        spec = find_spec(name)
    except Exception:  # noqa: BLE001  # no parent, whose code may raise anything; or no spec
        return
    if spec is not None:
        places = list(spec.submodule_search_locations or ())
        yield from places or ([spec.origin] if spec.has_location and spec.origin else [])
