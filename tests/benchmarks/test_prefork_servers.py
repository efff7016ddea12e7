"""One tiny measurement with each kind of server of the benchmark `prefork`; no time is asserted."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from benchmarks.common import memory
from benchmarks.common.children import Commands
from benchmarks.common.engine import Settings
from benchmarks.common.errors import MeasurementError
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side
from benchmarks.prefork import application, scenario, server
from tests.support import WITH_CTRL_C, child_environment, own_children, run_child

pytestmark = pytest.mark.slow  # all together

for module in scenario.NEEDS:
    pytest.importorskip(module)

ROOT = Path(__file__).resolve().parents[2]
TINY = Settings(1, 1.0, items=2000, requests=60)
STOCK_TWICE = Commands.of(sys.executable, [sys.executable])


@pytest.fixture(autouse=True)
def no_child_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(ROOT)
    before = own_children()  # servers of other tests
    yield
    assert own_children() <= before


def measured(name: str, side: Side, commands: Commands = STOCK_TWICE) -> Outcome:
    case = next(case for case in scenario.cases(2) if case.name == name)
    outcome = case.measure(commands, side, TINY)
    assert outcome.rate > 0
    assert not outcome.errors, outcome.notes
    return outcome


def test_every_request_of_the_mix_is_answered() -> None:
    run_child(
        """
        import os, sys
        sys.path.insert(0, sys.argv[1])
        os.environ["CATALOGUE_ITEMS"] = "2000"
        from benchmarks.prefork import mix
        from examples.django_catalogue.warm_up import ask, warm_up
        warm_up()
        for items in (2000, 0):
            for path in mix.paths(items, 200):
                assert ask(path).startswith("200"), path
        for path in ("/items/SKU-9999999/", "/debug/collect/", "/items/?tag=tag-001&page=99"):
            assert ask(path).startswith("404"), path
        for path in ("/items/", "/items/?tag=tag-001&currency=XXX"):
            assert ask(path).startswith("400"), path
        """,
        args=(str(ROOT),),
    )


def test_memory_with_a_collection_and_freezing() -> None:
    outcome = measured("memory-collected-2", "gc.freeze")
    assert outcome.figures["private_mib"] < outcome.rate
    assert outcome.figures["faults"] > 0
    assert outcome.figures["requests_per_s"] > 0
    assert outcome.latency is not None
    assert 0 < outcome.latency.count <= 120
    assert (outcome.scheduled, outcome.patched) == (False, False)


def test_the_end_of_a_server() -> None:
    outcome = measured("stop-2", "stock")
    assert outcome.figures["before_mib"] > 0
    assert outcome.figures["peak_mib"] > 0
    assert outcome.latency is None


def test_workers_that_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenario, "MAX_REQUESTS", 20)
    outcome = measured("max-requests-2", "gc-off")
    assert outcome.latency is not None
    assert outcome.latency.count == 120
    (note,) = outcome.notes
    assert note.endswith("workers replaced")


def test_plus_is_served_by_the_serve_command() -> None:
    pytest.importorskip("cpythonplus._native", exc_type=ImportError)
    pytest.importorskip("cpythonplus._cli.commands.serve")
    commands = Commands.of(sys.executable, [sys.executable, "-m", "cpythonplus", "serve"])
    outcome = measured("stop-2", "plus", commands)
    assert (outcome.scheduled, outcome.patched) == (True, True)


def test_a_server_that_does_not_start_is_said() -> None:
    environment = application.environment(0) | {"CATALOGUE_ITEMS": "some"}
    with (
        pytest.raises(MeasurementError, match="the server ended with status"),
        server.running(STOCK_TWICE, "stock", 1, environment),
    ):
        pytest.fail("it started")


def test_nothing_is_left_after_an_interruption() -> None:
    with TemporaryDirectory() as folder:
        environment = child_environment({"TMPDIR": folder})
        options = ["--workers", "2", "--items", "2000", "--requests", "100000", "--only", "stop-2"]
        options += ["--plus-command", ""]
        with subprocess.Popen(
            [*WITH_CTRL_C, sys.executable, "-m", "benchmarks", "prefork", *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=ROOT,
            start_new_session=True,
        ) as process:
            assert process.stderr is not None
            # Itself, the load generator, the server and its two workers.
            while len(pids := memory.tree(process.pid)) < 5:
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            assert process.stderr.read().endswith("benchmarks prefork: interrupted\n")
            assert process.wait(30) == 130
        assert not list(Path(folder).iterdir())
    for pid in pids[1:]:
        await_end(pid)


def await_end(pid: int) -> None:
    """Wait until `pid` has ended; a zombie has, whoever inherited it."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state in "ZX":
            return
        time.sleep(0.01)
    pytest.fail(f"process {pid} is still there")
