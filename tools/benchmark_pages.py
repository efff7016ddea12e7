"""Writes the measured parts of docs/benchmarks/ from the results in benchmarks/results/.

    python -m tools.benchmark_pages                rewrites the tables, their index, the charts
    python -m tools.benchmark_pages --check        changes nothing; exit status 1 if one is outdated
    python -m tools.benchmark_pages --slim FILE... rewrites raw results without latency curves

One file per benchmark and version of Python, made by `python -m benchmarks NAME --json FILE`:
`3.13.json` of giltest, `threads-3.13.json`, `testserver-3.13.json`; `doctor-3.13.json` has some
cases of `memory`. Each has a page of its own, with the tables between two marks. A slim file has
all rounds, with rate, p50, p99 and max of each; whether targets are reached is computed from the
rounds here, by the benchmarks' own targets.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.common import formats, rows
from benchmarks.common.percentiles import Latency
from benchmarks.common.results import (
    SCHEMA_VERSION,
    CaseResult,
    Outcome,
    Report,
    Round,
    Share,
    geometric_mean_ratio,
)
from benchmarks.common.sides import ALL_SIDES, Side
from benchmarks.common.storing import stored
from benchmarks.common.targets import Target
from benchmarks.demo.scenario import WORKERS as DEMO_WORKERS
from benchmarks.scenarios import FIGURES, TARGETS
from tools import requests_chart, results_page
from tools.headline_chart import DARK, LIGHT, Bars, bar_charts
from tools.results_page import RESULTS, ROOT, PageError

PAGES = ROOT / "docs" / "benchmarks"

NOT_MEASURED = "(Not measured yet for this version of the package: run `make bench`.)"

_CASES_WITHOUT_TARGET = ("echo-beside-0",)
"""Shown although nothing is demanded of them: the others are compared with them."""

_DEMANDING = ("echo",)
"""Scenarios of the first table, what gets better; the second one has what must not get worse."""

_OPTIONAL = {
    "better": "higher",
    "peer": "",
    "base": "stock",
    "own": "plus",
    "absent": (),
    "alone": "",
}
"""What a case in an older file does not say, with what it then is."""


_IN_ONE_ROW = {"requests": "p50 / p99, ms", "crowds": "CPU / wall, ms"}
"""Scenarios with many cases, of which each has one row for all its targets; and what it shows."""

_OTHERS = ("healing-", "compat-", "cpython-tests-", "cpython-whole-", "lies-", "builds")
"""How results begin that have pages of their own: of benchmarks/sites/healing,
tools/compat/farm.py, tools/cpython_tests.py, tools/builds_page.py and tests/interp/test_lies.py."""


# ---- reading ------------------------------------------------------------------------------------


def read(path: Path) -> Report:
    """Return the report that a run with `--json` left in `path`, slim or not; or PageError."""
    try:
        raw = json.loads(path.read_text("utf-8"))
        if raw["schema"] != SCHEMA_VERSION:
            raise PageError(f"{path.name}: schema {raw['schema']!r} is not {SCHEMA_VERSION}")
        cases = [_case(case) for case in raw["cases"]]
        return Report(raw["benchmark"], raw["machine"], raw["settings"], cases, raw["targets"])
    except OSError as error:
        raise PageError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise PageError(f"{path.name} is not a raw result of a benchmark: {error!r}") from None


def _case(raw: dict[str, Any]) -> CaseResult:
    names = ("name", "scenario", "title", "unit", "statistic")
    rounds = [
        Round(r["side"], r["number"], r["position"], _outcome(r["outcome"]), r["failure"])
        for r in raw["rounds"]
    ]
    optional = {name: raw.get(name, default) for name, default in _OPTIONAL.items()}
    return CaseResult(**{name: raw[name] for name in names}, **optional, rounds=rounds)


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
        patched=raw.get("patched"),
        notes=tuple(raw["notes"]),
        figures=raw.get("figures", {}),
    )


# An absolute path up to its last part.
_FOLDER = re.compile(r"(?:/[\w.+-]+)+(?=/)")


def slim(path: Path) -> None:
    """Rewrite `path` without curves, and with what is derived left out.

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
    kept = ("schema", "benchmark", "machine", "settings", "targets", "cases")
    path.write_text(stored({key: raw[key] for key in kept}), "utf-8")


