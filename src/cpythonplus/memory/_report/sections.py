"""The sections of a report: each part of an examination as tables."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from cpythonplus.base.sizes import format_size
from cpythonplus.memory._report.figures import figures
from cpythonplus.memory._report.labels import label, note
from cpythonplus.memory._report.reading import (
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
from cpythonplus.memory._report.registry import EXAMINATIONS
from cpythonplus.memory._report.tables import (
    Cell,
    Column,
    Kind,
    Section,
    Table,
    duration,
    objects,
    signed,
)

__all__ = ["CENSUS_VIEWS", "causes", "fullness", "place", "section", "sections", "target_line"]

CENSUS_VIEWS: Final = {
    "by_owner": "by owner",
    "by_type": "by type",
    "by_module": "by module",
    "by_size_class": "by size",
}
_CENSUS_NAMES: Final = {"by_size_class": "in blocks of up to"}
_MOST_PINS: Final = 12
_MOST_STEPS: Final = 100
_NOT_COUNTED: Final = (
    "not counted: free lists that the interpreter does not tell of (frames, contexts, asynchronous"
    " generators and the like); together they hold less than 100 KiB"
)
_NOTHING: Final = "nothing found"
_NOT_ACTIVE: Final = "not scheduled: the program was not started by `cpythonplus run`"


def sections(examination: Examination, top: int) -> list[Section]:
    """Return the sections of what was examined; top: rows of each table."""
    return [section(examination, key, top) for key in EXAMINATIONS if key in examination]


def section(examination: Examination, key: str, top: int) -> Section:
    """Return one section."""
    title = EXAMINATIONS[key].title
    if key == "samples":
        return Section(key, title, *_samples(entries(examination, key), top))
    found = part(examination, key)
    if found is None:
        return Section(key, title, (f"not examined: {refusal(examination, key) or 'no answer'}",))
    if key in _LAYOUTS:
        return Section(key, title, *_LAYOUTS[key](found, top))
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
            label(words(row, "name")).title,
            note(row),
        ),
        max(top, 20),
    )
    tables += _table(
        "What pins memory that is free otherwise",
        "held back:size|blocks:count|of:size|type|where|one of them is held by",
        _by(entries(found, "pins"), "held_bytes"),
        lambda row: (
            size(row, "held_bytes"),
            size(row, "objects"),
            size(row, "size_bytes"),
            words(row, "type"),
            words(row, "place").replace("_", " "),
            words(row, "holder"),
        ),
        min(top, _MOST_PINS),
    )
    line = f"{format_size(whole)} resident" if whole else "its size is not known"
    tables += _table(
        "How full the arenas are",
        "arenas:count|in use",
        [{"count": count, "from": 10 * n} for n, count in enumerate(fullness(found)) if count],
        lambda row: (size(row, "count"), f"{size(row, 'from')} to {size(row, 'from') + 10} %"),
        top,
    )
    unseen = words(inside(found, "arenas"), "unknown")
    notes = [f"the arenas could not be seen: {unseen}"] if unseen else []
    return (line + _pause(found), *notes, *texts(found, "notes")), tuple(tables)


def fullness(found: Part) -> list[int]:
    """Return how many arenas are up to a tenth, two tenths, ... full."""
    counts = inside(found, "arenas").get("fullness")
    if not isinstance(counts, list | tuple):
        return []
    return [max(size({"count": count}, "count"), 0) for count in counts[:_MOST_STEPS]]


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


def _difference(found: Part, top: int) -> _Parts:
    tables: list[Table] = []
    for name, title in CENSUS_VIEWS.items():
        tables += _table(
            title[0].upper() + title[1:],
            f"change:change|objects:more|{_CENSUS_NAMES.get(name, title[3:])}",
            entries(found, name),
            lambda row: (size(row, "size_bytes"), size(row, "objects"), words(row, "name")),
            top,
        )
    line = f"{size(found, 'objects'):+,} objects, {signed(size(found, 'size_bytes'))}"
    return (line,), tuple(tables)


def _referrers(found: Part, top: int) -> _Parts:
    tables = _table(
        "",
        f"references:count|to objects of {words(found, 'type')} from",
        entries(found, "rows"),
        lambda row: (size(row, "references"), words(row, "name")),
        top,
    )
    more = size(found, "more")
    return () if tables else (_NOTHING,), tuple(
        replace(t, left_out=t.left_out + more) for t in tables
    )


def _path(found: Part, top: int) -> _Parts:  # noqa: ARG001  # it is told to its end
    return (" -> ".join(texts(found, "steps")) or _NOTHING,), ()


def _trim(found: Part, top: int) -> _Parts:
    tables = _table(
        "",
        "freed:size|time:time|step|:prose",
        entries(found, "steps"),
        lambda row: (
            size(row, "freed_bytes"),
            amount(row, "took_ns"),
            words(row, "name"),
            words(row, "note") + _left(size(row, "left_bytes")),
        ),
        top,
    )
    before, after = (format_size(size(found, name)) for name in ("before_bytes", "after_bytes"))
    return (f"{before} resident before, {after} after",), tuple(tables)


def _left(size_bytes: int) -> str:
    return f"; {format_size(size_bytes)} stays free between blocks in use" if size_bytes else ""


def _pause(found: Part) -> str:
    pause = amount(found, "pause_ns")
    return f"; the program was paused for {duration(pause)}" if pause else ""


# ---- cycles and exceptions ----------------------------------------------------------------------


def causes(found: Part | None) -> list[Part]:
    """Return the causes of cycles, the largest first, with what they kept alive."""
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
            place(inside(inside(row, "cause"), "place")),
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
            place(inside(row, "place")),
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
            _worth(row),
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
            size(row, "objects"),
            words(row, "name"),
            words(row, "note"),
        ),
        top,
    )
    rows = entries(found, "rows")
    whole = sum(size(row, "size_bytes") for row in rows)
    worth = sum(size(row, "size_bytes") for row in rows if row.get("worth_it") is True)
    told = format_size(worth) if worth else "nothing"
    held = f"{format_size(whole)} in caches; {told} of it is worth clearing"
    return (held, *texts(found, "left_out"), _NOT_COUNTED), tuple(tables)


def _worth(row: Part) -> str:
    if not words(row, "clear"):
        return "never"
    return "yes" if row.get("worth_it") is True else "no"


def _dicts(found: Part, top: int) -> _Parts:
    lost = _table(
        "Classes whose instances no longer share their keys",
        "too much:size|size:size|instances:count|inline:count|split dict:count|own dict:count|class"
        "|:prose|:prose",
        _by(entries(found, "lost"), "cost_bytes"),
        lambda row: (
            size(row, "cost_bytes"),
            size(row, "size_bytes"),
            size(row, "instances"),
            *(size(row, name) for name in ("inline", "split", "combined")),
            words(row, "type"),
            words(row, "cause"),
            words(row, "remedy"),
        ),
        top,
    )
    oversized = _table(
        "Larger than what is in them",
        "size:size|could be:size|entries:count|room for:count|kind|of|:note",
        _by(entries(found, "oversized"), "size_bytes"),
        lambda row: (
            size(row, "size_bytes"),
            size(row, "could_be_bytes"),
            size(row, "entries"),
            size(row, "capacity"),
            words(row, "kind"),
            words(row, "holder"),
            words(row, "remedy"),
        ),
        top,
    )
    count = size(found, "oversized_count")
    lines = [
        *([] if lost else ["no class has instances that need dicts of their own and cost much"]),
        *([] if oversized else ["no dict or set is much larger than what it holds"]),
    ]
    if count:
        too_much = format_size(size(found, "oversized_bytes"))
        lines.append(f"{count:,} larger than what is in them, {too_much} too much")
    return (*lines, *texts(found, "left_out")), (*lost, *oversized)


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
        "growth:change|more objects:more|what",
        _by(entries(last, "growth"), "size_bytes"),
        lambda row: (size(row, "size_bytes"), size(row, "objects"), words(row, "name")),
        top,
    )
    return (line,), tuple(tables)


_LAYOUTS: Final[dict[str, Callable[[Part, int], _Parts]]] = {
    "resident": _resident,
    "census": _census,
    "difference": _difference,
    "cycles": _cycles,
    "exceptions": _exceptions,
    "caches": _caches,
    "dicts": _dicts,
    "trim": _trim,
    "referrers": _referrers,
    "path": _path,
}
