"""Pieces of HTML and SVG; all text from the examined program is `escaped`.

Nothing here writes a style attribute or an event handler: the page's policy forbids them, so that
text that slipped through unescaped could neither run nor load anything.
"""

import html
from collections.abc import Sequence
from typing import Final

from cpythonplus._base.reading import visible
from cpythonplus._base.text.tables import Cell, Column, Kind, Table, shown


def escaped(text: str) -> str:
    """Return a text for use between tags or inside of a quoted attribute."""
    return html.escape(visible(text), quote=True)


def element(name: str, inner: str = "", /, **attributes: str | float) -> str:
    """Return an element.

    inner: HTML; attributes: unescaped, named as Python can: `class_`, `data_v`.

    Numbers are written with two decimals at most.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for key, value in attributes.items()
    )
    return f"<{name}{written}>{inner}</{name}>"


def _attribute(value: str | float) -> str:
    return escaped(value) if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")


def figure(svg: str, *, class_: str, title: str, description: str, height: float = 0) -> str:
    """Return a drawing with its name and a description for readers who do not see it.

    svg: its contents; height: in pixels, 0 for a drawing with a view box of its own.
    """
    sized: dict[str, str | float] = {"width": "100%", "height": height} if height else {}
    inner = element("title", escaped(title)) + element("desc", escaped(description)) + svg
    return element(
        "svg", inner, class_=class_, role="img", aria_label=f"{title}: {description}", **sized
    )


def swatch(class_: str) -> str:
    """Return a small square in the colour of a class of the style, for a legend."""
    inner = element("rect", width="100%", height="100%", class_=class_)
    return element("svg", inner, class_="swatch", aria_hidden="true")


def details(summary: str, inner: str) -> str:
    """Return a block that is folded until a click, without a script."""
    return f"<details><summary>{escaped(summary)}</summary>{inner}</details>"


def code(command: str) -> str:
    """Return a command to copy; the script adds a button."""
    return f'<pre class="copy"><code>{escaped(command)}</code></pre>'


_SORTED_BY: Final = "data_v"


def data_table(table: Table, marks: Sequence[str] = ()) -> str:
    """Return a table. marks: HTML in front of each row's first name, a swatch for instance.

    Its headings have a `scope`; the script makes them sort.
    """
    head = "".join(_heading(column) for column in table.columns)
    name = next((n for n, c in enumerate(table.columns) if c.kind is Kind.NAME), None)
    rows = []
    for place, row in enumerate(table.rows):
        cells = [_cell(cell, column) for cell, column in zip(row, table.columns, strict=True)]
        if place < len(marks) and name is not None:
            cells[name] = _cell(row[name], table.columns[name], marks[place])
        rows.append(element("tr", "".join(cells)))
    caption = f"<caption>{escaped(table.title)}</caption>" if table.title else ""
    more = f'<p class="note">and {table.left_out:,} more</p>' if table.left_out else ""
    return (
        '<div class="scroll" tabindex="0" role="region"'
        f' aria-label="{escaped(table.title or "table")}"><table>{caption}'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>{more}"
    )


def _heading(column: Column) -> str:
    class_ = "n" if column.kind.is_number else column.kind.value
    return f'<th scope="col" class="{class_}">{escaped(column.heading)}</th>'


def _cell(cell: Cell, column: Column, mark: str = "") -> str:
    text = escaped(shown(cell, column.kind))
    if column.kind.is_number:
        value = 0.0 if isinstance(cell, str) else cell
        return element("td", mark + text, class_="n", **{_SORTED_BY: value})
    if column.kind is Kind.CODE and text:
        text = f"<code>{text}</code>"
    return element("td", mark + text, class_=column.kind.value)
