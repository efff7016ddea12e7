"""The case about JSON: an array of objects, decoded into rows of several kinds."""

from __future__ import annotations

from pathlib import Path

from benchmarks.common.catalogue import Scenario, Table
from benchmarks.common.children import Children, Commands
from benchmarks.common.engine import Case, Settings
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side

_WORKER = Path(__file__).with_name("worker.py")

OBJECTS = 50_000
SIDES: tuple[Side, ...] = (
    *("dict", "shared dict", "Record", "Record hook"),
    *("msgspec dict", "msgspec"),
)


def cases() -> list[Case]:
    """Return the one case; json.loads alone is what the others are compared with."""
    return [
        Case(
            "json",
            "json",
            f"JSON, {OBJECTS:,} objects of 8",
            "s",
            _measure,
            better="lower",
            sides=SIDES,
            base="dict",
            own="Record",
            packages={"msgspec dict": "msgspec", "msgspec": "msgspec"},
        )
    ]


def _measure(commands: Commands, side: Side, settings: Settings) -> Outcome:
    with Children() as children:
        result = children.worker(
            [commands.python],
            _WORKER,
            {"side": side, "rows": min(OBJECTS, settings.rows), "seconds": settings.seconds},
            limit_s=settings.limit_s,
        ).result()
    return Outcome(
        rate=result["rate"],
        scheduled=result["scheduled"],
        patched=result["patched"],
        figures=result["figures"],
    )


SCENARIO = Scenario(
    cases={"records": cases},
    tables={"json": Table("Rows from JSON (fastest decoding)")},
    figures={"json_mib": "MiB afterwards", "json_peak_mib": "MiB at most"},
    place=1,
)
