"""What a watch found: one line for each root cause, and its text and JSON forms."""

from dataclasses import asdict, dataclass
from enum import StrEnum

from cpythonplus.base.sizes import format_size

__all__ = ["Cause", "Cycle", "Hoard", "Kind", "Report"]


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
class Cause:
    """Where a cycle is closed; equal causes are one line of the report.

    file: as in the code object, "" if unknown; function: qualified name, "" if unknown.
    variable: the access path as one would write it, beginning with a local or free variable:
    `last`, `self.error`, `errors[]`, `walk`; for a class its name.
    line: of the statement that stores it, as far as that can be told; 0 if unknown.
    what: what is kept: `ValueError`, `function walk`, `Parent.child -> Child.parent`.
    advice: how to break it.
    """

    kind: Kind
    file: str
    function: str
    variable: str
    line: int
    what: str
    advice: str

    @property
    def place(self) -> str:
        """Return `file:line`, as much of it as is known."""
        if not self.file:
            return "?"
        return f"{self.file}:{self.line}" if self.line else self.file

    def sentence(self) -> str:
        """Return what is wrong, in one line without the counts and the advice."""
        where = f"in {self.function}(): " if self.function else ""
        return f"{self.place}: {self.kind}: {where}{self.variable} keeps {self.what}"


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

    def line(self) -> str:
        """Return the line of the report."""
        kept = f", {format_size(self.kept_bytes)} hung from them" if self.kept_bytes else ""
        times = "once" if self.count == 1 else f"{self.count:,} times"
        return (
            f"{self.cause.sentence()}; {times}, {_objects(self.objects)},"
            f" {format_size(self.size_bytes)}{kept}; {self.cause.advice}"
        )


@dataclass(frozen=True, slots=True)
class Hoard:
    """Exceptions that are still referenced, with frames on their tracebacks.

    exception: their type's name; file: where they were raised, with line and function.
    holder: what refers to them, as a path: `last in drive()`, `app.errors[]`, `Client.last_error`.
    count: how many; frames: on their tracebacks; objects: what would go with the tracebacks,
    because nothing else refers to it; size_bytes: of these objects.
    """

    exception: str
    file: str
    line: int
    function: str
    holder: str
    count: int
    frames: int
    objects: int
    size_bytes: int

    def text(self) -> str:
        """Return the line of the report."""
        times = "" if self.count == 1 else f"{self.count:,} x "
        return (
            f"{self.file}:{self.line}: {times}{self.exception} from {self.function}() held by"
            f" {self.holder}: {self.frames:,} frames keep {_objects(self.objects)},"
            f" {format_size(self.size_bytes)}"
        )


@dataclass(frozen=True, slots=True)
class Report:
    """What a watch found.

    cycles: largest first, by bytes with what hung from them. hoards: largest first.
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
        watched = f"{self.seconds:.1f} s, {self.collections:,} collections"
        if not self.cycles and not self.hoards:
            return f"no cyclic garbage and no exceptions held ({watched})\n"
        lines = [f"cyclic garbage: {_causes(len(self.cycles))} ({watched})"]
        lines += _part([cycle.line() for cycle in self.cycles], top)
        if self.hoards:
            lines.append(f"exceptions still held: {len(self.hoards):,}")
            lines += _part([hoard.text() for hoard in self.hoards], top)
        return "\n".join(lines) + "\n"

    def to_json(self) -> dict[str, object]:
        """Return the report as what `json.dumps` takes; sizes in bytes, times in seconds."""
        return {
            "version": 1,
            "seconds": self.seconds,
            "collections": self.collections,
            "cycles": [asdict(cycle) for cycle in self.cycles],
            "hoards": [asdict(hoard) for hoard in self.hoards],
        }


def _part(lines: list[str], top: int | None) -> list[str]:
    shown = lines if top is None else lines[:top]
    left = len(lines) - len(shown)
    return [f"  {line}" for line in shown] + ([f"  and {left:,} more"] if left else [])


def _causes(number: int) -> str:
    return "1 root cause" if number == 1 else f"{number:,} root causes"


def _objects(number: int) -> str:
    return "1 object" if number == 1 else f"{number:,} objects"
