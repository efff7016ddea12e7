"""A handful of single-threaded kernels, stock beside plus."""

from functools import partial
from pathlib import Path

from benchmarks.common.catalogue import Scenario, Table
from benchmarks.common.children import Children, Commands
from benchmarks.common.engine import Case, Settings
from benchmarks.common.percentiles import summarise
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side
from benchmarks.common.targets import Target

_WORKER = Path(__file__).with_name("worker.py")

_TITLES = {
    "json": "json round trip",
    "floats": "float loop",
    "regex": "regular expression",
    "strings": "string building",
    "dicts": "dict and sort",
    "files": "file write/stat/read",
    "sqlite": "sqlite in memory",
}


def cases() -> list[Case]:
    """Return the cases of this scenario."""
    return [
        Case(f"kernel-{name}", "kernels", title, "calls/s", partial(_measure, name))
        for name, title in _TITLES.items()
    ]


def _measure(kernel: str, commands: Commands, side: Side, settings: Settings) -> Outcome:
    with Children() as children:
        result = children.worker(
            commands.prefix(side),
            _WORKER,
            {"kernel": kernel, "seconds": settings.seconds},
            limit_s=settings.limit_s,
        ).result()
    return Outcome(
        rate=result["rate"],
        latency=summarise(result["latencies_ns"]),
        scheduled=result["scheduled"],
    )


SCENARIO = Scenario(
    cases={"giltest": cases},
    tables={"kernels": Table("Single-threaded work (fastest sample)", mean=True)},
    targets=(Target("kernels", "geometric_mean", 0.99),),
    place=6,
)
