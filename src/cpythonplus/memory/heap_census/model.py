"""What a census says, and the difference of two."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from cpythonplus.base.sizes import format_size
from cpythonplus.memory.heap_census.looking_back import Path, Referrers, path, referrers
from cpythonplus.memory.heap_census.tables import signed_size, table

__all__ = ["Census", "Difference", "Row", "largest_first"]

_NUMBERS = (
    "objects",
    "size_bytes",
    "frozen_objects",
    "immortal_objects",
    "pause_ns",
    "extra_bytes",
)
_COLUMNS = {
    "by_type": "type",
    "by_owner": "owner",
    "by_module": "module",
    "by_size_class": "blocks of up to",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table: how many objects of a kind, and what they take.

    name: the class as `module.Name`, a built-in one without its module; or what the table is by.
    type_id: tells classes of one name apart within a process; 0 where there is no class.
    """

    name: str
    objects: int
    size_bytes: int
    type_id: int = 0

    def to_json(self) -> dict[str, object]:
        """Return it in types that JSON has."""
        return {"name": self.name, "objects": self.objects, "size_bytes": self.size_bytes}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Return what `to_json` was called on."""
        return cls(str(data["name"]), int(data["objects"]), int(data["size_bytes"]))


def largest_first(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Return the rows in the order of a table."""
    return tuple(sorted(rows, key=lambda row: (-abs(row.size_bytes), -abs(row.objects), row.name)))


@dataclass(frozen=True, slots=True)
class Census:
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
    """

    objects: int
    size_bytes: int
    frozen_objects: int
    immortal_objects: int
    pause_ns: int
    extra_bytes: int
    by_type: tuple[Row, ...]
    by_owner: tuple[Row, ...]
    by_module: tuple[Row, ...]
    by_size_class: tuple[Row, ...]
    left_out: str = ""

    def __sub__(self, before: "Census") -> "Difference":
        """Return what has been added since `before`, and what is gone."""
        if type(before) is not Census:
            return NotImplemented
        return Difference(
            self.objects - before.objects,
            self.size_bytes - before.size_bytes,
            *(_subtract(getattr(self, name), getattr(before, name)) for name in _COLUMNS),
        )

    def referrers(self, kind: str | type, top: int = 10) -> Referrers:
        """Return what refers to the objects of a class, the `top` most frequent ways.

        kind: the class, or its name as in `by_type`.

        They are counted now, in a walk of its own, not when the census was taken. Raises
        LookupError if there is no such class, and what `memory.census()` raises.
        """
        self._must_be_here()
        return referrers(kind, top)

    def path(self, what: object, *, show_keys: bool = False) -> Path:
        """Return the shortest path to an object from a module, or from a variable of a function.

        what: the object; or a class, or its name as in `by_type`: then some instance is meant.
        show_keys: texts and numbers that are keys of dicts as they are, up to 40 characters. They
        may be what is not for everybody who sees a report, so that only their beginning is told.

        Variables of the function that calls this do not count. It is searched now, not when the
        census was taken; the program stands still meanwhile, for one walk over the heap for each
        step of the path. Raises LookupError if there is no such class or no instance, and what
        `memory.census()` raises.
        """
        self._must_be_here()
        return path(what, show_keys=show_keys)

    def _must_be_here(self) -> None:
        if not any(row.type_id for row in self.by_type):
            raise ValueError("this census is of another process, and only that one could answer")

    def text(self, top: int = 10, by: str = "owner") -> str:
        """Return a table of the `top` largest rows.

        by: `type`, `owner`, `module` or `size_class`; ValueError for anything else.
        """
        group = _group(by)
        counts = {"frozen": self.frozen_objects, "immortal": self.immortal_objects}
        parts = [f"{count:,} {word}" for word, count in counts.items() if count]
        special = f" ({', '.join(parts)})" if parts else ""
        counted = f"counted in {self.pause_ns / 1e6:,.1f} ms"
        lines = [
            f"{self.objects:,} objects{special}, {format_size(self.size_bytes)}; {counted}",
            *table(("objects", "memory", "share", _COLUMNS[group]), self._cells(group, top)),
        ]
        if self.left_out:
            lines.append(f"not in these numbers: {self.left_out}")
        return "\n".join(lines)

    def _cells(self, group: str, top: int) -> list[tuple[str, ...]]:
        rows: Sequence[Row] = getattr(self, group)
        shown = [(row.objects, row.size_bytes, row.name) for row in rows[:top]]
        rest = rows[top:]
        if rest:
            objects = sum(row.objects for row in rest)
            shown.append(
                (objects, sum(row.size_bytes for row in rest), f"({len(rest):,} more rows)")
            )
        return [
            (f"{objects:,}", format_size(size), f"{100 * size / self.size_bytes:.1f} %", name)
            for objects, size, name in shown
        ]

    def __str__(self) -> str:
        return self.text()

    def to_json(self) -> dict[str, object]:
        """Return it in types that JSON has."""
        numbers: dict[str, object] = {name: getattr(self, name) for name in _NUMBERS}
        return numbers | {"left_out": self.left_out} | _rows_to_json(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Return what `to_json` was called on; its rows know classes by name only."""
        numbers: dict[str, Any] = {name: int(data[name]) for name in _NUMBERS}
        return cls(**numbers, **_rows_from_json(data), left_out=str(data["left_out"]))


