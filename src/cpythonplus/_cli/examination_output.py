"""`cpythonplus doctor run`: watches the program for cycles, and examines it when it ends.

The process of the program reports if it ends the normal way, as for `doctor cycles`: see
`cycles_output.py`.
"""

import os

from cpythonplus._base.text.visible import visible_lines
from cpythonplus._cli import at_exit
from cpythonplus.memory import cycles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


_TOP = 10


def register(program_pid: int, values: "Mapping[str, object]") -> None:
    """Begin to watch, and examine the process at exit; values: of the given options."""
    watch = cycles.watch()
    if values.get("growth"):
        from cpythonplus._doctor.agent.examining import examine

        examine(["mark"])
    told = (watch, program_pid, dict(values))
    at_exit.register(_report, told, "doctor report", at_sigterm=True)
    watch.start()


def _report(watch: cycles.Watch, program_pid: int, values: "Mapping[str, object]") -> None:
    # Also without a report: the interpreter's end expects the collector unchanged.
    found = watch.stop()
    if os.getpid() != program_pid:
        return
    from cpythonplus._doctor.agent.examining import examine

    # Until here nothing was imported that would count as the program's.
    examination = {**examine(), "cycles": found.as_json()}
    if values.get("growth"):
        examination.update(examine(["growth"]))
    at_exit.write_report(_text(examination, values), values.get("output"), program_pid)


def _text(examination: dict[str, object], values: "Mapping[str, object]") -> str:
    form = values.get("format")
    if form == "json":
        return at_exit.json_text(examination)
    from cpythonplus.memory.report import page, report_text

    if form == "html":
        return page(examination)
    top = values.get("top")
    return visible_lines(report_text(examination, top=top if isinstance(top, int) else _TOP))
