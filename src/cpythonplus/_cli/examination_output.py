"""`cpythonplus doctor run`: the program is watched for cycles, and examined when it ends.

Told by the process of the program if it ends the normal way, as `doctor cycles` is: see
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
    """Begin to watch, and have the process examined at exit; values: of the given options."""
    watch = cycles.watch()
    if values.get("growth"):
        from cpythonplus._doctor.agent.examining import examine

        examine(["mark"])
    told = (watch, program_pid, dict(values))
    at_exit.register(_report, told, "doctor report", at_sigterm=True)
    watch.start()


def _report(watch: cycles.Watch, program_pid: int, values: "Mapping[str, object]") -> None:
    # Also where nothing is told: the collector is left as the interpreter's end expects it.
    found = watch.stop()
    if os.getpid() != program_pid:
        return
    from cpythonplus._doctor.agent.examining import examine

    # Nothing else has been imported by now that would count as the program's.
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
