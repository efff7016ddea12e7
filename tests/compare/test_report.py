"""The table, the verdict, the page and the JSON of made-up samples."""

import json
from html.parser import HTMLParser

import pytest

from cpythonplus import _compare as compare
from cpythonplus._compare.comparison import Comparison
from cpythonplus._compare.load import Settings
from cpythonplus._compare.page import ticks
from cpythonplus._compare.report import verdict, warnings
from cpythonplus._compare.samples import CURVE, Sample
from cpythonplus._compare.sides import SIDES, Side

COMMANDS: dict[Side, list[str]] = {
    "stock": ["python", "<job>.py"],
    "plus": ["python", "-m", "cpythonplus", "run", "<job>.py"],
}
SETTINGS = Settings("127.0.0.1", 8000, "/x?a=<b>", 200)


def job(rounds: int = 6, *, wall: float = 0.5, peak: float = 1.0, status: int = 0) -> Comparison:
    """Plus takes `wall` of stock's time, `peak` of its memory, and about the same CPU time."""
    samples = []
    for number in range(rounds):
        shift = 1 + number / 100
        about = 1.05 if number % 2 else 0.95
        stock = {"wall_s": 2 * shift, "cpu_s": 1.0, "peak_bytes": 50 * 2**20}
        plus = {"wall_s": 2 * shift * wall, "cpu_s": about, "peak_bytes": 50 * 2**20 * peak}
        samples += [Sample("stock", number, 0, stock), Sample("plus", number, status, plus)]
    return Comparison(COMMANDS, rounds, tuple(samples))


def service(late_s: float = 0.0) -> Comparison:
    samples = []
    for number in range(6):
        for side, factor in zip(SIDES, (1.0, 0.5), strict=True):
            values = {
                f"{loop}_{key}_s": 0.01 * factor
                for loop in ("open", "closed")
                for key in ("p50", "p99", "p999", "max", "cpu")
            }
            values |= {"open_rate": 200, "closed_rate": 900 / factor, "pss_bytes": 2**30 * factor}
            curve = tuple(0.001 * factor * (1 + p) for p in CURVE)
            errors = {"open": {"status 500": 2}} if side == "stock" else {"open": {}}
            curves = {"open": curve, "closed": curve}
            samples.append(Sample(side, number, -15, values, errors, curves, late_s))
    return Comparison(COMMANDS, 6, tuple(samples), SETTINGS)


def test_a_verdict() -> None:
    assert verdict(job(peak=1.2)) == (
        "With cpythonplus: wall time 50 % less (50 to 50 %), peak memory 20 % more (20 to 20 %);"
        " noise: CPU time."
    )


def test_all_noise() -> None:
    expected = "No difference beyond the noise: wall time, CPU time, peak memory."
    assert verdict(job(wall=1.0)) == expected
    # Each round says so, and yet it is too little to be said.
    assert verdict(job(wall=1.009)) == expected


def test_too_few_rounds() -> None:
    assert verdict(job(5)) == ("Too few rounds for a verdict: 5 complete, at least 6 are needed.")


def test_a_verdict_on_a_server() -> None:
    assert verdict(service()) == (
        "With cpythonplus: p99 (open loop) 50 % less (50 to 50 %), answers (closed loop)"
        " 100 % more (100 to 100 %), memory (process tree) 50 % less (50 to 50 %)."
    )


def test_more_answers_are_better_and_more_seconds_worse() -> None:
    words = {row.metric.name: row.judgement for row in service().rows()}
    assert words["closed_rate"] == words["open_p99_s"] == words["pss_bytes"] == "better"
    assert words["open_rate"] == "noise"
    worse = {row.metric.name: row.judgement for row in job(wall=2.0).rows()}
    assert worse == {"wall_s": "worse", "cpu_s": "noise", "peak_bytes": "noise"}


def test_what_a_reader_must_know() -> None:
    assert warnings(job()) == []
    assert warnings(job(status=3)) == ["plus ended with status 3"]
    assert warnings(service()) == ["stock, open: 12 times status 500"]
    assert "the load generator itself was up to 4.0 ms late" in warnings(service(0.004))[-1]
    # Ended early, in the middle of a round.
    whole = job(3)
    part = Comparison(COMMANDS, 4, whole.samples[:-1])
    assert warnings(part) == ["only 2 of 4 rounds were completed"]
    assert [len(row.values["plus"]) for row in part.rows()] == [2, 2, 2]


@pytest.mark.parametrize("comparison", [job(), job(1), service()], ids=["job", "one", "service"])
def test_the_text_fits_a_terminal(comparison: Comparison) -> None:
    text = compare.text(comparison)
    assert max(map(len, text.splitlines())) <= 80
    assert "<job>.py" in text


def test_a_table() -> None:
    lines = compare.text(job()).splitlines()
    begin = lines.index("") + 1
    assert lines[begin : begin + 4] == [
        "                  stock             plus              plus/stock",
        "wall time, s      2.05 (2.00-2.10)  1.02 (1.00-1.05)  0.50 (0.50-0.50)  better",
        "CPU time, s       1.00 (1.00-1.00)  1.00 (0.95-1.05)  1.00 (0.95-1.05)  noise",
        "peak memory, MiB  50.0 (50.0-50.0)  50.0 (50.0-50.0)  1.00 (1.00-1.00)  noise",
    ]


def test_a_value_that_one_side_lacks() -> None:
    (sample,) = job(1).samples[:1]
    text = compare.text(Comparison(COMMANDS, 1, (sample,)))
    assert "wall time, s      2.00 (2.00-2.00)  -     -" in text.splitlines()


def test_json() -> None:
    data = json.loads(compare.as_json(service()))
    assert data["verdict"] == verdict(service())
    assert data["commands"] == COMMANDS
    assert len(data["samples"]) == 12
    rate = next(each for each in data["metrics"] if each["name"] == "closed_rate")
    assert rate["median"] == {"stock": 900, "plus": 1800}
    assert rate["ratio"] == pytest.approx([2, 2, 2])
    assert json.loads(compare.as_json(job(1)))["metrics"][0]["ratio"] is None


class Checker(HTMLParser):
    """Holds that tags are closed, and notes what they are."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        assert not {"src", "href"} & dict(attrs).keys(), "something is loaded"
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, _attrs: object) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("comparison", [job(), job(1), service()], ids=["job", "one", "service"])
def test_the_page(comparison: Comparison) -> None:
    page = Checker()
    page.feed(compare.page(comparison))
    assert page.open == []
    assert "script" not in page.seen
    assert "<job>.py" in page.text
    assert verdict(comparison) in page.text
    lines = 2 * (2 + 2 * 6) if comparison.service else 0
    assert page.seen.count("polyline") == lines
    assert page.seen.count("circle") == sum(
        len(row.values[side]) for row in comparison.rows() for side in SIDES
    )


def test_ticks() -> None:
    assert ticks(0.15, 6) == pytest.approx([0.2, 0.5, 1, 2, 5])
    assert len(ticks(1e-6, 10)) <= 10
