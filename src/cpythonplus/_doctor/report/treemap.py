"""The treemap of the census: owners as areas.

It is drawn twice, for a wide and for a narrow screen; the style shows one of them. Positions are
per cents and letters are pixels, so that they stay readable at any width; a cell is an `svg` of its
own, which clips its text.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from cpythonplus._base.reading import Part, entries, size, words
from cpythonplus._base.text.sizes import format_size
from cpythonplus._base.text.tables import objects
from cpythonplus._doctor.report.html import element, escaped, figure, swatch
from cpythonplus._doctor.report.sections import CENSUS_VIEWS
from cpythonplus._doctor.report.squarify import Box, squarify

GROUPS: Final = 8
"""Colours; the last one is for all that has none of its own."""
_LETTER: Final = 6.7
"""Pixels of a letter, about, at 12 px."""
_LINE: Final = 17
_PADDING: Final = 6
_REST: Final = "all others"
_SHARED: Final = "several together, or small ones"


class _Screen(NamedTuple):
    """The target of a drawing. Pixels; least_width: of the screens that show it."""

    name: str
    width: float
    least_width: float
    height: float
    cells: int


_SCREENS: Final = (_Screen("wide", 960, 640, 430, 60), _Screen("narrow", 340, 300, 480, 26))


class _Leaf(NamedTuple):
    name: str
    objects: int
    size_bytes: int
    group: int


def treemaps(census: Part) -> str:
    """Return a treemap for each way of counting, and a switch; "": there is nothing to draw.

    The switch consists of radio buttons and style: it needs no script, and a keyboard works it.
    """
    views = [(name, title, _leaves(census, name)) for name, title in CENSUS_VIEWS.items()]
    views = [view for view in views if view[2]]
    inputs, labels, panels = "", "", ""
    for place, (_, title, leaves) in enumerate(views):
        checked = " checked" if place == 0 else ""
        inputs += (
            f'<input type="radio" name="view" id="view{place}" class="view v{place}"{checked}>'
        )
        labels += f'<label for="view{place}" class="l{place}">{escaped(title)}</label>'
        drawn = "".join(_drawing(leaves, title, screen) for screen in _SCREENS)
        panels += element("div", drawn + _legend(leaves), class_=f"panel p{place}")
    if not views:
        return ""
    return f'<div class="views">{inputs}<div class="tabs">{labels}</div>{panels}</div>'


def owners_treemap(owners: Part) -> str:
    """Return the memory that would be freed with each owner, as a part of the heap; "": none."""
    rows = [
        (words(row, "name"), size(row, "objects"), size(row, "kept_bytes"))
        for row in entries(owners, "owners")
    ]
    left = size(owners, "size_bytes") - sum(row[2] for row in rows)
    if rows and left > 0:
        rows.append((_SHARED, size(owners, "objects") - sum(row[1] for row in rows), left))
    leaves = _coloured(rows)
    if not leaves:
        return ""
    drawn = "".join(_drawing(leaves, "by who keeps it", screen) for screen in _SCREENS)
    return drawn + _legend(leaves)


def _leaves(census: Part, view: str) -> list[_Leaf]:
    rows = entries(census, view)
    return _coloured(
        (words(row, "name"), size(row, "objects"), size(row, "size_bytes")) for row in rows
    )


def _coloured(rows: Iterable[tuple[str, int, int]]) -> list[_Leaf]:
    """Return the leaves, the largest first, with the group that gives the colour."""
    plain = sorted((each for each in rows if each[2] > 0), key=lambda each: -each[2])
    totals: dict[str, int] = {}
    for name, _, size_bytes in plain:
        totals[group(name)] = totals.get(group(name), 0) + size_bytes
    ranked = sorted(totals, key=lambda name: -totals[name])
    colour = {name: min(place, GROUPS - 1) for place, name in enumerate(ranked)}
    return [_Leaf(*each, colour[group(each[0])]) for each in plain]


def group(name: str) -> str:
    """Return the package that a name belongs to: `shop` of "dict of shop.models.Order"."""
    name = name.rpartition(" ")[2]
    package, dot, _ = name.partition(".")
    return package if dot else "builtins" if name.islower() and name.isidentifier() else name


def _drawing(leaves: list[_Leaf], title: str, screen: _Screen) -> str:
    whole = sum(leaf.size_bytes for leaf in leaves)
    shown = leaves[: screen.cells]
    rest = leaves[screen.cells :]
    if rest:
        count = sum(leaf.objects for leaf in rest)
        shown = [*shown, _Leaf(_REST, count, sum(leaf.size_bytes for leaf in rest), GROUPS - 1)]
        shown.sort(key=lambda leaf: -leaf.size_bytes)
    boxes = squarify([leaf.size_bytes for leaf in shown], screen.width, screen.height)
    cells = "".join(_cell(leaf, box, screen, whole) for leaf, box in zip(shown, boxes, strict=True))
    largest = ", ".join(f"{leaf.name} {format_size(leaf.size_bytes)}" for leaf in shown[:3])
    return figure(
        cells,
        class_=f"treemap {screen.name}",
        title=f"Memory {title}",
        description=f"{len(shown)} areas, the largest: {largest}; all are in the table below",
        height=screen.height,
    )


def _cell(leaf: _Leaf, box: Box, screen: _Screen, whole: int) -> str:
    share = 100 * leaf.size_bytes / whole
    size_text = format_size(leaf.size_bytes)
    told = f"{leaf.name}: {size_text}, {share:.1f} %, {objects(leaf.objects)}"
    inner = element("title", escaped(told))
    inner += element("rect", width="100%", height="100%", class_=f"g{leaf.group}")
    # The room on the narrowest screen that shows this drawing.
    room = int((box.width * screen.least_width / screen.width - _PADDING) / _LETTER)
    lines = [shortened(leaf.name, room), size_text]
    for place, line in enumerate(lines):
        if room >= len(line) > 0 and box.height > _LINE * (place + 1) + _PADDING:
            y = _LINE * (place + 1) - 1
            inner += element("text", escaped(line), x=_PADDING, y=y, class_=f"t{place}")
    return element(
        "svg",
        inner,
        x=f"{100 * box.x / screen.width:.2f}%",
        y=box.y,
        width=f"{100 * box.width / screen.width:.2f}%",
        height=box.height,
        class_="cell",
    )


def shortened(name: str, letters: int) -> str:
    """Return a name in so many letters, its modules dropped first; "" if too few would be left."""
    if len(name) <= letters:
        return name
    head, space, last = name.rpartition(" ")
    short = head + space + last.rpartition(".")[2]
    if len(short) <= letters:
        return short
    short = last.rpartition(".")[2]
    if len(short) <= letters:
        return short
    return f"{short[: letters - 1]}…" if letters >= 5 else ""  # noqa: PLR2004  # too short to tell


def _legend(leaves: Sequence[_Leaf]) -> str:
    """Return the legend of packages and colours, if there is more than one."""
    named: dict[int, str] = {}
    for number, members in groupby(
        sorted(leaves, key=lambda leaf: leaf.group), lambda leaf: leaf.group
    ):
        named[number] = "others" if number == GROUPS - 1 else group(next(members).name)
    if len(named) < 2:  # noqa: PLR2004  # nothing to tell apart
        return ""
    items = "".join(
        f"<li>{swatch(f'g{number}')}{escaped(name)}</li>" for number, name in sorted(named.items())
    )
    return f'<ul class="legend">{items}</ul>'
