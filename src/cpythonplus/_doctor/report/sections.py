"""The sections of a report: each part of an examination as tables."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from cpythonplus._base.reading import (
    Examination,
    Part,
    amount,
    entries,
    inside,
    known,
    largest,
    offered,
    part,
    refusal,
    size,
    texts,
    words,
)
from cpythonplus._base.text.sizes import duration, format_size
from cpythonplus._base.text.tables import Layout, Table, objects, signed, table
from cpythonplus._doctor.questions import EXAMINATIONS
from cpythonplus._doctor.report.figures import figures
from cpythonplus._doctor.report.labels import label, note

CENSUS_VIEWS: Final = {
    "by_owner": "by owner",
    "by_type": "by type",
    "by_module": "by module",
    "by_size_class": "by size",
}
_CENSUS_NAMES: Final = {"by_size_class": "in blocks of up to"}
_GIL_COUNTERS: Final = {
    "switches": "switches",
    "forced_switches": "forced",
    "requests": "requests",
    "immediate_requests": "at once",
    "repeated_requests": "repeated",
    "protected_runs": "protected runs",
}
_MOST_LOSSES: Final = 16
_MOST_PINS: Final = 12
_MOST_STEPS: Final = 100
_NOT_COUNTED: Final = (
    "not counted: free lists that the interpreter does not report (frames, contexts, asynchronous"
    " generators and others); together they hold less than 100 KiB"
)
_NOTHING: Final = "nothing found"
_NOT_ACTIVE: Final = "not scheduled: only `cpythonplus run` without --no-gil schedules it"


class Section(NamedTuple):
    """One part of the report. key: of the examination; lines: in front of the tables."""

    key: str
    title: str
    lines: tuple[str, ...]
    tables: tuple[Table, ...] = ()


def sections(examination: Examination, top: int) -> list[Section]:
    """Return the sections of an examination; top: rows of each table."""
    return [section(examination, key, title, top) for key, title in titles(examination).items()]


def titles(examination: Examination) -> dict[str, str]:
    """Return the titles of the parts: known ones, and those that the process added."""
    known_here = {name: each.title for name, each in EXAMINATIONS.items()}
    every = {**offered(part(examination, "target")), **known_here}
    return {name: every[name] for name in {**known_here, **every} if name in examination}


def section(examination: Examination, key: str, title: str, top: int) -> Section:
    """Return one section."""
    if key == "samples":
        return Section(key, title, *_samples(entries(examination, key), top))
    found = part(examination, key)
    if found is None:
        return Section(key, title, (f"not examined: {refusal(examination, key) or 'no answer'}",))
    layout = _LAYOUTS.get(key) or getattr(EXAMINATIONS.get(key), "layout", None)
    if layout is not None:
        return Section(key, title, *layout(found, top))
    tables = figures(found, top)
    return Section(key, title, () if tables else (_NOTHING,), tables)


def target_line(examination: Examination) -> str:
    """Return the process and the time of the examination."""
    target = part(examination, "target") or {}
    facts = [f"pid {size(target, 'pid')}"] if known(target, "pid") else []
    facts += [words(target, name) for name in ("command", "command_line")]
    # The version number in `sys.version`; the other words describe the build.
    version = words(target, "python").split(" ")[0]
    facts += [f"Python {version}" if version else "", words(target, "when")]
    return ", ".join(fact for fact in facts if fact)


def losses(examination: Examination) -> list[str]:
    """Return the sentences of the process on features that do not work, or work differently."""
    rows = entries(part(examination, "target"), "losses")[:_MOST_LOSSES]
    return [words(each, "text") for each in rows]


def lacks_something(examination: Examination) -> bool:
    """Whether a feature does not work in the examined process."""
    rows = entries(part(examination, "target"), "losses")
    return any(each.get("works") is not True for each in rows)


def _shares(rows: Iterable[Part], name: str, whole: int) -> list[Part]:
    return [{**row, "share": size(row, name) / whole if whole else 0.0} for row in rows]


# ---- resident and census ------------------------------------------------------------------------


def _resident(found: Part, top: int) -> Layout:
    whole = size(found, "rss_bytes")
    rows = _shares(largest(found, "parts", "resident_bytes"), "resident_bytes", whole)
    pins = largest(found, "pins", "held_bytes")
    full = [
        {"arenas": count, "in use": f"{10 * n} to {10 * n + 10} %"}
        for n, count in enumerate(fullness(found))
        if count
    ]
    tables = [
        *table(
            "What it consists of",
            "resident:size=resident_bytes|share:share|what|:note=note",
            [{**row, "what": label(words(row, "name")).title, "note": note(row)} for row in rows],
            max(top, 20),
        ),
        *table(
            "What pins otherwise free memory",
            "held back:size=held_bytes|blocks:count=objects|of:size=size_bytes|type|where"
            "|one is held by=holder",
            [{**row, "where": words(row, "place").replace("_", " ")} for row in pins],
            min(top, _MOST_PINS),
        ),
        *table("How full the arenas are", "arenas:count|in use", full, top),
    ]
    line = f"{format_size(whole)} resident" if whole else "size unknown"
    unseen = words(inside(found, "arenas"), "unknown")
    notes = [f"the arenas could not be read: {unseen}"] if unseen else []
    return (line + _pause(found), *notes, *texts(found, "notes")), tuple(tables)


def resident_parts(found: Part) -> list[Part]:
    """Return the resident parts, the largest first."""
    rows = largest(found, "parts", "resident_bytes")
    return [row for row in rows if size(row, "resident_bytes") > 0]


def fullness(found: Part) -> list[int]:
    """Return the numbers of arenas that are up to a tenth, two tenths, ... full."""
    counts = inside(found, "arenas").get("fullness")
    if not isinstance(counts, list | tuple):
        return []
    return [max(size({"count": count}, "count"), 0) for count in counts[:_MOST_STEPS]]


def _census(found: Part, top: int) -> Layout:
    whole = size(found, "size_bytes")
    line = f"{objects(size(found, 'objects'))} of {format_size(whole)}"
    for name in ("frozen", "immortal"):
        if size(found, f"{name}_objects"):
            line += f", {size(found, f'{name}_objects'):,} of them {name}"
    left_out = words(found, "left_out")
    notes = [f"not included in these numbers: {left_out}"] if left_out else []
    tables = _views(found, "size:size=size_bytes|share:share|objects:count", top)
    same = table(
        "Classes that share a name",
        "classes:count=objects|they take:size=size_bytes|name",
        largest(found, "same_name", "objects"),
        top,
    )
    return (line + _pause(found), *notes), (*tables, *same)


def _difference(found: Part, top: int) -> Layout:
    line = f"{size(found, 'objects'):+,} objects, {signed(size(found, 'size_bytes'))}"
    return (line,), _views(found, "change:change=size_bytes|objects:more", top)


def _views(found: Part, columns: str, top: int) -> tuple[Table, ...]:
    """Return a table for each way of counting; sorted again, for other versions' reports."""
    tables: list[Table] = []
    for name, title in CENSUS_VIEWS.items():
        rows = _shares(entries(found, name), "size_bytes", size(found, "size_bytes"))
        rows.sort(key=lambda row: -abs(amount(row, "size_bytes")))
        heading = _CENSUS_NAMES.get(name, title[3:])
        tables += table(f"{title[0].upper()}{title[1:]}", f"{columns}|{heading}=name", rows, top)
    return tuple(tables)


