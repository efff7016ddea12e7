"""The map of resident memory: one bar of all parts, and a cell for each of pymalloc's arenas."""

from typing import Final

from cpythonplus._base.reading import Part, size, words
from cpythonplus._base.text.sizes import format_size
from cpythonplus._doctor.report.html import element, escaped, figure, swatch
from cpythonplus._doctor.report.labels import label
from cpythonplus._doctor.report.sections import fullness, resident_parts

_BAR: Final = 46  # pixels
_LETTER: Final = 6.7
_SCREENS: Final = {"wide": 640, "narrow": 320}
"""The least width in pixels of the screens that each drawing is for."""
_SHADES: Final = 5
_MOST_CELLS: Final = 2_000


def part_class(name: str) -> str:
    """Return the style class for a part's colour."""
    return f"m-{label(name).colour}"


def part_swatch(name: str) -> str:
    """Return a small square in a part's colour."""
    return swatch(part_class(name))


def resident_bar(resident: Part) -> str:
    """Return the bar for wide and for narrow screens; "": there are no numbers."""
    rows = resident_parts(resident)
    whole = sum(size(row, "resident_bytes") for row in rows)
    if not whole:
        return ""
    return "".join(_bar(rows, whole, name, width) for name, width in _SCREENS.items())


def _bar(rows: list[Part], whole: int, screen: str, least_width: float) -> str:
    drawn, at = "", 0.0
    for row in rows:
        width = 100 * size(row, "resident_bytes") / whole
        drawn += _segment(row, at, width, least_width)
        at += width
    largest = ", ".join(
        f"{_name(row)} {format_size(size(row, 'resident_bytes'))}" for row in rows[:3]
    )
    return figure(
        drawn,
        class_=f"bar {screen}",
        title="Resident memory",
        description=f"{len(rows)} parts, the largest: {largest}; all are in the table below",
        height=_BAR,
    )


def _name(row: Part) -> str:
    return label(words(row, "name")).title


def _segment(row: Part, at: float, width: float, least_width: float) -> str:
    told = f"{_name(row)}: {format_size(size(row, 'resident_bytes'))}, {width:.1f} %"
    inner = element("title", escaped(told))
    inner += element("rect", width="100%", height="100%", class_=part_class(words(row, "name")))
    room = width / 100 * least_width - 10
    for place, line in enumerate((_name(row), format_size(size(row, "resident_bytes")))):
        if len(line) * _LETTER < room:
            inner += element("text", escaped(line), x=6, y=19 + 17 * place, class_=f"t{place}")
    return element("svg", inner, x=f"{at:.3f}%", width=f"{width:.3f}%", height=_BAR, class_="cell")


def arena_grid(resident: Part) -> str:
    """Return a cell for each arena, coloured by its fullness, the emptiest first.

    If there are many thousands, each cell stands for several.
    """
    counts = fullness(resident)
    total = sum(counts)
    if not total:
        return ""
    each = -(-total // _MOST_CELLS)
    cells = "".join(
        f'<i class="f{_shade(place, len(counts))}"></i>' * -(-count // each)
        for place, count in enumerate(counts)
    )
    low = sum(counts[: len(counts) // 2])
    told = f"{total:,} arenas, {low:,} of them less than half in use"
    step = 100 // _SHADES
    scale = "".join(
        f'<li><i class="f{shade}"></i>{shade * step}-{(shade + 1) * step} %</li>'
        for shade in range(_SHADES)
    )
    stands = f"; a cell is {each:,} arenas" if each > 1 else ""
    return (
        f"<h3>Arenas of Python's own allocator</h3><p>{escaped(told)}{stands}.</p>"
        f'<div class="arenas" role="img" aria-label="{escaped(told)}">{cells}</div>'
        f'<ul class="legend">{scale}</ul>'
    )


def _shade(place: int, steps: int) -> int:
    return place * _SHADES // steps
