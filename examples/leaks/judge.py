"""Runs each leaking service, and sees whether the first command names its leak.

    python -m examples.leaks.judge [--seconds S] [--jobs N] [--record] [NAME ...]
    python -m examples.leaks.judge --page

Each file says by `# LEAK name` on which line what leaks is made. A leak is *named* if one of the
first three rows of `cpythonplus doctor growth PID` has that name and that line; the table is
*misled* if its first row is something else. Status 1 if one is not named.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tools.results_page import filled

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RESULTS = HERE / "results"
PAGE = ROOT / "docs" / "how-to" / "what-grows.md"
NOT_SERVICES = {"__init__", "judge", "service"}
BEGIN, END = "<!-- leaks:begin -->", "<!-- leaks:end -->"
MARK = re.compile(r"LEAK ([^\n\"]+?)\.?(?:\"\"\")?$", re.MULTILINE)
FIRST_ROWS = 3
WARM_S = 3.0
LEAST = 256 << 10
QUIET = 64 << 10
"""Bytes that a service without a leak may grow by, in one owner."""


def expected(source: Path) -> list[tuple[str, int]]:
    """Return the names and lines of what leaks."""
    lines = source.read_text().splitlines()
    found = []
    for number, line in enumerate(lines, 1):
        match = MARK.search(line)
        if match:
            found.append((match[1], number))
    return found


def growth(source: Path, seconds: float) -> dict[str, Any]:
    """Run the service, and ask once what grows in it."""
    command = [sys.executable, "-m", "cpythonplus", "run", "-m", f"examples.leaks.{source.stem}"]
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ, "LEAK_SECONDS": "600"}) as service:
        try:
            time.sleep(WARM_S)
            asked = ["doctor", "growth", str(service.pid), "--seconds", str(seconds)]
            told = subprocess.run(
                [sys.executable, "-m", "cpythonplus", *asked, "--format", "json"],
                stdout=subprocess.PIPE,
                check=True,
            )
        finally:
            service.kill()
    found: dict[str, Any] = json.loads(told.stdout)["growth"]
    return found


def verdict(source: Path, found: dict[str, Any]) -> tuple[str, str]:
    """Return what became of it, and the first row."""
    rows = [row for row in found["owners"] if row["amount_bytes"] > 0][:FIRST_ROWS]
    first = shown(rows[0]) if rows else "-"
    grown = found["rss_bytes"] - found["rss_before_bytes"]
    unexplained = found["c_heap_bytes"] - found["c_heap_before_bytes"]
    wanted = expected(source)
    if not wanted:
        loud = [row for row in rows if row["amount_bytes"] > QUIET]
        return ("not quiet" if loud or unexplained > QUIET else "quiet"), first
    for name, line in wanted:
        if name == "C heap":
            if unexplained < max(grown * 0.6, LEAST):
                return "missed", first
            first = f"C heap +{unexplained >> 10:,} KiB"
            if rows and rows[0]["amount_bytes"] > unexplained / 4:
                return "misled", first
        elif not any(is_it(row, name, line, source) for row in rows):
            return ("misled" if rows else "missed"), first
    return "named", first


def is_it(row: dict[str, Any], name: str, line: int, source: Path) -> bool:
    """Whether a row names the leak, and where it is made; of the standard library, the name."""
    if not row["name"].endswith(name):
        return False
    place = row["place"]
    return not name.startswith("__main__.") or (
        Path(place["file"]).name == source.name and place["line"] == line
    )


def shown(row: dict[str, Any]) -> str:
    """Return a row in short."""
    place = row["place"]
    where = f"{Path(place['file']).name}:{place['line']}" if place["line"] else "?"
    return f"{row['name']} ({row['type']}) +{row['amount_bytes'] >> 10:,} KiB {where}"


def judged(source: Path, seconds: float) -> dict[str, Any]:
    """Return what became of one."""
    found = growth(source, seconds)
    how, first = verdict(source, found)
    return {"service": source.stem, "verdict": how, "pause_ns": found["pause_ns"], "first": first}


def table(results: dict[str, list[dict[str, Any]]]) -> str:
    """Return the verdicts of all versions, a column each; the first row is that of the newest."""
    versions = sorted(results, key=lambda each: [int(part) for part in each.split(".")])
    lines = [
        f"| service | {' | '.join(versions)} | first row |",
        "|---" * (len(versions) + 2) + "|",
    ]
    for row in results[versions[-1]]:
        verdicts = [
            next(each["verdict"] for each in results[version] if each["service"] == row["service"])
            for version in versions
        ]
        lines.append(f"| {row['service']} | {' | '.join(verdicts)} | `{row['first']}` |")
    return "".join(f"{line}\n" for line in lines)


def write_page() -> None:
    """Put the table of all results into the page."""
    results = {each.stem: json.loads(each.read_text()) for each in RESULTS.glob("*.json")}
    PAGE.write_text(filled(PAGE.read_text(), table(results).rstrip("\n"), BEGIN, END))


def main() -> int:
    """Judge all that are named, or all that there are."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="between the two looks (5)")
    parser.add_argument("--jobs", type=int, default=1, help="services at once (1)")
    parser.add_argument("--record", action="store_true", help="keep the results of this version")
    parser.add_argument("--page", action="store_true", help="write the page from results; run none")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    if options.page:
        write_page()
        return 0
    services = {
        each.stem: each for each in sorted(HERE.glob("*.py")) if each.stem not in NOT_SERVICES
    }
    sources = [services[name] for name in options.names or services]
    print("| service | verdict | pause, ms | first row |\n|---|---|--:|---|")
    rows = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for row in pool.map(lambda each: judged(each, options.seconds), sources):
            cells = row["service"], row["verdict"], f"{row['pause_ns'] / 1e6:.1f}", row["first"]
            print(f"| {' | '.join(cells)} |", flush=True)
            rows.append(row)
    if options.record:
        version = ".".join(map(str, sys.version_info[:2]))
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{version}.json").write_text(f"{json.dumps(rows, indent=1)}\n")
    return 1 if any(row["verdict"] not in {"named", "quiet"} for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
