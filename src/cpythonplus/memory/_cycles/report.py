"""What a watch found: an entry for each root cause."""

from dataclasses import dataclass, field
from enum import StrEnum

from cpythonplus._base.data import Data, Place

__all__ = ["Cause", "Cycle", "Edge", "Hoard", "Kind", "Report"]


class Kind(StrEnum):
    """What closes a cycle."""

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

    source: what refers; name: how one writes it, "" if that is not known; closing: it has to go.
    """

    source: str
    name: str
    closing: bool = False


@dataclass(frozen=True, slots=True)
class Cause:
    """Where a cycle is closed; equal causes are one line of the report.

    place: the statement that stores it, as far as that can be told.
    variable: the access path as one would write it, beginning with a local or free variable:
    `last`, `self.error`, `errors[]`, `walk`; for a class its name.
    what: what is kept: `ValueError`, `function walk`, `Parent.child -> Child.parent`.
    advice: how to break it.
    edges: the cycle, the last edge leads back to the first one's source; () if it is too long.
    """

    kind: Kind
    place: Place
    variable: str
    what: str
    advice: str
    edges: tuple[Edge, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Cycle:
    """What one cause left to the collector, over all times that it was found.

    count: components (cycles that hang together) that it closed; objects: their members;
    size_bytes: of the members; kept_objects: what else was reachable from them only, and died with
    them; kept_bytes: of these.

    Where one component has several causes, it counts for each, its objects for the first only.
    """

    cause: Cause
    count: int
    objects: int
    size_bytes: int
    kept_objects: int
    kept_bytes: int

    def __str__(self) -> str:
        """Return the line of the report."""
        from cpythonplus.memory._report.cycles import cycle_line

        return cycle_line(self)


@dataclass(frozen=True, slots=True)
class Hoard(Data):
    """Exceptions that are still referenced, with frames on their tracebacks.

    exception: their type's name; place: where they were raised.
    holder: what refers to them, as a path: `last in drive()`, `app.errors[]`, `Client.last_error`.
    count: how many; frames: on their tracebacks; objects: what would go with the tracebacks,
    because nothing else refers to it; size_bytes: of these objects.
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
        from cpythonplus.memory._report.cycles import hoard_line

        return hoard_line(self)


@dataclass(frozen=True, slots=True)
class Report(Data):
    """What a watch found.

    cycles: largest first, by bytes with what they kept alive. hoards: largest first.
    seconds: how long was watched; collections: of the garbage collector, meanwhile.
    """

    cycles: tuple[Cycle, ...]
    hoards: tuple[Hoard, ...]
    seconds: float
    collections: int

    def text(self, *, top: int | None = None) -> str:
        """Return the report for people, one line per cause.

        top: at most so many of each part.
        """
        from cpythonplus.memory._report.cycles import report_lines

        return report_lines(self, top)
