"""The sections of a report: each part of an examination as tables."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from cpythonplus.base.sizes import format_size
from cpythonplus.memory.page.contents import (
    Cell,
    Column,
    Kind,
    Section,
    Table,
    duration,
    objects,
    part_label,
)
from cpythonplus.memory.page.figures import figures
from cpythonplus.memory.page.reading import (
    Examination,
    Part,
    amount,
    entries,
    inside,
    known,
    part,
    refusal,
    size,
    texts,
    words,
)

__all__ = ["CENSUS_VIEWS", "causes", "place", "sections", "signed", "target_line"]

CENSUS_VIEWS: Final = {
    "by_owner": "by owner",
    "by_type": "by type",
    "by_module": "by module",
    "by_size_class": "by size",
}
_CENSUS_NAMES: Final = {"by_size_class": "in blocks of up to"}
_TITLES: Final = {
    "resident": "Resident memory",
    "census": "Objects on the heap",
    "cycles": "Cyclic garbage",
    "exceptions": "Exceptions still held",
    "caches": "Caches",
    "dicts": "Dicts",
    "gil": "The GIL",
    "threads": "Threads",
    "workers": "Workers",
    "trim": "Given back",
    "samples": "While it was watched",
}
_MOST_PINS: Final = 12
_NOTHING: Final = "nothing found"
_NOT_ACTIVE: Final = "not scheduled: the program was not started by `cpythonplus run`"


def sections(examination: Examination, top: int) -> list[Section]:
    """Return the sections of what was examined; top: rows of each table."""
    return [
        _section(examination, key, title, top)
        for key, title in _TITLES.items()
        if key in examination
    ]


def _section(examination: Examination, key: str, title: str, top: int) -> Section:
    if key == "samples":
        return Section(key, title, *_samples(entries(examination, key), top))
    found = part(examination, key)
    if found is None:
        return Section(key, title, (f"not examined: {refusal(examination, key) or 'no answer'}",))
    if key in _BUILDERS:
        return Section(key, title, *_BUILDERS[key](found, top))
    if found.get("active") is False:
        return Section(key, title, (_NOT_ACTIVE,))
    tables = figures(found, top)
    return Section(key, title, () if tables else (_NOTHING,), tables)


def target_line(examination: Examination) -> str:
    """Return what was looked at, and when."""
    target = part(examination, "target") or {}
    facts = [f"pid {size(target, 'pid')}"] if known(target, "pid") else []
    facts += [words(target, name) for name in ("command", "command_line")]
    # Of `sys.version` the number; the rest is how it was built.
    version = words(target, "python").split(" ")[0]
    facts += [f"Python {version}" if version else "", words(target, "when")]
    return ", ".join(fact for fact in facts if fact)


_Parts = tuple[tuple[str, ...], tuple[Table, ...]]


def _table(
    title: str,
    columns: str,
    rows: Sequence[Part],
    fill: Callable[[Part], tuple[Cell, ...]],
    top: int,
) -> list[Table]:
    """Return a table of the first rows, none if there is no row.

    columns: headings, each behind a colon its kind if that is not a name: "objects:count|type".
    """
    if not rows:
        return []
    made = []
    for column in columns.split("|"):
        heading, _, kind = column.partition(":")
        made.append(Column(heading, Kind(kind or "name")))
    shown = tuple(fill(row) for row in rows[:top])
    return [Table(title, tuple(made), shown, max(len(rows) - top, 0))]


def _by(rows: Iterable[Part], name: str) -> list[Part]:
    return sorted(rows, key=lambda row: -amount(row, name))


# ---- resident and census ------------------------------------------------------------------------


def _resident(found: Part, top: int) -> _Parts:
    whole = size(found, "rss_bytes")
    rows = _by(entries(found, "parts"), "resident_bytes")
    tables = _table(
        "What it consists of",
        "resident:size|share:share|what|:note",
        rows,
        lambda row: (
            size(row, "resident_bytes"),
            size(row, "resident_bytes") / whole if whole else 0.0,
            part_label(words(row, "name")),
            words(row, "note"),
        ),
        max(top, 20),
    )
    tables += _table(
        "What pins memory that is free otherwise",
        "held back:size|blocks:count|type|where|one of them is held by",
        _by(entries(found, "pins"), "held_bytes"),
        lambda row: (
            size(row, "held_bytes"),
            size(row, "objects"),
            words(row, "type"),
            words(row, "place").replace("_", " "),
            words(row, "holder"),
        ),
        min(top, _MOST_PINS),
    )
    line = f"{format_size(whole)} resident" if whole else "its size is not known"
    unseen = words(inside(found, "arenas"), "unknown")
    notes = [f"the arenas could not be seen: {unseen}"] if unseen else []
    return (line + _pause(found), *notes, *texts(found, "notes")), tuple(tables)


def _census(found: Part, top: int) -> _Parts:
    whole = size(found, "size_bytes")
    line = f"{objects(size(found, 'objects'))} of {format_size(whole)}"
    for name in ("frozen", "immortal"):
        if size(found, f"{name}_objects"):
            line += f", {size(found, f'{name}_objects'):,} of them {name}"
    tables: list[Table] = []
    for name, title in CENSUS_VIEWS.items():
        rows = entries(found, name)
        if name != "by_size_class":
            rows = _by(rows, "size_bytes")
        tables += _table(
            title[0].upper() + title[1:],
            f"size:size|share:share|objects:count|{_CENSUS_NAMES.get(name, title[3:])}",
            rows,
            lambda row: (
                size(row, "size_bytes"),
                size(row, "size_bytes") / whole if whole else 0.0,
                size(row, "objects"),
                words(row, "name"),
            ),
            top,
        )
    left_out = words(found, "left_out")
    notes = [f"not in these numbers: {left_out}"] if left_out else []
    return (line + _pause(found), *notes), tuple(tables)


def _pause(found: Part) -> str:
    pause = amount(found, "pause_ns")
    return f"; the program stood still for {duration(pause)}" if pause else ""


# ---- cycles and exceptions ----------------------------------------------------------------------


def causes(found: Part | None) -> list[Part]:
    """Return the causes of cycles, the largest first, with what hung from them."""
    rows = entries(found, "cycles")
    return sorted(rows, key=lambda row: -amount(row, "size_bytes") - amount(row, "kept_bytes"))


def _cycles(found: Part, top: int) -> _Parts:
    rows = causes(found)
    lines = (
        f"watched for {amount(found, 'seconds'):.1f} s, {size(found, 'collections'):,} collections",
        *(() if rows else ("no cyclic garbage",)),
    )
    tables = _table(
        "Lines that leave cycles behind",
        "size:size|times:count|objects:count|where|variable|keeps|:prose",
        rows,
        lambda row: (
            size(row, "size_bytes") + size(row, "kept_bytes"),
            size(row, "count"),
            size(row, "objects") + size(row, "kept_objects"),
            place(inside(row, "cause")),
            words(inside(row, "cause"), "variable"),
            words(inside(row, "cause"), "what"),
            words(inside(row, "cause"), "advice"),
        ),
        top,
    )
    return lines, tuple(tables + _hoards(found, top))


def place(row: Part) -> str:
    """Return `file:line`, as much of it as is known."""
    file = words(row, "file") or "?"
    return f"{file}:{size(row, 'line')}" if size(row, "line") else file


def _hoards(found: Part, top: int) -> list[Table]:
    return _table(
        "Exceptions that are kept with the frames on their tracebacks",
        "size:size|times:count|objects:count|exception|raised at|held by",
        _by(entries(found, "hoards"), "size_bytes"),
        lambda row: (
            size(row, "size_bytes"),
            size(row, "count"),
            size(row, "objects"),
            words(row, "exception"),
            place(row),
            words(row, "holder"),
        ),
        top,
    )


def _exceptions(found: Part, top: int) -> _Parts:
    tables = _hoards(found, top)
    return () if tables else (_NOTHING,), tuple(tables)


# ---- caches and dicts ---------------------------------------------------------------------------


def _caches(found: Part, top: int) -> _Parts:
    tables = _table(
        "What can be cleared",
        "size:size|entries:count|cache|worth it|how:code|:note",
        _by(entries(found, "rows"), "size_bytes"),
        lambda row: (
            size(row, "size_bytes"),
            size(row, "entries"),
            words(row, "name"),
            "yes" if row.get("worth_it") is True else "no",
            words(row, "clear"),
            words(row, "note"),
        ),
        top,
    )
    tables += _table(
        "What stays",
        "size:size|number:count|what|:note",
        _by(entries(found, "fixed"), "size_bytes"),
        lambda row: (
            size(row, "size_bytes"),
            size(row, "entries" if known(row, "entries") else "objects"),
            words(row, "name"),
            words(row, "note"),
        ),
        top,
    )
    return _lines(found, tables), tuple(tables)


def _lines(found: Part, tables: list[Table]) -> tuple[str, ...]:
    """Return what is missing in the tables."""
    return (*(() if tables else (_NOTHING,)), *texts(found, "left_out"))


def _dicts(found: Part, top: int) -> _Parts:
    tables = _table(
        "Classes whose instances no longer share their keys",
        "too much:size|size:size|instances:count|class|:prose|:prose",
        _by(entries(found, "lost"), "cost_bytes"),
        lambda row: (
            size(row, "cost_bytes"),
            size(row, "size_bytes"),
            size(row, "instances"),
            words(row, "type"),
            words(row, "cause"),
            words(row, "remedy"),
        ),
        top,
    )
    tables += _table(
        "Larger than what is in them",
        "size:size|could be:size|entries:count|room for:count|of|:note",
        _by(entries(found, "oversized"), "size_bytes"),
        lambda row: (
            size(row, "size_bytes"),
            size(row, "could_be_bytes"),
            size(row, "entries"),
            size(row, "capacity"),
            words(row, "holder") or words(row, "owner"),
            words(row, "remedy"),
        ),
        top,
    )
    return _lines(found, tables), tuple(tables)


# ---- watched ------------------------------------------------------------------------------------


def _samples(samples: Sequence[Part], top: int) -> _Parts:
    if not samples:
        return ("not a single sample",), ()
    first, last = samples[0], samples[-1]
    seconds = amount(last, "t_s") - amount(first, "t_s")
    grown = size(last, "rss_bytes") - size(first, "rss_bytes")
    line = f"{len(samples):,} samples in {seconds:.0f} s: {format_size(size(first, 'rss_bytes'))}"
    line += f" at first, {format_size(size(last, 'rss_bytes'))} at the end ({signed(grown)})"
    tables = _table(
        "What grew",
        "growth:size|more objects:count|what",
        _by(entries(last, "growth"), "size_bytes"),
        lambda row: (size(row, "size_bytes"), size(row, "objects"), words(row, "name")),
        top,
    )
    return (line,), tuple(tables)


def signed(size_bytes: int) -> str:
    """Return a difference with its sign."""
    return ("+" if size_bytes >= 0 else "") + format_size(size_bytes)


_BUILDERS: Final[dict[str, Callable[[Part, int], _Parts]]] = {
    "resident": _resident,
    "census": _census,
    "cycles": _cycles,
    "exceptions": _exceptions,
    "caches": _caches,
    "dicts": _dicts,
}
