"""The time line of a watched process: resident memory, its parts stacked, waits for the GIL.

Lines are drawn in a box of 1000 by 1000 that is stretched to the screen; letters are outside.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from cpythonplus._base.reading import Part, amount, entries, inside, known, words
from cpythonplus._base.text.sizes import duration, format_size
from cpythonplus._doctor.report.html import element, escaped, figure, swatch
from cpythonplus._doctor.report.labels import label
from cpythonplus._doctor.report.resident_map import part_class, part_swatch
from cpythonplus._doctor.report.sections import waiting

_HEIGHT: Final = 260
_LOW_HEIGHT: Final = 120
_MOST_SAMPLES: Final = 600
_MOST_PARTS: Final = 8
_MOST_OWNERS: Final = 6
_SIDE: Final = 1000
_AXIS: Final = 24
"""Pixels below the lines, for the times."""


def time_lines(samples: Sequence[Part]) -> str:
    """Return the drawings; "": less than two samples.

    samples: in order; each has `t_s`, `rss_bytes`, and if known `parts` and `gil`.
    """
    if len(samples) < 2:  # noqa: PLR2004
        return ""
    every = -(-len(samples) // _MOST_SAMPLES)
    thinned = [*samples[:-1:every], samples[-1]]
    return _memory(thinned) + _waits(thinned)


def owner_lines(samples: Sequence[Part]) -> str:
    """Return the growth by owner, over time; "": there were less than two looks at owners.

    samples: in order; each has `t_s`, and `owners` if these were looked at again.
    """
    looked = [sample for sample in samples if "owners" in sample]
    if len(looked) < 2:  # noqa: PLR2004
        return ""
    kept = [
        {words(row, "name"): amount(row, "amount_bytes") for row in entries(sample, "owners")}
        for sample in looked
    ]
    names = sorted(kept[-1], key=lambda name: -kept[-1][name])[:_MOST_OWNERS]
    most = max(1.0, *(each.get(name, 0.0) for each in kept for name in names))
    times = _times(looked)
    lines, legend = "", ""
    for place, name in enumerate(names):
        points = _points(times, [max(each.get(name, 0.0), 0.0) for each in kept], most)
        lines += element("polyline", points=" ".join(points), class_=f"rise g{place}")
        legend += (
            f"<li>{swatch(f'g{place}')}{escaped(name)} +{format_size(int(kept[-1][name]))}</li>"
        )
    chart = figure(
        _axes(looked, lines, format_size(int(most)), format_size(int(most / 2)), _HEIGHT),
        class_="time",
        title="What has grown, by who keeps it",
        description=", ".join(f"{n}: +{format_size(int(kept[-1][n]))}" for n in names),
        height=_HEIGHT,
    )
    return chart + (f'<ul class="legend">{legend}</ul>' if legend else "")


def _memory(samples: Sequence[Part]) -> str:
    names = _names(samples)
    sums = (sum(_parts(s).values()) for s in samples)
    most = max(*(amount(s, "rss_bytes") for s in samples), *sums, 1)
    times = _times(samples)
    areas = _areas(names, samples, times, most)
    rss = _points(times, [amount(s, "rss_bytes") for s in samples], most)
    line = element("polyline", points=" ".join(rss), class_="rss")
    first, last = (format_size(int(amount(samples[n], "rss_bytes"))) for n in (0, -1))
    drawn = _axes(
        samples, areas + line, format_size(int(most)), format_size(int(most / 2)), _HEIGHT
    )
    chart = figure(
        drawn,
        class_="time",
        title="Resident memory over time",
        description=f"{first} at first, {last} at the end, at most {format_size(int(most))}",
        height=_HEIGHT,
    )
    legend = "".join(f"<li>{part_swatch(n)}{escaped(label(n).title)}</li>" for n in names)
    return chart + (f'<ul class="legend">{legend}</ul>' if legend else "")


def _areas(
    names: Sequence[str], samples: Sequence[Part], times: Sequence[float], most: float
) -> str:
    """Return the parts, stacked.

    They are looked at less often: a sample that repeats the parts of the one before is left out.
    """
    fresh = [
        n for n, s in enumerate(samples) if n == 0 or s.get("parts") != samples[n - 1].get("parts")
    ]
    places = [times[n] for n in fresh]
    floor = [0.0] * len(fresh)
    areas = ""
    for name in names:
        top = [low + _parts(samples[n]).get(name, 0) for low, n in zip(floor, fresh, strict=True)]
        there = _points(places, top, most)
        back = list(reversed(_points(places, floor, most)))
        areas += element("polygon", points=" ".join([*there, *back]), class_=part_class(name))
        floor = top
    return areas


def _names(samples: Sequence[Part]) -> list[str]:
    """Return the parts that are drawn, the largest lowest."""
    totals: dict[str, float] = {}
    for sample in samples:
        for name, value in _parts(sample).items():
            totals[name] = totals.get(name, 0) + value
    return sorted(totals, key=lambda name: -totals[name])[:_MOST_PARTS]


def _parts(sample: Part) -> dict[str, float]:
    """Return the sizes of a sample's parts by name."""
    rows = entries(sample, "parts")
    return {words(row, "name"): amount(row, "resident_bytes") for row in rows}


