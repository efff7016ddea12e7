"""Settings, warm-ups, and what is done before a fork, without a server."""

import logging
import sys
from types import SimpleNamespace

import pytest

from cpythonplus.prefork import servers
from cpythonplus.prefork.preparing import Budget
from tests.support import run_child


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in servers.SETTINGS:
        monkeypatch.delenv(servers.PREFIX + name.upper(), raising=False)


def test_defaults() -> None:
    assert servers.Settings.read() == servers.Settings(
        gil=True, locks=True, warm_up="", max_private_bytes=0, again_bytes=0
    )


def test_the_last_source_is_the_strongest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPYTHONPLUS_PREFORK_GIL", "off")
    monkeypatch.setenv("CPYTHONPLUS_PREFORK_MAX_PRIVATE_MEMORY", "1M")
    monkeypatch.setenv("CPYTHONPLUS_PREFORK_WARM_UP", "a:b")
    read = servers.Settings.read({"locks": False, "max_private_memory": "2M"}, {"locks": "yes"})
    assert read == servers.Settings(gil=False, locks=True, warm_up="a:b", max_private_bytes=2 << 20)


@pytest.mark.parametrize(
    ("name", "value"),
    [("gil", "perhaps"), ("locks", 2), ("max_private_memory", "lots"), ("prepare_again", "-")],
)
def test_a_wrong_value_is_one_line(
    name: str, value: object, caplog: pytest.LogCaptureFixture
) -> None:
    assert servers.Settings.read({name: value}) == servers.Settings()
    assert len(caplog.messages) == 1
    assert f"the setting {name} is left out: {value!r}" in caplog.text


def test_a_warm_up_imports_and_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    module = SimpleNamespace(
        one=lambda: calls.append("one"), inner=SimpleNamespace(two=lambda: calls.append("two"))
    )
    monkeypatch.setitem(sys.modules, "warmed", module)
    warm_up = servers.warm_up_of(" warmed , warmed:one,warmed:inner.two,")
    assert warm_up is not None
    warm_up()
    assert calls == ["one", "two"]


@pytest.mark.parametrize("text", ["", " ", ","])
def test_no_warm_up(text: str) -> None:
    assert servers.warm_up_of(text) is None


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("no_such_module", ModuleNotFoundError),
        ("sys:no_such_name", AttributeError),
        ("sys:maxsize", TypeError),
    ],
)
def test_a_wrong_warm_up_raises(text: str, error: type[Exception]) -> None:
    warm_up = servers.warm_up_of(text)
    assert warm_up is not None
    with pytest.raises(error):
        warm_up()


def test_a_failure_does_not_keep_a_server_from_forking(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise OSError("no memory\nat all")

    monkeypatch.setattr(Budget, "prepare", lambda _: fail())
    caplog.set_level(logging.WARNING)
    parent = servers.Parent(servers.Settings(), fail)
    assert parent.before_fork() is None
    assert parent.before_fork() is None
    # The warm-up is not tried again, preparing is.
    assert [message.partition(": ")[2] for message in caplog.messages] == [
        "the warm-up failed: OSError: no memory at all",
        "not prepared: OSError: no memory at all",
        "not prepared: OSError: no memory at all",
    ]


def test_a_parent_prepares_once_and_says_so_once() -> None:
    child = run_child(
        """
        import logging
        from cpythonplus.prefork import servers, statistics

        logging.basicConfig(level=logging.INFO, format="%(message)s")
        parent = servers.Parent(servers.Settings(gil=False, locks=False))
        reports, batch = [], []
        for turn in range(4):
            if turn:
                batch = [[n] for n in range(100_000)]
            reports.append(parent.before_fork())
        assert [report is not None for report in reports] == [True, False, False, False]
        counted = statistics()
        assert (counted.prepares, counted.refused) == (1, 3), counted
        """
    )
    assert child.err.count("prepared: ") == 1
    assert child.err.count("is not prepared again") == 1


def test_a_parent_prepares_again_within_its_setting() -> None:
    run_child(
        """
        from cpythonplus.prefork import servers, statistics

        settings = servers.Settings.read({"gil": "off", "locks": "off", "prepare_again": "12M"})
        assert settings.again_bytes == 12 << 20
        parent = servers.Parent(settings)
        first = parent.before_fork()
        for turn in range(20):
            batch = [[n] for n in range(100_000)]
            parent.before_fork()
        counted = statistics()
        assert counted.prepares > 1, counted
        if first.immortal:  # else what is replaced is freed, and the heap does not grow
            assert counted.prepares + counted.refused == 21, counted
        assert counted.immortal_bytes <= first.bytes + (12 << 20) + 10_000, counted
        """
    )


def test_a_worker_is_due_once_and_one_at_a_time() -> None:
    """Three workers above the limit; the next one may go when a new one is there."""
    child = run_child(
        """
        import os, time
        from cpythonplus.prefork import servers

        servers.INTERVAL_S = servers.MIN_AGE_S = 1e-9
        settings = servers.Settings(gil=False, locks=False, max_private_bytes=64 << 20)
        parent = servers.Parent(settings)

        class Worker:
            def __init__(self):
                mine, its = os.pipe()
                its_in, mine_in = os.pipe()
                self.pid = os.fork()
                if not self.pid:
                    os.close(mine)
                    os.close(mine_in)
                    self.serve(its_in, its)
                os.close(its)
                os.close(its_in)
                self.answers, self.orders = mine, mine_in

            def serve(self, orders, answers):
                kept = []
                parent.start_worker()
                os.write(answers, b"r")
                while order := os.read(orders, 1):
                    if order == b"g":
                        kept.append(bytearray(b"x" * (100 << 20)))
                        os.write(answers, b".")
                    else:
                        os.write(answers, b"1" if parent.worker_is_due() else b"0")
                os._exit(0)

            def do(self, order):
                os.write(self.orders, order)
                return os.read(self.answers, 1)

            def end(self):
                os.close(self.orders)
                assert os.waitpid(self.pid, 0)[1] == 0

        def started():
            worker = Worker()
            assert os.read(worker.answers, 1) == b"r"
            return worker

        def asked(worker, done):
            # Ask until `done`; the answers.
            answers, end = [worker.do(b"?")], time.monotonic() + 30
            while not done(answers[-1]):
                assert time.monotonic() < end, answers[-1]
                answers.append(worker.do(b"?"))
            return set(answers)

        def measured(worker):
            rows = parent.board.snapshot().workers
            return {row.pid: row.private_bytes for row in rows}[worker.pid] > 64 << 20

        # Each has the write ends of those before it: all are started, then closed in turn.
        workers = [started() for _ in range(2)]
        assert [each.do(b"g") for each in workers] == [b".", b"."]
        first, second = workers
        asked(first, b"1".__eq__)
        assert first.do(b"?") == b"0"  # told once
        assert asked(second, lambda _: measured(second)) == {b"0"}  # not its turn
        third = started()
        asked(second, b"1".__eq__)
        print("done", flush=True)
        for each in (third, second, first):
            each.end()
        """
    )
    assert child.out == "done\n"
    assert child.err.count("of private memory and is replaced") == 2
