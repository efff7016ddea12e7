"""The report of a watch, with an entry for each root cause."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from cpythonplus._base.data import Data, Place
from cpythonplus._base.text.sizes import format_size
from cpythonplus._base.text.tables import objects


class Kind(StrEnum):
    """The kind of reference that closes a cycle."""

    EXCEPTION = "exception"
    """An exception, or its traceback, is reachable from a frame that it holds."""
    CLOSURE = "closure"
    """A function is reachable from one of its own closure's cells."""
    CLASS = "class"
    """A class that was made while the program ran: every class refers to itself."""
    OTHER = "other"
    """Any other objects that refer to each other."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A reference of a cycle.

    source: the referrer; name: its spelling, "" if unknown; closing: whether it has to go.
    """

    source: str
    name: str
    closing: bool = False


@dataclass(frozen=True, slots=True)
class Cause:
    """The place where a cycle is closed; equal causes are one line of the report.

    place: the statement that stores it, as far as known. variable: the access path as one would
    write it, beginning with a local or free variable: `last`, `self.error`, `errors[]`, `walk`; for
    a class its name. what: the object that is kept: `ValueError`, `function walk`, `Parent.child ->
    Child.parent`. advice: the way to break it. edges: the cycle, the last edge leads back to the
    first one's source; () if it is too long.
    """

    kind: Kind
    place: Place
    variable: str
    what: str
    advice: str
    edges: tuple[Edge, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Cycle:
    """The garbage of one cause, over all times that it was found.

    count: components (cycles that hang together) that it closed; objects: their members;
    size_bytes: of the members; kept_objects: other objects that were reachable from them only, and
    died with them; kept_bytes: of these.

    If one component has several causes, it counts for each, its objects for the first only.
    """

    cause: Cause
    count: int
    objects: int
    size_bytes: int
    kept_objects: int
    kept_bytes: int

    def __str__(self) -> str:
        """Return the line of the report."""
        return _cycle_line(self)


@dataclass(frozen=True, slots=True)
class Hoard(Data):
    """Exceptions that are still referenced, with frames on their tracebacks.

    exception: their type's name; place: the line that raised them. holder: the path to their
    referrer: `last in drive()`, `app.errors[]`, `Client.last_error`. count: their number; frames:
    on their tracebacks; objects: the objects that would be freed with the tracebacks, because
    nothing else refers to them; size_bytes: of these objects.
    """

    exception: str
    place: Place
    holder: str
    count: int
    frames: int
    objects: int
    size_bytes: int

    def __str__(self) -> str:
        """Return the line of the report."""
        return _hoard_line(self)


@dataclass(frozen=True, slots=True)
class Report(Data):
    """The findings of a watch.

    cycles: largest first, by bytes with the objects that they kept alive. hoards: largest first.
    seconds: the duration of the watch; collections: of the garbage collector, meanwhile.
    """

    cycles: tuple[Cycle, ...]
    hoards: tuple[Hoard, ...]
    seconds: float
    collections: int

    def text(self, *, top: int | None = None) -> str:
        """Return the report for people, one line per cause.

        top: at most so many of each part.
        """
        return _report_lines(self, top)


def _report_lines(report: Report, top: int | None) -> str:
    """Return the report, one line for each cause; top: at most so many of each part."""
    watched = f"{report.seconds:.1f} s, {report.collections:,} collections"
    if not report.cycles and not report.hoards:
        return f"no cyclic garbage and no exceptions held ({watched})\n"
    count = len(report.cycles)
    causes = "1 root cause" if count == 1 else f"{count:,} root causes"
    lines = [f"cyclic garbage: {causes} ({watched})"]
    lines += _part([_cycle_line(each) for each in report.cycles], top)
    if report.hoards:
        lines.append(f"exceptions still held: {len(report.hoards):,}")
        lines += _part([_hoard_line(each) for each in report.hoards], top)
    return "\n".join(lines) + "\n"


def _part(lines: Sequence[str], top: int | None) -> list[str]:
    shown = lines if top is None else lines[:top]
    left = len(lines) - len(shown)
    return [f"  {line}" for line in shown] + ([f"  and {left:,} more"] if left else [])


def _cycle_line(cycle: Cycle) -> str:
    """Return the place, the garbage that it left, and the advice."""
    cause = cycle.cause
    where = f"in {cause.place.function}(): " if cause.place.function else ""
    kept = f", kept {format_size(cycle.kept_bytes)} alive" if cycle.kept_bytes else ""
    times = "once" if cycle.count == 1 else f"{cycle.count:,} times"
    return (
        f"{cause.place}: {cause.kind}: {where}{cause.variable} keeps {cause.what}; {times},"
        f" {objects(cycle.objects)}, {format_size(cycle.size_bytes)}{kept}; {cause.advice}"
    )


def _hoard_line(hoard: Hoard) -> str:
    """Return the place of the raise, the holder, and the objects that they keep."""
    times = "" if hoard.count == 1 else f"{hoard.count:,} x "
    return (
        f"{hoard.place}: {times}{hoard.exception} from {hoard.place.function}() held by"
        f" {hoard.holder}: {hoard.frames:,} frames keep {objects(hoard.objects)},"
        f" {format_size(hoard.size_bytes)}"
    )
