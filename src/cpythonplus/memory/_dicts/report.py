"""The report: a row for each class, and for each oversized table."""

from dataclasses import dataclass

from cpythonplus.memory._examined import Examined


@dataclass(frozen=True, slots=True)
class LostSharing:
    """A class some of whose instances take more than they would with names shared and no dict.

    type: its qualified name. instances: all of them; inline: those whose attributes are values
    only; split: those with a dict whose names are the class's; combined: those with a dict with a
    key table of its own; the others have no attributes. size_bytes: of all instances, with values,
    dicts and key tables, without the objects that these refer to. cost_bytes: the bytes that the
    remedy would save.
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

    kind: `dict`, `set`, or the name of a class derived from them. holder: the path to its referrer,
    as far as known. capacity: the entries that fit into the table.
    """

    kind: str
    holder: str
    entries: int
    capacity: int
    size_bytes: int
    could_be_bytes: int
    remedy: str


@dataclass(frozen=True, slots=True)
class Gain:
    """Objects that would take less memory in another form, and the line to change.

    what: a class; or `dict` with the keys, of dicts that have the same ones. count: their number.
    holder: the path to the referrer of one of them. made_at: `file:line` of the program that made
    most of those that were looked at, if tracemalloc traces, else "". size_bytes: of all, without
    the objects that they refer to; shared_bytes, record_bytes, compact_bytes: as dicts that share
    their keys, as `memory.Record`, as `memory.CompactDict`, None if that does not apply. change:
    the one that keeps the type if it can be kept, else the one that saves most; saves_bytes: the
    bytes that it saves.
    """

    what: str
    count: int
    holder: str
    made_at: str
    size_bytes: int
    shared_bytes: int | None
    record_bytes: int | None
    compact_bytes: int | None
    change: str
    saves_bytes: int


@dataclass(frozen=True, slots=True)
class KeySharing(Examined):
    """The findings in a process, the largest cost first.

    oversized_count, oversized_bytes: the number of tables that are worth it, and the bytes that
    they would save all together; `oversized` has the largest of them. gains: objects that would
    take less as dicts that share keys, Records or CompactDicts. left_out: one sentence for each
    part that could not be looked at.
    """

    examination = "key_sharing"

    lost: tuple[LostSharing, ...]
    oversized: tuple[Oversized, ...]
    oversized_count: int
    oversized_bytes: int
    gains: tuple[Gain, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def cost_bytes(self) -> int:
        """The bytes that all remedies together would save."""
        return sum(row.cost_bytes for row in self.lost) + self.oversized_bytes
