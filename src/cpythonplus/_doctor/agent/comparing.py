"""Computes the growth between two saved reports, in the form of `Growth.as_json()`."""

import re
from datetime import datetime

from cpythonplus._base.reading import Examination, Part, amount, entries, known, part, size, words

_UNKNOWN = -1
_NUMBER = re.compile(r"^[\d,]+ x ")


def compared(before: Examination, after: Examination) -> dict[str, object]:
    """Return a growth, as `Growth.as_json()`, from two reports with `owners`.

    Two owners are the same if they have equal names and classes. Raises ValueError, with a line, if
    a report has no `owners`, or if the reports are of two processes.
    """
    then, now = _owners(before, "first"), _owners(after, "second")
    targets = [part(each, "target") or {} for each in (before, after)]
    # The process id may have been reused since; clocks may have been set.
    if _differ(targets, "pid", 1) or _differ(targets, "started_s", 60):
        raise ValueError("the two reports are of different processes")
    if _seconds(targets[0], targets[1]) < 0:
        raise ValueError("the first report is the later one")
    rows_then = {_key(row): row for row in entries(then, "owners")}
    classes = {words(row, "type"): row for row in entries(then, "classes")}
    rows = [_grown(row, rows_then.get(_key(row), {})) for row in entries(now, "owners")]
    return {
        "seconds": _seconds(targets[0], targets[1]),
        "rss_bytes": size(targets[1], "rss_bytes"),
        "rss_before_bytes": size(targets[0], "rss_bytes"),
        "parts": _parts(part(before, "resident"), part(after, "resident")),
        "objects": size(now, "objects"),
        "objects_before": size(then, "objects"),
        "size_bytes": size(now, "size_bytes"),
        "before_bytes": size(then, "size_bytes"),
        "c_heap_bytes": amount(now, "c_heap_bytes"),
        "c_heap_before_bytes": amount(then, "c_heap_bytes"),
        "collects": now.get("collects"),
        "frozen_objects": size(now, "frozen_objects"),
        "owners": sorted(
            (row for row in rows if amount(row, "amount_bytes") > 0),
            key=lambda row: -amount(row, "amount_bytes"),
        ),
        "classes": [
            {
                **row,
                "objects_before": size(classes.get(words(row, "type"), {}), "objects"),
                "before_bytes": size(classes.get(words(row, "type"), {}), "size_bytes"),
            }
            for row in entries(now, "classes")
        ],
    }


def with_halfway(growth: Part, halfway: Part) -> dict[str, object]:
    """Return a growth with the amounts of its owners at the look between the two."""
    amounts = {_key(row): size(row, "amount_bytes") for row in entries(halfway, "owners")}
    rows = [
        {**row, "halfway_bytes": amounts.get(_key(row), 0)} for row in entries(growth, "owners")
    ]
    return {
        **growth,
        "owners": rows,
        "halfway_seconds": amount(halfway, "seconds"),
        "c_heap_halfway_bytes": amount(halfway, "c_heap_bytes"),
    }


def _owners(report: Examination, which: str) -> Part:
    found = part(report, "owners")
    if found is None:
        raise ValueError(f"the {which} file has no owners: it is no `doctor PID --format json`")
    return found


def _differ(targets: list[Part], name: str, by: int) -> bool:
    before, after = targets
    both = known(before, name) and known(after, name)
    return both and abs(amount(before, name) - amount(after, name)) >= by


def _key(row: Part) -> tuple[str, str]:
    """Return the name and type of a row for matching, without the number in `20 x ...`."""
    return _NUMBER.sub("", words(row, "name")), words(row, "type")


def _grown(row: Part, before: Part) -> dict[str, object]:
    return {
        **row,
        "amount_bytes": size(row, "amount_bytes") - size(before, "amount_bytes"),
        "kept_before_bytes": size(before, "kept_bytes"),
        "objects_before": size(before, "objects"),
        "entries_before": amount(before, "entries") if "entries" in before else _UNKNOWN,
    }


def _parts(before: Part | None, after: Part | None) -> list[dict[str, object]]:
    """Return the parts of resident memory that are in both reports."""
    if before is None or after is None:
        return []
    then, now = (
        {words(row, "name"): size(row, "resident_bytes") for row in entries(each, "parts")}
        for each in (before, after)
    )
    return [
        {"name": name, "size_bytes": now.get(name, 0), "before_bytes": then.get(name, 0)}
        for name in {**then, **now}
    ]


def _seconds(before: Part, after: Part) -> float:
    try:
        then, now = (
            datetime.strptime(words(each, "when"), "%Y-%m-%d %H:%M:%S%z")
            for each in (before, after)
        )
    except ValueError:
        return 0.0
    return (now - then).total_seconds()
