"""`cpythonplus doctor cycles`: the watch that runs beside the program, and its report at exit.

Told by a process that ends the normal way: its program returns, raises, calls sys.exit or is
interrupted. Nothing is told by one that ends by os._exit (multiprocessing's forked workers do), by
a signal's default action or by exec: no code of ours runs there.
"""

import os
from dataclasses import replace

from cpythonplus._base.text.visible import visible_lines
from cpythonplus._cli import at_exit
from cpythonplus.memory import cycles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def register(program_pid: int, values: "Mapping[str, object]") -> None:
    """Begin to watch, and have the report told at exit; values: of the options that were given.

    A forked child tells nothing, unless children are to be watched: then what it leaves itself.
    """
    kinds = str(values["kinds"]).split(",") if "kinds" in values else None
    watch = cycles.watch(kinds=kinds, hoards="no_hoards" not in values)
    told = (watch, program_pid, dict(values))
    at_exit.register(_report, told, "cycles report", at_sigterm=True)
    # What the parent has left so far is the parent's. Not stopped here where nothing is told: a
    # full collection at each fork would cost more than to go on watching.
    os.register_at_fork(after_in_child=watch.take)
    watch.start()


def _text(report: cycles.Report, top: int | None) -> str:
    """Return the report for people.

    Importing modules leaves classes behind: enumerations, for instance, that take the place of
    plain ones. Nobody has to do anything about these, so they are no lines of it.
    """
    shown = [each for each in report.cycles if not _is_of_an_import(each)]
    left_out = len(report.cycles) - len(shown)
    heading = f"cpythonplus doctor cycles, pid {os.getpid()}: {at_exit.command_line()}"
    text = f"{heading}\n{replace(report, cycles=tuple(shown)).text(top=top)}"
    if left_out:
        text += f"left out: {left_out} classes, each created and dropped once at module level\n"
    return text


def _is_of_an_import(cycle: cycles.Cycle) -> bool:
    cause = cycle.cause
    return cause.kind is cycles.Kind.CLASS and not cause.place.function and cycle.count == 1


def _report(watch: cycles.Watch, program_pid: int, values: "Mapping[str, object]") -> None:
    # Also where nothing is told: the collector is left as the interpreter's end expects it.
    report = watch.stop()
    if os.getpid() != program_pid and "children" not in values:
        return
    form = values.get("format")
    if form == "json":
        text = at_exit.json_text(report.as_json())
    elif form == "html":
        from cpythonplus.memory.report import page

        text = page({"cycles": report.as_json()})
    else:
        top = values.get("top")
        text = visible_lines(_text(report, top if isinstance(top, int) else None))
    at_exit.write_report(text, values.get("output"), program_pid)
