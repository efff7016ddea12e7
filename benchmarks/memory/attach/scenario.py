"""The cases about a live process that is looked at: how long it stands still for that."""

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.common.catalogue import Scenario, Table
from benchmarks.common.children import Children, Commands
from benchmarks.common.engine import Case, Settings
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side
from benchmarks.common.targets import Target

_WORKER = Path(__file__).with_name("worker.py")
_SINCE = (3, 14)


def cases() -> list[Case]:
    """Return the cases; stock is one full collection of the same heap.

    Of `growth`, stock is a program under cpythonplus that nobody looks at.
    """
    found = [
        _case("attach-socket", "a census through the socket", ["census"], listens=True),
        _case(
            "attach-report",
            "the whole report through the socket",
            ["resident", "census", "caches", "key_sharing", "gil", "threads", "workers"],
            listens=True,
        ),
        *(_growth_case(millions) for millions in (0.5, 2, 5)),
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


def _growth_case(millions: float) -> Case:
    return Case(
        f"growth-{millions:g}",
        "growth",
        f"doctor growth, {millions:g} million objects: longest gap of the program",
        "ms",
        partial(_gap, millions),
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
    parameters = {"objects": settings.many, "parts": parts if side == "plus" else []}
    return _run(commands, settings, parameters, listens=side == "plus" and listens)


def _gap(millions: float, commands: Commands, side: Side, settings: Settings) -> Outcome:
    parts = ["mark", "growth"] if side == "plus" else []
    parameters = {"objects": int(settings.many * millions), "parts": parts, "tick_s": 0.001}
    # Both sides run under cpythonplus.
    return replace(_run(commands, settings, parameters, listens=True), scheduled=None)


def _run(
    commands: Commands, settings: Settings, parameters: dict[str, Any], *, listens: bool
) -> Outcome:
    with Children() as children:
        result = children.worker(
            commands.prefix("plus" if listens else "stock"),
            _WORKER,
            {"tick_s": 0, "python": commands.python, **parameters},
            limit_s=settings.limit_s,
        ).result()
    return Outcome(rate=result["rate"], scheduled=result["scheduled"])


SCENARIO = Scenario(
    cases={"memory": cases},
    tables={
        "attach": Table("A process that is looked at: how long it stands still (median round)"),
        "growth": Table("doctor growth: the longest time between two turns (median round)"),
    },
    targets=(
        Target("attach-socket", "cost", 100, at_least=False, unit="ms"),
        Target("growth-5", "cost", 100, at_least=False, unit="ms"),
    ),
    place=4,
)
