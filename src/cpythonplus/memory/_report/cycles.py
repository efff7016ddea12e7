"""The causes of cyclic garbage, one line each: for logs, and for `grep`."""

from collections.abc import Sequence

from cpythonplus._base.sizes import format_size
from cpythonplus._base.tables import objects
from cpythonplus.memory._cycles.report import Cycle, Hoard, Report

__all__ = ["cycle_line", "hoard_line", "report_lines"]


def report_lines(report: Report, top: int | None) -> str:
    """Return the report, one line for each cause; top: at most so many of each part."""
    watched = f"{report.seconds:.1f} s, {report.collections:,} collections"
    if not report.cycles and not report.hoards:
        return f"no cyclic garbage and no exceptions held ({watched})\n"
    count = len(report.cycles)
    causes = "1 root cause" if count == 1 else f"{count:,} root causes"
    lines = [f"cyclic garbage: {causes} ({watched})"]
    lines += _part([cycle_line(each) for each in report.cycles], top)
    if report.hoards:
        lines.append(f"exceptions still held: {len(report.hoards):,}")
        lines += _part([hoard_line(each) for each in report.hoards], top)
    return "\n".join(lines) + "\n"


def _part(lines: Sequence[str], top: int | None) -> list[str]:
    shown = lines if top is None else lines[:top]
    left = len(lines) - len(shown)
    return [f"  {line}" for line in shown] + ([f"  and {left:,} more"] if left else [])


def cycle_line(cycle: Cycle) -> str:
    """Return where it is, what it left, and how to break it."""
    cause = cycle.cause
    where = f"in {cause.place.function}(): " if cause.place.function else ""
    kept = f", kept {format_size(cycle.kept_bytes)} alive" if cycle.kept_bytes else ""
    times = "once" if cycle.count == 1 else f"{cycle.count:,} times"
    return (
        f"{cause.place}: {cause.kind}: {where}{cause.variable} keeps {cause.what}; {times},"
        f" {objects(cycle.objects)}, {format_size(cycle.size_bytes)}{kept}; {cause.advice}"
    )


def hoard_line(hoard: Hoard) -> str:
    """Return where they were raised, who holds them, and what they keep."""
    times = "" if hoard.count == 1 else f"{hoard.count:,} x "
    return (
        f"{hoard.place}: {times}{hoard.exception} from {hoard.place.function}() held by"
        f" {hoard.holder}: {hoard.frames:,} frames keep {objects(hoard.objects)},"
        f" {format_size(hoard.size_bytes)}"
    )
