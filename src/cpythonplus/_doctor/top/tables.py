"""The lines of `cpythonplus top`: fixed columns, of which a narrow terminal gets fewer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.cells import set_cell_size

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
_WIDE = 120
"""From this width on all columns are shown."""
_MOST_PROCESSES = 6
_MOST_STALLS = 3
_NOTHING = "-"


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    width: int
    text: Callable[[ThreadRow], str]
    only_wide: bool = False
    to_the_right: bool = True


def _share(value: float | None) -> str:
    return _NOTHING if value is None else f"{value * 100:.0f}"


def _time(ns: int | None) -> str:
    return _NOTHING if ns is None else duration(ns)


def _state(row: ThreadRow) -> str:
    return f"{row.state}, {duration(row.since_ns)}" if row.since_ns else row.state


_PID = _Column("PID", 7, lambda row: str(row.pid))
_COLUMNS = (
    _Column("TID", 7, lambda row: str(row.native_id), only_wide=True),
    _Column("name", 16, lambda row: row.name, to_the_right=False),
    _Column("level", 5, lambda row: _NOTHING if row.level is None else str(row.level)),
    _Column("GIL%", 4, lambda row: _share(row.gil)),
    _Column("CPU%", 4, lambda row: _share(row.cpu)),
    _Column("waits", 6, lambda row: str(row.waits), only_wide=True),
    _Column("p50", 7, lambda row: _time(row.wait_p50_ns), only_wide=True),
    _Column("p99", 7, lambda row: _time(row.wait_p99_ns)),
)
_STATE_WIDTH, _WIDE_STATE_WIDTH = 14, 28


def place(file: str, line: int, *, short: bool) -> str:
    """Return `file:line`; "" if there is none."""
    if not file:
        return ""
    return f"{file.rpartition('/')[2] if short else file}:{line}"


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
    wide = width >= _WIDE
    columns = [each for each in _COLUMNS if wide or not each.only_wide]
    if len({row.pid for row in rows}) > 1:
        columns.insert(0, _PID)
    state_width = _WIDE_STATE_WIDTH if wide else _STATE_WIDTH
    heads = [_cell(each.title, each.width, to_the_right=each.to_the_right) for each in columns]
    lines = [" ".join([*heads, _cell("does", state_width), "at"])]
    for row in rows:
        cells = [
            _cell(each.text(row), each.width, to_the_right=each.to_the_right) for each in columns
        ]
        where = f"{row.function} {place(row.file, row.line, short=not wide)}"
        if row.made_at:
            where += f"; made at {row.made_at}"
        state = _state(row) if wide else row.state
        lines.append(" ".join([*cells, _cell(state, state_width), where]))
    return [_fitted(line, width) for line in lines]


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
        lines += [f"  ! stall: {_stall(row)}" for row in each.stalls[:_MOST_STALLS]]
        if len(each.stalls) > _MOST_STALLS:
            lines.append(f"  ! and {len(each.stalls) - _MOST_STALLS} more places with stalls")
        if each.problem:
            lines.append(f"  ! {each.problem}")
    if len(processes) > _MOST_PROCESSES:
        lines.append(f"and {len(processes) - _MOST_PROCESSES} more processes")
    return [_fitted(line, width) for line in lines]


def _stall(row: StallRow) -> str:
    """Return the stalls of the last minute at one place."""
    told = f"{duration(row.longest_ns)}, {row.thread}: {row.what}"
    if row.count > 1:
        total = duration(row.total_ns)
        told = f"{row.count} times in a minute, {total} together, longest {told}"
    return f"{place(row.file, row.line, short=True)} in {row.function}: {told}"


def task_lines(rows: Sequence[TaskRow], width: int) -> list[str]:
    """Return the heading and a line for each kind of task."""
    lines = [f"{'PID':>7} {'count':>6} {'kind':<8} {'state':<16} at"]
    lines += [
        f"{row.pid:>7} {row.count:>6} {row.kind:<8} {_cell(row.state or _NOTHING, 16)}"
        f" {row.function} {place(row.file, row.line, short=width < _WIDE)}"
        for row in rows
    ]
    return [_fitted(line, width) for line in lines]


def stack_lines(answer: Part, width: int) -> list[str]:
    """Return a line for each frame, innermost first."""
    lines = [
        f"{words(row, 'function')}  {place(words(row, 'file'), size(row, 'line'), short=False)}"
        for row in entries(answer, "stack")
    ]
    return [_fitted(line, width) for line in lines or [words(answer, "error")]]


def profile_lines(answers: Mapping[int, Part], width: int) -> list[str]:
    """Return the heading and a line for each stack, those with the longest holds first."""
    rows: list[tuple[list[int], list[int], str]] = []
    problems = [words(answer, "error") for answer in answers.values() if "error" in answer]
    for answer in answers.values():
        functions = answer.get("functions")
        names = functions if isinstance(functions, list) else []
        for stack in entries(answer, "stacks"):
            holds, waits = (_whole_numbers(stack.get(name)) for name in ("holds", "waits"))
            rows.append((holds, waits, _callers(stack, names)))
    rows.sort(key=lambda row: (-row[0][1], -row[1][1]))
    numbers = f"{'held':>8} {'holds':>7} {'longest':>8} {'waited':>8} {'waits':>7} {'longest':>8}"
    lines = [f"{numbers} at, called by"]
    for holds, waits, callers in rows:
        cells = (
            f"{duration(total):>8} {count:>7} {duration(longest):>8}"
            for count, total, longest in (holds, waits)
        )
        lines.append(f"{' '.join(cells)} {callers}")
    return [_fitted(line, width) for line in [*problems, *lines]]


def _whole_numbers(value: object) -> list[int]:
    numbers = value if isinstance(value, list) else []
    return [each if type(each) is int else 0 for each in [*numbers, 0, 0, 0][:3]]


def _callers(stack: Part, functions: list[object]) -> str:
    frames = stack.get("frames")
    told: list[str] = []
    for frame in frames if isinstance(frames, list) else ():
        if not (isinstance(frame, list) and len(frame) == 2):  # noqa: PLR2004
            continue
        number, line = _whole_numbers(frame)[:2]
        function = functions[number] if 0 <= number < len(functions) else None
        if isinstance(function, list) and len(function) > 1:
            row = {"name": function[0], "file": function[1]}
            told.append(f"{words(row, 'name')} {place(words(row, 'file'), line, short=True)}")
    return " < ".join(told) or "no Python function"


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
