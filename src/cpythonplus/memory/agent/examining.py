"""What can be examined in a process, by name; everything is plain JSON.

Each part is its own short piece of work: between two of them the program has the GIL.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from importlib import import_module

from cpythonplus.base.errors import UnsupportedPlatform
from cpythonplus.memory.agent.finding import children_of, command_of, resident_bytes

__all__ = ["PARTS", "examine", "hello", "part", "problem"]

Json = dict[str, object]
_REFERRERS = 20
"""The most frequent ways of being referred to that are told."""


def hello() -> Json:
    """Return what process this is."""
    return {
        "pid": os.getpid(),
        "command": command_of(os.getpid()),
        "python": sys.version,
        "version": 1,
        "when": time.strftime("%Y-%m-%d %H:%M:%S%z"),
        "rss_bytes": resident_bytes(os.getpid()),
    }


def _of_memory(name: str) -> Callable[[], Json]:
    def call() -> Json:
        result: Json = getattr(import_module("cpythonplus.memory"), name)().to_json()
        return result

    return call


def _exceptions() -> Json:
    from cpythonplus.memory.cycles.hoards import find_hoards

    return {"hoards": [asdict(hoard) for hoard in find_hoards()]}


def _gil() -> Json:
    from cpythonplus import gil

    return gil.statistics().as_dict()


def _threads() -> Json:
    """Return the Python threads, each with the line that it executes."""
    threading = sys.modules.get("threading")
    known: dict[int, object] = {} if threading is None else {**threading._active}  # noqa: SLF001
    own = import_module("_thread").get_ident()
    rows: list[Json] = []
    for ident, frame in sys._current_frames().items():  # noqa: SLF001
        if ident == own and ident not in known:
            continue  # the agent's
        code = frame.f_code
        rows.append(
            {
                "ident": ident,
                "native_id": _attribute(known.get(ident), "_native_id"),
                "name": _attribute(known.get(ident), "_name") or "unknown to threading",
                "function": code.co_qualname,
                "file": code.co_filename,
                "line": frame.f_lineno,
            }
        )
    return {"threads": rows}


def _attribute(thread: object, name: str) -> object:
    """Return what an object itself has under `name`; a property of its class is not asked."""
    classes = type.__dict__["__mro__"].__get__(type(thread))
    if any(name in type.__dict__["__dict__"].__get__(each) for each in classes):
        return None
    try:
        value = object.__getattribute__(thread, name)
    except AttributeError:
        return None
    return value if type(value) in (str, int) else None


def _workers() -> Json:
    return {"workers": [each.to_json() for each in children_of(os.getpid())]}


PARTS: dict[str, Callable[[], Json]] = {
    "hello": hello,
    "census": _of_memory("census"),
    "resident": _of_memory("resident"),
    "caches": _of_memory("caches"),
    "dicts": _of_memory("dicts"),
    "exceptions": _exceptions,
    "gil": _gil,
    "threads": _threads,
    "workers": _workers,
    "trim": _of_memory("trim"),
}
"""The parts that need no argument."""


def part(name: str, argument: str = "") -> Json:
    """Return one part; `argument`: the type that `referrers` and `path` are about.

    `path_keys` is `path` with the keys of dicts as they are.

    Whatever the part raises is the caller's to handle: see `problem`.
    """
    if name in PARTS:
        return PARTS[name]()
    # Not by a census: each of the two walks over the heap by itself.
    from cpythonplus.memory.heap_census import looking_back

    if name == "referrers":
        result: object = looking_back.referrers(argument, _REFERRERS)
    else:
        result = looking_back.path(argument, show_keys=name == "path_keys")
    return {"type": argument, name: str(result).splitlines()}


def problem(error: BaseException) -> str:
    """Return one line on why a part is missing."""
    text = " ".join(str(error).split())
    if type(error) in (LookupError, ValueError, UnsupportedPlatform) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def examine(names: Iterable[str]) -> Json:
    """Examine this process; returns the parts by name, beside `target`.

    Of a part that could not be made there is `error`: one line on why not.
    """
    parts: Json = {"target": hello()}
    for name in names:
        try:
            parts[name] = part(name)
        except Exception as error:  # noqa: BLE001  # one part that fails must not cost the others
            parts[name] = {"error": problem(error)}
    return parts
