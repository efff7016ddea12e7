"""The examinations of a process, by name; all results are plain JSON.

Each part is its own short piece of work: the program has the GIL between two parts.
"""

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from types import CodeType, CoroutineType

from cpythonplus._base.data import plain
from cpythonplus._base.errors import UnsupportedPlatform
from cpythonplus._base.proc import resident_bytes
from cpythonplus._base.stacks import frames_of_threads, known_threads
from cpythonplus._doctor.agent.finding import children_of, command_of, started_s
from cpythonplus._doctor.questions import EXAMINATIONS, asked, taken
from cpythonplus._interp import losses

Json = dict[str, object]
_FRAMES = 50
_REFERRERS = 20
"""The most rows of ways in which objects are referred to."""


def hello() -> Json:
    """Return the facts about this process."""
    return {
        "pid": os.getpid(),
        "command": command_of(os.getpid()),
        "python": sys.version,
        "version": 1,
        "when": time.strftime("%Y-%m-%d %H:%M:%S%z"),
        "started_s": round(started_s(os.getpid()), 1),
        "rss_bytes": resident_bytes(os.getpid()),
        "losses": [each.as_json() for each in losses("doctor")],
        "examinations": [
            {"name": name, "title": each.title, "at": list(each.at)}
            for name, each in EXAMINATIONS.items()
            if each.is_in_use
        ],
    }


def exceptions() -> Json:
    """Return the exceptions that are still held."""
    from cpythonplus.memory._cycles.hoards import find_hoards

    return {"hoards": [hoard.as_json() for hoard in find_hoards()]}


def threads() -> Json:
    """Return the Python threads, each with the line that it executes."""
    known = known_threads()
    own = import_module("_thread").get_ident()
    rows: list[Json] = []
    for ident, frame in frames_of_threads().items():
        if ident == own and ident not in known:
            continue  # the agent's thread
        code = frame.f_code
        native_id, name = thread_name(known.get(ident))
        rows.append(
            {
                "ident": ident,
                "native_id": native_id,
                "name": name,
                "function": code.co_qualname,
                "file": code.co_filename,
                "line": frame.f_lineno,
            }
        )
    return {"threads": rows}


def thread_name(thread: object) -> tuple[object, object]:
    """Return the kernel's id (None: not known) and the name of an object of `threading`'s."""
    return _attribute(thread, "_native_id"), _attribute(thread, "_name") or "unknown to threading"


def _attribute(thread: object, name: str) -> object:
    """Return an attribute of the object itself; a property of its class is not called."""
    classes = type.__dict__["__mro__"].__get__(type(thread))
    if any(name in type.__dict__["__dict__"].__get__(each) for each in classes):
        return None
    try:
        value = object.__getattribute__(thread, name)
    except AttributeError:
        return None
    return value if type(value) in (str, int) else None


def deadlock() -> Json:
    """Return which threads and tasklets wait, and the deadlocks."""
    from cpythonplus.threads import waits

    found: Json = waits().as_json()
    if "cpythonplus.tasklets" in sys.modules:
        from cpythonplus.tasklets.locks import _deadlocks as deadlocks

        found["among_tasklets"] = deadlocks.waits().as_json()
        found["tasklets"] = [*_waiting_tasklets()]
    return found


def _waiting_tasklets() -> Iterator[Json]:
    from cpythonplus.tasklets._dump import reporting
    from cpythonplus.tasklets.locks._deadlocks import name_of
    from cpythonplus.threads._waits import is_own_file

    for thread in reporting.taken(reporting.OTHERS):
        for each in thread.tasklets:
            if each.waited_ns is None or not each.stack:
                continue
            made_at = None if each.channel is None else each.channel.made_at
            yield {
                "thread": thread.name or f"thread {thread.native_id}",
                "function": name_of(each.address) or each.function or "main",
                "state": each.state,
                "waited_ns": each.waited_ns,
                "at": plain(
                    next(
                        (at for at in reversed(each.stack) if is_own_file(at.file)), each.stack[-1]
                    )
                ),
                "made_at": plain(made_at),
                "more": each.more,
            }


def stalls() -> Json:
    """Return the holds of the GIL that were too long, if they are recorded."""
    from cpythonplus import gil

    return {"stalls": [each.as_json() for each in gil.stalls()]}


def tasks() -> Json:
    """Return the tasks of asyncio that have not ended, by function, with their usual line."""
    from cpythonplus import _native

    kind = getattr(sys.modules.get("_asyncio"), "Task", None)
    of_code: dict[CodeType, list[CoroutineType[object, object, object]]] = {}
    for task in _native.memory_gc_objects_of((kind,)) if isinstance(kind, type) else ():
        # These attributes are written in C. A task whose __init__ did not run has no state.
        with suppress(RuntimeError):
            if task._state == "PENDING" and type(task._coro) is CoroutineType:  # noqa: SLF001
                of_code.setdefault(task._coro.cr_code, []).append(task._coro)  # noqa: SLF001
    rows: list[Json] = []
    for code, coroutines in sorted(of_code.items(), key=lambda row: -len(row[1])):
        # Read cr_frame of a few coroutines only, because that creates a frame object.
        frames = [each.cr_frame for each in coroutines[:_FRAMES]]
        lines = [frame.f_lineno for frame in frames if frame is not None]
        rows.append(
            {
                "count": len(coroutines),
                "function": code.co_qualname,
                "file": code.co_filename,
                "line": max(set(lines), key=lines.count) if lines else code.co_firstlineno,
            }
        )
    return {"tasks": rows}


def workers() -> Json:
    """Return the children of this process."""
    return {"workers": [each.as_json() for each in children_of(os.getpid())]}


_watches: list[object] = []
"""The watch that a doctor has begun, if any."""


def watch_cycles() -> Json:
    """Begin to watch the collector; it is not made to run for this."""
    from cpythonplus.memory import cycles

    if _watches:
        raise ValueError("another doctor watches the cycles of this process")
    watch = cycles.watch(hoards=False, collect=False)
    watch.start()
    _watches.append(watch)
    return {}


def watched_cycles() -> object:
    """Return the report since `watch_cycles()`; LookupError if that was not called."""
    if not _watches:
        raise LookupError("nobody watches the cycles of this process")
    return _watches.pop().stop()  # type: ignore[attr-defined]


def referrers(kind: str) -> Json:
    """Return the referrers of a type's objects; like `path`, by a walk over the heap."""
    from cpythonplus.memory._census import looking_back

    return looking_back.referrers(kind, _REFERRERS).as_json()


def path(kind: str, *, show_keys: bool = False) -> Json:
    """Return the way in which most objects of a type are reached from a root."""
    from cpythonplus.memory._census import looking_back

    return looking_back.most_frequent_path(kind, show_keys=show_keys).as_json()


def path_keys(kind: str) -> Json:
    """Return the result of `path`, with the keys of dicts unshortened."""
    return path(kind, show_keys=True)


def problem(error: BaseException) -> str:
    """Return the reason why a part is missing, in one line."""
    text = " ".join(str(error).split())
    if type(error) in (LookupError, ValueError, UnsupportedPlatform) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def examine(names: Iterable[str] | None = None) -> Json:
    """Examine this process; returns the parts by name, with `target`.

    names: the parts; None: those at the end of `doctor run`.

    If a part could not be made, it has `error`: the reason, in one line.
    """
    parts: Json = {"target": hello()}
    for name in asked("run") if names is None else names:
        try:
            parts[name] = taken(name)
        except Exception as error:  # noqa: BLE001  # one part that fails must not cost the others
            parts[name] = {"error": problem(error)}
    return parts
