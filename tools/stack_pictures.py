"""Draws the pictures of docs/explanation/tasklets-and-stacks.md.

    python -m tools.stack_pictures           rewrites those that are not up to date
    python -m tools.stack_pictures --check   changes nothing; exit status 1 when one is not

Writes tasklets-slab.svg (where a tasklet's stack and frames lie), tasklets-switch.svg (one switch,
step by step), tasklets-hand-over.svg (what becomes of a stack) and tasklets-cold.svg.  The sizes in
them are read from src/cpythonplus/tasklets/stacks/stacks.c and pystate.c.
"""

import re
import sys
from collections.abc import Callable, Iterable
from html import escape
from pathlib import Path

from tools import results_page
from tools.results_page import ROOT, PageError

FOLDER = ROOT / "docs" / "explanation"
SOURCES = ROOT / "src" / "cpythonplus"

WIDTH = 760
PAPER, INK, LINE = "#ffffff", "#24292f", "#8c959f"
UNUSED, GUARD = "#f3f4f6", "#d0d7de"
STACK, FRAMES, STATE = "#f6c39b", "#a9cdf5", "#d8e8c8"
PAGE_BYTES = 4096


class MissingSizeError(PageError):
    """One line on a size that the sources do not tell any more."""


# ---- sizes --------------------------------------------------------------------------------------


def size(file: str, pattern: str) -> int:
    """Return the number that `pattern` finds in a source, shifted as it says there.

    pattern: a regular expression with one or two groups: the number, and the bits of `<<`.
    Raises MissingSizeError when it is not there.
    """
    found = re.search(pattern, (SOURCES / file).read_text("utf-8"))
    if found is None:
        raise MissingSizeError(f"{file} has no {pattern!r}")
    number, *bits = (int(group) for group in found.groups())
    return number << bits[0] if bits else number


def sizes() -> dict[str, int]:
    """Return the sizes in bytes, and how many stacks a slab has."""
    kib = r"\(\(size_t\)(\d+) << (\d+)\)"
    return {
        "guard": size("tasklets/stacks/stacks.c", rf"#define WIDE_GUARD_BYTES {kib}"),
        "unit": size("tasklets/stacks/stacks.c", rf"#define TABLE_BYTES {kib}"),
        "frames": size("tasklets/stacks/stacks.c", rf"#define FRAMES_BYTES[\s\\]*{kib}"),
        "offset": size("tasklets/stacks/stacks.c", r"#define FRAMES_OFFSET \(\(size_t\)(\d+)\)"),
        "stacks": size("tasklets/stacks/stacks.c", r"#define SLAB_STACKS (\d+)"),
        "stack": size("_interp/frames/pystate.c", rf"#define THREAD_STACK_BYTES {kib}"),
    }


def kib(size_bytes: int) -> str:
    """Return bytes as KiB or MiB."""
    return f"{size_bytes / 2**20:g} MiB" if size_bytes >= 2**20 else f"{size_bytes / 1024:g} KiB"


# ---- drawing ------------------------------------------------------------------------------------


def box(x: float, y: float, width: float, height: float, fill: str) -> str:
    """Return a rectangle; x, y: its upper left corner, in pixels."""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" '
        f'fill="{fill}" stroke="{LINE}"/>'
    )


def text(x: float, y: float, *lines: str, anchor: str = "start", bold: bool = False) -> str:
    """Return lines of text, the first one's base line at y."""
    halo = f' paint-order="stroke" stroke="{PAPER}" stroke-width="5"'
    weight = f' font-weight="bold"{halo}' if bold else ""
    spans = "".join(
        f'<tspan x="{x:g}" y="{y + 16 * number:g}">{escape(line)}</tspan>'
        for number, line in enumerate(lines)
    )
    return f'<text text-anchor="{anchor}"{weight}>{spans}</text>'


def line(x1: float, y1: float, x2: float, y2: float, *, arrow: bool = False) -> str:
    """Return a line, with a head at its second end if it is an arrow."""
    head = ' marker-end="url(#head)"' if arrow else ""
    edge = INK if arrow else LINE
    dashes = "" if arrow else ' stroke-dasharray="3 3"'
    return f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" stroke="{edge}"{dashes}{head}/>'


def number(x: float, y: float, value: int) -> str:
    """Return the number of a step, in a circle."""
    return (
        f'<circle cx="{x:g}" cy="{y:g}" r="10" fill="{INK}"/>'
        f'<text x="{x:g}" y="{y + 4.5:g}" text-anchor="middle" fill="{PAPER}">{value}</text>'
    )


