"""The suite's own parts; tiny sizes, no time is asserted, and no peer has to be installed."""

import gc
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from benchmarks.common import engine, machine, rows
from benchmarks.common.children import ROOT, Commands
from benchmarks.common.engine import Case, Settings
from benchmarks.common.errors import MeasurementError
from benchmarks.common.results import Outcome, Report
from benchmarks.common.sides import Side
from benchmarks.scenarios import cases_of, verdicts
from benchmarks.tasklets import measure, scenario, worker
from benchmarks.tasklets.sides import over_asyncio, over_threads
from benchmarks.tasklets.sides.protocol import BATCH, Depth, Peer, answer, ask
from tests.benchmarks import canned

COMMANDS = Commands.of(sys.executable)
TINY = Settings(1, 0.01, parked=50, many=120)


def case_called(name: str) -> Case:
    return next(case for case in cases_of("tasklets") if case.name == name)


def needs(side: Side) -> None:
    """Skip the test when `side` cannot be measured here."""
    if side == "tasklets":
        pytest.importorskip("cpythonplus.tasklets", exc_type=ImportError)
    elif side in scenario.PACKAGES:
        pytest.importorskip(scenario.PACKAGES[side])


# ---- the sides ----------------------------------------------------------------------------------


def test_an_answer_follows_each_value() -> None:
    seen: list[str] = []
    ask(lambda _: seen.append("sent"), lambda: seen.append("got"), 2)
    assert seen == ["sent", "got"] * 2
    seen.clear()
    answer(lambda: seen.append("got"), lambda _: seen.append("sent"), 2)
    assert seen == ["got", "sent"] * 2


@pytest.mark.parametrize("depth", [Depth(), Depth(python=7), Depth(c=3), Depth(python=2, c=4)])
def test_an_action_stands_as_deep_as_it_is_said(depth: Depth) -> None:
    names: list[str] = []

    def action() -> None:
        frame: FrameType | None = sys._getframe(1)
        while frame and frame.f_code is not Depth.call.__code__:
            names.append(frame.f_code.co_name)
            frame = frame.f_back

    depth.call(action)
    assert names.count("under_python") == depth.python + 1
    assert names.count("under_c") == depth.c + 1


@pytest.mark.parametrize("peer", [over_asyncio, over_threads])
def test_the_standard_librarys_sides_do_the_work(peer: Peer) -> None:
    assert peer.channel_ns(20) > 0
    assert peer.schedule_ns(20, Depth()) > 0
    assert peer.schedule_ns(20, Depth(python=50)) > 0
    assert peer.spawn_ns(BATCH) > 0


def test_coroutines_stand_beneath_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    frames: set[int] = set()
    sleeping = over_asyncio._sleeping

    async def watched(left: int, times: int) -> None:
        frames.add(left)
        await sleeping(left, times)

    monkeypatch.setattr(over_asyncio, "_sleeping", watched)
    over_asyncio.schedule_ns(2, Depth(python=30))
    assert frames == set(range(31))


@pytest.mark.parametrize("side", scenario.WITHOUT_THREADS[:-1])
@pytest.mark.parametrize("name", ["million", "million-collected"])
def test_a_side_parks_and_wakes_each_once(side: Side, name: str) -> None:
    needs(side)
    outcome = case_called(name).measure(COMMANDS, side, TINY)
    assert outcome.rate > outcome.figures["wake_s"] > 0
    assert 0.001 < outcome.figures["peak_gb"] < 1
    assert (outcome.scheduled, outcome.patched) == (False, False)


@pytest.mark.parametrize("side", ["tasklets", "greenlet", "gevent"])
@pytest.mark.parametrize("name", ["channel", "spawn", "depth-c-50"])
def test_a_side_does_the_work(side: Side, name: str) -> None:
    needs(side)
    outcome = case_called(name).measure(COMMANDS, side, TINY)
    assert outcome.rate > 0
    if name == "depth-c-50":
        shallow_ns = outcome.figures["shallow_ns"]
        assert outcome.figures["to_shallow"] == pytest.approx(outcome.rate / shallow_ns)


# ---- the worker ---------------------------------------------------------------------------------


def test_samples_are_taken_in_turns_and_the_fastest_counts() -> None:
    asked: list[tuple[str, int]] = []

    def sample(name: str, cost_ns: int) -> worker.Sample:
        def take(count: int) -> int:
            asked.append((name, count))
            # From the second one on it is cheaper.
            return count * cost_ns * (2 if len(asked) <= 2 else 1) * 1000

        return take

    assert worker.fastest_ns([sample("a", 300), sample("b", 500)], 1e-9) == [300_000, 500_000]
    assert [name for name, _ in asked] == ["a", "b", "a", "b"]
    assert {count for _, count in asked} == {BATCH}