@dataclass(frozen=True, slots=True)
class Difference:
    """What one census has more than another, and less: `after - before`.

    The numbers are signed. Rows that are equal in both are left out, the largest change is first.
    """

    objects: int
    size_bytes: int
    by_type: tuple[Row, ...]
    by_owner: tuple[Row, ...]
    by_module: tuple[Row, ...]
    by_size_class: tuple[Row, ...]

    def text(self, top: int = 10, by: str = "owner") -> str:
        """Return a table of the `top` largest changes.

        by: `type`, `owner`, `module` or `size_class`; ValueError for anything else.
        """
        group = _group(by)
        rows: Sequence[Row] = getattr(self, group)
        cells = [(f"{row.objects:+,}", signed_size(row.size_bytes), row.name) for row in rows[:top]]
        total = f"{self.objects:+,} objects, {signed_size(self.size_bytes)}"
        return "\n".join([total, *table(("objects", "memory", _COLUMNS[group]), cells)])

    def __str__(self) -> str:
        return self.text()

    def to_json(self) -> dict[str, object]:
        """Return it in types that JSON has."""
        numbers: dict[str, object] = {"objects": self.objects, "size_bytes": self.size_bytes}
        return numbers | _rows_to_json(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Return what `to_json` was called on; its rows know classes by name only."""
        numbers: dict[str, Any] = {n: int(data[n]) for n in ("objects", "size_bytes")}
        return cls(**numbers, **_rows_from_json(data))


def _rows_to_json(tables: Census | Difference) -> dict[str, object]:
    return {name: [row.to_json() for row in getattr(tables, name)] for name in _COLUMNS}


def _rows_from_json(data: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(map(Row.from_json, data[name])) for name in _COLUMNS}


def _group(by: str) -> str:
    name = f"by_{by}"
    if name not in _COLUMNS:
        choices = ", ".join(group.removeprefix("by_") for group in _COLUMNS)
        raise ValueError(f"by must be one of {choices}, not {by!r}")
    return name


def _subtract(after: Sequence[Row], before: Sequence[Row]) -> tuple[Row, ...]:
    """Match rows by class where both know it, else by name."""
    known = any(row.type_id for row in after) and any(row.type_id for row in before)
    grown: dict[tuple[str, int], list[int]] = {}
    for rows, sign in ((after, 1), (before, -1)):
        for row in rows:
            sums = grown.setdefault((row.name, row.type_id if known else 0), [0, 0])
            sums[0] += sign * row.objects
            sums[1] += sign * row.size_bytes
    return largest_first(
        Row(name, objects, size_bytes, type_id)
        for (name, type_id), (objects, size_bytes) in grown.items()
        if objects or size_bytes
    )
