"""Writes the measured table of README.md from the raw results in benchmarks/results/.

    python tools/readme_table.py                rewrites the table
    python tools/readme_table.py --check        changes nothing; exit status 1 when it is outdated
    python tools/readme_table.py --slim FILE... rewrites raw results without their latency curves

One file per version of the interpreter, made by `cpythonplus bench giltest --json FILE`. A slim
file has all rounds, with rate, p50, p99 and max of each; whether targets are reached is computed
from the rounds here, by the package's own targets.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cpythonplus.benchmarks.common import formats
from cpythonplus.benchmarks.common.percentiles import Latency
from cpythonplus.benchmarks.common.results import (
    SCHEMA_VERSION,
    CaseResult,
    Outcome,
    Report,
    Round,
    Share,
    geometric_mean_ratio,
)
from cpythonplus.benchmarks.common.targets import TARGETS, Target

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
RESULTS = ROOT / "benchmarks" / "results"

BEGIN = "<!-- measured:begin -->"
END = "<!-- measured:end -->"
NOT_MEASURED = "(Not measured yet for this version of the package: run `make bench`.)"

_CASES_WITHOUT_TARGET = ("echo-beside-0",)
"""Shown although nothing is demanded of them: the others are compared with them."""

_DEMANDING = ("echo",)
"""Scenarios of the first table, what gets better; the second one has what must not get worse."""


class TableError(Exception):
    """One line that says what is wrong with the input."""


# ---- reading ------------------------------------------------------------------------------------


def read(path: Path) -> Report:
    """Return the report that `bench --json`, perhaps made slim, left in `path`; or TableError."""
    try:
        raw = json.loads(path.read_text("utf-8"))
        if raw["schema"] != SCHEMA_VERSION:
            raise TableError(f"{path.name}: schema {raw['schema']!r} is not {SCHEMA_VERSION}")
        cases = [_case(case) for case in raw["cases"]]
        return Report(raw["benchmark"], raw["machine"], raw["settings"], cases, raw["targets"])
    except OSError as error:
        raise TableError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise TableError(f"{path.name} is not a raw result of a benchmark: {error!r}") from None


def _case(raw: dict[str, Any]) -> CaseResult:
    names = ("name", "scenario", "title", "unit", "statistic")
    rounds = [
        Round(r["side"], r["number"], r["position"], _outcome(r["outcome"]), r["failure"])
        for r in raw["rounds"]
    ]
    return CaseResult(**{name: raw[name] for name in names}, rounds=rounds)


def _outcome(raw: dict[str, Any] | None) -> Outcome | None:
    if raw is None:
        return None
    latency = raw["latency"]
    return Outcome(
        rate=raw["rate"],
        latency=None if latency is None else Latency(**{"curve": (), **latency}),
        shares=tuple(Share(**share) for share in raw["shares"]),
        errors=raw["errors"],
        scheduled=raw["scheduled"],
        notes=tuple(raw["notes"]),
    )


# An absolute path up to its last part.
_FOLDER = re.compile(r"(?:/[\w.+-]+)+(?=/)")


def slim(path: Path) -> None:
    """Rewrite `path` without curves, a line for each round, with what is derived left out.

    Folders become `...`: where somebody keeps an interpreter is nobody else's business.
    """
    read(path)  # or it is nothing that we should write to
    raw = json.loads(path.read_text("utf-8"))
    for part in ("machine", "settings"):
        raw[part] = {
            name: _FOLDER.sub("...", value) if isinstance(value, str) else value
            for name, value in raw[part].items()
        }
    for case in raw["cases"]:
        for entry in case["rounds"]:
            if entry["outcome"] and entry["outcome"]["latency"]:
                entry["outcome"]["latency"].pop("curve", None)
    lines = []
    for case in raw["cases"]:
        rounds = ",\n   ".join(json.dumps(entry) for entry in case.pop("rounds"))
        lines.append(f'{json.dumps(case)[:-1]}, "rounds": [\n   {rounds}]}}')
    head = json.dumps({key: raw[key] for key in ("schema", "benchmark", "machine", "settings")})
    targets = ",\n  ".join(json.dumps(target) for target in raw["targets"])
    cases = ",\n  ".join(lines)
    text = f'{head[:-1]},\n "targets": [\n  {targets}],\n "cases": [\n  {cases}]}}\n'
    path.write_text(text, "utf-8")


# ---- the table ----------------------------------------------------------------------------------


def version(report: Report) -> str:
    """Return the version of the interpreter that was measured, `3.13.0`."""
    return report.machine.get("python", "?").removeprefix("CPython ")


def _order(report: Report) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version(report))]


def _pair(stock: str, plus: str, ratio: str = "") -> str:
    return f"{stock} → {plus}{f' ({ratio})' if ratio else ''}"


def _rate_cell(case: CaseResult | None) -> str:
    stock, plus = (case.shown("stock"), case.shown("plus")) if case else (None, None)
    if case is None or stock is None or plus is None:
        return "-"
    ratio = case.ratio()
    return _pair(
        formats.number(stock.rate),
        formats.number(plus.rate),
        formats.ratio(ratio) if ratio is not None else "",
    )


def _p99_cell(case: CaseResult | None) -> str:
    shown = [case.shown("stock"), case.shown("plus")] if case else []
    cells = [formats.number(s.latency.p99_ms) for s in shown if s and s.latency]
    return _pair(*cells) if len(cells) == len(shown) > 0 else "-"


def _start_cell(case: CaseResult | None) -> str:
    shown = [case.shown("stock"), case.shown("plus")] if case else []
    cells = [formats.number(s.latency.p50_ms) for s in shown if s and s.latency]
    return _pair(*cells) if len(cells) == len(shown) > 0 else "-"


def _share_cell(case: CaseResult | None) -> str:
    shares = [case.min_share("stock"), case.min_share("plus")] if case else []
    cells = [formats.number(share) for share in shares if share is not None]
    return _pair(*cells) if len(cells) == len(shares) > 0 else "-"


def _cell(target: Target, report: Report) -> str:
    case = report.case(target.case)
    match target.quantity:
        case "ratio":
            return _rate_cell(case)
        case "p99_ms":
            return _p99_cell(case)
        case "min_share":
            return _share_cell(case)
        case "extra_ms":
            return _start_cell(case)
        case "geometric_mean":
            mean = geometric_mean_ratio(report.scenario(target.case))
            return "-" if mean is None else formats.ratio(mean)
        case "rate_against":
            value = target.value(report)
            return "-" if value is None else formats.ratio(value)


_WHAT = {
    "p99_ms": "p99, ms",
    "min_share": "least share of a CPU thread",
    "rate_against": "rate against beside none",
    "extra_ms": "ms",
}


def _what(target: Target, reports: Sequence[Report]) -> str:
    if target.quantity == "geometric_mean":
        count = max(len(report.scenario(target.case)) for report in reports)
        return f"single-threaded work, geometric mean of {count}"
    case = next((c for r in reports if (c := r.case(target.case))), None)
    title, unit = (case.title, case.unit) if case else (target.case, "")
    return f"{title}, {_WHAT.get(target.quantity, unit)}"


def _reached(target: Target, reports: Sequence[Report]) -> str:
    """Return `yes`, or the versions that missed the target."""
    missed = []
    measured = 0
    for report in reports:
        value = target.value(report)
        if value is None:
            continue
        measured += 1
        if not (value >= target.limit if target.at_least else value <= target.limit):
            missed.append(version(report))
    if not measured:
        return "-"
    return "yes" if not missed else f"not on {', '.join(missed)}"


def _rows(reports: Sequence[Report], *, demanding: bool) -> Iterator[list[str]]:
    found = {case.name: case for report in reports for case in report.cases}
    if demanding:
        for name in _CASES_WITHOUT_TARGET:
            if name in found:
                what = f"{found[name].title}, {found[name].unit}"
                yield [what, *(_rate_cell(report.case(name)) for report in reports), "", ""]
    for target in TARGETS:
        scenario = found[target.case].scenario if target.case in found else target.case
        measured = scenario in {case.scenario for case in found.values()}
        if not measured or (scenario in _DEMANDING) != demanding:
            continue
        cells = [_cell(target, report) for report in reports]
        # The sign for the eye; the text is the terminal's, which is plain ASCII.
        wanted = target.text().replace(">=", "≥").replace("<=", "≤")
        yield [_what(target, reports), *cells, wanted, _reached(target, reports)]


def _markdown(reports: Sequence[Report], *, demanding: bool) -> list[str]:
    rows = list(_rows(reports, demanding=demanding))
    if not rows:
        return []
    heading = ["stock → plus", *map(version, reports), "target", "reached"]
    lines = [heading, ["---", *["--:"] * len(reports), "---", "---"], *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def _machines(reports: Sequence[Report]) -> Iterator[str]:
    """Yield a sentence for each way of measuring, with the versions where there are several."""
    seen: dict[str, list[str]] = {}
    for report in reports:
        machine, settings = report.machine, report.settings
        facts = [machine.get(key, "") for key in ("cpu", "cores", "kernel")]
        facts += [f"cpythonplus {machine.get('cpythonplus', '?')}", machine.get("date", "")[:10]]
        rounds, seconds = settings.get("rounds"), settings.get("seconds")
        text = f"{', '.join(filter(None, facts))}; best of {rounds} rounds of {seconds} s"
        seen.setdefault(text, []).append(version(report))
    for text, versions in seen.items():
        yield f"{', '.join(versions)}: {text}." if len(seen) > 1 else f"{text}."


def table(reports: Sequence[Report]) -> str:
    """Return what stands between the two marks."""
    if not reports:
        return NOT_MEASURED
    ordered = sorted(reports, key=_order)
    blocks = [
        _markdown(ordered, demanding=True),
        _markdown(ordered, demanding=False),
        [
            *_machines(ordered),
            "Each side in one run on the same interpreter, in alternating rounds; p99 is that of",
            "the round shown; shares are the least of all rounds; start-up is the median.",
            "Raw results: [`benchmarks/results`](benchmarks/results).",
        ],
    ]
    return "\n\n".join("\n".join(lines) for lines in blocks if lines)


def results(folder: Path) -> list[Report]:
    """Return the reports in `folder`, one for each version; TableError for two of one."""
    reports = [read(path) for path in sorted(folder.glob("*.json"))]
    versions = [version(report) for report in reports]
    twice = {each for each in versions if versions.count(each) > 1}
    if twice:
        raise TableError(f"there are several results for {', '.join(sorted(twice))}")
    return reports


def filled(readme: str, text: str) -> str:
    """Return the README's text with `text` between the marks."""
    head, begin, rest = readme.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise TableError(f"the README has no {BEGIN} ... {END}")
    return f"{head}{begin}\n{text}\n{end}{tail}"


def main() -> int:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description="Write the README's table of measurements.")
    parser.add_argument("--check", action="store_true", help="change nothing, only tell")
    parser.add_argument("--slim", nargs="+", type=Path, metavar="FILE", help="drop latency curves")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of raw results")
    parser.add_argument("--readme", type=Path, default=README, help="file with the table")
    options = parser.parse_args()
    try:
        if options.slim:
            for path in options.slim:
                slim(path)
            return 0
        before = options.readme.read_text("utf-8")
        after = filled(before, table(results(options.results)))
    except (TableError, OSError) as error:
        print(f"readme_table: {error}", file=sys.stderr)
        return 2
    if before == after:
        return 0
    if options.check:
        print(f"readme_table: {options.readme.name} is not up to date: run tools/readme_table.py")
        return 1
    options.readme.write_text(after, "utf-8")
    print(f"readme_table: {options.readme.name} rewritten")
    return 0


if __name__ == "__main__":
    sys.exit(main())