def test_a_sample_is_made_long_enough() -> None:
    assert worker.calibrated(lambda count: count, 0.000_004) == 1600
    assert worker.calibrated(lambda _: worker.SAMPLE_NS, 3600) == BATCH


class Forgetful:
    """Wakes all but one."""

    def __init__(self) -> None:
        self.woken = 0
        self.batches: list[int] = []
        self.trims = 0

    def park(self, count: int) -> None:
        self.batches.append(count)

    def trim(self) -> None:
        self.trims += 1

    def wake(self) -> None:
        self.woken = sum(self.batches) - 1


@pytest.mark.parametrize("side", ["tasklets", "asyncio"])
def test_only_tasklets_go_cold(side: Side) -> None:
    needs(side)
    outcome = case_called("parked").measure(COMMANDS, side, replace(TINY, parked=5000))
    assert ("cold_kb" in outcome.figures) == (side == "tasklets")
    assert 0 < outcome.figures.get("cold_kb", outcome.rate / 2) < outcome.rate


def test_one_that_was_not_woken_is_noticed() -> None:
    parked = Forgetful()
    with pytest.raises(SystemExit, match="119999 of 120000 were woken"):
        worker.many(parked, {"count": 120_000})
    assert parked.batches == [50_000, 50_000, 20_000]
    assert parked.trims == 0  # nobody asks for memory back


def test_the_collector_is_off_in_a_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enabled: list[bool] = []
    result = tmp_path / "result.json"
    parameters = {"side": "asyncio", "kind": "channel", "limit_s": 60, "result": str(result)}
    monkeypatch.setattr(sys, "argv", ["worker", json.dumps(parameters)])
    monkeypatch.setattr(signal, "alarm", lambda _: None)
    monkeypatch.setattr(os, "_exit", lambda _: None)

    def measured(*_: object) -> dict[str, Any]:
        enabled.append(gc.isenabled())
        return {"rate": 1}

    monkeypatch.setitem(worker.KINDS, "channel", measured)
    try:
        worker.main()
    finally:
        gc.enable()
    assert enabled == [False]
    assert json.loads(result.read_text())["rate"] == 1


# ---- Go -----------------------------------------------------------------------------------------


