"""`--stats`: the scheduler's statistics, reported when the process ends.

A process reports if it ends the normal way: its program returns, raises, calls sys.exit or is
interrupted. A process that ends by os._exit (multiprocessing's forked workers do), by a signal's
default action or by exec does not report: no code of ours runs there.
"""

import os

from cpythonplus._cli import at_exit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_THREADS = 20
"""Threads that the text shows, those with the most CPU time; JSON has all."""


def register(program_pid: int, values: "Mapping[str, object]") -> None:
    """Report the statistics at exit, in this process and in its forked children, each its own.

    values: of the given options. Without `%p` in the file's name only the process that `cpythonplus
    run` became writes it, so that no child overwrites its numbers.
    """
    at_exit.register(_report, (program_pid, dict(values)), "statistics")


def _report(program_pid: int, values: "Mapping[str, object]") -> None:
    from cpythonplus import gil

    # Read them before anything is imported, which is not the program's doing. Forked children count
    # from zero.
    found = gil.statistics().as_json()
    form = values.get("format")
    if form == "json":
        text = at_exit.json_text(found)
    elif form == "html":
        from cpythonplus.memory.report import page

        target = {"pid": os.getpid(), "command_line": at_exit.command_line()}
        text = page({"target": target, "gil": found})
    else:
        from cpythonplus._doctor.report.text import part_text

        heading = f"cpythonplus statistics of pid {os.getpid()}: {at_exit.command_line()}"
        text = f"{heading}\n{part_text('gil', found, MOST_THREADS)}"
    at_exit.write_report(text, values.get("output"), program_pid)
