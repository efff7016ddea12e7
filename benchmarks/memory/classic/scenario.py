"""The cases about memory that does not come back: a block at the end, a survivor in 20,000."""

from functools import partial
from pathlib import Path

from benchmarks.common.catalogue import Scenario, Table
from benchmarks.common.children import Children, Commands
from benchmarks.common.engine import Case, Settings
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side
from benchmarks.common.targets import Target
from cpythonplus.memory import allocators

_WORKER = Path(__file__).with_name("worker.py")
_SIDES: tuple[Side, ...] = ("stock", "plus", "jemalloc", "mimalloc", "glibc-tuned")


def cases() -> list[Case]:
    """Return the cases; `plus` calls trim(), the others wait."""
    return [
        _case("classic-strings", "strings deleted, one block behind them", "strings"),
        _case("classic-survivors", "small strings deleted, one in 20,000 kept", "survivors"),
    ]


def _case(name: str, title: str, what: str) -> Case:
    return Case(
        name,
        "classic",
        title,
        "MiB",
        partial(_measure, what),
        statistic="median",
        better="lower",
        sides=_SIDES,
        libraries={side: side for side in _SIDES if side in allocators.KINDS},
        once=True,
    )


def _measure(what: str, commands: Commands, side: Side, settings: Settings) -> Outcome:
    kind = side if side in allocators.KINDS else ""
    added: dict[str, str] = {}
    if kind:
        allocators.apply(kind, added)
    with Children() as children:
        result = children.worker(
            [commands.python],
            _WORKER,
            {
                "what": what,
                "mib": settings.heap_mib,
                "idle_s": settings.idle_s,
                "trim": side == "plus",
                "kind": kind,
            },
            limit_s=settings.limit_s + settings.idle_s,
            env=added,
        ).result()
    return Outcome(rate=result["rate"], figures=result["figures"])


SCENARIO = Scenario(
    cases={"memory": cases},
    tables={
        "classic": Table("Memory that does not come back: resident after trim(), or 10 s later")
    },
    figures={"full_mib": "MiB taken", "after_mib": "MiB once freed", "returned": "% given back"},
    targets=(
        Target("classic-strings", "figure", 95, figure="returned"),
        Target("classic-strings", "figure_of", 90, figure="returned", side="jemalloc"),
        Target("classic-strings", "figure_of", 90, figure="returned", side="mimalloc"),
        Target("classic-strings", "figure_of", 90, figure="returned", side="glibc-tuned"),
    ),
    place=3,
)
