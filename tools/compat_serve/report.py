"""What a run of the tool says: a line for each application, and the file of each version."""

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.common.storing import stored
from tools.compat_serve.judging import Verdict
from tools.compat_serve.run import Phase

Row = dict[str, Any]

KINDS = {
    "ours": "FAILS ONLY WITH US",
    "preload": "fails with stock's --preload too",
    "theirs": "fails on stock",
    "unsteady": "failed once, not each time",
}
"""Fields of a verdict with phases that did not pass, and what is printed of them."""


def describe(verdict: Verdict) -> list[str]:
    """Return lines for one application: how much passed, and one for each phase that did not."""
    kinds = [getattr(verdict, name) for name in KINDS]
    answers = {side: answered(phases) for side, phases in verdict.runs.items()}
    counted = ", ".join(f"{side} {ok} answers" for side, ok in answers.items())
    lines = [f"{len(verdict.passed)} of {len(verdict.passed) + sum(map(len, kinds))} ({counted})"]
    for title, found in zip(KINDS.values(), kinds, strict=True):
        lines += [f"{title}: {phase}: {'; '.join(why)}" for phase, why in found.items()]
    return lines


def answered(phases: dict[str, Phase]) -> int:
    """Return how many right answers there were in all phases."""
    return sum(phase.counts.ok for phase in phases.values())


def row(verdict: Verdict, versions: dict[str, str]) -> Row:
    """Return what is kept of one application."""
    found: Row = {"versions": versions, "passed": list(verdict.passed)}
    found |= {name: getattr(verdict, name) for name in KINDS}
    found["counts"] = {
        side: {
            name: {
                "ok": phase.counts.ok,
                "refused": phase.counts.refused,
                "errors": dict(phase.counts.errors),
                "seconds": phase.seconds,
            }
            for name, phase in phases.items()
        }
        for side, phases in verdict.runs.items()
    }
    return found


def record(rows: dict[str, Row], folder: Path) -> None:
    """Write rows into the file of this version; applications that did not run keep theirs."""
    version = ".".join(map(str, sys.version_info[:2]))
    path = folder / f"compat-serve-{version}.json"
    kept = json.loads(path.read_text("utf-8"))["applications"] if path.exists() else {}
    found = {"python": sys.version.split()[0], "applications": dict(sorted((kept | rows).items()))}
    path.write_text(stored(found), "utf-8")
