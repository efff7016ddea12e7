"""What `make demo` prints: three problems, in 80 columns."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.common import terminal
from benchmarks.common.results import CaseResult, Outcome, Report, Round
from benchmarks.demo.summary import summary
from tests.benchmarks import canned

pytestmark = pytest.mark.any_version

SENTENCE = "shop.SESSIONS (dict) has grown most, by 10 MiB, made at shop.py:7."


def case_of(found: Report, name: str) -> CaseResult:
    (case,) = (each for each in found.cases if each.name == name)
    return case


def report() -> Report:
    found = canned.report("demo")
    leak = case_of(found, "leak")
    notes = ("+10.8 MiB", SENTENCE)
    told = Outcome(rate=0, notes=notes, figures={"pause_ms": 3.0})
    leak.rounds = [Round("plus", 0, 0, told)]
    memory = case_of(found, "workers-4")
    memory.rounds = [
        Round(side, 0, 0, Outcome(rate=rate)) for side, rate in (("stock", 151.0), ("plus", 78.0))
    ]
    return found


def shown(found: Report, width: int = 80) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width).print(summary(found))
    return stream.getvalue()


def test_each_problem_has_stock_plus_gain_and_price_in_80_columns() -> None:
    lines = shown(report()).splitlines()
    assert max(map(len, lines)) <= 80
    for name in ("stock", "plus", "gain", "price"):
        assert sum(line.split()[:1] == [name] for line in lines) == 3, name
    text = "\n".join(line.rstrip() for line in lines)
    assert "  plus   p99 of requests 2.00 ms" in text
    assert "  plus   78 MiB" in text
    assert "  gain   1.94 times less than with --preload" in text
    assert SENTENCE in text
    assert "Gained: p99 8.00 -> 2.00 ms; memory 151 -> 78 MiB; a leak by name." in text
    assert "cpythonplus compare -- python your_program.py" in text


def _with_p99(case: CaseResult, milliseconds: float) -> None:
    for place, each in enumerate(case.rounds):
        assert each.outcome is not None
        if each.side == "plus":
            latency = canned.outcome(1, 1, milliseconds, milliseconds).latency
            case.rounds[place] = replace(each, outcome=replace(each.outcome, latency=latency))


def test_a_gain_within_the_noise_and_no_gain_are_called_so() -> None:
    found = report()
    _with_p99(case_of(found, "flask-10-cpu"), 8)
    memory = case_of(found, "workers-4")
    memory.rounds[1] = replace(memory.rounds[1], outcome=Outcome(rate=160))
    text = shown(found)
    assert "gain   none (the rounds overlap: busy machine?)" in text
    assert "Gained: a leak by name." in text
    assert "gain   none: before Python 3.12 objects cannot be immortal" in text


def test_what_failed_is_named() -> None:
    found = report()
    case_of(found, "leak").rounds = [Round("plus", 0, 0, None, "the program ended")]
    assert "the program ended" in shown(found)


def test_it_can_be_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "demo.svg"
    terminal.show_summary(summary(report()), picture)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
    assert picture.read_text().startswith("<svg")
