"""What is done before a fork and in workers, without a server."""

import logging

import pytest

from cpythonplus.prefork._engine import Engine
from cpythonplus.prefork._fork.preparing import Budget
from cpythonplus.prefork._options import Options
from tests.support import run_child


def test_a_failure_does_not_keep_a_server_from_forking(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise OSError("no memory\nat all")

    monkeypatch.setattr(Budget, "prepare", lambda _, **__: fail())
    caplog.set_level(logging.WARNING)
    parent = Engine(Options(warm_up=fail, immortal=False, fill_pools=False))  # type: ignore[arg-type]
    assert parent.before_fork() is None
    assert parent.before_fork() is None
    # The warm-up is not tried again, preparing is.
    told = [message.partition("prefork: ")[2] for message in caplog.messages]
    told = [line for line in told if not line.startswith("threads of")]  # the test runner's own
    name = fail.__qualname__
    assert [message.partition(" (")[0] for message in told] == [
        f"the warm-up {name} raised OSError: no memory at all",
        "preparing the fork failed: OSError: no memory at all",
        "preparing the fork failed: OSError: no memory at all",
    ]


def test_a_parent_prepares_once_and_says_so_once() -> None:
    child = run_child(
        """
        import logging
        from cpythonplus.prefork import Options, statistics
        from cpythonplus.prefork._engine import Engine

        logging.basicConfig(level=logging.INFO, format="%(message)s")
        parent = Engine(Options(gil=False, threads=False))
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
        from cpythonplus.prefork import Options, statistics
        from cpythonplus.prefork._engine import Engine

        parent = Engine(Options(gil="off", threads="off", prepare_again="12M"))
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
        from cpythonplus.prefork import Options
        from cpythonplus.prefork._engine import Engine

        Engine.interval_s = Engine.min_age_s = 1e-9
        parent = Engine(Options(gil=False, threads=False, max_private_memory=64 << 20))
        parent.before_fork()

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
                        os.write(answers, b"1" if parent.is_due() else b"0")
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
    assert child.err.count("of private memory and is recycled") == 2
