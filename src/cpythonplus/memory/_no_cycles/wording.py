"""What `pytest --no-cycles` says about the cycles that it found."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from cpythonplus.memory._cycles.report import Cause, Cycle, Kind

MOST_CAUSES = 4
"""Root causes that are told of one test; more are counted."""


def merged(found: Iterable[Cycle]) -> list[Cycle]:
    """Return one entry for each cause, in the order in which they were first found."""
    by_cause: dict[Cause, Cycle] = {}
    for cycle in found:
        before = by_cause.get(cycle.cause)
        if before is not None:
            cycle = replace(  # noqa: PLW2901
                before,
                count=before.count + cycle.count,
                objects=before.objects + cycle.objects,
                size_bytes=before.size_bytes + cycle.size_bytes,
                kept_objects=before.kept_objects + cycle.kept_objects,
                kept_bytes=before.kept_bytes + cycle.kept_bytes,
            )
        by_cause[cycle.cause] = cycle
    return list(by_cause.values())


def text(found: Sequence[Cycle], root: Path) -> str:
    """Return two lines for each root cause: where it is, and how it is broken.

    root: files below it are told relative to it, as pytest does.
    """
    lines: list[str] = []
    for cycle in found[:MOST_CAUSES]:
        lines += [line(cycle, root), f"    {cycle.cause.advice}"]
    if len(found) > MOST_CAUSES:
        lines.append(f"and {len(found) - MOST_CAUSES} more root causes")
    return "\n".join(lines)


def line(cycle: Cycle, root: Path) -> str:
    """Return where the cycle is closed and how large it is, in one line."""
    cause = cycle.cause
    where = f"in {cause.place.function}(): " if cause.place.function else ""
    objects = "1 object" if cycle.objects == 1 else f"{cycle.objects:,} objects"
    times = "" if cycle.count == 1 else f" in {cycle.count:,} cycles"
    place = str(cause.place).removeprefix(f"{root}/")
    return f"{place}: {where}{_kept(cause)} ({objects}{times})"


def _kept(cause: Cause) -> str:
    if cause.kind is Kind.CLASS:
        return f"class '{cause.variable}' is created each time, and every class refers to itself"
    kept = f"variable '{cause.variable}' keeps"
    if cause.kind is Kind.CLOSURE:
        return f"{kept} {cause.what}, which refers to itself"
    if cause.kind is not Kind.EXCEPTION:
        return f"{kept} {cause.what}"
    leads = "which leads" if cause.what in ("traceback", "frame") else "whose traceback leads"
    return f"{kept} the {cause.what}, {leads} back to it"
