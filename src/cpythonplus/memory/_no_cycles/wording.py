"""The texts of `pytest --no-cycles` about its findings."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from cpythonplus.memory._cycles.naming import is_named
from cpythonplus.memory._cycles.report import Cause, Cycle, Kind
from cpythonplus.memory._no_cycles.causes import Seen

MOST_CAUSES = 4
"""Root causes that are printed for one test; more are counted."""
MOST_TESTS = 3
"""Tests that are named for one root cause; more are counted."""


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
    """Return two lines for each root cause: its place, and the advice.

    root: paths of files below this folder are printed relative to it, as pytest does.
    """
    lines: list[str] = []
    for cycle in found[:MOST_CAUSES]:
        lines += [line(cycle, root), f"    {advice(cycle.cause)}"]
    if len(found) > MOST_CAUSES:
        lines.append(f"and {len(found) - MOST_CAUSES} more root causes")
    return "\n".join(lines)


def line(cycle: Cycle, root: Path) -> str:
    """Return the place that closes the cycle, and its size, in one line."""
    objects = "1 object" if cycle.objects == 1 else f"{cycle.objects:,} objects"
    times = "" if cycle.count == 1 else f" in {cycle.count:,} cycles"
    return f"{where(cycle.cause, root)} ({objects}{times})"


def where(cause: Cause, root: Path) -> str:
    """Return the place that closes a cycle; it is equal for all tests with this cause."""
    if not is_named(cause):
        return f"a cycle that could not be named, of {cause.what}"
    function = f"in {cause.place.function}(): " if cause.place.function else ""
    place = str(cause.place).removeprefix(f"{root}/")
    return f"{place}: {function}{_kept(cause)}"


def advice(cause: Cause) -> str:
    """Return the advice for breaking the cycle."""
    return cause.advice if is_named(cause) else "it counts, since it may be of any kind"


def summary(seen: Iterable[Seen]) -> str:
    """Return the places of a session's root causes, the advice, and the tests that met them."""
    lines: list[str] = []
    for each in seen:
        tests = list(each.tests)
        lines += [each.met.where, f"    {each.met.advice}", f"    {_number(len(tests), 'test')}:"]
        lines += [f"        {test}" for test in tests[:MOST_TESTS]]
        if len(tests) > MOST_TESTS:
            lines.append(f"        and {len(tests) - MOST_TESTS} more")
    return "\n".join(lines)


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


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
