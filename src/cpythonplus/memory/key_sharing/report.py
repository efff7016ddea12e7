"""What was found: a row for each class, and for each oversized table; text and JSON forms."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from cpythonplus.base.columns import columns
from cpythonplus.base.sizes import format_size

__all__ = ["Dicts", "LostSharing", "Oversized"]


@dataclass(frozen=True, slots=True)
class LostSharing:
    """A class some of whose instances take more than they would with names shared and no dict.

    type: its qualified name.  instances: all of them; inline: those whose attributes are values
    only; split: those with a dict whose names are the class's; combined: those with a dict with a
    key table of its own; the others have no attributes.
    size_bytes: of all instances, with values, dicts and key tables, but for what these refer to.
    cost_bytes: how much less it would be if the remedy were taken.
    """

    type: str
    instances: int
    inline: int
    split: int
    combined: int
    size_bytes: int
    cost_bytes: int
    cause: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Oversized:
    """A dict or a set whose table is at least twice as large as its entries need.

    kind: `dict`, `set`, or the name of a class derived from them.  holder: who refers to it, as
    far as that can be told.  capacity: the entries that fit into the table.
    """

    kind: str
    holder: str
    entries: int
    capacity: int
    size_bytes: int
    could_be_bytes: int
    remedy: str


@dataclass(frozen=True, slots=True)
class Dicts:
    """All that was found in a process, what costs most first.

    oversized_count, oversized_bytes: how many tables were found that are worth it, and what they
    would save all together; `oversized` has the largest of them.
    left_out: why something could not be looked at, a sentence each.
    """

    lost: tuple[LostSharing, ...]
    oversized: tuple[Oversized, ...]
    oversized_count: int
    oversized_bytes: int
    left_out: tuple[str, ...] = ()

    @property
    def cost_bytes(self) -> int:
        """What all remedies together would save."""
        return sum(row.cost_bytes for row in self.lost) + self.oversized_bytes

    def text(self, top: int = 20) -> str:
        """Return tables of the `top` classes and tables that cost most, with the remedies."""
        return "\n\n".join([*self._lost(top), *self._oversized(top), *self.left_out])

    def __str__(self) -> str:
        """Return the tables."""
        return self.text()

    def _lost(self, top: int) -> list[str]:
        if not self.lost:
            return ["No class has instances that need dicts of their own and cost much."]
        rows = [("class", "instances", "inline", "split dict", "own dict", "size", "could save")]
        rows += [
            (
                row.type,
                f"{row.instances:,}",
                f"{row.inline:,}",
                f"{row.split:,}",
                f"{row.combined:,}",
                format_size(row.size_bytes),
                format_size(row.cost_bytes),
            )
            for row in self.lost[:top]
        ]
        table = columns(rows, right=range(1, 7))
        causes = [f"{row.type}: {row.cause}.\n  {row.remedy}." for row in self.lost[:top]]
        return ["Classes whose instances have lost shared names or inline values:", table, *causes]

    def _oversized(self, top: int) -> list[str]:
        if not self.oversized:
            return ["No dict or set is much larger than what it holds."]
        rows = [("held by", "kind", "entries", "room for", "size", "could be", "remedy")]
        rows += [
            (
                row.holder,
                row.kind,
                f"{row.entries:,}",
                f"{row.capacity:,}",
                format_size(row.size_bytes),
                format_size(row.could_be_bytes),
                row.remedy,
            )
            for row in self.oversized[:top]
        ]
        saved = format_size(self.oversized_bytes)
        count = f"{self.oversized_count:,} of them" if self.oversized_count > 1 else "one"
        heading = f"Dicts and sets with tables far larger than needed ({count}, {saved} too much):"
        return [heading, columns(rows, right=range(2, 6))]

    def to_json(self) -> dict[str, object]:
        """Return the same as dicts, lists, strings and numbers."""
        return {
            "lost": [asdict(row) for row in self.lost],
            "oversized": [asdict(row) for row in self.oversized],
            "oversized_count": self.oversized_count,
            "oversized_bytes": self.oversized_bytes,
            "left_out": list(self.left_out),
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "Dicts":
        """Return what `to_json` was made of."""
        return cls(
            lost=tuple(LostSharing(**row) for row in found["lost"]),
            oversized=tuple(Oversized(**row) for row in found["oversized"]),
            oversized_count=found["oversized_count"],
            oversized_bytes=found["oversized_bytes"],
            left_out=tuple(found["left_out"]),
        )
