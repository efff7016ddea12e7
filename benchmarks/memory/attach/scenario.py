"""The cases about a live process that is looked at: how long it stands still for that."""

import sys
from functools import partial
from pathlib import Path

from benchmarks.common.catalogue import Scenario, Table
from benchmarks.common.children import Children, Commands
from benchmarks.common.engine import Case, Settings
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side
from benchmarks.common.targets import Target

_WORKER = Path(__file__).with_name("worker.py")
_SINCE = (3, 14)


def cases() -> list[Case]:
    """Return the cases; stock is one full collection of the same heap."""
    found = [
        _case("attach-socket", "a census through the socket", ["census"], listens=True),
        _case(
            "attach-report",
            "the whole report through the socket",
            ["resident", "census", "caches", "key_sharing", "gil", "threads", "workers"],
            listens=True,
        ),
        _case(
            "attach-growth",
            "two looks of doctor growth",
            ["mark", "growth"],
            listens=True,
        ),
    ]
    if sys.version_info >= _SINCE:
        found.append(
            _case("attach-remote", "a census by sys.remote_exec", ["census"], listens=False)
        )
    return found


def _case(name: str, title: str, parts: list[str], *, listens: bool) -> Case:
    return Case(
        name,
        "attach",
        f"{title}: longest pause of the process",
        "ms",
        partial(_measure, parts, listens),
        statistic="median",
        better="lower",
    )


def _measure(
    parts: list[str],
    listens: bool,  # noqa: FBT001  # bound by partial
    commands: Commands,
    side: Side,
    settings: Settings,
) -> Outcome:
    with Children() as children:
        result = children.worker(
            commands.prefix("plus" if side == "plus" and listens else "stock"),
            _WORKER,
            {
                "objects": settings.many,
                "parts": parts if side == "plus" else [],
                "python": commands.python,
            },
            limit_s=settings.limit_s,
        ).result()
    return Outcome(rate=result["rate"], scheduled=result["scheduled"])


SCENARIO = Scenario(
    cases={"memory": cases},
    tables={
        "attach": Table("A process that is looked at: how long it stands still (median round)")
    },
    targets=(
        Target("attach-socket", "cost", 100, at_least=False, unit="ms"),
        Target("attach-growth", "times_faster", 1),
    ),
    place=4,
)
