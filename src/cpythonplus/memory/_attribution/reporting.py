"""Judges each name by its measurements.

A name `grows` only if all of this holds, so that none is blamed for code that ran beside it:

    its calls add, by several standard errors, and more than measuring disturbs
    its last calls still add at least a part of what the earlier ones did
    no steady growth by time, as of a thread in the background, explains it: such growth shows in
    each name, and between the calls
    it adds more than the rest of the process has freed meanwhile: memory that one name hands over
    and another frees, and cyclic garbage, grow one name and not the process
"""

from collections.abc import Sequence
from dataclasses import replace
from math import hypot
from time import perf_counter_ns
from typing import Final, NamedTuple

from cpythonplus import _native
from cpythonplus.memory._attribution.estimating import Estimate, by_rows, mean, trimmed
from cpythonplus.memory._attribution.keeping import Entry, Name, Point
from cpythonplus.memory._attribution.measuring import private_bytes
from cpythonplus.memory._attribution.model import Attributed, AttributedRow, Evidence, Finding
from cpythonplus.memory._attribution.recording import OTHER, Recorder

_LEAST_ENTRIES: Final = 8
_LEAST_BYTES: Final = 16.0
"""Bytes of a call: less than one small object is noise."""
_LEAST_TOGETHER: Final = 64.0
_LEAST_GROWN: Final = 32 << 10
_LEVELS_OFF: Final = 0.4
_TOLD_ERRORS: Final = 2.0
_WARM_ERRORS: Final = 4
_UNCLEAR_SHARE: Final = 0.25
_MOST_TOLD: Final = 16
"""The most names whose shares are estimated if they overlap."""
_MARGIN: Final = 1.25
_MIDDLE: Final = 0.1
_SPARE_ROWS: Final = 6
_DEFAULT_BLOCK: Final = 64.0
_ORDER: Final = ("grows", "unclear", "offset", "levels off", "warms up", "steady", "too few")


class _Measure(NamedTuple):
    """A kind of memory: bytes of malloc, or small objects; each is judged by itself.

    Memory that one name hands over and memory that another leaks are often of different kinds: in
    their sum the two may cancel out.
    """

    used: float
    block: float

    def of(self, used_bytes: int, blocks: int) -> float:
        """Return bytes of this measure."""
        return self.used * used_bytes + self.block * blocks


class _Known(NamedTuple):
    """The estimate of one name by one measure."""

    estimate: Estimate
    evidence: Evidence
    lasts: bool
    call_ns: float
    entries: int


class _Judged(NamedTuple):
    """The judgement of one name by one measure."""

    finding: Finding
    known: _Known | None


def reported(home: Recorder, *, collected: bool) -> Attributed:
    """Return the report of a recorder; collected: whether the collector has been run."""
    block = _block_bytes() if home.meter.uses_malloc else 0.0
    names = {**home.names, **({OTHER: home.other} if home.other.calls else {})}
    points, calls = home.points.points(), home.calls()
    end = Point(home.last[0], home.last[1], sum(calls), tuple(calls))
    first = Point(home.first[0], home.first[1], 0, (0,) * len(end.counts))
    if not collected and points:
        end = points[-1]
    middle = _middle([first, *points], end.calls, block)
    stretch = (middle, end)
    measures = [_Measure(1.0, 0.0), *([_Measure(0.0, block)] if block else [])]
    judged = [_judge(home, names, measure, stretch) for measure in measures]
    rows = [
        _row(text, name, [each[text] for each in judged], stretch, block)
        for text, name in names.items()
    ]
    rows = _cleared(rows, judged, {name.index: text for text, name in names.items()})
    rows.sort(key=lambda row: (_ORDER.index(row.finding), -row.grown_bytes, row.name))
    grown = (end.used_bytes - middle.used_bytes) + block * (end.blocks - middle.blocks)
    told = sum(row.grown_bytes for row in rows if row.finding == "grows")
    seconds = (perf_counter_ns() - home.began_ns) / 1e9
    return Attributed(
        seconds=round(seconds, 3),
        calls=sum(calls),
        private_bytes=private_bytes(),
        private_before_bytes=home.private_before_bytes,
        grown_bytes=int(grown),
        unattributed_bytes=int(grown) - told,
        block_bytes=round(block, 1),
        collected=collected,
        malloc=home.meter.uses_malloc,
        measured_share=round(home.meter.cost_ns / 1e9 / max(seconds, 1e-9), 5),
        rows=tuple(rows),
    )