# ---- the table ----------------------------------------------------------------------------------


def version(report: Report) -> str:
    """Return the version of the interpreter that was measured, `3.13.0`."""
    return report.machine.get("python", "?").removeprefix("CPython ")


def _order(report: Report) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version(report))]


def _pair(stock: str, plus: str, ratio: str = "") -> str:
    return f"{stock} → {plus}{f' ({ratio})' if ratio else ''}"


def _rate_cell(case: CaseResult | None) -> str:
    return _side_cell(case, "plus")


def _side_cell(case: CaseResult | None, side: Side) -> str:
    """Return the rates of stock and of `side`, or what one operation takes, and the ratio."""
    stock, other = (case.shown("stock"), case.shown(side)) if case else (None, None)
    if case is None or stock is None or other is None:
        return "-"
    ratio = case.ratio(side)
    return _pair(
        formats.number(_value(case, stock)),
        formats.number(_value(case, other)),
        formats.ratio(ratio) if ratio is not None else "",
    )


def _value(case: CaseResult, outcome: Outcome) -> float:
    """Return the rate, or what one operation takes where that is shown instead."""
    return 1e9 / outcome.rate if case.scenario in rows.COSTS_OF_ONE else outcome.rate


def _unit(case: CaseResult) -> str:
    return "ns" if case.scenario in rows.COSTS_OF_ONE else case.unit


def _p99_cell(case: CaseResult | None, *, ratio: bool = False) -> str:
    shown = [case.shown("stock"), case.shown("plus")] if case else []
    found = [s.latency.p99_ms for s in shown if s and s.latency]
    if len(found) != len(shown) or not found:
        return "-"
    stock, plus = found
    quotient = formats.ratio(plus / stock) if ratio and stock else ""
    return _pair(formats.number(stock), formats.number(plus), quotient)


def _start_cell(case: CaseResult | None) -> str:
    shown = [case.shown("stock"), case.shown("plus")] if case else []
    cells = [formats.number(s.latency.p50_ms) for s in shown if s and s.latency]
    return _pair(*cells) if len(cells) == len(shown) > 0 else "-"


def _share_cell(case: CaseResult | None, of: Callable[[CaseResult, Side], float | None]) -> str:
    shares = [of(case, "stock"), of(case, "plus")] if case else []
    cells = [formats.number(share) for share in shares if share is not None]
    return _pair(*cells) if len(cells) == len(shares) > 0 else "-"


def _cell(target: Target, report: Report) -> str:
    case = report.case(target.case)
    match target.quantity:
        # The rate of `extra_cpu_s` is the CPU time itself.
        case "ratio" | "extra_cpu_s":
            return _rate_cell(case) if _is_shown(target, report) else "-"
        case "p99_ms":
            return _p99_cell(case)
        case "min_share":
            return _share_cell(case, CaseResult.min_share)
        case "extra_ms":
            return _start_cell(case)
        case "geometric_mean":
            mean = geometric_mean_ratio(report.scenario(target.case))
            return "-" if mean is None else formats.ratio(mean)
        case _:
            value = target.value(report)
            return "-" if value is None else formats.measured(target.quantity, value)


def _is_shown(target: Target, report: Report) -> bool:
    """Return whether the case's rate stands in this row: where no other row of it has a target."""
    alike = [t for t in TARGETS if (t.case, t.quantity) == (target.case, target.quantity)]
    stated = [t for t in alike if t.value(report) is not None]
    return target in stated or (not stated and target is alike[0])


_WHAT = {
    "p99_ms": "p99, ms",
    "min_share": "least share of a CPU thread",
    "rate_against": "rate against beside none",
    "extra_ms": "ms",
    "private_mib": "private a worker",
    "rise_mib": "most memory while stopping, above that before",
    "rate_s": "seconds until the last process has ended",
    "cost_to": "to {side}",
    "times_faster": "{side} to it",
    "times_case": "to {other}",
}
_FIGURES = {
    "requests_per_s": "requests/s in steady state, to stock",
    "faults": "page faults during the load, to stock",
    "to_shallow": "to the same when shallow",
    "cold_kb": "cold, KB",
    "small_kb": "with small stacks, KB",
    "peak_gb": "GB at most",
    "per_cpu_s": "requests per CPU second",
}