def picture(height: int, title: str, parts: Iterable[str]) -> str:
    """Return a whole SVG file."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="13" fill="{INK}">'
    )
    marker = (
        '<defs><marker id="head" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">'
        f'<path d="M0 0L9 4L0 8z" fill="{INK}"/></marker></defs>'
    )
    body = "\n".join(parts)
    return (
        f"{head}\n<title>{escape(title)}</title>\n{marker}\n"
        f'<rect width="{WIDTH}" height="{height}" fill="{PAPER}"/>\n{body}\n</svg>\n'
    )


# ---- the pictures -------------------------------------------------------------------------------


def slab() -> str:
    """Return the picture of a slab, of one slot in it, and of the page that two share."""
    of = sizes()
    slot = -(-(of["guard"] + of["stack"] + of["frames"]) // of["unit"]) * of["unit"]
    parts = [
        text(20, 26, f"A slab: one mapping with {of['stacks']} slots of {kib(slot)}", bold=True),
        text(740, 26, f"{slot * of['stacks'] / 2**20:g} MiB of address space", anchor="end"),
    ]
    names = ["0", "1", "2", "3", "4", "...", str(of["stacks"] - 2), str(of["stacks"] - 1)]
    for index, name in enumerate(names):
        parts.append(box(20 + 90 * index, 38, 90, 30, STACK if name == "2" else UNUSED))
        parts.append(text(65 + 90 * index, 58, name, anchor="middle"))
    parts += [line(200, 68, 20, 128), line(290, 68, 740, 128)]

    parts.append(text(20, 120, "One slot", bold=True))
    parts += [
        box(20, 130, 90, 60, GUARD),
        text(65, 156, "guard", kib(of["guard"]), anchor="middle"),
        box(110, 130, 360, 60, UNUSED),
        text(
            290,
            156,
            f"C stack, {kib(of['stack'])} or more",
            "no memory until it is used",
            anchor="middle",
        ),
        box(470, 130, 90, 60, STACK),
        box(560, 130, 40, 60, FRAMES),
        box(600, 130, 140, 60, UNUSED),
        text(670, 156, "Python's frames", kib(of["frames"]), anchor="middle"),
        line(560, 208, 470, 208, arrow=True),
        text(515, 226, "grows down", anchor="middle"),
        line(562, 208, 652, 208, arrow=True),
        text(610, 226, "grow up", anchor="middle"),
        text(20, 212, "low address"),
        text(740, 212, "high address", anchor="end"),
        line(480, 190, 20, 258),
        line(600, 190, 740, 258),
    ]

    split = 20 + 720 * of["offset"] / PAGE_BYTES
    parts += [
        text(
            20,
            250,
            f"One page of {kib(PAGE_BYTES)}: all the memory that most parked ones need",
            bold=True,
        ),
        box(20, 260, split - 20, 60, UNUSED),
        box(230, 260, split - 230, 60, STACK),
        text(
            (230 + split) / 2,
            286,
            "the C functions that it is in, registers",
            "(receive, the interpreter's loop)",
            anchor="middle",
        ),
        box(split, 260, 740 - split, 60, FRAMES),
        text((740 + split) / 2, 286, "its Python frames:", "locals, operands", anchor="middle"),
        line(230, 340, 230, 322, arrow=True),
        text(230, 356, "where it was left (sp)", anchor="middle"),
        line(split, 340, split, 322, arrow=True),
        text(split, 356, f"top, at {of['offset']:,} of {PAGE_BYTES:,} bytes", anchor="middle"),
    ]
    return picture(372, "Where the stack and the frames of a tasklet lie", parts)


FIELDS = (
    "current frame",
    "data stack: chunk, top, limit",
    "handled exceptions",
    "context variables",
    "trace and profile function",
    "recursion depth",
    "bounds of the C stack (3.14+)",
)


def stack_of(x: float, name: str, frames: Iterable[str], *, running: bool) -> list[str]:
    """Return a C stack with the functions on it, the outermost at the top."""
    parts = [text(x + 85, 82, name, anchor="middle", bold=True)]
    functions = list(frames)
    for index, function in enumerate(functions):
        parts.append(box(x, 92 + 32 * index, 170, 32, STACK))
        parts.append(text(x + 85, 112 + 32 * index, function, anchor="middle"))
    used = 92 + 32 * len(functions)
    parts.append(box(x, used, 170, 300 - used, UNUSED))
    parts.append(
        text(x + 85, used + 20, "rsp is here" if running else "sp points here", anchor="middle")
    )
    return parts


def switch() -> str:
    """Return the picture of one switch."""
    parts = [text(20, 26, "schedule() in tasklet A, when B is next", bold=True)]
    calls = ("the interpreter's loop", "schedule()", "6 registers, fp control")
    parts += stack_of(20, "stack of A", calls, running=True)
    parts += stack_of(570, "stack of B", calls, running=False)
    parts += [box(270, 92, 220, 24 + 22 * len(FIELDS), STATE)]
    parts += [text(380, 82, "thread state of CPython", anchor="middle", bold=True)]
    parts += [text(284, 116 + 22 * index, field) for index, field in enumerate(FIELDS)]
    parts += [
        box(215, 330, 130, 36, STATE),
        text(280, 352, "saved in tasklet A", anchor="middle"),
        box(415, 330, 130, 36, STATE),
        text(480, 352, "kept in tasklet B", anchor="middle"),
        line(320, 270, 290, 328, arrow=True),
        number(288, 294, 1),
        line(475, 328, 445, 270, arrow=True),
        number(477, 294, 2),
        number(234, 172, 3),
        line(224, 172, 192, 172, arrow=True),
        number(526, 172, 4),
        line(536, 172, 568, 172, arrow=True),
        text(20, 400, "1  save the thread state's fields in A"),
        text(390, 400, "2  load those that B has kept"),
        text(20, 422, "3  push the registers on A's stack, note where it was left"),
        text(390, 422, "4  take B's stack, pop its registers, return: in B"),
    ]
    return picture(440, "One switch between two tasklets", parts)


def hand_over() -> str:
    """Return the picture of an end: what becomes of the stack."""
    parts: list[str] = []
    rows = (
        ("Next is a new one: it gets the stack as it is, and no stack is switched", STACK, True),
        (
            "Next is a parked one: a switch to its stack; the other one goes to the pool",
            UNUSED,
            False,
        ),
    )
    for row, (title, fill, same) in enumerate(rows):
        y = 20 + 130 * row
        parts += [
            text(20, y + 8, title, bold=True),
            box(20, y + 22, 150, 60, STACK),
            text(95, y + 48, "stack 1", "A runs, and ends", anchor="middle"),
            line(172, y + 52, 288, y + 52, arrow=True),
            box(290, y + 22, 180, 60, fill),
        ]
        if same:
            parts.append(text(380, y + 48, "stack 1", "B begins", anchor="middle"))
            parts.append(line(472, y + 52, 588, y + 52, arrow=True))
            parts.append(box(590, y + 22, 150, 60, STACK))
            parts.append(text(665, y + 48, "stack 1", "C begins", anchor="middle"))
        else:
            parts.append(
                text(380, y + 48, "stack 1: free", "for the next new one", anchor="middle")
            )
            parts.append(box(590, y + 22, 150, 60, STACK))
            parts.append(text(665, y + 48, "stack 2", "B goes on", anchor="middle"))
            parts.append(
                f'<path d="M95 {y + 82}V{y + 98}H665V{y + 86}" fill="none" '
                f'stroke="{INK}" marker-end="url(#head)"/>'
            )
    return picture(250, "What becomes of the stack of a tasklet that ends", parts)


def page_of(x: float, name: str, parts: list[str]) -> None:
    """Add a stack's page with what is in use of it: 240 pixels, at y = 60."""
    parts += [
        text(x, 50, name),
        box(x, 60, 110, 60, UNUSED),
        box(x + 110, 60, 80, 60, STACK),
        text(x + 150, 95, "C stack", anchor="middle"),
        box(x + 190, 60, 50, 60, FRAMES),
        text(x + 215, 95, "frames", anchor="middle"),
    ]


