"""A script under several allocators: what `python -m benchmarks malloc` measures."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median_low

from benchmarks.common.children import GRACE_S, Children, environment
from benchmarks.common.errors import MeasurementError
from cpythonplus.memory import allocators

__all__ = ["Comparison", "Round", "compare", "under"]

STOCK = "stock"
SIDES = (STOCK, *allocators.KINDS)
_WORKER = Path(__file__).with_name("worker.py")


@dataclass(frozen=True, slots=True)
class Round:
    """What one run of the script came to."""

    seconds: float
    """From its first line to its end, without the start of the interpreter."""
    peak_bytes: int
    """Resident memory at most."""
    end_bytes: int
    """Resident memory when the script has ended, and everything is still there."""
    later_bytes: int
    """The same, some idle seconds later."""


@dataclass(slots=True)
class Comparison:
    """All rounds of one script under each allocator."""

    script: str
    idle_s: float
    rounds: dict[str, list[Round]]
    """By side; empty where it could not be measured."""
    notes: dict[str, str]
    """Why a side was not measured, in one line."""

    def shown(self, side: str) -> Round | None:
        """Return the median of each number of a side, for itself; None if there is none."""
        found = self.rounds[side]
        if not found:
            return None
        return Round(
            median_low([each.seconds for each in found]),
            median_low([each.peak_bytes for each in found]),
            median_low([each.end_bytes for each in found]),
            median_low([each.later_bytes for each in found]),
        )

    def rows(self) -> list[tuple[str, ...]]:
        """Return the table: a line of headings, then one for each side."""
        lines: list[tuple[str, ...]] = [
            ("allocator", "time", "at most", "at the end", f"{self.idle_s:g} s later", "")
        ]
        for side in self.rounds:
            shown = self.shown(side)
            if shown is None:
                lines.append((side, "", "", "", "", self.notes.get(side, "")))
                continue
            sizes = (shown.peak_bytes, shown.end_bytes, shown.later_bytes)
            lines.append(
                (side, f"{shown.seconds:.2f} s", *(f"{size / 2**20:.0f} MiB" for size in sizes), "")
            )
        return lines

    def to_json(self) -> dict[str, object]:
        """Return it as plain JSON types."""
        return asdict(self)


def compare(
    command: Sequence[str],
    *,
    sides: Sequence[str] = SIDES,
    rounds: int = 3,
    idle_s: float = 5.0,
    limit_s: float = 600.0,
    step: Callable[[str], None] = lambda _text: None,
) -> Comparison:
    """Run a script under each allocator that is there, in turn, in as many rounds.

    command: the script and its arguments.  idle_s: how long it stays after its end.  limit_s: how
    long a run may take.  step: called with the name of each measurement before it begins.

    What cannot be measured, because an allocator is not installed or the script fails, is a note.
    """
    found: dict[str, list[Round]] = {side: [] for side in sides}
    notes: dict[str, str] = {}
    for number in range(rounds):
        # A machine that warms up favours none of them.
        for side in sides if number % 2 == 0 else sides[::-1]:
            if side in notes:
                continue
            step(f"{side}, round {number + 1} of {rounds}")
            try:
                found[side].append(under(side, command, idle_s=idle_s, limit_s=limit_s))
            except (allocators.AllocatorError, MeasurementError) as error:
                notes[side] = str(error)
    return Comparison(command[0], idle_s, found, notes)


def under(side: str, command: Sequence[str], *, idle_s: float, limit_s: float) -> Round:
    """Run a script once.  Raises AllocatorError, and MeasurementError when it fails."""
    kind = "" if side == STOCK else side
    env = environment()
    known = dict(env)
    if kind:
        allocators.apply(kind, env)
    with tempfile.TemporaryDirectory(prefix="cpythonplus-bench-") as folder, Children() as children:
        result = Path(folder) / "result.json"
        parameters = {
            "kind": kind,
            "idle_s": idle_s,
            "limit_s": limit_s + idle_s,
            "result": str(result),
        }
        child = children.start(
            [sys.executable, str(_WORKER), json.dumps(parameters), *command],
            Path(command[0]).name,
            env={name: value for name, value in env.items() if known.get(name) != value},
        )
        child.wait(limit_s + idle_s + GRACE_S)
        try:
            return Round(**json.loads(result.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            raise MeasurementError("the script ended without its last words (os._exit?)") from None