def _waits(samples: Sequence[Part]) -> str:
    """Return the line of the waits for the GIL, per second; "": not known."""
    if sum(known(inside(sample, "gil"), "wait_ns") for sample in samples) < 2:  # noqa: PLR2004
        return ""
    rates = [0.0, *((waiting(*pair) or (0.0, 0.0))[0] for pair in pairwise(samples))]
    most = max(*rates, 1)
    points = _points(_times(samples), rates, most)
    line = element("polyline", points=" ".join(points), class_="waits")
    return element("h3", "Waiting for the GIL, in each second") + figure(
        _axes(samples, line, duration(most), "", _LOW_HEIGHT),
        class_="time",
        title="Waiting for the GIL",
        description=f"all threads together, at most {duration(most)} in a second",
        height=_LOW_HEIGHT,
    )


def _times(samples: Sequence[Part]) -> list[float]:
    """Return the place of each sample, from 0 to the whole width."""
    first = amount(samples[0], "t_s")
    length = amount(samples[-1], "t_s") - first
    if length <= 0:
        return [_SIDE * n / (len(samples) - 1) for n in range(len(samples))]
    return [_SIDE * min(max((amount(s, "t_s") - first) / length, 0), 1) for s in samples]


def _points(times: Sequence[float], values: Sequence[float], most: float) -> list[str]:
    return [
        f"{x:.1f},{_SIDE * (1 - value / most):.1f}" for x, value in zip(times, values, strict=True)
    ]


def _axes(samples: Sequence[Part], lines: str, most: str, half: str, height: int) -> str:
    """Return the drawn lines with the labels of the axes."""
    inner = element(
        "svg",
        lines,
        viewBox=f"0 0 {_SIDE} {_SIDE}",
        preserveAspectRatio="none",
        width="100%",
        height=height - _AXIS,
    )
    low = height - _AXIS
    grid = "".join(
        element("line", x1="0", x2="100%", y1=y, y2=y, class_="grid") for y in (0.5, low / 2, low)
    )
    end = amount(samples[-1], "t_s") - amount(samples[0], "t_s")
    words_ = element("text", escaped(most), x=4, y=14, class_="axis")
    if half:
        words_ += element("text", escaped(half), x=4, y=low / 2 + 14, class_="axis")
    words_ += element("text", "0 s", x=0, y=height - 6, class_="axis")
    words_ += element(
        "text", f"{end:.0f} s", x="100%", y=height - 6, class_="axis", text_anchor="end"
    )
    return inner + grid + words_