def _what(target: Target, reports: Sequence[Report]) -> str:
    if target.quantity == "geometric_mean":
        count = max(len(report.scenario(target.case)) for report in reports)
        return f"single-threaded work, geometric mean of {count}"
    case = next((c for r in reports if (c := r.case(target.case))), None)
    title, unit = (case.title, _unit(case)) if case else (target.case, "")
    figure = _FIGURES.get(target.figure) or FIGURES.get(target.figure)
    what = figure or _WHAT.get(target.quantity, unit)
    side = {"figure_of": f" ({target.side})", "figure_to": f", to {target.side}"}
    words = what.format(side=target.side, other=target.other)
    title += f", {target.own}" if target.own else ""
    return f"{title}, {words}{side.get(target.quantity, '')}"


def _reached(target: Target, reports: Sequence[Report]) -> str:
    return _all_reached([target], reports)


def _all_reached(targets: Sequence[Target], reports: Sequence[Report]) -> str:
    """Return `yes`, or the versions that missed one of the targets."""
    verdicts = [(version(r), target.verdict(r)) for r in reports for target in targets]
    if all(verdict is None for _, verdict in verdicts):
        return "-"
    missed = dict.fromkeys(where for where, verdict in verdicts if verdict and not verdict.reached)
    return "yes" if not missed else f"not on {', '.join(missed)}"


def _wanted(target: Target) -> str:
    # The signs are for the eye; the text is the terminal's, which is plain ASCII.
    return target.text().replace(">=", "≥").replace("<=", "≤")


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
        if not measured or (scenario in _DEMANDING) != demanding or scenario in _IN_ONE_ROW:
            continue
        cells = [_cell(target, report) for report in reports]
        yield [_what(target, reports), *cells, _wanted(target), _reached(target, reports)]


def _in_one_row(reports: Sequence[Report], scenario: str) -> Iterator[list[str]]:
    """Yield a row for each case of `scenario`, with two numbers of each side."""
    for case in _all_cases(reports):
        if case.scenario == scenario:
            own = _stated(case, reports)
            wanted = ", ".join(_wanted(target) for target in own)
            cells = [_two_numbers_cell(report.case(case.name)) for report in reports]
            yield [case.title, *cells, wanted, _all_reached(own, reports) if own else ""]


def _two_numbers_cell(case: CaseResult | None) -> str:
    shown = [case.shown("stock"), case.shown("plus")] if case else []
    cells = [" / ".join(map(formats.number, _two_numbers(outcome))) for outcome in shown if outcome]
    return _pair(*cells) if len(cells) == len(shown) > 0 else "-"


def _two_numbers(outcome: Outcome) -> tuple[float, float]:
    """Return p50 and p99 of what has latencies, CPU time and wall time of what has none."""
    latency = outcome.latency
    if latency:
        return latency.p50_ms, latency.p99_ms
    return outcome.rate, outcome.figures["joined_ms"]


def _targets_of(cases: Sequence[CaseResult], reports: Sequence[Report]) -> Iterator[list[str]]:
    """Yield a row for each target of a case, and one for each case that has none."""
    for case in cases:
        stated = _stated(case, reports)
        for target in stated:
            cells = [_cell(target, report) for report in reports]
            yield [_what(target, reports), *cells, _wanted(target), _reached(target, reports)]
        if not stated:
            cells = [_rate_cell(report.case(case.name)) for report in reports]
            yield [f"{case.title}, {_unit(case)}", *cells, "", ""]


def _stated(case: CaseResult, reports: Sequence[Report]) -> list[Target]:
    """Return the targets of a case that any of the reports has measured."""
    own = [target for target in TARGETS if target.case == case.name]
    return [t for t in own if any(t.value(report) is not None for report in reports)]


def _demanded(reports: Sequence[Report]) -> list[CaseResult]:
    """Return the cases of which anything is demanded."""
    demanded = {target.case for target in TARGETS}
    return [case for case in _all_cases(reports) if case.name in demanded]


