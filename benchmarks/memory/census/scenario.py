"""The cases about counting objects: heaps of one, five and ten million."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.common.catalogue import Scenario, Table
from benchmarks.common.children import Children, Commands
from benchmarks.common.engine import Case, Settings
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side
from benchmarks.common.targets import Target

_WORKER = Path(__file__).with_name("worker.py")
_MILLIONS = (1, 5, 10)
_FULL_MIB = 500
"""`Settings.heap_mib` where nothing is made smaller to be quick."""


def cases() -> list[Case]:
    """Return the cases; stock is gc.get_objects() with Counter and getsizeof, peer is guppy3."""
    return [
        Case(
            f"census-{millions}m",
            "census",
            f"census of {millions} million objects",
            "ms",
            partial(_measure, millions),
            statistic="median",
            better="lower",
            sides=("stock", "plus", "peer"),
            peer="guppy",
            once=True,
        )
        for millions in _MILLIONS
    ]


def _measure(millions: int, commands: Commands, side: Side, settings: Settings) -> Outcome:
    scale = min(1.0, settings.heap_mib / _FULL_MIB)
    with Children() as children:
        result = children.worker(
            [commands.python],
            _WORKER,
            {"objects": int(millions * 1_000_000 * scale), "side": side},
            limit_s=settings.limit_s + 60 * millions,
        ).result()
    return Outcome(rate=result["rate"], figures=result["figures"])


def _targets() -> Iterator[Target]:
    for millions in _MILLIONS:
        case = f"census-{millions}m"
        yield Target(case, "times_faster", 20, side="peer")
        for figure, limit in (("to_collect", 1), ("extra_percent", 2), ("off_percent", 1)):
            yield Target(case, "figure", limit, at_least=False, figure=figure)
        yield Target(case, "figure", 1, at_least=False, figure="owners_to_collect")
        yield Target(case, "figure", millions, at_least=False, figure="owners_s")


SCENARIO = Scenario(
    cases={"memory": cases},
    tables={"census": Table("Counting the objects of large heaps")},
    figures={
        "collect_ms": "gc.collect() ms",
        "to_collect": "pause to gc.collect()",
        "extra_percent": "% extra memory",
        "off_percent": "% off tracemalloc",
        "owners_s": "s for owners()",
        "owners_to_collect": "pause of owners() to gc.collect()",
    },
    targets=tuple(_targets()),
    place=5,
)
