import html.parser
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.command import main
from benchmarks.common import engine, formats, page, terminal
from benchmarks.common.children import ROOT
from benchmarks.common.results import Outcome, Report, Round
from benchmarks.scenarios import SUITES, cases_of
from tests.benchmarks import canned
from tests.support import WITH_CTRL_C


def shown(report: Report) -> str:
    stream = io.StringIO()
    terminal.show_report(report, terminal.console(stream))
    return stream.getvalue()


def test_the_table_shows_both_sides_and_the_targets() -> None:
    # The median of three rounds.
    lines = shown(canned.report()).splitlines()
    stock = next(line for line in lines if "echo beside 1 CPU thread" in line)
    assert stock.split()[-6:] == ["stock", "185", "5.10", "10.2", "10.4", "0.400"]
    plus = lines[lines.index(stock) + 1]
    assert plus.split()[:7] == ["plus", "49,500", "0.016", "0.046", "2.10", "0.400", "267"]
    assert ">= 200 x stock: reached" in plus
    assert any("p99 <= 1 ms: not reached" in line for line in lines)
    assert any("geometric mean" in line for line in lines)
    assert not any("warning" in line for line in lines)


def test_at_80_columns_each_side_has_its_own_lines() -> None:
    stream = io.StringIO()
    console = terminal.console(stream)
    console.width = 80
    terminal.show_report(canned.report(), console)
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert "\u2026" not in stream.getvalue()
    place = lines.index("echo beside 1 CPU thread")
    assert lines[place + 1].split()[:3] == ["stock", "requests/s", "185,"], lines[place + 1]
    plus = next(line for line in lines[place:] if line.strip().startswith("plus"))
    assert "49,500" in plus
    assert any(line.strip() == ">= 200 x stock: reached" for line in lines)


def test_columns_without_anything_are_left_out() -> None:
    report = canned.report()
    report.cases = [case for case in report.cases if case.scenario == "efficiency"]
    for case in report.cases:
        case.rounds = canned.result(
            engine.select(cases_of("giltest"), [case.name])[0],
            ("stock", Outcome(rate=1)),
            ("plus", Outcome(rate=2)),
        ).rounds
    assert "p50 ms" not in shown(report)


def test_all_sides_are_shown_with_their_unit() -> None:
    report = canned.report("threads")
    lines = shown(report).splitlines()
    heading = next(line for line in lines if line.strip().startswith("case"))
    assert "round trips/s   p50 us   p99 us   max us   to stock" in heading
    place = next(i for i, line in enumerate(lines) if line.startswith("  Queue hand-over  "))
    sides = [line.replace("Queue hand-over", "").split()[0] for line in lines[place : place + 4]]
    assert sides == ["stock", "plus", "threads-only", "culsans"]
    lock = next(line for line in lines if line.strip().startswith("with lock:"))
    rate = next(case for case in report.cases if case.name == "uncontended-lock").best("stock")
    assert rate is not None
    assert formats.number(1e9 / rate.rate) in lock
    (polling,) = (i for i, line in enumerate(lines) if "32 threads wait 0.1 s" in line)
    assert "<= 0.05 s more in 10 s, or 10%" in lines[polling + 1]


def test_failures_and_errors_are_shown() -> None:
    report = canned.report("demo")
    case = report.cases[0]
    case.rounds[0] = Round("stock", 0, 0, None, "gunicorn ended with status 3: no")
    case.rounds[1] = Round("plus", 0, 1, Outcome(rate=1, errors=4, scheduled=True))
    text = shown(report)
    assert "1 failed" in text
    assert "4 errors" in text
    assert "warning: no result: Flask" in text
    assert "ended with status 3: no" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (55123.4, "55,123"),
        (206, "206"),
        (99.96, "100"),
        (46, "46.0"),
        (2.1, "2.10"),
        (0.0461, "0.046"),
    ],
)
def test_numbers(value: float, text: str) -> None:
    assert formats.number(value) == text


def test_plain_progress_is_a_line_each() -> None:
    stream = io.StringIO()
    progress = terminal.PlainProgress(stream)
    progress.begin(2)
    progress.step("a")
    progress.step("b")
    progress.end()
    assert stream.getvalue() == "[1/2] a\n[2/2] b\n"


def test_bar_progress_on_a_terminal_leaves_nothing_behind() -> None:
    stream = io.StringIO()
    progress = terminal.BarProgress(Console(file=stream, force_terminal=True, width=80))
    progress.begin(1)
    progress.step("echo [stock]")
    progress.end()
    assert "echo [stock]" in stream.getvalue()