def _all_cases(reports: Sequence[Report]) -> list[CaseResult]:
    """Return each case that is in any of the reports, once, in order."""
    return list({case.name: case for report in reports for case in report.cases}.values())


def _markdown(
    body: Sequence[list[str]], reports: Sequence[Report], first: str, *last: str
) -> list[str]:
    """Return a table with a column for each report, or nothing where there are no rows."""
    if not body:
        return []
    heading = [first, *map(version, reports), *last]
    lines = [heading, ["---", *["--:"] * len(reports), *["---"] * len(last)], *body]
    return [f"| {' | '.join(line)} |" for line in lines]


def _machines(reports: Sequence[Report]) -> Iterator[str]:
    """Yield a sentence for each way of measuring, with the versions where there are several."""
    seen: dict[str, list[str]] = {}
    for report in reports:
        machine, settings = report.machine, report.settings
        facts = [machine.get(key, "") for key in ("cpu", "cores", "kernel")]
        facts += [f"cpythonplus {machine.get('cpythonplus', '?')}", machine.get("peers", "")]
        facts += [machine.get("go", "")]
        facts += [machine.get("date", "")[:10]]
        rounds, seconds = settings.get("rounds"), settings.get("seconds")
        by_requests = report.benchmark == "prefork"
        size = f"{rounds} {'round' if rounds == 1 else 'rounds'}"
        size += "" if by_requests else f" of {seconds} s"
        text = f"{', '.join(filter(None, facts))}; {size}"
        seen.setdefault(text, []).append(version(report))
    for text, versions in seen.items():
        yield f"{', '.join(versions)}: {text}." if len(seen) > 1 else f"{text}."


_STOCK_AND_PLUS = ("stock → plus", "target", "reached")


def giltest_tables(reports: Sequence[Report]) -> list[list[str]]:
    """Return the tables of giltest."""
    first, *last = _STOCK_AND_PLUS
    return [
        _markdown(list(_rows(reports, demanding=True)), reports, first, *last),
        _markdown(list(_rows(reports, demanding=False)), reports, first, *last),
        *(
            _markdown(list(_in_one_row(reports, name)), reports, f"{what}, {first}", *last)
            for name, what in _IN_ONE_ROW.items()
        ),
    ]


def threads_tables(reports: Sequence[Report]) -> list[list[str]]:
    """Return the tables of threads: what plus is to stock, and what other packages are."""
    return [
        _targets_table(_all_cases(reports), reports),
        _markdown(list(_peer_rows(reports)), reports, "stock → another package"),
    ]


def _peer_rows(reports: Sequence[Report]) -> Iterator[list[str]]:
    for case in _all_cases(reports):
        cells = [_side_cell(report.case(case.name), "peer") for report in reports]
        if set(cells) != {"-"}:
            yield [f"{case.title}, {case.peer}, {_unit(case)}", *cells]


def testserver_tables(reports: Sequence[Report]) -> list[list[str]]:
    """Return the tables of testserver: requests per second, p99, and what the job does."""
    cases = _all_cases(reports)
    p99 = [
        [f"{c.title}, p99, ms", *(_p99_cell(r.case(c.name), ratio=True) for r in reports)]
        for c in cases
    ]
    jobs = [
        [
            f"{c.title}, speed of the job to alone",
            *(_share_cell(r.case(c.name), CaseResult.usual_share) for r in reports),
        ]
        for c in cases
        if c.usual_share("stock") is not None
    ]
    first = _STOCK_AND_PLUS[0]
    return [
        _targets_table(cases, reports),
        _markdown(p99, reports, first),
        _markdown(jobs, reports, first),
    ]


def prefork_tables(reports: Sequence[Report]) -> list[list[str]]:
    """Return the tables of prefork: memory, the end, recycling, and what a peer reaches."""
    cases = _all_cases(reports)
    freezing = [
        [f"{c.title}, {_unit(c)}", *(_side_cell(r.case(c.name), "gc.freeze") for r in reports)]
        for c in cases
    ]
    heading = "stock → gc.freeze before the fork"
    return [_targets_table(cases, reports), _markdown(freezing, reports, heading)]


