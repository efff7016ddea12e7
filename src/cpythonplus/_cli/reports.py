"""The reports that a program gives about itself when it ends: `run`, `doctor run` and `cycles`.

A process reports if it ends the normal way: its program returns, raises, calls sys.exit or is
interrupted. A process that ends by os._exit (multiprocessing's forked workers do), by a signal's
default action or by exec does not report: no code of ours runs there.

Each feature has a function that `features.py` calls before the program begins, with the program's
PID and the values of the given options. It loads what the report will need: at the end that may be
out of reach, or count as the program's.
"""

import os

from cpythonplus._base.text.visible import visible_lines
from cpythonplus._cli import at_exit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cpythonplus.memory import cycles

    Values = Mapping[str, object]

_MOST_THREADS = 20
"""Threads that the text shows, those with the most CPU time; JSON has all."""
_TOP = 10


def _write(
    program_pid: int,
    values: "Values",
    found: "Callable[[], Mapping[str, object]]",
    parts: "Callable[[Mapping[str, object]], Mapping[str, object]]",
    text: "Callable[[], str]",
) -> None:
    """Write a report; found: its contents for JSON; parts: makes those of the page from them."""
    form = values.get("format")
    if form == "json":
        whole = at_exit.json_text(found())
    elif form == "html":
        from cpythonplus.memory.report import page

        whole = page(parts(found()))
    else:
        whole = text()
    at_exit.write_report(whole, values.get("output"), program_pid)


# ---- run --stats --------------------------------------------------------------------------------


def statistics(program_pid: int, values: "Values") -> None:
    """Report what the scheduler did, in this process and in its forked children, each its own.

    Without `%p` in the file's name only the process that `cpythonplus run` became writes it, so
    that no child overwrites its numbers.
    """
    at_exit.register(_report_statistics, (program_pid, dict(values)), "statistics")


def _report_statistics(program_pid: int, values: "Values") -> None:
    from cpythonplus import gil

    # Read them before anything is imported, which is not the program's doing. Forked children count
    # from zero.
    found = gil.statistics().as_json()
    about = {"pid": os.getpid(), "command_line": at_exit.command_line()}

    def text() -> str:
        from cpythonplus._doctor.report.text import part_text

        heading = f"cpythonplus statistics of pid {about['pid']}: {about['command_line']}"
        return f"{heading}\n{part_text('gil', found, _MOST_THREADS)}"

    _write(program_pid, values, lambda: found, lambda gil: {"target": about, "gil": gil}, text)


# ---- run --gil-profile --------------------------------------------------------------------------


def profile(program_pid: int, values: "Values") -> None:
    """Record the profile of the GIL from now on, and write it to the option's file.

    Raises ValueError if the GIL is not scheduled, and UnsupportedPlatform if frames cannot be read.
    """
    from cpythonplus import gil
    from cpythonplus._doctor.gil_profile import recording, writing

    def report(file: str) -> None:
        path = at_exit.file_of_this_process(file, program_pid)
        if path is not None:
            at_exit.write_file(path, writing.written(recording.taken(), path))

    if not gil.active():
        raise ValueError("--gil-profile requires that the GIL is scheduled")
    recording.start()
    at_exit.register(report, (str(values["file"]),), "profile of the GIL", at_sigterm=True)


# ---- doctor run ---------------------------------------------------------------------------------


def examination(program_pid: int, values: "Values") -> None:
    """Watch the program for cycles, and examine it when it ends."""
    from cpythonplus.memory import cycles

    watch = cycles.watch()
    if values.get("growth"):
        from cpythonplus._doctor.agent.examining import examine

        examine(["mark"])
    told = (watch, program_pid, dict(values))
    at_exit.register(_report_examination, told, "doctor report", at_sigterm=True)
    watch.start()


def _report_examination(watch: "cycles.Watch", program_pid: int, values: "Values") -> None:
    # Also without a report: the interpreter's end expects the collector unchanged.
    cyclic = watch.stop()
    if os.getpid() != program_pid:
        return
    from cpythonplus._doctor.agent.examining import examine

    # Until here nothing was imported that would count as the program's.
    found = {**examine(), "cycles": cyclic.as_json()}
    if values.get("growth"):
        found.update(examine(["growth"]))

    def text() -> str:
        from cpythonplus.memory.report import report_text

        top = values.get("top")
        return visible_lines(report_text(found, top=top if isinstance(top, int) else _TOP))

    _write(program_pid, values, lambda: found, lambda parts: parts, text)


# ---- doctor cycles ------------------------------------------------------------------------------


def cyclic_garbage(program_pid: int, values: "Values") -> None:
    """Watch the program for cycles.

    A forked child reports its own garbage, and only if children are to be watched.
    """
    from cpythonplus.memory import cycles

    kinds = str(values["kinds"]).split(",") if "kinds" in values else None
    watch = cycles.watch(kinds=kinds, hoards="no_hoards" not in values)
    told = (watch, program_pid, dict(values))
    at_exit.register(_report_cycles, told, "cycles report", at_sigterm=True)
    # Garbage of the parent so far is the parent's. If the child reports nothing, it still goes on
    # watching: to stop here would cost a full collection at each fork.
    os.register_at_fork(after_in_child=watch.take)
    watch.start()


def _report_cycles(watch: "cycles.Watch", program_pid: int, values: "Values") -> None:
    # Also without a report: the interpreter's end expects the collector unchanged.
    report = watch.stop()
    if os.getpid() != program_pid and "children" not in values:
        return

    def text() -> str:
        top = values.get("top")
        return visible_lines(_cycles_text(report, top if isinstance(top, int) else None))

    _write(program_pid, values, report.as_json, lambda found: {"cycles": found}, text)


def _cycles_text(report: "cycles.Report", top: int | None) -> str:
    """Return the report for people.

    Imports leave classes behind, for instance enumerations that replace plain ones. Nobody has to
    change anything about these, so they are left out.
    """
    from dataclasses import replace

    shown = tuple(each for each in report.cycles if not _is_of_an_import(each))
    left_out = len(report.cycles) - len(shown)
    heading = f"cpythonplus doctor cycles, pid {os.getpid()}: {at_exit.command_line()}"
    text = f"{heading}\n{replace(report, cycles=shown).text(top=top)}"
    if left_out:
        text += f"left out: {left_out} classes, each created and dropped once at module level\n"
    return text


def _is_of_an_import(cycle: "cycles.Cycle") -> bool:
    from cpythonplus.memory.cycles import Kind

    cause = cycle.cause
    return cause.kind is Kind.CLASS and not cause.place.function and cycle.count == 1
