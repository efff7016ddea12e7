"""The page: one HTML file without any other.

It is drawn here, as SVG, and not by a library in the reader's browser: plotly makes each page 4 MB
and shows nothing without scripts; smaller libraries (uPlot, Chart.js) draw no treemap and would
have to be shipped with the package. So a page has some 100 KB, and can be read and printed without
scripts; its script adds sorting and copying.

The page's own policy forbids it to load anything, and to run any script but its own, known by hash.
"""

from base64 import b64encode
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Final

from cpythonplus._base.files import write_output
from cpythonplus._base.reading import (
    Examination,
    Part,
    entries,
    largest,
    part,
    words,
)
from cpythonplus._doctor.report.cycle_graphs import cycle_cards
from cpythonplus._doctor.report.html import code, data_table, details, element, escaped
from cpythonplus._doctor.report.resident_map import arena_grid, part_swatch, resident_bar
from cpythonplus._doctor.report.sections import Section, losses, sections, target_line
from cpythonplus._doctor.report.time_line import owner_lines, time_lines
from cpythonplus._doctor.report.treemap import owners_treemap, treemaps
from cpythonplus._doctor.report.verdict import Statement, statements

_ROWS: Final = 100
_CARDS: Final = 12


def write_page(examination: Examination, file: str | PathLike[str]) -> None:
    """Write the page of an examination to a file or a device, as reports are. Raises OSError.

    examination: `as_json()` of each part by its name; parts may be missing.
    """
    write_output(file, page(examination))


def page(examination: Examination) -> str:
    """Return the page of an examination: HTML that can always be encoded as UTF-8."""
    target = target_line(examination)
    lost = "".join(element("p", escaped(each)) for each in losses(examination))
    found = sections(examination, _ROWS)
    links = "".join(f'<li><a href="#{s.key}">{escaped(s.title)}</a></li>' for s in found)
    style, script = _asset("style.css"), _asset("script.js")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_policy(style, script)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{escaped(f"cpythonplus doctor: {target}" if target else "cpythonplus doctor")}</title>
<style>{style}</style>
</head>
<body>
<header><h1>cpythonplus doctor</h1><p class="lead">{escaped(target)}</p>{lost}</header>
<main>
{_verdict(examination, is_empty=not found)}<nav aria-label="Sections"><ul>{links}</ul></nav>
{"".join(_section(section, examination) for section in found)}
</main>
<script>{script}</script>
</body>
</html>
"""


def _verdict(examination: Examination, *, is_empty: bool) -> str:
    """Return the statements; "" if there are tables only, as for growth."""
    said = "".join(map(_statement, statements(examination)))
    if is_empty:
        said = said or "<li><p>Nothing was examined.</p></li>"
    if not said:
        return ""
    return f"""\
<section id="verdict" aria-label="Verdict"><ul class="verdict">
{said}
</ul></section>
"""


@cache
def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    def source(text: str) -> str:
        return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"

    return (
        f"default-src 'none'; style-src {source(style)}; script-src {source(script)};"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )


def _statement(statement: Statement) -> str:
    inner = element("p", escaped(statement.sentence))
    if statement.remedy:
        inner += element("p", escaped(statement.remedy), class_="do")
    if statement.command:
        inner += code(statement.command)
    return element("li", inner)


# ---- sections -----------------------------------------------------------------------------------


def _section(section: Section, examination: Examination) -> str:
    lines = "".join(element("p", escaped(line)) for line in section.lines)
    found = part(examination, section.key)
    drawn = ""
    if section.key in _DRAWN and found is not None:
        drawn = _DRAWN[section.key](found)
    elif section.key == "samples":
        drawn = time_lines(entries(examination, "samples"))
    elif section.key == "growth":
        drawn = owner_lines(entries(examination, "samples"))
    tables = _tables(section, found)
    heading = element("h2", escaped(section.title))
    return element("section", heading + lines + drawn + tables, id=section.key)


def _tables(section: Section, found: Part | None) -> str:
    """Return a section's tables; those of the census and the first one of the cycles are folded."""
    written = ""
    for place, table in enumerate(section.tables):
        swatches: list[str] = []
        if section.key == "resident" and place == 0 and found is not None:
            rows = largest(found, "parts", "resident_bytes")
            swatches = [part_swatch(words(row, "name")) for row in rows[: len(table.rows)]]
        inner = data_table(table, swatches)
        if section.key == "census" or (section.key == "cycles" and place == 0):
            inner = details(f"Table: {table.title[0].lower()}{table.title[1:]}", inner)
        written += inner
    return written


def _resident(found: Part) -> str:
    return resident_bar(found) + arena_grid(found)


_DRAWN: Final[dict[str, Callable[[Part], str]]] = {
    "resident": _resident,
    "census": treemaps,
    "owners": owners_treemap,
    "cycles": lambda found: cycle_cards(found, _CARDS),
}
