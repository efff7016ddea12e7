"""The results of a census, and the difference of two."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from cpythonplus.memory._census.looking_back import ReferencePath, Referrers, path, referrers
from cpythonplus.memory._examined import Examined

_VIEWS: Final = ("by_type", "by_owner", "by_module", "by_size_class")


@dataclass(frozen=True, slots=True)
class CensusRow:
    """One line of a table: a number of objects of one kind, and their memory.

    name: the class as `module.Name`, a built-in one without its module; or the key of another
    table. type_id: a number of the class, which differs for classes of one name; 0 if there is no
    class.
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

        by: only the table by `type`, `owner`, `module` or `size_class`; ValueError for any other
        word.
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

    objects, size_bytes: all together. frozen_objects: objects that `gc.freeze()` hid from the
    collector. immortal_objects: objects that are never freed (from 3.12 on). pause_ns: the pause of
    the program. extra_bytes: memory that counting took meanwhile. by_type, by_owner, by_module,
    by_size_class: the tables, largest rows first. An owner is a class, too, but dicts in which
    instances, classes and modules have their attributes are 'dict of ...'. A module's row has the
    instances of its classes, and the functions, code and classes that are from it. Size classes are
    those of the blocks of memory that the objects consist of (a list is two): up to 512 bytes as
    pymalloc has them, then powers of two. left_out: parts that could not be measured on this
    interpreter, "" for none. same_name: names that 20 classes or more have; `objects` is the number
    of classes, and `size_bytes` is their own memory: most often one class that is made anew at each
    call. losses: sentences on parts that were counted differently, because a fact about CPython
    does not hold here.
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
        """Return the objects that were added since `before`, and those that are gone."""
        if type(before) is not Census:
            return NotImplemented
        return Difference(
            self.objects - before.objects,
            self.size_bytes - before.size_bytes,
            *(_subtract(getattr(self, name), getattr(before, name)) for name in _VIEWS),
        )

    def referrers(self, kind: str | type, top: int = 10) -> Referrers:
        """Return the referrers of a class's objects, the `top` most frequent ways.

        kind: the class, or its name as in `by_type`. If several classes have the name, it means the
        one with most objects; `app.Row#2` is the one with second most.

        They are counted now, in a walk of its own, not when the census was taken. Raises
        LookupError if there is no such class, and the exceptions of `memory.census()`.
        """
        return referrers(kind, top)

    def path(self, what: object, *, show_keys: bool = False) -> ReferencePath:
        """Return the shortest path to an object from a module, or from a variable of a function.

        what: the object; or a class, or its name as for `referrers`: then the path leads to some
        instance. show_keys: show texts and numbers that are keys of dicts as they are, up to 40
        characters. By default only their beginning is shown, because a report may be read by people
        who must not see them.

        Variables of the calling function do not count. The path is searched now, not when the
        census was taken; the program is paused meanwhile, for one walk over the heap for each step
        of the path. Raises LookupError if there is no such class or no instance, and the exceptions
        of `memory.census()`.
        """
        return path(what, show_keys=show_keys)


@dataclass(frozen=True, slots=True)
class Difference(_Counted):
    """The difference of two censuses: `after - before`.

    The numbers are signed. Equal rows are left out, the largest change is first.
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
