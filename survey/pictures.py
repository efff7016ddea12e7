"""Draws the pictures of docs/explanation/cycles-in-cpython.md, for survey/patterns.py."""

from collections.abc import Iterable, Mapping, Sequence

from tools.stack_pictures import INK, LINE, UNUSED, box, line, number, picture, text

FRAME, EXCEPTION, TRACEBACK = "#a9cdf5", "#f6c39b", "#d8e8c8"
CUT = "#cf222e"
COLOURS = ("#0969da", "#1a7f37", "#8250df", "#bf8700", CUT)


def curve(path: str, *, cut: bool = False, caller: bool = False) -> str:
    """Return a curved arrow; cut: the one to take away; caller: what is not in the cycle."""
    edge = CUT if cut else LINE if caller else INK
    dashes = ' stroke-dasharray="3 3"' if caller else ""
    width = 1.8 if cut else 1.2
    return (
        f'<path d="{path}" fill="none" stroke="{edge}" stroke-width="{width}"{dashes} '
        'marker-end="url(#head)"/>'
    )


def coloured(x: float, y: float, words: str, colour: str, *, anchor: str = "start") -> str:
    """Return one line of bold text in a colour."""
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{colour}" '
        f'font-weight="bold">{words}</text>'
    )


def node(x: float, y: float, fill: str, *lines: str) -> list[str]:
    """Return a box of 190 by 62 pixels with lines of text in its middle."""
    top = y + 36 - 8 * (len(lines) - 1)
    return [box(x, y, 190, 62, fill), text(x + 95, top, *lines, anchor="middle")]


def exception() -> str:
    """Return the picture of an exception that is kept in a local, and of where to cut."""
    parts = [
        text(20, 26, "fetch() has returned; nobody refers to any of this from outside", bold=True),
        *node(40, 60, FRAME, "frame of fetch()", "its local variables"),
        *node(530, 60, EXCEPTION, "TimeoutError", "args, __traceback__"),
        *node(530, 210, TRACEBACK, "traceback", "tb_frame, tb_next, tb_lineno"),
        curve("M230 80H528", cut=True),
        coloured(380, 72, "last = e", CUT, anchor="middle"),
        coloured(380, 102, "cut here: del last", CUT, anchor="middle"),
        line(625, 122, 625, 208, arrow=True),
        text(636, 170, "__traceback__"),
        curve("M528 236L232 112"),
        text(420, 166, "tb_frame", anchor="middle"),
        number(24, 91, 1),
        number(738, 91, 2),
        number(738, 241, 3),
        *node(20, 210, UNUSED, "an answer, 1 MB,", "and all other locals"),
        curve("M70 122V208", caller=True),
        text(78, 170, "body"),
        *node(285, 250, UNUSED, "frame of the function", "that called fetch()"),
        curve("M210 122L340 248", caller=True),
        text(268, 200, "f_back", anchor="end"),
        text(
            20,
            346,
            "1, 2 and 3 are the cycle: their counts never come to 0. What hangs from it stays as",
        ),
        text(
            20,
            366,
            "long: the other locals of fetch(), and by f_back those of all the functions above it.",
        ),
    ]
    return picture(384, "A typical cycle: an exception in a local variable", parts)


LEFT, TOP, RIGHT, BOTTOM = 70, 50, 620, 290


def _path(series: Sequence[int], most: int, colour: str) -> str:
    x_step = (RIGHT - LEFT) / (len(series) - 1)
    points = " ".join(
        f"{LEFT + n * x_step:.1f},{BOTTOM - (BOTTOM - TOP) * value / most:.1f}"
        for n, value in enumerate(series)
    )
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def _grid(most: int) -> Iterable[str]:
    for share in range(0, most + 1, 1000):
        y = BOTTOM - (BOTTOM - TOP) * share / most
        yield line(LEFT, y, RIGHT, y)
        yield text(LEFT - 8, y + 4, f"{share:,}", anchor="end")
    for share in range(5):
        x = LEFT + (RIGHT - LEFT) * share / 4
        yield text(x, BOTTOM + 18, f"{share * 5000:,}", anchor="middle")


def steps(series: Mapping[str, Sequence[int]], clean: Sequence[int]) -> str:
    """Return the chart of jobs in memory.

    series: of each version, the numbers at equal distances; versions with the same numbers share
    a line.  clean: the same of a program that keeps no error.
    """
    most = -(-max(map(max, series.values())) // 1000) * 1000
    names: dict[tuple[int, ...], list[str]] = {}
    for version, numbers in series.items():
        names.setdefault(tuple(numbers), []).append(version)
    parts = [
        text(20, 26, "Jobs in memory, of which 100 are being worked on", bold=True),
        *_grid(most),
        text((LEFT + RIGHT) / 2, BOTTOM + 38, "jobs done", anchor="middle"),
    ]
    row = TOP + 20
    for (numbers, versions), colour in zip(names.items(), COLOURS, strict=False):
        parts.append(_path(numbers, most, colour))
        for version in versions:
            parts.append(coloured(RIGHT + 14, row, version, colour))
            row += 18
    parts += [
        _path(clean, most, INK),
        text(RIGHT + 14, BOTTOM - 22, "error not kept,", "on each of them"),
    ]
    return picture(344, "Jobs in memory over time", parts)