def demo_tables(reports: Sequence[Report]) -> list[list[str]]:
    """Return the table of what `make demo` finds whatever else the machine does."""

    def shown(report: Report, name: str, side: Side) -> str:
        case = report.case(name)
        outcome = case.shown(side) if case else None
        return _number(outcome.rate if outcome else None)

    names = {
        "gunicorn": (f"plain-{DEMO_WORKERS}", "stock"),
        "gunicorn --preload": (f"workers-{DEMO_WORKERS}", "stock"),
        "cpythonplus serve": (f"workers-{DEMO_WORKERS}", "plus"),
    }
    memory = [
        [f"{DEMO_WORKERS} workers, {title}, MiB", *(shown(r, name, side) for r in reports)]
        for title, (name, side) in names.items()
    ]
    pauses = [
        _number(case.figure("pause_ms", "plus") if case else None)
        for case in (report.case("leak") for report in reports)
    ]
    rows = [*memory, ["doctor growth: the program was paused for, ms", *pauses]]
    return [_markdown(rows, reports, "measured")]


def tasklets_tables(reports: Sequence[Report]) -> list[list[str]]:
    """Return the tables of tasklets: the targets, and all sides on the newest interpreter.

    What pickles has other sides, in a table of its own.
    """
    pickles = reports[-1].scenario("pickle")
    others = [case for case in reports[-1].cases if case not in pickles]
    beside = [_sides_beside(reports[-1], cases) for cases in (others, pickles) if cases]
    return [_targets_table(_all_cases(reports), reports, "tasklets"), *beside]


def tasklet_io_tables(reports: Sequence[Report]) -> list[list[str]]:
    """Return the tables of tasklets and the world: the targets, and each scenario's sides."""
    newest = reports[-1]
    return [
        _targets_table(_demanded(reports), reports, "tasklets"),
        *(_sides_beside(newest, newest.scenario(name), p99=True) for name in newest.scenarios()),
    ]


def memory_tables(reports: Sequence[Report]) -> list[list[str]]:
    """Return the tables of watching for cycles: the targets, and the figures behind them."""
    return [_targets_table(_all_cases(reports), reports, "measured"), _sides_beside(reports[-1])]


def sites_tables(reports: Sequence[Report]) -> list[list[str]]:
    """Return the tables of tunnels: the targets, and all sides on the newest interpreter."""
    return [_targets_table(_demanded(reports), reports, "WireGuard"), _sides_beside(reports[-1])]


def records_tables(reports: Sequence[Report]) -> list[list[str]]:
    """Return the tables of rows and mappings.

    The targets; rows of the usual size and all that is done with them on each version; then, on the
    newest interpreter, rows of each size, and CompactDict beside dict.
    """
    newest = reports[-1]
    usual = [case for case in _all_cases(reports) if case.name in _ON_EACH_VERSION]
    return [
        _targets_table(_demanded(reports), reports, "measured"),
        _markdown(list(_each_side(usual, reports)), reports, "dict = 1"),
        *(_sides_beside(newest, cases) for cases in [newest.scenario("row-bytes")] if cases),
        *(_sides_beside(newest, cases) for cases in [_rows_of(newest)] if cases),
        *(_base_and_own(newest, cases) for name in _MAPPINGS if (cases := newest.scenario(name))),
    ]


_ON_EACH_VERSION = frozenset(
    {"row-bytes-8", "row-build", "row-field", "row-miss", "row-items", "json", "very-many"}
)
_MAPPINGS = ("dict-bytes", "look-up", "iteration", "insertion", "shrinking")


def _rows_of(report: Report) -> list[CaseResult]:
    return [case for name in ("row-speed", "json", "many") for case in report.scenario(name)]


def _each_side(cases: Sequence[CaseResult], reports: Sequence[Report]) -> Iterator[list[str]]:
    """Yield a row for each side of each case, with its rate and the ratio to the case's base."""
    for case in cases:
        found = [report.case(case.name) for report in reports]
        for side in case.sides():
            cells = [_to_base(each, side) for each in found]
            if set(cells) != {"-"}:
                yield [f"{case.title}, {side}, {case.unit}", *cells]