def _judge(
    home: Recorder, names: dict[str, Name], measure: _Measure, stretch: tuple[Point, Point]
) -> dict[str, _Judged]:
    """Return the judgement of each name by one measure; stretch: from when to when."""
    middle, end = stretch
    known = _estimates(home, names, measure)
    grown = measure.of(end.used_bytes - middle.used_bytes, end.blocks - middle.blocks)
    counts = {text: end.counts[n.index] - middle.counts[n.index] for text, n in names.items()}
    by_time = _rate_everywhere(home, known, measure)
    amounts = {text: counts[text] * each.estimate.value for text, each in known.items()}
    unsure = dict.fromkeys(names, 0.0)
    unsure |= {text: _TOLD_ERRORS * known[text].estimate.error * counts[text] for text in known}
    given = sum(amount for text, amount in amounts.items() if amount > unsure[text])
    taken = -sum(amount for text, amount in amounts.items() if -amount > unsure[text])
    freed = max(given - grown, taken) + sum(unsure.values())
    judged = {}
    for text, name in names.items():
        first = measure.of(name.first_bytes, name.first_blocks)
        whole = _Whole(counts[text], by_time, freed - unsure[text], grown, first)
        judged[text] = _Judged(_finding(known.get(text), whole), known.get(text))
    told = sum(amounts[text] for text, each in judged.items() if each.finding == "grows")
    if told >= (1 - _UNCLEAR_SHARE) * grown:  # no growth is left for another name
        for text, each in judged.items():
            if each.finding == "unclear":
                judged[text] = each._replace(finding="steady")
    return judged


def _middle(points: Sequence[Point], calls: int, block: float) -> Point:
    """Return a moment in the middle of the calls at which little was in use."""
    near = [each for each in points if abs(each.calls - calls / 2) <= _MIDDLE * calls]
    if not near:
        return min(points, key=lambda point: abs(point.calls - calls / 2))
    return min(near, key=lambda point: point.used_bytes + block * point.blocks)


def _block_bytes() -> float:
    """Return the average size of the object allocator's blocks."""
    found = _native.memory_arenas([], 0)
    if isinstance(found, str):
        return _DEFAULT_BLOCK
    taken, live = (sum(arena[field] for arena in found[2]) for field in (_TAKEN, _LIVE))
    return live / taken if taken else _DEFAULT_BLOCK


_TAKEN: Final = 2
_LIVE: Final = 3


# ---- estimates ----------------------------------------------------------------------------------


def _weighed(entries: Sequence[Entry], measure: _Measure) -> list[tuple[int, float]]:
    return [(each.calls, measure.of(each.used_bytes, each.blocks)) for each in entries]


