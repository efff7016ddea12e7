"""Says what was found: a line for each package, and a file for each version of the interpreter."""

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.common.storing import stored
from tools.compat.causes import Causes
from tools.compat.judge import PROCESS, Verdict
from tools.compat.packages import Package
from tools.compat.run import Run
from tools.results_page import minor

_SHOWN = 5
"""How many are named of the tests that fail on both sides: an environment that lacks something has
many."""


@dataclass(frozen=True)
class Finding:
    """What is said of one package: a verdict of its runs, or why there are none."""

    package: Package
    verdict: Verdict = field(default_factory=Verdict)
    runs: Mapping[str, list[Run]] = field(default_factory=dict)
    """By side; as many of stock as of plus."""
    not_run: str = ""
    """Why it does not run on this Python, on purpose."""
    broken: str = ""
    """Why it could not be run, which is an error."""
    causes: Causes | None = None
    """Of reference cycles, where these were looked for."""

    @property
    def bad(self) -> bool:
        """Whether something fails only with us, or nothing was tested that was to be."""
        return bool(self.verdict.ours or self.broken)


def counts(runs: list[Run]) -> dict[str, int]:
    """Return how many tests passed, failed and were skipped in the first of the runs."""
    outcome = runs[0].outcome
    found = {"passed": outcome.passed, "failed": outcome.failed, "skipped": outcome.skipped}
    return {name: len(names) for name, names in found.items()}


def described(finding: Finding) -> str:
    """Return what is printed of a package: one line, and one more for each test to look at."""
    if finding.not_run or finding.broken:
        return f"not run: {finding.not_run}" if finding.not_run else f"BROKEN: {finding.broken}"
    verdict, runs = finding.verdict, finding.runs
    sides = []
    for side in runs:
        texts = [f"{number} {name}" for name, number in counts(runs[side]).items() if number]
        sides.append(f"{side} {' '.join(texts)} in {runs[side][0].seconds:.0f} s")
    said = f"{', '.join(sides)}; {len(verdict.ours)} only with us"
    for title, number in (
        ("known", len(verdict.known)),
        ("unsteady", len(verdict.unsteady)),
        ("fail on both", len(verdict.theirs)),
    ):
        said += f", {number} {title}" if number else ""
    if finding.causes is not None:
        said += f", {len(finding.causes.steady)} causes of cycles"
    lines = [said]
    if finding.causes is not None:
        lines += [f"  cause in some runs: {each}" for each in sorted(finding.causes.unsteady)]
    for title, found in (("FAILS ONLY WITH US", verdict.ours), ("unsteady", verdict.unsteady)):
        lines += [
            f"  {title}: {name}: stock {each.stock}, plus {each.plus} of {each.rounds}"
            for name, each in found.items()
        ]
    lines += [f"  known to differ: {name} ({why})" for name, why in verdict.known.items()]
    lines += [f"  fails on both: {name}" for name in sorted(verdict.theirs)[:_SHOWN]]
    if PROCESS in {*verdict.ours, *verdict.unsteady, *verdict.theirs}:
        lines += [f"  {side}: {run.ending}" for side in runs for run in runs[side] if run.ending]
    return "\n".join(lines)


def as_data(finding: Finding) -> dict[str, Any]:
    """Return what is kept of a package."""
    kept: dict[str, Any] = {"version": finding.package.version}
    if finding.not_run:
        return kept | {"not run": finding.not_run}
    verdict = finding.verdict
    for side, runs in finding.runs.items():
        seconds = [round(run.seconds, 1) for run in runs]
        kept[side] = counts(runs) | {"seconds": seconds}
    kept["only with us"] = sorted(verdict.ours.keys() | verdict.known.keys())
    kept["unsteady"] = {name: asdict(each) for name, each in verdict.unsteady.items()}
    kept["fail on both"] = sorted(verdict.theirs)
    if finding.causes is not None:
        kept["causes"] = sorted(finding.causes.steady)
        kept["causes in some runs"] = sorted(finding.causes.unsteady)
    return kept


def record(findings: list[Finding], folder: Path, title: str = "compat") -> None:
    """Write this version's file; packages that did not run now keep what was seen before."""
    version = platform.python_version()
    path = folder / f"{title}-{minor(version)}.json"
    packages: dict[str, Any] = {}
    if path.exists():
        before = json.loads(path.read_text("utf-8"))
        packages = before["packages"] if before["python"] == version else {}
    packages |= {each.package.name: as_data(each) for each in findings if not each.broken}
    found = {
        "python": version,
        "machine": _machine(),
        "packages": dict(sorted(packages.items())),
    }
    path.write_text(stored(found), "utf-8")


def _machine() -> str:
    cores, ours = os.cpu_count(), metadata.version("cpythonplus")
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    today = datetime.now(UTC).date()
    return f"{system}, {cores} cores, cpythonplus {ours}, {today}"