def cold() -> str:
    """Return the picture of a stack that is made cold, and of its way back."""
    parts = [text(20, 26, "A tasklet is parked, is made cold, and goes on", bold=True)]
    page_of(20, "parked: one page", parts)
    parts += [
        text(290, 50, "cold: only addresses"),
        *(line(x, 60, x, 120) for x in (290, 470)),
        *(line(290, y, 470, y) for y in (60, 120)),
        text(380, 95, "reserved", anchor="middle"),
    ]
    page_of(500, "runs: the same addresses", parts)
    parts += [
        box(315, 160, 90, 40, STACK),
        box(405, 160, 55, 40, FRAMES),
        text(388, 185, "a block of the heap", anchor="middle"),
        line(200, 122, 312, 176, arrow=True),
        text(200, 172, "copied out", anchor="middle"),
        line(462, 176, 620, 124, arrow=True),
        text(570, 172, "copied back", anchor="middle"),
    ]
    return picture(216, "A cold tasklet", parts)


PICTURES: dict[str, Callable[[], str]] = {
    "tasklets-slab.svg": slab,
    "tasklets-switch.svg": switch,
    "tasklets-hand-over.svg": hand_over,
    "tasklets-cold.svg": cold,
}


def made() -> dict[Path, str]:
    """Return the pictures as they should be."""
    return {FOLDER / name: draw() for name, draw in PICTURES.items()}


if __name__ == "__main__":
    sys.exit(results_page.main("stack_pictures", made))