class Resources(html.parser.HTMLParser):
    """Collects what a page loads from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.text: list[str] = []
        self.inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside.append(tag)
        for name, value in attrs:
            if name in {"src", "href", "srcset", "data", "action", "poster"} and value:
                self.loaded.append(value)

    def handle_endtag(self, tag: str) -> None:
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.inside):
            self.text.append(data)
        elif "style" in self.inside:
            assert "url(" not in data
            assert "@import" not in data


@pytest.mark.parametrize("benchmark", SUITES)
@pytest.mark.any_version
def test_the_page_is_self_contained(benchmark: str, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    page.write(canned.report(benchmark), path)
    parser = Resources()
    parser.feed(path.read_text(encoding="utf-8"))
    assert parser.loaded == ["data:,"]
    text = " ".join(parser.text)
    assert "A <CPU> & more" in text
    assert f"cpythonplus, benchmark {benchmark}" in text
    if benchmark == "giltest":
        assert "p99 <= 1 ms: not reached" in text


def test_a_page_of_failures_only() -> None:
    report = canned.report()
    for case in report.cases:
        case.rounds = [Round("stock", 0, 0, None, "broken")]
    report.targets = []
    assert "broken" in page.render(report)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "the following arguments are required: BENCHMARK"),
        (["giltst"], "invalid choice: 'giltst'"),
        (["giltest", "--rounds", "0"], "argument --rounds: '0' is not a number from 1 on"),
        (["giltest", "--rounds", "many"], "'many' is not a number from 1 on"),
        (["giltest", "--seconds", "nan"], "'nan' is not a number of seconds above 0"),
        (["giltest", "--seconds", "-1"], "'-1' is not a number of seconds above 0"),
        (["giltest", "--only", "ehco"], "no case is called 'ehco'"),
        (["giltest", "--only", "echo,"], "has an empty name"),
        (["threads", "--sides", "plus,best"], "there is no side 'best'; sides are stock, plus"),
        (["giltest", "--sides", "plus"], "unrecognized arguments: --sides"),
        (["giltest", "--fast"], "unrecognized arguments: --fast"),
        (
            ["giltest", "--json", "/nowhere/at/all.json"],
            "there is no folder /nowhere/at for all.json",
        ),
        (
            ["giltest", "--html", "/nowhere/at/all.html"],
            "there is no folder /nowhere/at for all.html",
        ),
        (["giltest", "--json", "/"], "/ is a folder"),
        (["giltest", "--python", "/nowhere/python"], "cannot run the interpreter /nowhere/python"),
    ],
)
def test_a_wrong_request_is_one_line(
    arguments: list[str], line: str, refusal: Callable[..., str]
) -> None:
    assert line in refusal(*arguments)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_said_before_measuring(
    tmp_path: Path, refusal: Callable[..., str]
) -> None:
    tmp_path.chmod(0o500)
    assert "cannot be written" in refusal("giltest", "--json", str(tmp_path / "x.json"))


def test_the_cases_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["giltest", "--list", "--only", "echo"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split(maxsplit=2) == [
        "echo",
        "echo-beside-1",
        "echo beside 1 CPU thread",
    ]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "benchmarks", *arguments, "--plus-command", ""]


def test_a_whole_run(tmp_path: Path) -> None:
    raw = tmp_path / "raw.json"
    options = ["--rounds", "2", "--seconds", "0.05", "--only", "lock-alone", "--json", str(raw)]
    done = subprocess.run(
        command("giltest", *options),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[0] == "[1/4] Lock pair alone, stock, round 1 of 2"
    assert len(done.stderr.splitlines()) == 4
    assert "not stock against plus in 1 of 1 cases" in done.stdout
    assert f"raw results: {raw}" in done.stdout
    case = json.loads(raw.read_text())["cases"][0]
    assert [r["side"] for r in case["rounds"]] == ["stock", "plus", "plus", "stock"]


def test_a_whole_run_of_threads(tmp_path: Path) -> None:
    raw = tmp_path / "raw.json"
    options = ["--quick", "--seconds", "0.05", "--sides", "plus", "--only", "uncontended-lock"]
    done = subprocess.run(
        command("threads", *options, "--json", str(raw)),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) == 2
    assert "ns each" in done.stdout
    content = json.loads(raw.read_text())
    assert content["settings"]["idle_s"] == 1
    assert [r["side"] for r in content["cases"][0]["rounds"]] == ["stock", "plus"]
    assert content["cases"][0]["rounds"][0]["outcome"]["patched"] is False


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_run_and_its_children(number: signal.Signals, status: int) -> None:
    options = ["--seconds", "60", "--only", "efficiency-1"]
    with subprocess.Popen(
        [*WITH_CTRL_C, *command("giltest", *options)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=ROOT,
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("[1/")
        child = _only_child(process.pid)
        process.send_signal(number)
        rest = process.stderr.read()
        assert process.wait(30) == status
    expected = "benchmarks giltest: interrupted\n" if number == signal.SIGINT else ""
    assert rest == expected
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def _only_child(pid: int) -> int:
    """Wait until `pid` has a child and return it."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    while True:
        if found := children.read_text().split():
            return int(found[0])
