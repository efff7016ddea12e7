"""The suite's own parts; tiny sizes, no time is asserted, and no peer has to be installed."""

import contextlib
import os
import resource
import socket
import ssl
import sys
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.common import engine, machine, rows
from benchmarks.common.children import Commands
from benchmarks.common.engine import Case, Settings
from benchmarks.common.errors import MeasurementError
from benchmarks.common.sides import ALL_SIDES, Side
from benchmarks.scenarios import FIGURES, cases_of, verdicts
from benchmarks.tasklet_io import client, crossing, locking, scenario, sleeping, workers
from benchmarks.tasklet_io.measure import certificate, listener
from benchmarks.tasklet_io.sides import over_asyncio
from benchmarks.tasklet_io.sides.protocol import Certificate, echo, sleeper, tls
from benchmarks.testserver.flask_gunicorn.scenario import WORKERS
from tests.benchmarks import canned
from tests.support import FREE_THREADED, WITHOUT_GIL

COMMANDS = Commands.of(sys.executable)
TINY = Settings(1, 0.01, connections=3, sleepers=20, longest_sleep_s=0.02)


def case_called(name: str) -> Case:
    return next(case for case in cases_of("tasklet-io") if case.name == name)


def needs(name: str, side: Side) -> None:
    """Skip the test when `side` cannot be measured here."""
    case = case_called(name)
    for module in case.needs:
        pytest.importorskip(module)
    if FREE_THREADED and side in {"tasklets", "scheduled"}:
        pytest.skip(WITHOUT_GIL)
    if side in {"tasklets", "scheduled"}:
        pytest.importorskip("cpythonplus.tasklets", exc_type=ImportError)
    elif side in case.packages:
        pytest.importorskip(case.packages[side])


# ---- a measurement on each side -----------------------------------------------------------------

SERVERS = ("echo-many", "echo-tls", "echo-churn")


@pytest.mark.parametrize("side", scenario.SERVERS)
@pytest.mark.parametrize("name", SERVERS)
def test_a_server_answers(name: str, side: Side) -> None:
    needs(name, side)
    outcome = case_called(name).measure(COMMANDS, side, TINY)
    assert outcome.latency is not None
    assert 0 < outcome.latency.p50_ms <= outcome.latency.max_ms
    assert outcome.rate > 0
    assert outcome.figures["per_cpu_s"] > 0
    # The kernel counts in ticks: a few milliseconds may be none.
    assert 0 <= outcome.figures["server_percent"] < 1000
    assert 0 <= outcome.figures["client_percent"] < 200


@pytest.mark.parametrize("side", scenario.SLEEPERS)
def test_sleepers_all_wake(side: Side) -> None:
    needs("sleeping", side)
    outcome = case_called("sleeping").measure(COMMANDS, side, TINY)
    assert outcome.latency is not None
    assert outcome.latency.count == 20 * (sleeping.SLEEPS - 1)
    assert outcome.rate == outcome.latency.p99_ms
    assert 0 <= outcome.figures["early_percent"] <= 100


@pytest.mark.parametrize("side", scenario.CROSSINGS)
@pytest.mark.parametrize("name", ["crossing", "crossing-pinned"])
def test_threads_hand_over(name: str, side: Side) -> None:
    needs(name, side)
    outcome = case_called(name).measure(COMMANDS, side, Settings(1, 0.05))
    assert outcome.latency is not None
    assert outcome.latency.count > 0
    assert outcome.rate >= 0  # between the first and the last, of which there may be one
    assert (outcome.scheduled, outcome.patched) == (side == "scheduled", side == "scheduled")


@pytest.mark.parametrize("side", scenario.LOCKS)
@pytest.mark.parametrize("name", ["lock-with", "lock-calls", "rlock-with"])
def test_a_lock_is_held(name: str, side: Side) -> None:
    needs(name, side)
    assert case_called(name).measure(COMMANDS, side, TINY).rate > 0


@pytest.mark.slow
@pytest.mark.parametrize("side", WORKERS)
@pytest.mark.parametrize("name", ["worker-50", "worker-waiting-200"])
def test_a_worker_class_serves(name: str, side: Side) -> None:
    needs(name, side)
    outcome = case_called(name).measure(COMMANDS, side, replace(TINY, seconds=2))
    assert outcome.rate > 0
    assert outcome.errors == 0
    assert (outcome.scheduled, outcome.patched) == (False, False)


# ---- the client ---------------------------------------------------------------------------------


