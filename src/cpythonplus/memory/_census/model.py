"""The results of a census, and the difference of two."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from cpythonplus.memory._census.looking_back import ReferencePath, Referrers, path, referrers
from cpythonplus.memory._examined import Examined

__all__ = ["Census", "CensusRow", "Difference", "largest_first"]

_VIEWS: Final = ("by_type", "by_owner", "by_module", "by_size_class")


@dataclass(frozen=True, slots=True)
class CensusRow:
    """One line of a table: how many objects of a kind, and what they take.

    name: the class as `module.Name`, a built-in one without its module; or what the table is by.
    type_id: tells classes of one name apart within a process; 0 where there is no class.
    """

    name: str
    objects: int
    size_bytes: int
    type_id: int = field(default=0, repr=False)


def largest_first(rows: Iterable[CensusRow]) -> tuple[CensusRow, ...]:
    """Return the rows in the order of a table."""
    return tuple(sorted(rows, key=lambda row: (-abs(row.size_bytes), -abs(row.objects), row.name)))


class _Counted(Examined):
    """A result with a table for each way of counting."""

    __slots__ = ()

    def text(self, top: int = 10, by: str = "") -> str:
        """Return the verdict and tables of the `top` largest rows.

        by: of the tables only that by `type`, `owner`, `module` or `size_class`; ValueError for
        anything else.
        """
        if by and f"by_{by}" not in _VIEWS:
            choices = ", ".join(view.removeprefix("by_") for view in _VIEWS)
            raise ValueError(f"by must be one of {choices}, not {by!r}")
        found = self.as_json()
        for view in _VIEWS if by else ():
            found[view] = found[view] if view == f"by_{by}" else []
        return self._worded(found, top)


@dataclass(frozen=True, slots=True)
class Census(_Counted):
    """All objects of the interpreter at one moment; `memory.census()` makes it.

    objects, size_bytes: all together. frozen_objects: those that `gc.freeze()` took out of the
    collector's sight. immortal_objects: those that are never freed (from 3.12 on). pause_ns: how
    long the program stood still. extra_bytes: what counting took meanwhile.
    by_type, by_owner, by_module, by_size_class: the tables, largest rows first. An owner is a
    class, too, but dicts in which instances, classes and modules have their attributes are
    'dict of ...'. A module's row has the instances of its classes, and the functions, code and
    classes that are from it. Size classes are those of the blocks of memory that the objects
    consist of (a list is two): up to 512 bytes as pymalloc has them, then powers of two.
    left_out: what could not be measured on this interpreter, "" for nothing.
    same_name: names that 20 classes or more have, `objects` being how many, and `size_bytes` what
    these classes take themselves: most often one that is made anew at each call.
    losses: sentences on what was counted otherwise, since a fact about CPython does not hold here.
    """

    examination = "census"

    objects: int
    size_bytes: int
    frozen_objects: int
    immortal_objects: int
    pause_ns: int
    extra_bytes: int
    by_type: tuple[CensusRow, ...]
    by_owner: tuple[CensusRow, ...]
    by_module: tuple[CensusRow, ...]
    by_size_class: tuple[CensusRow, ...]
    left_out: str = ""
    same_name: tuple[CensusRow, ...] = ()
    losses: tuple[str, ...] = ()

    def __sub__(self, before: "Census") -> "Difference":
        """Return what has been added since `before`, and what is gone."""
        if type(before) is not Census:
            return NotImplemented
        return Difference(
            self.objects - before.objects,
            self.size_bytes - before.size_bytes,
            *(_subtract(getattr(self, name), getattr(before, name)) for name in _VIEWS),
        )

    def referrers(self, kind: str | type, top: int = 10) -> Referrers:
        """Return what refers to the objects of a class, the `top` most frequent ways.

        kind: the class, or its name as in `by_type`. Of several classes of one name it is that with
        most objects; `app.Row#2` is the one with second most.

        They are counted now, in a walk of its own, not when the census was taken. Raises
        LookupError if there is no such class, and what `memory.census()` raises.
        """
        return referrers(kind, top)

    def path(self, what: object, *, show_keys: bool = False) -> ReferencePath:
        """Return the shortest path to an object from a module, or from a variable of a function.

        what: the object; or a class, or its name as for `referrers`: then some instance is meant.
        show_keys: texts and numbers that are keys of dicts as they are, up to 40 characters. They
        may be what is not for everybody who sees a report, so that only their beginning is told.

        Variables of the function that calls this do not count. It is searched now, not when the
        census was taken; the program stands still meanwhile, for one walk over the heap for each
        step of the path. Raises LookupError if there is no such class or no instance, and what
        `memory.census()` raises.
        """
        return path(what, show_keys=show_keys)


@dataclass(frozen=True, slots=True)
class Difference(_Counted):
    """What one census has more than another, and less: `after - before`.

    The numbers are signed. Rows that are equal in both are left out, the largest change is first.
    """

    examination = "difference"

    objects: int
    size_bytes: int
    by_type: tuple[CensusRow, ...]
    by_owner: tuple[CensusRow, ...]
    by_module: tuple[CensusRow, ...]
    by_size_class: tuple[CensusRow, ...]


def _subtract(after: Sequence[CensusRow], before: Sequence[CensusRow]) -> tuple[CensusRow, ...]:
    """Match rows by class if both sides know it, else by name."""
    known = any(row.type_id for row in after) and any(row.type_id for row in before)
    grown: dict[tuple[str, int], list[int]] = {}
    for rows, sign in ((after, 1), (before, -1)):
        for row in rows:
            sums = grown.setdefault((row.name, row.type_id if known else 0), [0, 0])
            sums[0] += sign * row.objects
            sums[1] += sign * row.size_bytes
    return largest_first(
        CensusRow(name, objects, size_bytes, type_id)
        for (name, type_id), (objects, size_bytes) in grown.items()
        if objects or size_bytes
    )
