"""`--stats`: what the scheduler did, told when the process ends.

Told by each process that ends the normal way: its program returns, raises, calls sys.exit or is
interrupted. Nothing is told by one that ends by os._exit (multiprocessing's forked workers do), by
a signal's default action or by exec: no code of ours runs there.
"""

import os
import sys

from cpythonplus._cli import at_exit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.console import RenderableType
    from rich.table import Table

    from cpythonplus.gil import Statistics, Times

MOST_THREADS = 20
"""Threads that the table shows, those with the most CPU time; the JSON file has all."""
WIDTH_OF_A_FILE = 100
"""Columns of the table where standard error is no terminal."""


def register(program_pid: int, values: "Mapping[str, object]") -> None:
    """Have the statistics told at exit, by this process and by its forked children, each its own.

    values: of the options that were given. Into a file without `%p` in its name only the process
    that `cpythonplus run` became writes, so that no child overwrites its numbers.
    """
    at_exit.register(_report, (program_pid, dict(values)), "statistics")


def _report(program_pid: int, values: "Mapping[str, object]") -> None:
    from cpythonplus import gil

    # Before rich is imported, which is not the program's doing. Forked children count from zero.
    statistics = gil.statistics()
    output = values.get("output")
    if values.get("format") == "json":
        text = at_exit.json_text(statistics.as_json())
    else:
        text = render(statistics, terminal=output is None and _is_terminal())
    at_exit.write_report(text, output, program_pid)


def render(statistics: "Statistics", *, terminal: bool) -> str:
    """Return the table as text; terminal: with colours, and as wide as that is."""
    from io import StringIO

    from rich.box import ASCII2, SIMPLE_HEAD
    from rich.console import Console, Group
    from rich.text import Text

    from cpythonplus._base.visible import visible

    stream = sys.__stderr__
    encoding = (getattr(stream, "encoding", None) or "ascii").lower()
    box = SIMPLE_HEAD if encoding.startswith("utf") else ASCII2
    console = Console(
        file=StringIO(),
        force_terminal=terminal,
        width=None if terminal else WIDTH_OF_A_FILE,
        highlight=False,
        markup=False,
        emoji=False,
    )

    def table(*columns: str) -> "Table":
        from rich.table import Table

        result = Table(box=box, pad_edge=False)
        for position, column in enumerate(columns):
            result.add_column(column, justify="right" if position else "left", no_wrap=True)
        return result

    classes = table("", "count", "total", "p50", "p99", "max")
    for name, of_class in (
        ("interactive", statistics.interactive),
        ("batch", statistics.batch),
    ):
        classes.add_row(f"{name}: waits", *_times(of_class.waits))
        classes.add_row(f"{name}: holds", *_times(of_class.holds))

    threads = table("thread", "id", "class", "cpu", "waited", "held", "waits", "switches")
    ordered = sorted(statistics.threads, key=lambda thread: -thread.cpu_ns)
    for thread in ordered[:MOST_THREADS]:
        threads.add_row(
            Text(visible(thread.name)),
            str(thread.native_id),
            thread.thread_class,
            duration(thread.cpu_ns),
            duration(thread.wait_ns),
            duration(thread.hold_ns),
            f"{thread.waits:,}",
            f"{thread.switches:,}",
        )

    parts: list[RenderableType] = [
        Text(
            f"cpythonplus statistics of pid {os.getpid()}: {at_exit.command_line()}", style="bold"
        ),
        Text(_summary(statistics)),
        classes,
    ]
    if ordered:
        parts.append(threads)
    if len(ordered) > MOST_THREADS:
        parts.append(Text(f"and {len(ordered) - MOST_THREADS} threads more"))
    atomic = statistics.atomic
    parts.append(
        Text(
            f"atomic sections: {atomic.sections:,}, contended {atomic.contended:,}, over the limit "
            f"{atomic.overlong:,}, abandoned {atomic.abandoned:,}, longest "
            f"{duration(atomic.longest_ns)}"
        )
    )
    with console.capture() as captured:
        console.print(Group(*parts))
    return "".join(line.rstrip() + "\n" for line in captured.get().splitlines())


def _summary(statistics: "Statistics") -> str:
    state = "GIL scheduled" if statistics.active else "GIL not scheduled"
    return (
        f"{state}; switches {statistics.switches:,}, forced {statistics.forced_switches:,}; "
        f"requests {statistics.requests:,}, at once {statistics.immediate_requests:,}"
    )


def _times(times: "Times") -> "Iterable[str]":
    values = (times.total_ns, times.p50_ns, times.p99_ns, times.max_ns)
    return (f"{times.count:,}", *(duration(value) if times.count else "-" for value in values))


def duration(nanoseconds: int) -> str:
    """Return a time with three figures and its unit: `4.21 ms`."""
    for unit, factor in (("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000)):
        if nanoseconds >= factor:
            value = nanoseconds / factor
            decimals = max(0, 3 - len(str(int(value))))
            return f"{value:,.{decimals}f} {unit}"
    return f"{nanoseconds} ns"


def _is_terminal() -> bool:
    stream = sys.__stderr__
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False