def _alone(entries: Sequence[Entry], measure: _Measure) -> tuple[Estimate, bool]:
    """Return the growth by one call, and whether the last calls still grow."""
    every = _weighed(entries, measure)
    later = every[len(every) // 2 :]
    found, last = mean(every), mean(later)
    without, last_without = trimmed(every), trimmed(later)
    if without is not None and _bound(found, len(every)) <= _LEAST_BYTES:
        found, last = without, last_without or last
    return found, last.value >= _LEVELS_OFF * found.value


def _estimates(home: Recorder, names: dict[str, Name], measure: _Measure) -> dict[str, _Known]:
    known: dict[str, _Known] = {}
    for text, name in names.items():
        entries = [each for each in name.series.entries() if each.last > name.calls // 2]
        if len(entries) < _LEAST_ENTRIES:
            continue
        calls = sum(each.calls for each in entries)
        estimate, lasts = _alone(entries, measure)
        call_ns = sum(each.time_ns for each in entries) / calls
        known[text] = _Known(estimate, "alone", lasts, call_ns, len(entries))
    later = _later_rows(home)
    columns = _columns(later, home.limit + 1)
    alone = {names[text].index: each.estimate for text, each in known.items()}
    rows = [(point.counts, measure.of(point.used_bytes, point.blocks)) for point in later]
    found = _shares(rows, alone, columns)
    last = _shares(rows[len(rows) // 2 :], alone, columns)
    for text, name in names.items():
        each = found.get(name.index)
        if text in known or each is None:
            continue
        newest = last.get(name.index)
        lasts = newest is None or newest.value + newest.error >= _LEVELS_OFF * each.value
        in_rows = sum(point.counts[name.index] for point in later)
        call_ns = name.busy_ns / max(name.calls, 1)
        known[text] = _Known(each, "together", lasts, call_ns, min(len(later), in_rows))
    return known


def _later_rows(home: Recorder) -> list[Point]:
    """Return the rows of the last half of the calls that were not alone."""
    rows, seen = [], 0
    for point in home.rows.points():
        seen += point.calls
        rows.append((seen, point))
    return [point for calls, point in rows if calls > seen / 2]


def _columns(rows: Sequence[Point], width: int) -> list[int]:
    """Return the columns of the most frequent names and of their open calls.

    All names would be too many for the number of rows.
    """
    calls = [sum(point.counts[n] for point in rows) for n in range(width)]
    most = sorted((n for n in range(width) if calls[n]), key=lambda n: -calls[n])
    most = most[: min(_MOST_TOLD, (len(rows) - _SPARE_ROWS) // 2)]
    return [*most, *(n + width for n in most)]


def _shares(
    rows: Sequence[tuple[Sequence[int], float]], known: dict[int, Estimate], columns: list[int]
) -> dict[int, Estimate]:
    """Return the growth by a call of each name; other names together are one more."""
    kept = set(columns)
    width = len(rows[0][0]) // 2 if rows else 0
    seen = [n for n in range(width) if n in kept]
    found = by_rows(
        [
            (
                [
                    *(counts[n] for n in columns),
                    sum(counts[n] for n in range(width) if n not in kept),
                ],
                grown,
            )
            for counts, grown in rows
        ],
        {columns.index(n): known[n] for n in seen if n in known},
    )
    half = len(columns) // 2
    return {
        columns[i]: each._replace(partner=columns[each.partner] if 0 <= each.partner < half else -1)
        for i, each in found.items()
        if i < half
    }


# ---- judging ------------------------------------------------------------------------------------


def _errors(entries: int) -> float:
    """Return the number of standard errors that count as a difference: more for few entries."""
    return 3 + 8 / max(entries, 1)


def _bound(estimate: Estimate, entries: int) -> float:
    return estimate.value - _errors(entries) * estimate.error


def _rate_everywhere(home: Recorder, known: dict[str, _Known], measure: _Measure) -> float:
    """Return the growth per nanosecond that all names and the time between calls have in common.

    That growth does not come from the calls. 0.0 if one of them does not clearly grow.
    """
    rates = [(each.estimate, each.call_ns) for each in known.values() if each.call_ns > 0]
    gap = home.gap.series.entries()
    gap = gap[len(gap) // 2 :]
    if len(gap) >= _LEAST_ENTRIES:
        calls = sum(each.calls for each in gap)
        gap_ns = sum(each.time_ns for each in gap) / calls
        rates.append((mean(_weighed(gap, measure)), gap_ns))
    sure = all(each.value > _TOLD_ERRORS * each.error for each, _ in rates)
    if len(rates) <= 1 or not sure:
        return 0.0
    return min((each.value + _TOLD_ERRORS * each.error) / time for each, time in rates)


class _Whole(NamedTuple):
    """The facts that a name is judged by.

    calls: since the middle. by_time: the growth per nanosecond everywhere. freed: the memory that
    may have been freed outside of the names that grow, with the others' errors. grown: the growth
    of the process. first: its growth with the first calls.
    """

    calls: int
    by_time: float
    freed: float
    grown: float
    first: float


def _finding(known: _Known | None, whole: _Whole) -> Finding:
    if known is None or known.entries < _LEAST_ENTRIES:
        return "too few"
    alone = known.evidence == "alone"
    bound = _bound(known.estimate, known.entries) - whole.by_time * known.call_ns
    if bound <= (_LEAST_BYTES if alone else _LEAST_TOGETHER) or bound * whole.calls < _LEAST_GROWN:
        unsure = _errors(known.entries) * known.estimate.error * whole.calls
        if not alone and whole.grown > _LEAST_GROWN and unsure > _UNCLEAR_SHARE * whole.grown:
            return "unclear"
        warm = whole.first > max(_LEAST_GROWN, _WARM_ERRORS * known.estimate.error)
        return "warms up" if warm else "steady"
    if not known.lasts:
        return "levels off"
    return "grows" if bound * whole.calls > _MARGIN * whole.freed else "offset"


def _row(
    text: str, name: Name, judged: list[_Judged], stretch: tuple[Point, Point], block: float
) -> AttributedRow:
    middle, end = stretch
    count = end.counts[name.index] - middle.counts[name.index]
    finding = min((each.finding for each in judged), key=_ORDER.index)
    grows = finding == "grows"
    told = [each.known for each in judged if each.known and (not grows or each.finding == finding)]
    value = sum(each.estimate.value for each in told)
    return AttributedRow(
        name=text,
        calls=name.calls,
        alone=name.measured,
        busy_ns=name.busy_ns,
        bytes_per_call=round(value, 1),
        error_bytes=round(_TOLD_ERRORS * hypot(*(each.estimate.error for each in told)), 1),
        grown_bytes=int(value * count),
        first_bytes=int(name.first_bytes + block * name.first_blocks),
        finding=finding,
        evidence=told[0].evidence if told else "",
    )


def _cleared(
    rows: list[AttributedRow], judged: list[dict[str, _Judged]], by_index: dict[int, str]
) -> list[AttributedRow]:
    """Return the rows; unclear ones have the name that they are confused with."""
    cleared = []
    for row in rows:
        beside = ""
        for each in [by_measure[row.name] for by_measure in judged]:
            if row.finding == each.finding == "unclear" and each.known:
                beside = beside or by_index.get(each.known.estimate.partner, "")
        cleared.append(replace(row, beside=beside))
    return cleared
