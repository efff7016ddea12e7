"""Requests in an open loop: the pattern of arrivals, client, server, and what becomes of it."""

import json
import math
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from statistics import fmean, pvariance

import pytest

from benchmarks.common import cpu, rows
from benchmarks.common.children import ROOT, Commands
from benchmarks.common.engine import Case, Settings
from benchmarks.common.errors import MeasurementError
from benchmarks.common.results import CaseResult, Outcome, Report
from benchmarks.giltest.requests import client, protocol, scenario, worker
from benchmarks.giltest.requests.scenario import Load
from benchmarks.scenarios import cases_of, verdicts
from tests.benchmarks import canned

STOCK_TWICE = Commands.of(sys.executable, [sys.executable])
TINY = Settings(1, 0.05, 1, arrivals=5)


def case_called(name: str) -> Case:
    return next(case for case in cases_of("giltest") if case.name == name)


# ---- the pattern of arrivals --------------------------------------------------------------------


def test_arrivals_are_a_poisson_process() -> None:
    dues = list(client.arrivals(1, 1e6, 10_000e6))
    gaps = [later - due for due, later in zip([0, *dues], dues, strict=False)]
    assert len(dues) == pytest.approx(10_000, rel=0.05)
    assert fmean(gaps) == pytest.approx(1e6, rel=0.05)
    # Exponential: as wide as it is long, and memoryless.
    assert math.sqrt(pvariance(gaps)) == pytest.approx(1e6, rel=0.05)
    for times in (1, 2, 3):
        longer = sum(1 for gap in gaps if gap > times * 1e6)
        assert longer / len(gaps) == pytest.approx(math.exp(-times), abs=0.02)
    # In windows of ten they come ten at a time, with the variance of ten.
    counts = [0] * 1000
    for due in dues:
        counts[int(due // 10e6)] += 1
    assert pvariance(counts) == pytest.approx(10, rel=0.2)


def test_arrivals_are_the_same_every_time_and_stretched() -> None:
    assert list(client.arrivals(3, 1e6, 50e6)) == list(client.arrivals(3, 1e6, 50e6))
    short, long = list(client.arrivals(3, 1e6, 50e6)), list(client.arrivals(3, 7e6, 350e6))
    assert long == pytest.approx([due * 7 for due in short], abs=7)
    assert list(client.arrivals(4, 1e6, 50e6)) != short


def test_a_schedule_is_in_order_and_its_connections_are_independent() -> None:
    planned = client.schedule(4, 4e6, 1000e6)
    assert planned == sorted(planned)
    assert {place for _, place in planned} == {0, 1, 2, 3}
    assert all(0 < due < 1000e6 for due, _ in planned)
    assert len({due for due, _ in planned}) == len(planned)
    alone = [due for due, place in planned if place == 2]
    assert alone == list(client.arrivals(client.SEED + 2, 4e6, 1000e6))


@pytest.mark.parametrize("load", scenario.LOADS, ids=lambda load: str(load.name))
def test_there_are_enough_requests_for_a_percentile(load: Load) -> None:
    settings = Settings(5, 1.0)
    mean_ns = load.work_ms * 1e6 * load.connections / scenario.LOAD
    seconds = load.seconds(settings)
    planned = client.schedule(load.connections, mean_ns, (settings.warmup_s + seconds) * 1e9)
    measured = sum(1 for due, _ in planned if due >= settings.warmup_s * 1e9)
    assert measured >= 0.99 * settings.arrivals
    within = 0.031 if load.work_ms == 1 else 0.011
    assert measured * load.work_ms / 1e3 / seconds == pytest.approx(scenario.LOAD, rel=within)


def test_a_measurement_is_as_long_as_asked_for_or_longer() -> None:
    settings = Settings(5, 1.0)
    assert Load(0.3, 0).seconds(settings) == 1
    assert Load(15, 0).seconds(settings) == pytest.approx(10)
    assert Load(50, 8).seconds(settings) == pytest.approx(100 / 3)
    assert Load(15, 0).seconds(replace(settings, seconds=60)) == 60


# ---- the client ---------------------------------------------------------------------------------


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_a_latency_begins_when_the_request_was_due(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    theirs.sendall(protocol.ANSWER)  # there before the request is sent
    now = time.perf_counter_ns()
    loop = client.OpenLoop([ours], [(now - 5_000_000_000, 0)])
    while not loop.latencies_ns:
        loop.run(time.perf_counter_ns() + 1_000_000)
    assert theirs.recv(10) == protocol.REQUEST
    assert loop.latencies_ns[0] >= loop.late_ns[0] >= 5_000_000_000


def test_no_request_waits_for_an_answer(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    now = time.perf_counter_ns()
    loop = client.OpenLoop([ours], [(now - 3, 0), (now - 2, 0), (now - 1, 0)])
    while len(loop.late_ns) < 3:
        loop.run(time.perf_counter_ns() + 1_000_000)
    assert theirs.recv(10) == 3 * protocol.REQUEST
    assert not loop.latencies_ns
    # One answer is that of the first request.
    theirs.sendall(protocol.ANSWER)
    while not loop.latencies_ns:
        loop.run(time.perf_counter_ns() + 1_000_000)
    assert loop.unanswered(now + 1) == [now - 2, now - 1]


def test_only_what_was_due_in_the_window_counts(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    now = time.perf_counter_ns()
    never = now + 3_600_000_000_000
    loop = client.OpenLoop([ours], [(now - 9, 0), (now - 8, 0), (now - 2, 0), (never, 0)])
    loop.measured_from_ns = now - 5
    theirs.sendall(2 * protocol.ANSWER)
    while not loop.late_ns:
        loop.run(time.perf_counter_ns() + 1_000_000)
    theirs.recv(10)
    assert not loop.latencies_ns
    assert len(loop.late_ns) == 1
    assert loop.unanswered(now) == [now - 2]
    # What was due in time, and was never sent, has no answer either.
    assert loop.unanswered(never + 1) == [now - 2, never]


def test_a_client_that_may_not_go_first_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def refuse(*arguments: object) -> None:
        asked.append(arguments)
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    client.go_first()
    assert len(asked) == 1


def test_a_server_that_goes_away_is_noticed(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    theirs.close()
    loop = client.OpenLoop([ours], [])
    with pytest.raises(ConnectionError, match="closed a connection"):
        loop.run(time.perf_counter_ns() + 60_000_000_000)


# ---- the server ---------------------------------------------------------------------------------


def test_computing_takes_the_cpu_time_that_it_says() -> None:
    before = time.thread_time_ns()
    worker.compute(3_000_000)
    assert time.thread_time_ns() - before >= 3_000_000


def test_a_handler_answers_in_order_and_ends_with_its_connection(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    handler = worker.Handler(theirs, 1000)
    handler.thread.start()
    ours.sendall(3 * protocol.REQUEST)
    answers = b""
    while len(answers) < 3:
        answers += ours.recv(10)
    assert answers == 3 * protocol.ANSWER
    assert handler.answered == 3
    shot = worker.snapshot([handler], cpu.CpuThreads(0))
    assert shot["answered"] == 3
    assert shot["requests_ns"] >= 3000
    assert shot["computing_ns"] == 0
    ours.close()
    handler.thread.join(30)
    assert not handler.thread.is_alive()


def test_a_handler_that_is_stopped_leaves_the_rest_undone(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    handler = worker.Handler(theirs, 1000)
    handler.stopping = True
    ours.sendall(3 * protocol.REQUEST)
    handler.thread.start()
    handler.thread.join(30)
    assert not handler.thread.is_alive()
    assert handler.answered == 0


def test_shares_are_of_the_time_between_two_snapshots() -> None:
    before = {"time_ns": 5, "answered": 7, "computing_ns": 0, "requests_ns": 10}
    after = {
        "time_ns": 5 + 2_000_000_000,
        "answered": 127,
        "computing_ns": 1_400_000_000,
        "requests_ns": 10 + 640_000_000,
    }
    assert worker.measured(before, after) == pytest.approx(
        {"answered_per_s": 60, "computing_cpu": 0.7, "requests_cpu": 0.32}
    )


def test_a_client_that_goes_away_ends_the_server(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    ours.close()
    with pytest.raises(SystemExit, match="the client went away"):
        worker.await_word(theirs, protocol.BEGIN)


# ---- a measurement ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["requests-0.3ms-beside-process", "requests-5ms-beside-1-over-16"])
def test_a_case_measures(name: str) -> None:
    outcome = case_called(name).measure(STOCK_TWICE, "plus", TINY)
    assert outcome.latency is not None
    assert outcome.rate == outcome.latency.p99_ms
    assert 0 < outcome.latency.p50_ms <= outcome.latency.p99_ms <= outcome.latency.max_ms
    assert outcome.scheduled is False
    assert {"requests_cpu", "unanswered", "sent_late_p99_ms"} <= outcome.figures.keys()
    beside = "beside-1" in name
    assert ("computing_share" in outcome.figures) is beside
    assert not outcome.shares


MEASURED = {"latencies_ns": [9_000_000, 5_000_000], "late_ns": [1000, 2000], "unanswered": 1}
SERVED = {
    "answered_per_s": 60.0,
    "computing_cpu": 0.63,
    "requests_cpu": 0.31,
    "scheduled": True,
}


def test_what_is_kept_is_of_what_the_requests_leave() -> None:
    found = scenario.outcome(Load(5, 2), MEASURED, SERVED)
    assert found.rate == 9
    assert found.figures["computing_share"] == 0.63
    assert found.figures["kept"] == pytest.approx(0.63 / (1 - 60 * 0.005))
    assert found.figures["sent_late_p99_ms"] == pytest.approx(0.002)
    assert found.figures["unanswered"] == 1


def test_where_nothing_is_left_nothing_is_kept() -> None:
    assert "kept" not in scenario.outcome(Load(50, 1), MEASURED, SERVED).figures
    assert "computing_share" not in scenario.outcome(Load(5, 0), MEASURED, SERVED).figures


def test_a_measurement_without_requests_is_none() -> None:
    nothing = {"latencies_ns": [], "late_ns": [], "unanswered": 0}
    with pytest.raises(MeasurementError, match="no request was due"):
        scenario.outcome(Load(50, 1), nothing, SERVED)


# ---- tables and targets -------------------------------------------------------------------------


def result(name: str, stock: tuple[float, float], plus: tuple[float, float]) -> CaseResult:
    def measured(p50_ms: float, p99_ms: float, kept: float) -> Outcome:
        found = canned.outcome(p99_ms, p50_ms, p99_ms, 2 * p99_ms)
        return replace(found, figures={"computing_share": 0.7 * kept, "kept": kept})

    rounds = (("stock", measured(*stock, 0.9)), ("plus", measured(*plus, 0.96)))
    return canned.result(case_called(name), *rounds)


def report() -> Report:
    alone = result("requests-5ms-beside-0", (8, 20), (10, 25))
    beside = result("requests-5ms-beside-1", (20, 80), (10, 20))
    found = Report("giltest", dict(canned.MACHINE), {}, [alone, beside])
    found.targets = [verdict.as_dict() for verdict in verdicts(found)]
    return found


def test_each_case_knows_the_same_without_cpu_threads() -> None:
    cases = {case.name: case for case in cases_of("giltest") if case.scenario == "requests"}
    assert len(cases) == 36
    for name, case in cases.items():
        if "beside-0" in name:
            assert not case.alone
        else:
            assert cases[case.alone].alone == ""
    assert cases["requests-5ms-beside-1-over-16"].alone == "requests-5ms-beside-0-over-16"
    assert cases["requests-5ms-beside-8"].alone == "requests-5ms-beside-0"


def test_targets_go_by_the_better_side_alone() -> None:
    found = {v.quantity: v for v in verdicts(report())}
    assert set(found) == {"p50_to_alone", "p99_to_alone", "figure"}
    assert found["p50_to_alone"].value == 10 / 8
    assert not found["p50_to_alone"].reached
    assert found["p99_to_alone"].value == 1
    assert found["p99_to_alone"].reached
    assert found["figure"].reached
    assert [v.target for v in found.values()] == [
        "p50 <= 1.15 x alone",
        "p99 <= 1.3 x alone",
        "kept >= 0.95",
    ]


def test_without_the_case_alone_nothing_is_compared_with_it() -> None:
    made = report()
    made.cases = made.cases[1:]
    assert {v.quantity for v in verdicts(made)} == {"figure"}
    assert all(row.to_alone == ("", "") for row in rows.rows(made, "requests"))


def test_the_table_compares_with_both_sides_alone() -> None:
    found = rows.rows(report(), "requests")
    assert [rows.heading(place, found) for place in rows.used_columns(found)] == [
        "side",
        "p50 ms",
        "p99 ms",
        "max ms",
        "p50 to alone",
        "p99 to alone",
        "CPU share",
        "kept",
        "to stock",
    ]
    assert [row.to_alone for row in found] == [
        ("", ""),
        ("", ""),
        ("2.50", "4.00"),
        ("1.00 / 1.25", "0.800 / 1.00"),
    ]


def test_a_client_that_was_late_is_warned_about() -> None:
    made = report()
    assert rows.warnings(made) == []
    for entry in made.cases[1].rounds:
        assert entry.outcome is not None
        late = {**entry.outcome.figures, "sent_late_p99_ms": 1.5}
        made.cases[1].rounds[entry.position] = replace(
            entry, outcome=replace(entry.outcome, figures=late)
        )
    assert rows.warnings(made) == [
        (
            "the client sent late, p99 above 1 ms, in 2 measurements (requests-5ms-beside-1): "
            "others used its core, and their latencies are too long"
        )
    ]


# ---- the two ends together ----------------------------------------------------------------------


@contextmanager
def _told(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    try:
        yield
    finally:
        process.kill()
        process.wait()


def test_client_and_server_agree_on_what_they_say(tmp_path: Path) -> None:
    """The server's side by hand: ready, begin, end, noted, on the first connection."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        code = "from benchmarks.giltest.requests import client; client.main()"
        parameters = {
            "port": listener.getsockname()[1],
            "connections": 1,
            "work_ms": 1,
            "load": 0.3,
            "seconds": 0.05,
            "warmup_s": 0.01,
            "limit_s": 30,
            "result": str(tmp_path / "result.json"),
        }
        process = subprocess.Popen([sys.executable, "-c", code, json.dumps(parameters)], cwd=ROOT)
        with _told(process):
            control, connection = listener.accept()[0], listener.accept()[0]
            with control, connection:
                echo = threading.Thread(target=_echo, args=(connection,))
                control.sendall(protocol.READY)
                echo.start()
                heard += [control.recv(1), control.recv(1)]
                control.sendall(protocol.NOTED)
                heard.append(control.recv(1))
                echo.join(30)
            assert process.wait(30) == 0
    assert heard == [protocol.BEGIN, protocol.END, b""]
    assert (tmp_path / "result.json").exists()


def _echo(connection: socket.socket) -> None:
    with suppress(ConnectionError):  # an answer that comes too late meets a closed connection
        while data := connection.recv(100):
            connection.sendall(data)