def _to_base(case: CaseResult | None, side: Side) -> str:
    shown = case.shown(side) if case else None
    if case is None or shown is None:
        return "-"
    ratio = case.ratio(side)
    beside = f" ({formats.ratio(ratio)})" if ratio is not None and side != case.base else ""
    return f"{formats.number(shown.rate)}{beside}"


def _base_and_own(report: Report, cases: Sequence[CaseResult]) -> list[str]:
    """Return a table of one scenario, with a row for each case and a column for each number.

    The first column is the rate, whose name stands before the comma of the cases' titles.
    """
    first = cases[0]
    named = {name: text for name, text in FIGURES.items() if any(map(_has(name), cases))}
    what = first.title.partition(", ")[0]
    head = [f"{first.base} → {first.own}, on {version(report)}", f"{what}, {first.unit}"]
    lines = [[*head, *named.values()], ["---", *["--:"] * (len(named) + 1)]]
    for case in cases:
        pairs = [[o.rate if (o := case.shown(side)) else None for side in (case.base, case.own)]]
        pairs += [[case.figure(name, side) for side in (case.base, case.own)] for name in named]
        title = case.title.partition(", ")[2]
        lines.append([title, *(_numbers(base, own) for base, own in pairs)])
    return [f"| {' | '.join(line)} |" for line in lines]


def _has(figure: str) -> Callable[[CaseResult], bool]:
    return lambda case: case.figure(figure, case.base) is not None


def _numbers(base: float | None, own: float | None) -> str:
    """Return both, and the ratio where there is one."""
    ratio = formats.ratio(own / base) if base and own is not None else ""
    return "-" if base is own is None else _pair(_number(base), _number(own), ratio)


def _targets_table(
    cases: Sequence[CaseResult], reports: Sequence[Report], first: str = _STOCK_AND_PLUS[0]
) -> list[str]:
    return _markdown(list(_targets_of(cases, reports)), reports, first, *_STOCK_AND_PLUS[1:])


def _sides_beside(
    report: Report, cases: Sequence[CaseResult] = (), *, p99: bool = False
) -> list[str]:
    """Return a table with a column for each side of one report, and rows for its figures.

    cases: only these of it.
    """
    cases = cases or report.cases
    sides = [side for side in ALL_SIDES if any(side in case.sides() for case in cases)]
    lines = [[f"on {version(report)}", *sides], ["---", *["--:"] * len(sides)]]
    for case in cases:
        shown = [case.shown(side) for side in sides]
        lines.append(
            [f"{case.title}, {case.unit}", *(_number(o.rate if o else None) for o in shown)]
        )
        latencies = [o.latency if o else None for o in shown]
        if p99 and any(latencies):
            times = [_number(x.p99_ms if x else None) for x in latencies]
            lines.append([f"{case.title}, p99, ms", *times])
        for name, heading in FIGURES.items():
            values = [case.figure(name, side) for side in sides]
            if any(value is not None for value in values):
                lines.append([f"{case.title}, {heading}", *map(_number, values)])
    return [f"| {' | '.join(line)} |" for line in lines]


def _number(value: float | None) -> str:
    return "-" if value is None else formats.number(value)