def _referrers(found: Part, top: int) -> Layout:
    tables = table("", "references:count|from=name", entries(found, "rows"), top)
    of = f"to objects of {words(found, 'type')}"
    more = size(found, "more")
    return (of if tables else f"{of}: {_NOTHING}",), tuple(
        replace(table, left_out=table.left_out + more) for table in tables
    )


def _path(found: Part, top: int) -> Layout:  # noqa: ARG001  # a path is shown to its end
    steps = [
        f"{words(row, 'step')} ({kind})".strip() if kind else words(row, "step")
        for row in entries(found, "steps")
        for kind in [words(row, "type")]
    ]
    # A process with an older version of the package answers with texts.
    lines = [" -> ".join(steps or texts(found, "steps")) or _NOTHING]
    objects_all = size(found, "objects")
    lines += [
        f"{size(way, 'objects'):,} of {objects(objects_all)}: {words(way, 'path')}"
        for way in entries(found, "ways")
    ]
    return tuple(lines), ()


def _trim(found: Part, top: int) -> Layout:
    steps = entries(found, "steps")
    rows = [{**row, "note": words(row, "note") + _left(size(row, "left_bytes"))} for row in steps]
    columns = "freed:size=freed_bytes|time:time=took_ns|step=name|:prose=note"
    before, after = (format_size(size(found, name)) for name in ("before_bytes", "after_bytes"))
    line = f"{before} resident before, {after} after"
    return (line,), tuple(table("", columns, rows, top))


