"""`cpythonplus doctor run`: the program is watched for cycles, and examined when it ends.

Told by the process of the program if it ends the normal way, as `doctor cycles` is: see
`cycles_output.py`.
"""

import os

from cpythonplus.cli import at_exit
from cpythonplus.memory import cycles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from cpythonplus.cli.features import Run

_TOP = 10


def register(run: "Run", values: "Mapping[str, object]") -> None:
    """Begin to watch, and have the process examined at exit; values: of the given options."""
    watch = cycles.watch()
    at_exit.register(_report, (watch, run.pid, dict(values)), "report of the doctor")
    watch.start()


def _report(watch: cycles.Watch, program_pid: int, values: "Mapping[str, object]") -> None:
    # Also where nothing is told: the collector is left as the interpreter's end expects it.
    found = watch.stop()
    if os.getpid() != program_pid:
        return
    from cpythonplus.memory.agent.examining import examine

    # Nothing else has been imported by now that would count as the program's.
    examination = {**examine(), "cycles": found.as_json()}
    _tell(examination, values, program_pid)


def _tell(examination: dict[str, object], values: "Mapping[str, object]", program_pid: int) -> None:
    if "html" in values:
        from cpythonplus.memory.report import page

        path = at_exit.file_of_this_process(str(values["html"]), program_pid)
        if path is not None:
            at_exit.write_file(path, page(examination))
        if "json" not in values and "output" not in values:
            return
    if "json" in values:
        text = at_exit.json_text(examination)
    else:
        from cpythonplus.memory.report import report_text

        top = values.get("top")
        text = report_text(examination, top=top if isinstance(top, int) else _TOP)
    at_exit.write_report(text, values.get("output"), program_pid)
