"""`cpythonplus doctor cycles`: the watch that runs with the program, and its report at exit.

A process reports if it ends the normal way: its program returns, raises, calls sys.exit or is
interrupted. A process that ends by os._exit (multiprocessing's forked workers do), by a signal's
default action or by exec does not report: no code of ours runs there.
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
    """Begin to watch, and report at exit; values: of the given options.

    A forked child reports its own garbage, and only if children are to be watched.
    """
    kinds = str(values["kinds"]).split(",") if "kinds" in values else None
    watch = cycles.watch(kinds=kinds, hoards="no_hoards" not in values)
    told = (watch, program_pid, dict(values))
    at_exit.register(_report, told, "cycles report", at_sigterm=True)
    # Garbage of the parent so far is the parent's. If the child reports nothing, it still goes on
    # watching: to stop here would cost a full collection at each fork.
    os.register_at_fork(after_in_child=watch.take)
    watch.start()


def _text(report: cycles.Report, top: int | None) -> str:
    """Return the report for people.

    Imports leave classes behind, for instance enumerations that replace plain ones. Nobody has to
    change anything about these, so they are left out.
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
    # Also without a report: the interpreter's end expects the collector unchanged.
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