def _left(size_bytes: int) -> str:
    return f"; {format_size(size_bytes)} stays free between blocks in use" if size_bytes else ""


def _pause(found: Part) -> str:
    pause = amount(found, "pause_ns")
    return f"; the program was paused for {duration(pause)}" if pause else ""


# ---- cycles and exceptions ----------------------------------------------------------------------


def causes(found: Part | None) -> list[Part]:
    """Return the causes of cycles, the largest first, with the objects that they kept alive."""
    rows = entries(found, "cycles")
    return sorted(rows, key=lambda row: -amount(row, "size_bytes") - amount(row, "kept_bytes"))


def _cycles(found: Part, top: int) -> Layout:
    rows = causes(found)
    lines = (
        f"watched for {amount(found, 'seconds'):.1f} s, {size(found, 'collections'):,} collections",
        *(() if rows else ("no cyclic garbage",)),
    )
    tables = table(
        "Lines that leave cycles behind",
        "size:size|times:count=count|objects:count|where|variable|keeps=what|:prose=advice",
        [
            {
                **inside(row, "cause"),
                "count": row.get("count"),
                "size": size(row, "size_bytes") + size(row, "kept_bytes"),
                "objects": size(row, "objects") + size(row, "kept_objects"),
                "where": place(inside(inside(row, "cause"), "place")),
            }
            for row in rows
        ],
        top,
    )
    return lines, tuple(tables + _hoards(found, top))


def place(row: Part) -> str:
    """Return `file:line`, as far as it is known."""
    file = words(row, "file") or "?"
    return f"{file}:{size(row, 'line')}" if size(row, "line") else file


def _hoards(found: Part, top: int) -> list[Table]:
    rows = largest(found, "hoards", "size_bytes")
    return table(
        "Exceptions that are kept with the frames on their tracebacks",
        "size:size=size_bytes|times:count=count|objects:count|exception|raised at|held by=holder",
        [{**row, "raised at": place(inside(row, "place"))} for row in rows],
        top,
    )


def _exceptions(found: Part, top: int) -> Layout:
    tables = _hoards(found, top)
    return () if tables else (_NOTHING,), tuple(tables)


# ---- caches and dicts ---------------------------------------------------------------------------


def _caches(found: Part, top: int) -> Layout:
    rows = largest(found, "rows", "size_bytes")
    tables = table(
        "What can be cleared",
        "size:size=size_bytes|entries:count|cache=name|worth it|how:code=clear|:note=note",
        [{**row, "worth it": _worth(row)} for row in rows],
        top,
    )
    fixed = largest(found, "fixed", "size_bytes")
    columns = "size:size=size_bytes|number:count=objects|what=name|:note=note"
    tables += table("What stays", columns, fixed, top)
    whole = sum(size(row, "size_bytes") for row in rows)
    worth = sum(size(row, "size_bytes") for row in rows if row.get("worth_it") is True)
    told = format_size(worth) if worth else "nothing"
    held = f"{format_size(whole)} in caches; {told} of it is worth clearing"
    return (held, *texts(found, "left_out"), _NOT_COUNTED), tuple(tables)


def _worth(row: Part) -> str:
    if not words(row, "clear"):
        return "never"
    return "yes" if row.get("worth_it") is True else "no"


def _key_sharing(found: Part, top: int) -> Layout:
    lost = table(
        "Classes whose instances no longer share their keys",
        "too much:size=cost_bytes|size:size=size_bytes|instances:count|inline:count"
        "|split dict:count=split|own dict:count=combined|class=type|:prose=cause|:prose=remedy",
        largest(found, "lost", "cost_bytes"),
        top,
    )
    oversized = table(
        "Larger than what is in them",
        "size:size=size_bytes|could be:size=could_be_bytes|entries:count|room for:count=capacity"
        "|kind|of=holder|:note=remedy",
        largest(found, "oversized", "size_bytes"),
        top,
    )
    gains = table(
        "What would take less in another form",
        "saves:size=saves_bytes|size:size=size_bytes|count:count|of=holder|made at=made_at"
        "|:prose=what|:prose=change",
        largest(found, "gains", "saves_bytes"),
        top,
    )
    count = size(found, "oversized_count")
    lines = [
        *([] if lost else ["no class has instances whose separate dicts cost much"]),
        *([] if oversized else ["no dict or set is much larger than what it holds"]),
    ]
    if count:
        too_much = format_size(size(found, "oversized_bytes"))
        lines.append(f"{count:,} larger than their contents, {too_much} too much")
    return (*lines, *texts(found, "left_out")), (*lost, *oversized, *gains)


