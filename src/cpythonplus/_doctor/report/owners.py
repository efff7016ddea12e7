"""Owners and growth as lines and tables."""

from collections import Counter
from pathlib import Path
from typing import Final

from cpythonplus._base.reading import Part, amount, entries, inside, known, size, words
from cpythonplus._base.text.sizes import format_size
from cpythonplus._base.text.tables import Layout, objects, signed, table
from cpythonplus._doctor.report.labels import label

_MOST_WAYS: Final = 2
_TELLING_SHARE: Final = 0.05
_MOST_KINDS: Final = 4
_LEAST_PART: Final = 256 << 10
_SOCKET: Final = "socket to "
LOST: Final = ("nothing on the heap refers to them", "held by C code")
"""The types of rows of objects that only C code has, or nothing has."""
_MOST_IN_CALLS: Final = 4
_TEMPORARY: Final = "temporary value of "
_TOGETHER: Final = ("garbage", "frame")


def owners_layout(found: Part, top: int) -> Layout:
    """Return the owners and the memory that they keep."""
    lines = [f"{objects(size(found, 'objects'))} of {format_size(size(found, 'size_bytes'))}"]
    lines += _c_heap(found, None)
    if any(words(row, "type") == "garbage" for row in entries(found, "owners")):
        lines += _collector(found)
    rows = [_row(row, 0.0, "") for row in entries(found, "owners")]
    columns = "reaches:size=amount_bytes|keeps:size=kept_bytes|objects:count|owner|entries|of=parts"
    columns += "|made at=at"
    return tuple(lines), (
        *table("Who keeps most", columns, rows, top),
        *table("Where objects are", "class|objects:count|most are in=where", _classes(found), top),
    )


def growth_layout(found: Part, top: int) -> Layout:
    """Return the growth and its owners."""
    seconds, change = amount(found, "seconds"), rss_change(found)
    told = ", ".join(
        f"{label(name).title} {signed(more)}"
        for name, more in parts_grown(found, max(change * _TELLING_SHARE, _LEAST_PART))
    )
    lines = [f"RSS {signed(change)} in {seconds:.0f} s{': ' if told else ''}{told}"]
    lines += _c_heap(found, "c_heap_before_bytes")
    for name in ("threads", "descriptors"):
        before, now = size(found, f"{name}_before"), size(found, name)
        told = ", ".join(kinds_grown(found, name))
        lines += [f"{name}: {before:,} -> {now:,}{': ' if told else ''}{told}"] * (now != before)
    shared = kinds_grown(found, "shared")
    lines += [f"mappings of shared memory: {', '.join(shared)}"] * bool(shared)
    lines += [f"callbacks of atexit: {more}" for more in kinds_grown(found, "exit_callbacks")]
    rows = [
        _row(row, seconds, steadiness(found, row))
        for row in entries(found, "owners")
        if size(row, "amount_bytes") > 0 or words(row, "type") != "garbage"
    ]
    named = {words(row, "name") for row in rows}
    tables = [
        f"{owner_name(row)} {signed(size(row, 'amount_bytes'))}"
        for row in entries(found, "resized")
        if words(row, "name") not in named
    ][:_MOST_KINDS]
    lines += [f"tables made larger, for entries to come: {', '.join(tables)}"] * bool(tables)
    if any(words(row, "type") == "garbage" for row in entries(found, "owners")):
        lines += _collector(found)
    if lost := words(found, "lost"):
        lines.append(f"who keeps what has grown is not told: {lost}")
    elif not rows and change < _LEAST_PART:
        lines.append("no owner on the heap has grown by much")
    columns = "grew by:change=amount_bytes|owner|entries|rate|of=parts|made at=at"
    columns += "|new ones allocated at=allocated_at" * any(row["allocated_at"] for row in rows)
    return tuple(lines), (
        *table("Who keeps what has grown", columns, rows, top),
        *table(
            "Classes with more objects",
            "class|more:more|objects:count|most are in=where",
            _classes(found),
            top,
        ),
    )


def rss_change(found: Part) -> int:
    """Return the growth of resident memory."""
    return size(found, "rss_bytes") - size(found, "rss_before_bytes")


def parts_grown(found: Part, least: float) -> list[tuple[str, int]]:
    """Return the parts of resident memory that have grown by `least` or more, most first."""
    rows = [
        (words(row, "name"), size(row, "size_bytes") - size(row, "before_bytes"))
        for row in entries(found, "parts")
    ]
    return sorted((row for row in rows if row[1] >= least), key=lambda row: -row[1])


def kinds_grown(found: Part, what: str) -> list[str]:
    """Return the kinds whose number has grown, as `epoll +200`, the first few.

    Sockets to many ports of one host are one kind.
    """
    rows = [row for row in entries(found, "kinds") if words(row, "what") == what]
    more = {words(row, "kind"): size(row, "count") - size(row, "count_before") for row in rows}
    grown = {kind: count for kind, count in more.items() if count > 0}
    ports = Counter(kind.rpartition(":")[0] for kind in grown)
    sums: Counter[str] = Counter()
    for kind, count in grown.items():
        host = kind.rpartition(":")[0]
        many = kind.startswith(_SOCKET) and ports[host] >= _MOST_KINDS
        sums[f"sockets to {host.removeprefix(_SOCKET)}" if many else kind] += count
    return [f"{kind} {count:+,}".strip() for kind, count in sums.most_common(_MOST_KINDS)]


