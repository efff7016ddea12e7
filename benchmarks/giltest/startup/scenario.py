"""The start of an interpreter that does nothing: `python -c pass`, stock and plus."""

from functools import lru_cache, partial
from pathlib import Path

from benchmarks.common import children, machine
from benchmarks.common.catalogue import Scenario, Table
from benchmarks.common.children import Commands
from benchmarks.common.engine import Case, Settings
from benchmarks.common.errors import MeasurementError
from benchmarks.common.percentiles import summarise
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side
from benchmarks.common.targets import Target

_PROGRAM = ("-c", "pass")


def cases() -> list[Case]:
    """Return the cases of this scenario; a side's median round speaks for it."""
    return [
        Case(
            f"startup-{how}",
            "startup",
            title,
            "starts/s",
            partial(_measure, how),
            statistic="median",
            starts_interpreters=True,
        )
        for how, title in (
            ("module", "start-up, python -m cpythonplus run"),
            ("script", "start-up, cpythonplus run"),
        )
    ]


@lru_cache
def _console_script(python: str) -> str:
    script = Path(machine.scripts_folder(python)) / "cpythonplus"
    if not script.is_file():
        raise MeasurementError(f"there is no {script}")
    return str(script)


def _measure(how: str, commands: Commands, side: Side, settings: Settings) -> Outcome:
    prefix = commands.prefix(side)
    if side == "plus" and how == "script":
        prefix = [_console_script(commands.python), "run"]
    elapsed_ns = children.timed_run([*prefix, *_PROGRAM], settings.limit_s)
    return Outcome(rate=1e9 / elapsed_ns, latency=summarise([elapsed_ns]))


SCENARIO = Scenario(
    cases={"giltest": cases},
    tables={"startup": Table("Start-up (median)")},
    targets=(
        Target("startup-module", "extra_ms", 30, at_least=False),
        Target("startup-script", "extra_ms", 30, at_least=False),
    ),
    place=7,
)