@dataclass(frozen=True, slots=True)
class Page:
    """One page of docs/benchmarks, and what stands between its marks."""

    benchmark: str
    tables: Callable[[Sequence[Report]], list[list[str]]]
    how: str
    """How it was measured."""
    part: str = ""
    """How its results are called where they are of some cases of the benchmark only."""
    within: str = ""
    """The page of which this one is a section that bears its name."""

    @property
    def file(self) -> str:
        """The name of the file that it is written into."""
        return f"{self.within or self.name}.md"

    @property
    def link(self) -> str:
        """Where it is, in the folder of pages."""
        return f"{self.file}#{self.name}" if self.within else self.file

    @property
    def name(self) -> str:
        """The page's name, with which the files of its results begin."""
        return self.part or self.benchmark

    def reports(self, folder: Path) -> list[Report]:
        """Return the reports of this page in `folder`, one for each version, the oldest first.

        Raises PageError for two of one version, and for a report of another benchmark.
        """
        files = [path for path in sorted(folder.glob("*.json")) if _page_of(path) == self.name]
        reports = [read(path) for path in files]
        for path, report in zip(files, reports, strict=True):
            if report.benchmark != self.benchmark:
                raise PageError(
                    f"{path.name} is a result of {report.benchmark}, not of {self.benchmark}"
                )
        versions = [version(report) for report in reports]
        twice = {each for each in versions if versions.count(each) > 1}
        if twice:
            raise PageError(f"there are several results for {', '.join(sorted(twice))}")
        return sorted(reports, key=_order)

    def text(self, folder: Path) -> str:
        """Return what stands between the marks."""
        reports = self.reports(folder)
        if not reports:
            return NOT_MEASURED
        how = [*_machines(reports), f"{self.how} {_RAW}"]
        return "\n\n".join("\n".join(lines) for lines in [*self.tables(reports), how] if lines)


_RAW = "Raw results: [`benchmarks/results`](../../benchmarks/results)."
_IN_TURNS = "Each side in one run on the same interpreter, in alternating rounds"
_ALONE = "Each side in one run, in alternating rounds, each in a process of its own"
_MEDIAN = f"{_ALONE}; the median\nround is shown."

GILTEST = Page(
    "giltest",
    giltest_tables,
    f"{_IN_TURNS}. Shown is the\n"
    "median round, for single-threaded work the fastest sample; p99 is that of the round\n"
    "shown; shares are the least of all rounds.",
)
PREFORK = Page("prefork", prefork_tables, f"{_IN_TURNS}; the median round\nis shown.")
DEMO = Page(
    "demo",
    demo_tables,
    "Each of these cases has one round, beside other load.",
    within="prefork",
)
SUITES = (
    GILTEST,
    Page(
        "threads",
        threads_tables,
        f"{_IN_TURNS}; shown is the\nbest round, CPU time is the median round's.",
    ),
    Page(
        "threads",
        threads_tables,
        f"{_IN_TURNS}, beside other load; shown is\nthe best round.",
        "threads-without-a-gil",
        within="threads",
    ),
    Page(
        "testserver",
        testserver_tables,
        f"{_IN_TURNS}; shown is the\nbest round; p99 is that of it. The speed of the job is\n"
        "the median of all rounds.",
    ),
    PREFORK,
    DEMO,
    Page(
        "tasklets",
        tasklets_tables,
        f"{_ALONE}, without\n"
        "garbage collection; the best round is shown. KB and GB are powers of ten.",
    ),
    Page(
        "tasklets",
        tasklets_tables,
        f"{_ALONE}, without\ngarbage collection; the best round is shown.",
        "tasklets-pickling",
        within="tasklets",
    ),
    Page(
        "tasklet-io",
        tasklet_io_tables,
        "Each side in one run, in alternating rounds, each in processes of its own, without\n"
        "garbage collection but for gunicorn; the median round is shown, of locks the fastest\n"
        "sample. Server and client have a core each, gunicorn and its client both.",
        within="tasklets",
    ),
    Page("memory", memory_tables, _MEDIAN),
    Page("memory", memory_tables, _MEDIAN, "doctor", within="memory"),
    Page("memory", memory_tables, _MEDIAN, "growth", within="memory"),
    Page(
        "records",
        records_tables,
        f"{_ALONE};\nthe best round is shown, with its fastest loop. "
        "Bytes, and very many rows, have one round.",
    ),
    Page(
        "sites",
        sites_tables,
        "In one run, the sides of a case one after the other, each in network\n"
        "namespaces of its own, WireGuard by wireguard-go; the median round is shown.",
    ),
)


def _page_of(path: Path) -> str:
    """Return which page a file's results are for, by its name; those of giltest have no prefix."""
    if path.name.startswith(_OTHERS):
        return ""
    prefix, _, _ = path.stem.rpartition("-")
    return prefix if prefix in {page.name for page in SUITES} else GILTEST.name


