"""Making a program's modules use sockets, look-ups and times that block only the tasklet.

Each area is a module of this package that lists its replacements; _base.replacing makes them.
"""

import importlib
from collections.abc import Iterable
from types import ModuleType

from cpythonplus._base.replacing import Replacer
from cpythonplus.tasklets.io import _libraries as libraries
from cpythonplus.threads import _patching as threads_patching

# Each argument of patch() has a module that lists the replacements.
_AREAS = {
    "socket": "socket",
    "dns": "names",
    "ssl": "ssl",
    "select": "selectors",
    "time": "_timing",
    "subprocess": "_processes",
}

# Shared, as other patchers may find this one's objects; after a fork it is free in the child.
_lock = threads_patching._lock  # noqa: SLF001
_replacer = Replacer(_lock)
_areas: set[str] = set()


def patch(
    *,
    socket: bool = True,
    dns: bool = True,
    ssl: bool = True,
    select: bool = True,
    time: bool = True,
    subprocess: bool = True,
) -> None:
    """Make the standard modules, and names imported from them, block only the tasklet.

    socket: the class `socket.socket`, and so all that is made of it.  dns: `socket.getaddrinfo`,
    `gethostbyname` and the like.  ssl: `ssl.SSLSocket` and its contexts; only with `socket`.
    select: `select.select`, `poll`, `epoll` and `selectors`, and psycopg waits by `poll`, not in C:
    `PSYCOPG_WAIT_FUNC` is set in the environment.  time: `time.sleep`.  subprocess:
    `os.waitpid` and the like, so that `subprocess` waits for processes, and the pipes to them.

    Each global of a loaded module that is the standard object is replaced, also in modules that are
    imported later. Objects that exist already stay what they are. It may be called again, by any
    thread: areas are added.
    """
    wanted = {
        "socket": socket,
        "dns": dns,
        "ssl": ssl and socket,
        "select": select,
        "time": time,
        "subprocess": subprocess,
    }
    chosen = [area for area, flag in wanted.items() if flag]
    together: dict[str, dict[str, object]] = {}
    for area in chosen:
        for home, names in _module_of(area).REPLACEMENTS.items():
            together.setdefault(home, {}).update(names)
    _replacer.start(together)
    with _lock:
        if not _replacer.active:
            return  # another thread's unpatch() came in between
        _areas.update(chosen)
        _switch(chosen, on=True)
        if select:
            libraries.wait_in_python(on=True)


def unpatch() -> None:
    """Restore the standard objects that patch() replaced, unless other code has replaced them.

    Sockets that were made meanwhile go on working. Does nothing when not patched.
    """
    with _lock:
        _replacer.stop()
        _replacer.replacements.clear()
        _switch(_areas, on=False)
        libraries.wait_in_python(on=False)
        _areas.clear()


def patched() -> frozenset[str]:
    """Return the areas that are patched, by the names of patch()'s arguments; empty: none."""
    return frozenset(_areas)


def _switch(areas: Iterable[str], *, on: bool) -> None:
    """Change attributes of standard classes for the areas, or restore them."""
    for area in areas:
        switch = getattr(_module_of(area), "switch", None)
        if switch is not None:
            switch(on=on)


def _module_of(area: str) -> ModuleType:
    return importlib.import_module(f"cpythonplus.tasklets.io.{_AREAS[area]}")