@contextmanager
def serving(answer: Callable[[socket.socket], object]) -> Iterator[int]:
    """Let a thread accept one connection after the other and `answer` it; yield the port."""
    with listener() as listening:

        def serve() -> None:
            with contextlib.suppress(OSError):  # shut down below
                while True:
                    connection, _ = listening.accept()
                    threading.Thread(target=finish, args=(connection,), daemon=True).start()

        def finish(connection: socket.socket) -> None:
            with connection, contextlib.suppress(ConnectionError):
                answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_each_connection_has_one_request_under_way() -> None:
    with serving(echo) as port, closing(client.Connections(port, 5, None)) as load:
        load.begin()
        during = load.exchange(0.01)
        after = load.drain()
    assert len(after) == 5
    assert min(*during, *after) > 0


def test_an_answer_in_pieces_is_one_answer() -> None:
    with serving(echo) as port, closing(client.Connections(port, 1, None)) as load:
        seen = [load._is_last_piece(7, got) for got in (10, 53, 1, 64, 63, 1)]
    assert seen == [False, False, True, True, False, True]


def test_a_connection_that_is_closed_ends_the_client() -> None:
    with (
        serving(lambda connection: connection.recv(64)) as port,
        closing(client.Connections(port, 1, None)) as load,
        closing(client.Churn(port, 1)) as churn,
    ):
        with pytest.raises(SystemExit, match=r"^the server closed a connection$"):
            load.begin()
        churn.begin()
        with pytest.raises(SystemExit, match=r"^the server closed a connection$"):
            churn.drain()
        with pytest.raises(SystemExit, match=r"^the server closed the first connection$"):
            client.await_server(port, None)


def test_a_server_that_does_not_answer_ends_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "ANSWER_S", 0.0)
    with listener() as listening:
        port = listening.getsockname()[1]
        with (
            closing(client.Connections(port, 1, None)) as load,
            pytest.raises(SystemExit, match=r"^no answer came for 0 s$"),
        ):
            load.begin()


def test_churn_replaces_what_it_closes() -> None:
    accepted: list[socket.socket] = []

    def answer(connection: socket.socket) -> None:
        accepted.append(connection)
        echo(connection)

    with serving(answer) as port, closing(client.Churn(port, 4)) as churn:
        churn.begin()
        completed = len(churn.exchange(0.01)) + len(churn.drain())
    assert len(accepted) == completed >= 4


def test_the_processor_time_of_another_process_is_read() -> None:
    before = time.process_time_ns()
    assert before <= client.cpu_ns(os.getpid()) <= time.process_time_ns()
    with pytest.raises(OSError, match=r"Invalid argument"):
        client.cpu_ns(2**22 + 1)  # the largest that Linux gives is one less than 2**22


# ---- TLS ----------------------------------------------------------------------------------------


def test_the_certificate_is_trusted_for_its_name_only() -> None:
    pytest.importorskip("cryptography")
    folder = Path(certificate(sys.executable))
    assert certificate(sys.executable) == str(folder)
    own = Certificate(str(folder / workers.CHAIN), str(folder / workers.KEY))
    context = tls(ssl, own)

    def answer(connection: socket.socket) -> None:
        with (
            contextlib.suppress(ssl.SSLError),
            context.wrap_socket(connection, server_side=True) as encrypted,
        ):
            echo(encrypted)

    with serving(answer) as port:
        trusting = client.trusting(str(folder))
        with client.connect(port, trusting) as connection:
            connection.sendall(b"hello")
            assert connection.recv(5) == b"hello"
        with (
            socket.create_connection(("127.0.0.1", port)) as plain,
            pytest.raises(ssl.SSLCertVerificationError),
        ):
            ssl.create_default_context().wrap_socket(plain, server_hostname=workers.HOST)


def test_without_a_certificate_there_is_no_tls() -> None:
    assert tls(ssl, None) is None
    assert client.trusting("") is None


# ---- sleepers and locks -------------------------------------------------------------------------


def test_all_sides_follow_the_same_plans() -> None:
    plans = sleeping.plans(50, 2.0)
    assert plans == sleeping.plans(50, 2.0)
    assert {len(plan) for plan in plans} == {sleeping.SLEEPS}
    flat = [seconds for plan in plans for seconds in plan]
    assert 0 <= min(flat) < 0.1
    assert 1.9 < max(flat) <= 2


