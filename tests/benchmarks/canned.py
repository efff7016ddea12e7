"""A report with results that look like real ones, for what only shows results."""

from dataclasses import replace

from benchmarks.common.engine import Case
from benchmarks.common.percentiles import summarise
from benchmarks.common.results import CaseResult, Outcome, Report, Round, Share
from benchmarks.common.sides import Side
from benchmarks.scenarios import FIGURES, SCENARIOS, cases_of, verdicts

MACHINE = {"python": "CPython 3.13.0", "cpu": "A <CPU> & more", "date": "2026-11-21T00:00:00+00:00"}

WITH_FIGURES = {"prefork", "tasklets", "tasklet-io", "records"}
_SCENARIOS_WITH_FIGURES = {"classic", "census", "requests", "crowds"}

# Rate and p50/p99/max in ms of stock, then of plus.
Numbers = tuple[float, float, float, float]
ECHO: dict[str, tuple[Numbers, Numbers]] = {
    "echo-beside-0": ((19_400, 0.05, 0.069, 0.4), (19_200, 0.05, 0.071, 0.5)),
    "echo-beside-1": ((206, 5.1, 10.2, 10.4), (55_000, 0.016, 0.046, 2.1)),
    "echo-beside-2": ((46, 10.3, 200, 210), (31_000, 0.03, 0.09, 4.4)),
    "echo-beside-8": ((10, 60, 674, 700), (9_800, 0.033, 3.7, 9.2)),
}


def outcome(
    rate: float,
    p50_ms: float = 1.0,
    p99_ms: float = 2.0,
    max_ms: float = 3.0,
    *,
    scheduled: bool | None = None,
    shares: tuple[Share, ...] = (),
) -> Outcome:
    samples = [p50_ms] * 60 + [p99_ms] * 39 + [max_ms]
    latency = summarise(int(ms * 1e6) for ms in samples)
    return Outcome(rate=rate, latency=latency, scheduled=scheduled, shares=shares)


def result(case: Case, *rounds: tuple[Side, Outcome]) -> CaseResult:
    found = CaseResult(
        case.name,
        case.scenario,
        case.title,
        case.unit,
        case.statistic,
        case.better,
        case.peer,
        case.base,
        case.own,
        case.absent,
        case.alone,
    )
    for position, (side, measured) in enumerate(rounds):
        found.rounds.append(Round(side, position // 2, position, measured))
    return found


def _with_figures(entry: Round, scenario: str) -> Round:
    """Return the same round with a value for each further figure that its scenario may have."""
    assert entry.outcome is not None
    (own,) = (each.figures for each in SCENARIOS if scenario in each.tables)
    figures = {
        name: 1 + place + entry.outcome.rate for place, name in enumerate(FIGURES) if name in own
    }
    return replace(entry, outcome=replace(entry.outcome, figures=figures))


def report(benchmark: str = "giltest") -> Report:
    """Return a report with two rounds of each case of `benchmark`, one of each further side."""
    cases = []
    for place, case in enumerate(cases_of(benchmark)):
        stock, plus = ECHO.get(
            case.name, ((900 + 100 * place, 1, 8, 40), (890 + 101 * place, 0.9, 2, 5))
        )
        shares = (Share(0.4, 0.41),) if case.name.endswith(("-1", "-2", "-8", "-cpu")) else ()
        one, two, *others = case.sides * 2 if len(case.sides) == 1 else case.sides
        on = two in {"plus", "scheduled"}
        cases.append(
            result(
                case,
                (one, outcome(*stock, scheduled=False, shares=shares)),
                (two, outcome(*plus, scheduled=on, shares=shares)),
                (two, outcome(plus[0] * 0.9, *plus[1:], scheduled=on, shares=shares)),
                (one, outcome(stock[0] * 0.9, *stock[1:], scheduled=False, shares=shares)),
                *((side, outcome(stock[0] * 0.5, *stock[1:])) for side in others),
            )
        )
    for found in cases:
        if benchmark in WITH_FIGURES or found.scenario in _SCENARIOS_WITH_FIGURES:
            found.rounds = [_with_figures(entry, found.scenario) for entry in found.rounds]
    made = Report(benchmark, dict(MACHINE), {"rounds": 2, "seconds": 1.0}, cases)
    made.targets = [verdict.as_dict() for verdict in verdicts(made)]
    return made
