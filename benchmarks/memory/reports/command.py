"""`python -m benchmarks reports`: leaks that people have reported, and which tool names them."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.common import arguments
from benchmarks.common.errors import UsageError
from benchmarks.common.storing import stored
from benchmarks.memory.reports import environments, judging
from benchmarks.memory.reports.catalogue import REPORTS, Report

__all__ = ["SUMMARY", "add_arguments", "run", "table"]

SUMMARY = "rebuild leaks that people have reported, and see which tool names them"
ROOT = Path(__file__).resolve().parents[3]
RESULTS = Path(__file__).with_name("results")
PAGE = ROOT / "docs" / "benchmarks" / "memory.md"
BEGIN, END = "<!-- reports:begin -->", "<!-- reports:end -->"
_COLUMNS = {"doctor": "doctor growth", "native": "with --native"}
_HEADS = {**_COLUMNS, "attach": "memray attach"}


def add_arguments(found: argparse.ArgumentParser) -> None:
    """Give a parser the command's own arguments."""
    found.add_argument(
        "--only",
        type=arguments.names,
        default=[],
        metavar="NAME,...",
        help=f"only these of {', '.join(each.name for each in REPORTS)}",
    )
    found.add_argument(
        "--seconds",
        type=arguments.seconds,
        default=6.0,
        metavar="S",
        help="between the two looks (6)",
    )
    found.add_argument(
        "--folder",
        type=Path,
        default=ROOT / "build" / "reports",
        metavar="FOLDER",
        help="of the environments that are made (build/reports)",
    )
    found.add_argument("--record", action="store_true", help="keep the results of this version")
    found.add_argument("--page", action="store_true", help="write the page; run nothing")


def run(args: argparse.Namespace) -> int:
    """Run what `args` asks for and print it; 0, or 1 where a report could not be rebuilt."""
    if args.page:
        return write_page()
    known = {report.name: report for report in REPORTS}
    unknown = [name for name in args.only if name not in known]
    if unknown:
        raise UsageError(f"there is no report {unknown[0]!r}")
    rows = []
    for report in [known[name] for name in args.only] or REPORTS:
        row = _row(report, args)
        print(f"{report.name}: {_short(row)}", flush=True)
        rows.append(row)
        if args.record:
            record([row])
    return 1 if any("not_rebuilt" in row for row in rows) else 0


def record(rows: list[dict[str, Any]]) -> None:
    """Keep results, beside those of this version's other reports."""
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / f"{'.'.join(map(str, sys.version_info[:2]))}.json"
    kept = json.loads(file.read_text("utf-8"))["reports"] if file.exists() else []
    merged = {row["name"]: row for row in [*kept, *rows]}
    found = {"python": sys.version.split()[0], "reports": [*merged.values()]}
    file.write_text(stored(found), encoding="utf-8")


def _row(report: Report, args: argparse.Namespace) -> dict[str, Any]:
    try:
        python = environments.python_of(report, args.folder)
        return judging.judged(report, python, args.seconds)
    except (environments.NotInstalledError, RuntimeError) as error:
        return {"name": report.name, "not_rebuilt": str(error)}


def _short(row: dict[str, Any]) -> str:
    if "not_rebuilt" in row:
        return f"not rebuilt: {row['not_rebuilt']}"
    verdicts = [f"{name} {row[name]['verdict']}" for name in (*_COLUMNS, *judging.TOOLS)]
    return f"{', '.join(verdicts)}\n  {row['doctor']['said']}\n  {row['native']['said']}"


def table(results: dict[str, Any]) -> str:
    """Return how many of one version's reports each tool has named, and the table of them."""
    tools = (*_COLUMNS, *judging.TOOLS)
    heads = ["report", "versions", *(_HEADS.get(name, name) for name in tools), "first sentence"]
    rows = {row["name"]: row for row in results["reports"] if "not_rebuilt" not in row}
    named = [f"{_HEADS.get(tool, tool)} {_count(rows.values(), tool)[0]}" for tool in tools]
    recorded = f"{len(rows)} reports are recorded, on CPython {results['python']}."
    lines = [
        f"{recorded} Named exactly: {', '.join(named)}.",
        "",
        f"| {' | '.join(heads)} |",
        "|---" * len(heads) + "|",
    ]
    for report in REPORTS:
        if report.name not in rows:
            continue
        row = rows[report.name]
        packages = ", ".join(each for each in report.packages if "==" in each).replace("==", " ")
        best = "doctor" if row["doctor"]["verdict"] == "exact" else "native"
        cells = [
            f"[{report.report}]({report.url})",
            packages or f"CPython {results['python']}",
            *(_verdict(row, name) for name in tools),
            row[best]["said"].replace("|", "\\|"),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    counts = [", ".join(map(str, _count(rows.values(), tool))) for tool in tools]
    lines.append(f"| exact, near, nothing |  | {' | '.join(counts)} |  |")
    return "\n".join(lines)


def _verdict(row: dict[str, Any], name: str) -> str:
    """Return the verdict on a tool; "-" if the results are older than the tool's column."""
    return str(row[name]["verdict"]) if name in row else "-"


def _count(rows: Any, name: str) -> list[int]:  # noqa: ANN401  # of JSON
    verdicts = [_verdict(row, name) for row in rows]
    return [verdicts.count(each) for each in ("exact", "near", "nothing")]


def write_page() -> int:
    """Put the tables of all results into the page."""
    from tools.results_page import filled  # of this repository; benchmarks do without elsewhere

    found = sorted(RESULTS.glob("*.json"))
    tables = "\n\n".join(table(json.loads(each.read_text("utf-8"))) for each in found)
    PAGE.write_text(filled(PAGE.read_text("utf-8"), tables, BEGIN, END), encoding="utf-8")
    return 0