def index(folder: Path) -> str:
    """Return the table of docs/benchmarks/README.md: how many targets each suite reaches."""
    lines = [
        "| suite | versions | measured | targets | reached on all of them |",
        "|---|---|---|--:|--:|",
    ]
    for page in SUITES:
        reports = page.reports(folder)
        verdicts = [[v for r in reports if (v := target.verdict(r))] for target in TARGETS]
        stated = [found for found in verdicts if found]
        reached = sum(all(verdict.reached for verdict in found) for found in stated)
        versions = ", ".join(".".join(version(report).split(".")[:2]) for report in reports)
        dates = sorted({report.machine.get("date", "")[:10] for report in reports})
        measured = " to ".join(dict.fromkeys((dates[0], dates[-1]))) if dates else "-"
        cells = (f"[{page.name}]({page.link})", versions or "-", measured)
        lines.append(f"| {' | '.join(cells)} | {len(stated)} | {reached} |")
    return "\n".join(lines)


def made(results: Path, pages: Path) -> dict[Path, str]:
    """Return all files of `pages` that are made of `results`, as they should be."""
    texts: dict[str, dict[str, str]] = {"README.md": {"measured": index(results)}}
    for page in SUITES:
        block = page.name if page.within else "measured"
        texts.setdefault(page.file, {})[block] = page.text(results)
    found = {pages / name: drawn for name, drawn in charts(results).items()}
    for file, blocks in texts.items():
        found |= results_page.page(pages / file, **blocks)
    return found


def charts(results: Path) -> dict[str, str]:
    """Return the charts, by their names; each is of the newest interpreter that has its cases."""
    found = {}
    requests = _newest(GILTEST, results, requests_chart.chart)
    if requests:
        found["requests.svg"] = requests
    latency = _newest(GILTEST, results, latency_bars)
    memory = _newest(PREFORK, results, memory_bars)
    if latency and memory:
        bars = (latency, memory)
        found["headline.svg"] = bar_charts(bars, LIGHT)
        found["headline-dark.svg"] = bar_charts(bars, DARK)
    return found


def latency_bars(report: Report, python: str) -> Bars | None:
    """Return p99 of giltest's requests of 5 ms beside one thread; None if it lacks."""
    case = report.case("requests-5ms-beside-1")
    values = requests_chart.p99s(case, report) if case else []
    sides = ("no thread", "stock", "cpythonplus")
    title, below = "p99 beside a thread that computes", f"requests of 5 ms, CPython {python}"
    return _bars(title, below, "ms", dict(zip(sides, values, strict=True))) if values else None


def memory_bars(report: Report, python: str) -> Bars | None:
    """Return the memory of prefork's eight workers; None if it lacks."""
    case = report.case("memory-8")
    sides: dict[str, Side] = {"gc.freeze": "gc.freeze", "stock": "stock", "cpythonplus": "plus"}
    shown = {name: case.shown(side) for name, side in sides.items()} if case else {}
    values = {name: outcome.rate for name, outcome in shown.items() if outcome}
    title, below = "Memory of 8 gunicorn workers", f"Django, 110,000 items, CPython {python}"
    return _bars(title, below, "MiB", values) if len(values) == len(sides) else None


def _bars(title: str, below: str, unit: str, values: dict[str, float]) -> Bars:
    labels = {name: f"{formats.number(value)} {unit}" for name, value in values.items()}
    return Bars(title, below, values, labels)


T = TypeVar("T")


def _newest(page: Page, results: Path, draw: Callable[[Report, str], T | None]) -> T | None:
    reports = reversed(page.reports(results))
    return next((drawn for r in reports if (drawn := draw(r, version(r)))), None)


def main() -> int:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description="Write the measured parts of docs/benchmarks/.")
    parser.add_argument("--check", action="store_true", help="change nothing, only tell")
    parser.add_argument("--slim", nargs="+", type=Path, metavar="FILE", help="drop latency curves")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of raw results")
    parser.add_argument("--pages", type=Path, default=PAGES, help="folder of the pages")
    options = parser.parse_args()
    try:
        if options.slim:
            for path in options.slim:
                slim(path)
            return 0
        after = made(options.results, options.pages)
        return results_page.rewrite("benchmark_pages", after, check=options.check)
    except (PageError, OSError) as error:
        print(f"benchmark_pages: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