def test_the_first_sleep_is_not_measured() -> None:
    slept: list[float] = []
    late_ns = array("q")
    sleeper(slept.append, [0.5, 10.0, 20.0], late_ns)
    assert slept == [0.5, 10.0, 20.0]
    # Nothing slept, so they were as early as could be.
    assert [-ns // 10**9 for ns in late_ns] == [9, 19]


def test_lost_and_early_sleeps_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = {"side": "asyncio", "sleepers": 2, "longest_s": 1.0}
    late_ns = array("q", [5, -sleeping.EARLY_NS, -sleeping.EARLY_NS - 1, 7, 8, -(10**6)])
    monkeypatch.setattr(over_asyncio, "sleep_all", lambda _: late_ns)
    found = sleeping.measured(parameters)
    assert found["figures"]["early_percent"] == pytest.approx(100 * 2 / 6)
    assert found["latencies_ns"] == late_ns.tolist()
    late_ns.pop()
    with pytest.raises(SystemExit, match=r"^5 of 6 sleeps ended$"):
        sleeping.measured(parameters)


def test_a_lock_is_called_as_often_as_it_is_entered() -> None:
    class Counting:
        held = taken = 0

        def acquire(self) -> None:
            self.held += 1
            self.taken += 1

        def release(self) -> None:
            self.held -= 1

    lock = Counting()
    assert locking.call(lock, 3) > 0
    assert (lock.held, lock.taken) == (0, 30)


def test_every_side_of_the_crossing_has_its_way() -> None:
    assert set(crossing.WAYS) == set(scenario.CROSSINGS)
    give, take = crossing.WAYS["queue.Queue"]()
    give()
    assert take() is None


# ---- limits, what is missing, and what is shown -------------------------------------------------


def test_a_process_may_have_its_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100, 2000))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: asked.append(limits))
    workers.allow_descriptors(10)
    assert asked == []
    workers.allow_descriptors(1000)
    assert asked == [(1000 + workers.SPARE, 2000)]
    with pytest.raises(SystemExit, match=r"^2000 connections need 2064 descriptors, 2000 are"):
        workers.allow_descriptors(2000)


def test_a_server_that_cannot_start_is_told() -> None:
    with pytest.raises(MeasurementError, match=r"status 1: 1000000000 connections need 10+64 des"):
        case_called("echo-many").measure(COMMANDS, "threads", replace(TINY, connections=10**9))


@pytest.mark.any_version
def test_what_is_not_installed_has_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "missing_modules", lambda *_: ["uvloop"])
    cases = [case_called("echo-many"), case_called("crossing")]
    many, crossed = engine.with_sides(cases, COMMANDS, ALL_SIDES, own_command=False)
    assert "uvloop" not in many.sides
    assert many.absent == ("uvloop",)
    assert crossed.sides == scenario.CROSSINGS


@pytest.mark.any_version
def test_targets_are_stated_for_rates_and_for_processor_time() -> None:
    report = canned.report("tasklet-io")
    judged = {(v.case, v.target): v for v in verdicts(report)}
    rate = judged["echo-many", ">= 1.5 x gevent"]
    assert rate.value == pytest.approx(900 / 890)
    assert not rate.reached
    per_cpu = judged["echo-many", "per CPU s >= 0.8 x uvloop"]
    place = list(FIGURES).index("per_cpu_s")
    # The shown round is the median one: of two the worse, of one that one.
    assert per_cpu.value == pytest.approx((1 + place + 810) / (1 + place + 450))
    assert per_cpu.reached
    assert ("sleeping", "<= 1 x gevent") in judged
    assert ("crossing", ">= 5 x queue.Queue") in judged
    assert ("lock-with", "<= 1.5 x threads") in judged
    assert report.mislabelled() == []


@pytest.mark.any_version
def test_the_table_tells_rates_from_processor_time() -> None:
    found = rows.rows(canned.report("tasklet-io"), "server")
    shown = {rows.heading(place, found) for place in rows.used_columns(found)}
    wanted = {"requests/s", "per CPU s", "server %", "to tasklets"}
    assert wanted <= shown
    texts = [verdict.text for row in found for verdict in row.verdicts]
    assert any(text.startswith("per CPU s >= 1.5 x gevent (") for text in texts)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--connections", "0"], "argument --connections: '0' is not a number from"),
        (["--sleepers", "x"], "argument --sleepers: 'x' is not a number from 1 on"),
        (["--sides", "go"], "there is no side 'go'; sides are tasklets, scheduled, gevent, uvloop"),
        (["--parked", "1"], "unrecognized arguments: --parked"),
    ],
)
@pytest.mark.any_version
def test_a_wrong_request_is_one_line(
    arguments: list[str], line: str, refusal: Callable[..., str]
) -> None:
    assert line in refusal("tasklet-io", *arguments)
