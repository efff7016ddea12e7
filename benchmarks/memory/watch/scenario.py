"""The cases: an application's ordinary requests, and requests that fail."""

from functools import partial
from pathlib import Path

from benchmarks.common.catalogue import Scenario, Table
from benchmarks.common.children import Children, Commands
from benchmarks.common.engine import Case, Settings
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side
from benchmarks.common.targets import Target

_WORKER = Path(__file__).with_name("worker.py")

SIDES: tuple[Side, ...] = ("gc-off", "stock", "watch")


def cases() -> list[Case]:
    """Return the cases; `gc-off` is what the others are compared with."""
    return [
        _case("watch-requests", "Flask test client, ordinary requests", errors=False),
        _case("watch-errors", "Flask test client, requests that fail", errors=True),
    ]


def _case(name: str, title: str, *, errors: bool) -> Case:
    return Case(
        name,
        "watch",
        title,
        "us",
        partial(_measure, errors),
        statistic="median",
        better="lower",
        needs=("flask",),
        sides=SIDES,
        base="gc-off",
        own="watch",
    )


def _measure(errors: bool, commands: Commands, side: Side, settings: Settings) -> Outcome:  # noqa: FBT001  # bound by partial
    with Children() as children:
        result = children.worker(
            commands.prefix(side),
            _WORKER,
            {
                "side": side,
                "errors": errors,
                "seconds": settings.seconds,
                "warmup_s": settings.warmup_s,
            },
            limit_s=settings.limit_s,
        ).result()
    return Outcome(rate=result["rate"], scheduled=result["scheduled"])


SCENARIO = Scenario(
    cases={"memory": cases},
    tables={"watch": Table("Requests to a Flask application, watched (median round)")},
    targets=(
        Target("watch-requests", "cost_to", 1.15, at_least=False, side="gc-off"),
        Target("watch-errors", "cost_to", 1.15, at_least=False, side="gc-off"),
    ),
    place=1,
)
