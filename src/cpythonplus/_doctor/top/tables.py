"""The lines of `cpythonplus top`: fixed columns, of which a narrow terminal gets fewer.

A line of the program stands in front of its function, and loses folders before it loses its end, so
that `file:line` is whole at each width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len, set_cell_size

from cpythonplus._base.reading import entries, size, words
from cpythonplus._base.text.sizes import duration, format_size

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cpythonplus._base.reading import Part
    from cpythonplus._doctor.top.looking import ProcessRow, StallRow, TaskRow, ThreadRow

SORTS: Final[dict[str, Callable[[ThreadRow], tuple[object, ...]]]] = {
    "GIL%": lambda row: (-(row.gil or 0), -(row.cpu or 0), row.name),
    "CPU%": lambda row: (-(row.cpu or 0), row.name),
    "p99": lambda row: (-(row.wait_p99_ns or 0), row.name),
    "waits": lambda row: (-row.waits, row.name),
    "level": lambda row: (-1 if row.level is None else -row.level, row.name),
    "name": lambda row: (row.name, row.pid),
}
"""By the heading of the column; the first one is the default."""
_WIDE, _MIDDLE = 140, 72
"""From these widths on all columns are shown, and those of a usual terminal."""
_TWO_LINES = 48
"""The least room for the line of a thread and that which made what it waits for."""
_MOST_PROCESSES = 6
_MOST_STALLS = 3
_NOTHING = "-"


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    width: int
    text: Callable[[ThreadRow], str]
    least: int = 0
    """The least width of a terminal that shows it."""
    to_the_right: bool = True


def _share(value: float | None) -> str:
    return _NOTHING if value is None else f"{value * 100:.0f}"


def _time(ns: int | None) -> str:
    return _NOTHING if ns is None else duration(ns)


def _state(row: ThreadRow) -> str:
    return f"{row.state}, {duration(row.since_ns)}" if row.since_ns else row.state


_PID = _Column("PID", 7, lambda row: str(row.pid))
_COLUMNS = (
    _Column("TID", 7, lambda row: str(row.native_id), _WIDE),
    _Column("name", 16, lambda row: row.name, to_the_right=False),
    _Column("level", 5, lambda row: _NOTHING if row.level is None else str(row.level), _MIDDLE),
    _Column("GIL%", 4, lambda row: _share(row.gil)),
    _Column("CPU%", 4, lambda row: _share(row.cpu)),
    _Column("waits", 6, lambda row: str(row.waits), _WIDE),
    _Column("p50", 7, lambda row: _time(row.wait_p50_ns), _WIDE),
    _Column("p99", 7, lambda row: _time(row.wait_p99_ns), _MIDDLE),
    _Column("does", 14, lambda row: row.state, _MIDDLE, to_the_right=False),
)
_LONG_STATE = _Column("does", 28, _state, to_the_right=False)


def _place(file: str, line: int, room: int, *, behind: str = "") -> str:
    """Return `file:line` and what comes behind it, cut where it has to be.

    The file gets as many of its folders as there is room for; of a name that is too long itself the
    end is left.
    """
    if not file:
        return _fitted(behind.lstrip(), room)
    told = f"{file}:{line}"
    while "/" in told and cell_len(told) + cell_len(behind) > room:
        told = told.partition("/")[2]
    if cell_len(told) > room:
        while told and cell_len(told) >= room:
            told = told[1:]
        return f"…{told}"
    return _fitted(told + behind, room)


def _cell(text: str, width: int, *, to_the_right: bool = False) -> str:
    """Return a text of exactly this width; a longer one is cut."""
    if to_the_right and len(text) <= width:
        return text.rjust(width)
    return set_cell_size(text, width)


def _fitted(line: str, width: int) -> str:
    return line if len(line) * 2 <= width else set_cell_size(line, width).rstrip()


def matching(rows: Sequence[ThreadRow], text: str) -> list[ThreadRow]:
    """Return the threads whose name, state, function or file has the text, in any case."""
    wanted = text.casefold()
    return [
        row
        for row in rows
        if wanted in f"{row.name} {row.state} {row.function} {row.file}".casefold()
    ]


def thread_lines(rows: Sequence[ThreadRow], width: int) -> list[str]:
    """Return the heading and a line for each thread."""
    columns = [each for each in _COLUMNS if width >= each.least]
    wide = width >= _WIDE
    if wide:
        columns[-1] = _LONG_STATE
    if len({row.pid for row in rows}) > 1:
        columns.insert(0, _PID)
    room = max(width - sum(each.width + 1 for each in columns), 1)
    heads = [_cell(each.title, each.width, to_the_right=each.to_the_right) for each in columns]
    lines = [" ".join([*heads, "at"])]
    for row in rows:
        cells = [
            _cell(each.text(row), each.width, to_the_right=each.to_the_right) for each in columns
        ]
        lines.append(" ".join([*cells, _where(row, room, short=not wide)]))
    return [_fitted(line, width) for line in lines]


def _where(row: ThreadRow, room: int, *, short: bool) -> str:
    """Return the line of a thread, and that which made what it waits for; short: no folders."""
    file, made, line = row.file, *row.made_at.rpartition(":")[::2]
    if short:
        file, made = file.rpartition("/")[2], made.rpartition("/")[2]
    function = f" {row.function}" if row.function else ""
    if not made or room < _TWO_LINES:
        return _place(file, row.line, room, behind=function)
    behind = f"; made at {_place(made, int(line), max(room // 2 - len('; made at '), 1))}"
    return _fitted(_place(file, row.line, room - cell_len(behind)) + behind + function, room)


def head_lines(processes: Sequence[ProcessRow], width: int) -> list[str]:
    """Return a line for each process, and its problem."""
    lines: list[str] = []
    for each in processes[:_MOST_PROCESSES]:
        told = [
            f"{each.pid}  CPU {_share(each.cpu)} %",
            f"memory {format_size(each.rss_bytes)}, private {format_size(each.private_bytes)}",
            f"threads {each.native_threads}",
        ]
        if each.collections:
            told.append(f"collections {'/'.join(map(str, each.collections))}")
        if not each.problem and not each.scheduled:
            told.append("the GIL is not scheduled: start it with `cpythonplus run`")
        lines.append("  ".join([*told, each.command]))
        lines += [f"  ! deadlock: {', '.join(names)}" for names in each.deadlocks]
        for row in each.stalls[:_MOST_STALLS]:
            lines += _stall_lines(row, width)
        if len(each.stalls) > _MOST_STALLS:
            lines.append(f"  ! and {len(each.stalls) - _MOST_STALLS} more places with stalls")
        if each.problem:
            lines.append(f"  ! {each.problem}")
    if len(processes) > _MOST_PROCESSES:
        lines.append(f"and {len(processes) - _MOST_PROCESSES} more processes")
    return [_fitted(line, width) for line in lines]


def _stall_lines(row: StallRow, width: int) -> list[str]:
    """Return the stalls of the last minute at one place; in two lines if one is too short."""
    times = duration(row.longest_ns)
    if row.count > 1:
        total = duration(row.total_ns)
        times = f"longest {times}, {row.count} times in a minute, {total} together"
    begin, room = "  ! stall: ", width - len("  ! stall: ")
    name = row.file.rpartition("/")[2]
    whole = f"{begin}{name}:{row.line} in {row.function}: {times}, {row.thread}: {row.what}"
    if cell_len(whole) <= width:
        return [whole]
    kept, _, made = row.what.rpartition(" made at ")
    what = f"{kept} made at {made.rpartition('/')[2]}" if kept else row.what
    return [
        begin + _place(name, row.line, room, behind=f": {times}"),
        f"  !   {what}, {row.thread}, in {row.function}",
    ]


def task_lines(rows: Sequence[TaskRow], width: int) -> list[str]:
    """Return the heading and a line for each kind of task."""
    lines = [f"{'PID':>7} {'count':>6} {'kind':<8} {'state':<16} at"]
    lines += [
        f"{row.pid:>7} {row.count:>6} {row.kind:<8} {_cell(row.state or _NOTHING, 16)} "
        + _place(row.file, row.line, max(width - 41, 1), behind=f" {row.function}")
        for row in rows
    ]
    return [_fitted(line, width) for line in lines]


def stack_lines(answer: Part, width: int) -> list[str]:
    """Return a line for each frame, innermost first."""
    lines = [
        _place(words(row, "file"), size(row, "line"), width, behind=f"  {words(row, 'function')}")
        for row in entries(answer, "stack")
    ]
    return [_fitted(line, width) for line in lines or [words(answer, "error")]]


_PROFILE = ("held", "holds", "longest", "waited", "waits", "longest")


def profile_lines(answers: Mapping[int, Part], width: int) -> list[str]:
    """Return the heading and a line for each stack, those with the longest holds first."""
    rows: list[tuple[list[int], list[int], list[tuple[str, int, str]]]] = []
    problems = [words(answer, "error") for answer in answers.values() if "error" in answer]
    for answer in answers.values():
        functions = answer.get("functions")
        names = functions if isinstance(functions, list) else []
        for stack in entries(answer, "stacks"):
            holds, waits = (_whole_numbers(stack.get(name)) for name in ("holds", "waits"))
            rows.append((holds, waits, _frames(stack, names)))
    rows.sort(key=lambda row: (-row[0][1], -row[1][1]))
    shown = (0, 1, 2, 3, 4, 5) if width >= _MIDDLE else (0, 3)
    room = max(width - 9 * len(shown), 1)
    lines = [" ".join([*(f"{_PROFILE[each]:>8}" for each in shown), "at, called by"])]
    for holds, waits, frames in rows:
        cells = [
            cell
            for count, total, longest in (holds, waits)
            for cell in (duration(total), str(count), duration(longest))
        ]
        (file, line, name), *callers = frames or [("", 0, "no Python function")]
        behind = "".join(f" < {f.rpartition('/')[2]}:{n} {called}" for f, n, called in callers)
        at = _place(file.rpartition("/")[2], line, room, behind=f" {name}{behind}")
        lines.append(" ".join([*(f"{cells[each]:>8}" for each in shown), at]))
    return [_fitted(line, width) for line in [*problems, *lines]]


def _whole_numbers(value: object) -> list[int]:
    numbers = value if isinstance(value, list) else []
    return [each if type(each) is int else 0 for each in [*numbers, 0, 0, 0][:3]]


def _frames(stack: Part, functions: list[object]) -> list[tuple[str, int, str]]:
    """Return file, line and function of each frame, innermost first."""
    frames = stack.get("frames")
    told: list[tuple[str, int, str]] = []
    for frame in frames if isinstance(frames, list) else ():
        if not (isinstance(frame, list) and len(frame) == 2):  # noqa: PLR2004
            continue
        number, line = _whole_numbers(frame)[:2]
        function = functions[number] if 0 <= number < len(functions) else None
        if isinstance(function, list) and len(function) > 1:
            row = {"name": function[0], "file": function[1]}
            told.append((words(row, "file"), line, words(row, "name")))
    return told


def process_lines(
    processes: Sequence[ProcessRow], tasks: Sequence[TaskRow], width: int
) -> list[str]:
    """Return everything at once, for a terminal or a file."""
    threads = [row for each in processes for row in each.threads]
    lines = [*head_lines(processes, width), "", *thread_lines(sorted(threads, key=_by_gil), width)]
    if tasks:
        lines += ["", *task_lines(tasks, width)]
    return lines


def _by_gil(row: ThreadRow) -> tuple[object, ...]:
    return SORTS["GIL%"](row)