# ---- the GIL and threads ------------------------------------------------------------------------


def _gil(found: Part, top: int) -> Layout:
    scheduled = found.get("active") is not False
    if not scheduled and not size(found, "switches"):
        return (_NOT_ACTIVE,), ()
    counts = ", ".join(
        f"{title} {size(found, name):,}" for name, title in _GIL_COUNTERS.items() if name in found
    )
    sections = inside(found, "atomic")
    atomic = f"atomic sections: {size(sections, 'sections'):,}"
    for name in ("contended", "overlong", "abandoned"):
        atomic += f", {name} {size(sections, name):,}"
    atomic += f", longest {duration(amount(sections, 'longest_ns'))}"
    classes = [
        {**inside(inside(found, name), what), "": f"{name}: {what}"}
        for name in ("interactive", "batch")
        for what in ("waits", "holds")
    ]
    threads = [
        {**row, "id": str(size(row, "native_id"))} for row in largest(found, "threads", "cpu_ns")
    ]
    times = "count:count|total:time=total_ns|p50:time=p50_ns|p99:time=p99_ns|max:time=max_ns"
    tables = table("How long threads waited for it and held it", f"|{times}", classes, len(classes))
    tables += table(
        "Threads",
        "thread=name|id|class=thread_class|cpu:time=cpu_ns|waited:time=wait_ns|held:time=hold_ns"
        "|waits:count|switches:count",
        threads,
        top,
    )
    state = "scheduled" if scheduled else "no longer scheduled"
    return (f"{state}; {counts}", atomic), tuple(tables)


def _threads(found: Part, top: int) -> Layout:
    rows = [
        {
            **group[0],
            "count": len(group),
            "id": str(size(group[0], "native_id") or ""),
            "at": place(group[0]),
        }
        for group in thread_groups(found)
    ]
    tables = table("", "threads:count=count|executes=function|at|one is=name|its id=id", rows, top)
    return () if tables else (_NOTHING,), tuple(tables)


def thread_groups(found: Part | None) -> list[list[Part]]:
    """Return the threads grouped by the line that they execute, the largest group first."""
    groups: dict[tuple[str, str], list[Part]] = {}
    for row in entries(found, "threads"):
        groups.setdefault((words(row, "function"), place(row)), []).append(row)
    return sorted(groups.values(), key=lambda group: -len(group))


def _tasks(found: Part, top: int) -> Layout:
    rows = [{**row, "at": place(row)} for row in entries(found, "tasks")]
    tables = table("", "tasks:count=count|of=function|most are at=at", rows, top)
    return () if tables else (_NOTHING,), tuple(tables)


# ---- watched ------------------------------------------------------------------------------------


def _samples(samples: Sequence[Part], top: int) -> Layout:
    if not samples:
        return ("no samples",), ()
    first, last = samples[0], samples[-1]
    seconds = amount(last, "t_s") - amount(first, "t_s")
    grown = size(last, "rss_bytes") - size(first, "rss_bytes")
    line = f"{len(samples):,} samples in {seconds:.0f} s: {format_size(size(first, 'rss_bytes'))}"
    line += f" at first, {format_size(size(last, 'rss_bytes'))} at the end ({signed(grown)})"
    columns = "growth:change=size_bytes|more objects:more=objects|what=name"
    grew = largest(last, "growth", "size_bytes")
    return (line,), tuple(table("What grew", columns, grew, top))


def waiting(old: Part, new: Part) -> tuple[float, float] | None:
    """Return the time that threads waited for the GIL between two samples, and the number of waits.

    In nanoseconds per second, and waits per second; None: not known.
    """
    before, after = inside(old, "gil"), inside(new, "gil")
    seconds = amount(new, "t_s") - amount(old, "t_s")
    if seconds <= 0 or not known(before, "wait_ns") or not known(after, "wait_ns"):
        return None
    waited, count = (
        max(amount(after, name) - amount(before, name), 0) / seconds
        for name in ("wait_ns", "waits")
    )
    return waited, count


_LAYOUTS: Final[dict[str, Callable[[Part, int], Layout]]] = {
    "resident": _resident,
    "census": _census,
    "difference": _difference,
    "cycles": _cycles,
    "gil": _gil,
    "threads": _threads,
    "tasks": _tasks,
    "exceptions": _exceptions,
    "caches": _caches,
    "key_sharing": _key_sharing,
    "trim": _trim,
    "referrers": _referrers,
    "path": _path,
}