@pytest.fixture
def go_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield the first folder of PATH, where nothing has been compiled yet."""
    measure.go_program.cache_clear()
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    yield tmp_path
    measure.go_program.cache_clear()


def write_go(folder: Path, script: str) -> None:
    go = folder / "go"
    go.write_text(f"#!/bin/sh\n{script}\n")
    go.chmod(0o755)


def test_a_compiler_that_fails_is_one_line(go_path: Path) -> None:
    write_go(go_path, "echo '# worker' >&2; echo './main.go:1: no' >&2; exit 3")
    with pytest.raises(MeasurementError, match=r"^go build ended with status 3: ./main.go:1: no$"):
        case_called("channel").measure(COMMANDS, "go", TINY)


def test_the_program_is_compiled_once_and_without_the_network(go_path: Path) -> None:
    program = go_path / "program"
    code = (
        "import json, pathlib, sys\n"
        "parameters = json.loads(sys.argv[1])\n"
        "pathlib.Path(parameters['result']).write_text('{\"rate\": 7}')\n"
    )
    command = shlex.join([sys.executable, "-c", code])
    program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    program.chmod(0o755)
    built = go_path / "built"
    write_go(go_path, f'echo "$GOPROXY $GOTOOLCHAIN" >> {built}; cp -p {program} "$3"')
    for name in ("channel", "parked"):
        outcome = case_called(name).measure(COMMANDS, "go", TINY)
        assert (outcome.rate, outcome.scheduled) == (7, None)
    assert built.read_text() == "off local\n"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")
@pytest.mark.parametrize("name", [case.name for case in scenario.cases() if "go" in case.sides])
def test_goroutines_do_the_work(name: str) -> None:
    outcome = case_called(name).measure(COMMANDS, "go", TINY)
    assert outcome.rate > 0
    wanted = {"depth-python-200": "to_shallow", "million": "peak_gb"}
    assert wanted.get(name, "") in {*outcome.figures, ""}


# ---- what is missing, and what is shown ---------------------------------------------------------


class Quiet:
    """Progress that shows nothing."""

    def begin(self, total: int) -> None: ...
    def step(self, text: str) -> None: ...
    def end(self) -> None: ...


def run_with(missing: list[str], monkeypatch: pytest.MonkeyPatch) -> Report:
    """Return the report of two cases where those of the peers are not installed."""
    monkeypatch.setattr(machine, "missing_modules", lambda *_: missing)
    monkeypatch.setattr(shutil, "which", lambda program: None if program in missing else program)
    costs = {"tasklets": 100.0, "greenlet": 400.0, "asyncio": 5000.0, "threads": 9000.0}
    cases = [
        replace(case, measure=lambda _, side, __: Outcome(costs[side]))
        for case in engine.select(cases_of("tasklets"), ["channel", "million"])
    ]
    found = engine.with_sides(cases, COMMANDS, scenario.SIDES, own_command=False)
    monkeypatch.setattr(machine, "describe", lambda *_: dict(canned.MACHINE))
    return engine.run("tasklets", found, COMMANDS, replace(TINY, rounds=2), Quiet())


def test_what_is_not_installed_has_a_line_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    report = run_with(["gevent", "go"], monkeypatch)
    found = {row.label: row for row in rows.rows(report, "channel")}
    assert list(found) == ["tasklets", "greenlet", "gevent", "asyncio", "go", "threads"]
    assert (found["gevent"].rate, found["gevent"].remark) == ("-", "not installed")
    assert (found["go"].rate, found["go"].remark) == ("-", "not installed")
    assert (found["greenlet"].ratio, found["tasklets"].ratio) == ("4.000 x", "")
    assert rows.heading(rows.HEADINGS.index("to stock"), list(found.values())) == "to tasklets"
    # That is no failure, and nothing is judged against what was not measured.
    assert report.failures() == []
    assert [v.target for v in verdicts(report)] == ["<= 130 ns", "<= 5 s"]
    assert report.as_dict()["cases"][0]["absent"] == ("gevent", "go")  # type: ignore[index]


def test_many_are_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    report = run_with(["gevent", "go"], monkeypatch)
    channel, million = report.cases
    order = ["tasklets", "greenlet", "asyncio", "threads"]
    assert [r.side for r in channel.rounds] == [*order, *order[::-1]]
    assert [r.side for r in million.rounds] == order[:3]


def test_a_machine_without_room_is_told_and_nothing_started() -> None:
    with pytest.raises(MeasurementError, match=r"parked ones may need 12,?000\.0 GB, .* are free"):
        case_called("million").measure(COMMANDS, "gevent", replace(TINY, many=10**9))


def test_targets_are_stated_for_tasklets() -> None:
    judged = {v.target: v for v in verdicts(canned.report("tasklets"))}
    assert judged["<= 0.5 x go"].value == pytest.approx(810 / 450)
    assert judged[">= 20 x faster than gevent"].value == pytest.approx(450 / 810)
    assert not judged["<= 130 ns"].reached
    wanted = {"<= 1 x go", "<= 0.6 x go", ">= 50 x faster than greenlet", "to shallow <= 1.2"}
    wanted |= {
        "<= 8.8 KB",
        "cold KB <= 2.7",
        "small-stack KB <= 4.6",
        "<= 5 s",
        "GB at most <= 1.5",
    }
    assert wanted <= set(judged)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--parked", "0"], "argument --parked: '0' is not a number from 1 on"),
        (["--many", "x"], "argument --many: 'x' is not a number from 1 on"),
        (["--sides", "plus"], "there is no side 'plus'; sides are tasklets, greenlet"),
        (["--workers", "1"], "unrecognized arguments: --workers"),
    ],
)
def test_a_wrong_request_is_one_line(
    arguments: list[str], line: str, refusal: Callable[..., str]
) -> None:
    assert line in refusal("tasklets", *arguments)


def test_a_whole_run(tmp_path: Path) -> None:
    needs("tasklets")
    raw = tmp_path / "raw.json"
    options = ["--seconds", "0.01", "--rounds", "1", "--sides", "asyncio", "--only", "channel"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "tasklets", *options, "--json", str(raw)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    assert "to tasklets" in done.stdout
    assert "not stock against plus" not in done.stdout
    (case,) = json.loads(raw.read_text())["cases"]
    assert [r["side"] for r in case["rounds"]] == ["tasklets", "asyncio"]
    assert list(case["ratios"]) == ["asyncio"]
