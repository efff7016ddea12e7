"""The words for who waits for whom: of this process, or of the JSON that another one has sent."""

from __future__ import annotations

from typing import Final

from cpythonplus._base.reading import Part, entries, inside, known, size, words
from cpythonplus._base.text.sizes import duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADINGS: Final = {
    "cycle": "Deadlock: {count} {of}s, each waits for the next, the last for the first",
    "itself": "Deadlock: a {of} waits for a lock that it holds itself",
    "ended": "Deadlock: a {of} waits for an RLock whose owner has ended without releasing it",
    "all": "Deadlock: {count} {of}s wait, and no {of} is left that could end it",
    "processes": "Deadlock: this process waits for others, which wait for this process",
}
_THREADS: Final = {"tasklets": "other threads: none of its tasklets can run"}


def deadlock_lines(found: Part, *, of: str = "thread") -> list[str]:
    """Return the deadlocks, both lines of each wait in them; empty if there is none.

    found: `Waits.as_json()`.  of: what waits.
    """
    return [line for each in entries(found, "deadlocks") for line in _lines(each, found, of)]


def _lines(deadlock: Part, found: Part, of: str) -> Iterator[str]:
    waits = {size(each, "ident"): each for each in entries(found, "waits")}
    members, behind = (
        [waits[ident] for ident in _idents(deadlock, name) if ident in waits]
        for name in ("threads", "behind")
    )
    heading = _HEADINGS.get(words(deadlock, "kind"), "Deadlock: {count} {of}s")
    yield f"{heading.format(count=len(members), of=of)}:"
    for each in members:
        yield from _of_one(each, found)
    if behind:
        yield f"{of}s that wait for one of these:"
        for each in behind:
            yield from _of_one(each, found)


def wait_lines(found: Part, top: int) -> list[str]:
    """Return the longest waits that are in no deadlock."""
    dead = {
        ident
        for each in entries(found, "deadlocks")
        for name in ("threads", "behind")
        for ident in _idents(each, name)
    }
    rows = [each for each in entries(found, "waits") if size(each, "ident") not in dead]
    rows.sort(key=lambda row: -size(row, "waited_ns"))
    lines = [line for row in rows[:top] for line in _of_one(row, found)]
    return lines if len(rows) <= top else [*lines, f"and {len(rows) - top} more"]


def _idents(part: Part, name: str) -> list[int]:
    value = part.get(name)
    return [each for each in value if isinstance(each, int)] if isinstance(value, list) else []


def _of_one(wait: Part, found: Part) -> Iterator[str]:
    """Yield one wait: the thread and its line; what it waits for; the owner and its line."""
    since = f", for {duration(size(wait, 'waited_ns'))}" if known(wait, "waited_ns") else ""
    timed = ", with a time-out" if wait.get("timed") is True else ""
    yield f"  {words(wait, 'name')} waits at {_at(wait, 'at')}{since}{timed}"
    inside_of = f", in {words(wait, 'inside')}" if words(wait, "inside") else ""
    owners = _idents(wait, "owners")
    names = inside(found, "names")
    told = ", ".join(words(names, str(owner)) for owner in owners)
    yield f"    for {_what(wait, told)}{inside_of}"
    if words(wait, "because"):
        yield f"    while {words(wait, 'because')}"
    held = f" at {_at(wait, 'held_at')}" if inside(wait, "held_at") else ""
    if words(wait, "method") == "join" and owners:
        yield from [f"    which is{held}"] if held and len(owners) == 1 else []
    elif owners == [size(wait, "ident")]:
        yield f"    held by itself{held}"
    elif wait.get("owner_ended") is True:
        yield "    held by a thread that has ended"
    elif owners:
        least = duration(size(wait, "held_ns"))
        during = f", for at least {least}" if known(wait, "held_ns") else ""
        yield f"    held by {told}{held}{during}"


def _what(wait: Part, told: str) -> str:
    kind, method = words(wait, "kind"), words(wait, "method")
    if kind in _THREADS:
        return _THREADS[kind]
    if method == "join" and kind == "thread":
        return f"the end of {told}"
    if kind.startswith("process"):
        return f"the end of {'a child process' if kind == 'process' else kind}"
    if kind in ("pipe", "socket"):
        return f"{'data from' if method == 'read' else 'room in'} a {kind}"
    if kind == "semaphore":
        return "a semaphore of multiprocessing"
    doing = "" if method == "acquire" else f"{method}() of "
    made = f" made at {_at(wait, 'made_at')}" if inside(wait, "made_at") else ""
    return f"{doing}the {kind}{made}"


def _at(wait: Part, name: str) -> str:
    place = inside(wait, name)
    function = words(place, "function")
    return f"{words(place, 'file')}:{size(place, 'line')}" + (f" in {function}" if function else "")