def _c_heap(found: Part, before: str | None) -> list[str]:
    now = amount(found, "c_heap_bytes")
    if now < 0:
        return []
    text = f"C heap not explained by Python: {format_size(int(now))}"
    if before is not None:
        text = f"C heap not explained by Python: {signed(int(now - amount(found, before)))}"
        text += f", now {format_size(int(now))}"
    return [text]


def _collector(found: Part) -> list[str]:
    """Return the reasons why garbage may still be there."""
    frozen = size(found, "frozen_objects")
    off = found.get("collects") is False  # unknown for two reports
    lines = ["the collector is off: cyclic garbage stays"] if off else []
    if frozen:
        lines.append(f"{objects(frozen)} are frozen: the collector does not look at them")
    return lines


def steadiness(found: Part, row: Part) -> str:
    """Return "steady" if a row has grown in both parts of the time, "uneven"; "": unknown."""
    if not known(row, "halfway_bytes"):
        return ""
    return _steadiness(found, size(row, "amount_bytes"), amount(row, "halfway_bytes"))


def is_c_heap_steady(found: Part) -> bool:
    """Whether the C heap's memory that no object explains has grown in both parts of the time."""
    before = amount(found, "c_heap_before_bytes")
    more, then = (amount(found, f"c_heap_{when}bytes") - before for when in ("", "halfway_"))
    return _steadiness(found, more, then) == "steady"


def _steadiness(found: Part, more: float, then: float) -> str:
    seconds = amount(found, "seconds")
    share = amount(found, "halfway_seconds") / seconds if seconds > 0 else 0.0
    if not 0 < share < 1 or more <= 0:
        return ""
    return "steady" if share / 2 <= then / more <= (1 + share) / 2 else "uneven"


def is_passing(row: Part) -> bool:
    """Whether a row is a value that a function has made since the first look, and works on now.

    It is gone when the function has used it, as a list that is being built.
    """
    return words(row, "name").startswith(_TEMPORARY) and _is_new(row)


def is_newest(row: Part) -> bool:
    """Whether a function's value had kept nothing at half of the time: how it grows is unknown."""
    is_seen = known(row, "halfway_bytes") and size(row, "halfway_bytes") == 0
    return is_seen and row.get("is_local") is True and _is_new(row)


def _is_new(row: Part) -> bool:
    return not (size(row, "objects_before") or size(row, "kept_before_bytes"))


def is_in_call(found: Part, row: Part) -> bool:
    """Whether the objects of a row, few and not more and more, may be those of running C code.

    A thread that waits in `socket.recv()` has a buffer that nothing on the heap refers to.
    """
    more = size(row, "entries") - size(row, "entries_before")
    few = 0 < more <= min(size(found, "threads"), _MOST_IN_CALLS)
    return few and words(row, "type") in LOST and steadiness(found, row) != "steady"


def _row(row: Part, seconds: float, steady: str) -> Part:
    entries_now, entries_then = amount(row, "entries"), amount(row, "entries_before")
    counted = f"{int(entries_now):,}" if entries_now >= 0 else ""
    rate = ""
    if seconds > 0:
        more, what = size(row, "objects") - size(row, "objects_before"), " objects"
        if entries_now >= 0 and entries_then >= 0:
            counted = f"{int(entries_then):,} -> {int(entries_now):,}"
            changed = int(entries_now - entries_then)
            more, what = (changed, "") if changed or not more else (more, " objects")
        rate = f"{more / seconds:+,.0f}{what}/s" if more else ""
    parts = _short(words(row, "parts"), f"{int(entries_now):,} "), words(row, "below")
    return {
        **row,
        "owner": owner_name(row),
        "entries": counted,
        "parts": " in ".join(filter(None, parts)),
        "rate": ", ".join(filter(None, (rate, steady))),
        "at": _at(inside(row, "place")),
        "allocated_at": _at(inside(row, "allocated")),
    }


def _at(place: Part) -> str:
    line = size(place, "line")
    return f"{with_package(words(place, 'file'))}:{line}" if line else ""


def with_package(file: str) -> str:
    """Return the name of a file with its packages, if their folders exist on this machine."""
    folder, _, name = file.rpartition("/")
    inner = name == "__init__.py"
    while folder and (inner or Path(folder, "__init__.py").exists()):
        folder, _, package = folder.rpartition("/")
        name, inner = f"{package}/{name}", False
    return name


def owner_name(row: Part) -> str:
    """Return an owner's name with its class. A row of several owners has the class in its name."""
    name, kind = words(row, "name"), words(row, "type").rpartition(".")[2]
    return name if kind in _TOGETHER else f"{name} ({kind})"


def _short(parts: str, counted: str) -> str:
    """Return a count and a class without its module; no count if it is that of the entries."""
    count, _, kind = parts.partition(" ")
    kind = kind if kind.endswith("()") else kind.rpartition(".")[2]
    return kind if f"{count} " == counted else f"{count} {kind}".strip()


def _classes(found: Part) -> list[Part]:
    rows: list[Part] = []
    for row in entries(found, "classes"):
        name, now = words(row, "type"), size(row, "objects")
        more = now - size(row, "objects_before")
        if "." not in name or more <= 0:
            continue  # the growth of built-in classes is reported by owner
        ways = [
            f"{100 * size(way, 'objects') / now:.0f} % {words(way, 'path')}"
            for way in entries(row, "where")[:_MOST_WAYS]
        ]
        rows.append({"class": name, "objects": now, "more": more, "where": "; ".join(ways)})
    return rows
