"""A comparison as text, and its verdict in one sentence."""

import json
import os
import platform
import shlex
import textwrap

from cpythonplus._base.text.text_tables import columns
from cpythonplus._compare.comparison import Comparison, Metric, Row
from cpythonplus._compare.sides import SIDES
from cpythonplus._compare.statistics import CONFIDENCE, FEWEST_PAIRS

_SCALES = {
    "s": ((1, "s"), (1e-3, "ms"), (1e-6, "us")),
    "bytes": ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")),
    "1/s": ((1, "/s"),),
}
_WIDTH = 80
_LATE_SHARE = 0.5
"""A generator that is late by this part of a measured p99 has measured itself."""


def scale(metric: Metric, value: float) -> tuple[float, str]:
    """Return the divisor that makes a metric's values readable, and the name of the unit."""
    found = _SCALES[metric.unit]
    return next((each for each in found if value >= each[0]), found[-1])


def number(value: float) -> str:
    """Return a number with three digits."""
    size = abs(value)
    return f"{value:.0f}" if size >= 99.95 else f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"  # noqa: PLR2004


# ---- the verdict --------------------------------------------------------------------------------


def verdict(comparison: Comparison) -> str:
    """Return the result of the comparison in one sentence."""
    rows = [row for row in comparison.rows() if row.metric.in_verdict]
    judged = [row for row in rows if row.ratio is not None]
    if not judged:
        count = comparison.complete_rounds
        return (
            f"Too few rounds for a verdict: {count} complete, at least {FEWEST_PAIRS} are needed."
        )
    noise = [_name(row.metric) for row in judged if row.is_noise]
    told = [_difference(row) for row in judged if not row.is_noise]
    if not told:
        return f"No difference beyond the noise: {', '.join(noise)}."
    rest = f"; noise: {', '.join(noise)}" if noise else ""
    return f"With cpythonplus: {', '.join(told)}{rest}."


def _name(metric: Metric) -> str:
    return f"{metric.title} ({metric.group})" if metric.group else metric.title


def _difference(row: Row) -> str:
    found = row.ratio
    assert found is not None  # noqa: S101  # noise otherwise
    word = "more" if found.estimate > 1 else "less"
    low, high = sorted((_percent(found.low), _percent(found.high)), key=float)
    return f"{_name(row.metric)} {_percent(found.estimate)} % {word} ({low} to {high} %)"


def _percent(ratio: float) -> str:
    """Return the difference of a ratio from 1, in per cent."""
    value = abs(ratio - 1) * 100
    return f"{value:.0f}" if value >= 9.95 else f"{value:.1f}"  # noqa: PLR2004


def warnings(comparison: Comparison) -> list[str]:
    """Return warnings for the reader: failed requests, a late load generator."""
    found = []
    if comparison.complete_rounds < comparison.rounds:
        found.append(
            f"only {comparison.complete_rounds} of {comparison.rounds} rounds were completed"
        )
    for side in SIDES:
        for loop, kinds in comparison.errors(side).items():
            found += [f"{side}, {loop}: {count:,} times {kind}" for kind, count in kinds.items()]
        statuses = [status for status in comparison.statuses(side) if status]
        if statuses and comparison.service is None:
            found.append(f"{side} ended with status {', '.join(map(str, statuses))}")
    p99 = [each.values["open_p99_s"] for each in comparison.samples if "open_p99_s" in each.values]
    if p99 and comparison.late_s > min(p99) * _LATE_SHARE:
        found.append(
            f"the load generator itself was up to {comparison.late_s * 1e3:.1f} ms late:"
            " lower --rate, or leave a processor free for it"
        )
    return found


# ---- text ---------------------------------------------------------------------------------------


def text(comparison: Comparison) -> str:
    """Return the table, for a terminal of 80 columns, with the verdict below."""
    head = ("", "stock", "plus", "plus/stock", "")
    lines = [head]
    group = ""
    for row in comparison.rows():
        if row.metric.group != group:
            group = row.metric.group
            lines.append((f"{group}:", "", "", "", ""))
        lines.append((*cells(row), row.judgement))
    parts = [
        *(f"{side + ':':<7}{shlex.join(comparison.commands[side])}" for side in SIDES),
        _wrapped(f"{machine()}; {conditions(comparison)}"),
        "",
        *columns(lines),
        "",
        _wrapped(verdict(comparison)),
        *(_wrapped(f"Note: {each}.") for each in warnings(comparison)),
        "",
        legend(comparison),
    ]
    return "\n".join(parts) + "\n"


def _wrapped(text: str) -> str:
    """Return a paragraph in lines; a per cent sign stays with its number."""
    lines = textwrap.wrap(text.replace(" %", "\xa0%"), _WIDTH)
    return "\n".join(lines).replace("\xa0", " ")


def cells(row: Row) -> tuple[str, str, str, str]:
    """Return title and unit, median and range of both sides, and the ratio with its interval."""
    medians = [value for side in SIDES if (value := row.median(side)) is not None]
    divisor, unit = scale(row.metric, max(medians))
    found = []
    for side in SIDES:
        middle, values = row.median(side), row.values[side]
        if middle is None:
            found.append("-")
            continue
        low, high = number(min(values) / divisor), number(max(values) / divisor)
        found.append(f"{number(middle / divisor)} ({low}-{high})")
    ratio = row.ratio
    shown = "-" if ratio is None else f"{ratio.estimate:.2f} ({ratio.low:.2f}-{ratio.high:.2f})"
    return f"{row.metric.title}, {unit}", found[0], found[1], shown


def machine() -> str:
    """Return the facts about the machine that the numbers depend on, in one line."""
    return (
        f"{platform.python_implementation()} {platform.python_version()},"
        f" {len(os.sched_getaffinity(0))} processors, Linux {platform.release()}"
    )


def conditions(comparison: Comparison) -> str:
    """Return the conditions of the measurement."""
    count = comparison.complete_rounds
    rounds = f"{count} round{'s' * (count != 1)}"
    service = comparison.service
    if service is None:
        return rounds
    what = service.url
    if service.requests:
        what = f"{len(service.requests)} different requests, http://{service.address}"
    return (
        f"{rounds}; {what}: {service.rate:g}/s for {service.duration_s:g} s, then as fast as"
        f" possible, {service.connections} connections"
    )


def legend(comparison: Comparison) -> str:
    """Return the legend of the table."""
    line = (
        "Median (lowest-highest) of the rounds; ratio with its"
        f" {CONFIDENCE:.0%} confidence interval.\nnoise: the interval contains 1, or"
        " the difference is below 1 %."
    )
    if comparison.service is None:
        return line
    return f"{line}\nopen loop: latency is measured from the time at which a request was due."


# ---- JSON ---------------------------------------------------------------------------------------


def as_json(comparison: Comparison) -> str:
    """Return the comparison as JSON, with the verdict."""
    data = {
        "verdict": verdict(comparison),
        "notes": warnings(comparison),
        "machine": machine(),
        "conditions": conditions(comparison),
        **comparison.as_json(),
    }
    return json.dumps(data, indent=2) + "\n"
