"""The answers that `cpythonplus top` asks for twice a second, made inside of the process.

They are made to be cheap: one copy of the scheduler's counters, one line for each thread, no walk
over the heap. Functions are sent once each, and rates are computed by the asking process, which
also reads processor times from /proc.
"""

import gc
import os
import sys
import time
from _thread import get_ident
from types import CodeType

from cpythonplus import _native
from cpythonplus._base.modules import imported
from cpythonplus._base.stacks import frames_of_threads, known_threads, outwards
from cpythonplus._doctor.agent.examining import thread_name

Json = dict[str, object]
_DEEPEST = 200
_MINUTE_S = 60.0
_MOST_STALLS = 20
_MODULES = {"asyncio": "asyncio", "tasklets": "cpythonplus.tasklets"}
"""Modules whose tasks a view can show."""


def top() -> Json:
    """Return the threads of this process, with the scheduler's counters if the GIL is scheduled.

    threads: [ident, native id or 0, name, number in `functions`, line]. functions: [name, file].
    gil: [serial, ident, native id, level, whether it holds the GIL, or did before this answer, ns
    for which it awaits it, serial of the owner of the lock that it waits for, ns waited, ns held,
    waits, [ns, waits of at most so many ns, ...]]. stalls: those of the last minute, by their line.
    """
    own = get_ident()
    known = known_threads()
    numbers: dict[CodeType, int] = {}
    rows: list[tuple[object, ...]] = []
    for ident, frame in frames_of_threads().items():
        if ident == own and ident not in known:
            continue  # the agent's thread
        number = numbers.setdefault(frame.f_code, len(numbers))
        rows.append((ident, *thread_name(known.get(ident)), number, frame.f_lineno))
    return {
        "pid": os.getpid(),
        "now_ns": time.monotonic_ns(),
        "threads": rows,
        "functions": [(code.co_qualname, code.co_filename) for code in numbers],
        "gil": [row for row in _native.gil_threads() if row[1] != own]
        if _native.gil_active()
        else None,
        "collections": [each["collections"] for each in gc.get_stats()],
        "stalls": _stalls(),
        "modules": [name for name, module in _MODULES.items() if module in sys.modules],
    }


def _stalls() -> list[Json]:
    """Return the places with the longest stalls in sum; none if stalls are not recorded."""
    recording = imported("cpythonplus.gil._stalls")
    rows = recording.lately(_MINUTE_S)[:_MOST_STALLS] if recording else []
    return [
        {
            "what": longest.what,
            "thread": longest.thread,
            "count": count,
            "total_ns": total_ns,
            "longest_ns": longest.hold_ns,
            "waiters": longest.waiters,
            "file": longest.at.file,
            "line": longest.at.line,
            "function": longest.at.function,
        }
        for longest, count, total_ns in rows
    ]


def stack(ident: str) -> Json:
    """Return the stack of a thread, innermost first; LookupError if there is no such thread."""
    frame = frames_of_threads().get(int(ident))
    if frame is None:
        raise LookupError(f"there is no thread {ident}")
    rows: list[Json] = []
    for each in outwards(frame)[:_DEEPEST]:
        code = each.f_code
        rows.append({"function": code.co_qualname, "file": code.co_filename, "line": each.f_lineno})
    return {"stack": rows}


def tasklets() -> Json:
    """Return the tasklets of all threads by function and state, with the line of their first one.

    It takes about a microsecond for each tasklet.
    """
    from cpythonplus.tasklets._dump import reporting

    rows: list[Json] = []
    for thread in reporting.taken(reporting.OTHERS):
        for each in thread.tasklets:
            where = each.stack[-1] if each.stack else each.defined_at
            rows.append(
                {
                    "count": 1 + each.more,
                    "function": each.function or "main",
                    "state": each.state,
                    "file": where.file if where else "",
                    "line": where.line if where else 0,
                    "thread": thread.name or str(thread.ident),
                }
            )
    return {"tasklets": rows}
