"""When a worker is told to leave: by private memory, one at a time, never in circles."""

import logging
import os
import subprocess

import pytest

from cpythonplus.prefork._blame.sharing import ProcessMemory
from cpythonplus.prefork._board.board import Board
from cpythonplus.prefork._limits.recycling import Recycler
from tests.prefork.forked_workers import run_program

LIMIT = 1000


class World:
    """A clock, and a process's memory; a reading takes `reading_s`."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.private_bytes = 10
        self.readings = 0
        self.reading_s = 0.0

    def clock(self) -> float:
        return self.now_s

    def read(self, pid: int) -> ProcessMemory:
        self.readings += 1
        self.now_s += self.reading_s
        return ProcessMemory(pid, "worker", 10**9, 30, 20, self.private_bytes)

    def recycler(
        self,
        board: Board,
        *,
        limit: int = LIMIT,
        lifetime_s: float = 0,
        jitter_s: float = 0,
        interval_s: float = 1.0,
        min_age_s: float = 0,
    ) -> Recycler:
        return Recycler(
            limit,
            board,
            lifetime_s=lifetime_s,
            jitter_s=jitter_s,
            interval_s=interval_s,
            min_age_s=min_age_s,
            read=self.read,
            clock=self.clock,
        )


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize(
    ("limit_bytes", "interval_s", "min_age_s"), [(0, 1, 1), (-1, 1, 1), (1, 0, 1), (1, 1, -1)]
)
def test_wrong_numbers(limit_bytes: int, interval_s: float, min_age_s: float) -> None:
    with pytest.raises(ValueError, match="above zero"):
        Recycler(limit_bytes, Board(1), interval_s=interval_s, min_age_s=min_age_s)


@pytest.mark.parametrize(("lifetime_s", "jitter_s"), [(-1, 0), (1, -1)])
def test_wrong_lifetimes(lifetime_s: float, jitter_s: float) -> None:
    with pytest.raises(ValueError, match="above zero"):
        Recycler(1, Board(1), lifetime_s=lifetime_s, jitter_s=jitter_s)


def test_a_worker_leaves_when_it_is_old_enough(world: World) -> None:
    board = Board(1)
    recycler = world.recycler(board, limit=0, lifetime_s=100)
    for _ in range(100):
        assert not recycler.poll()
        world.now_s += 1
    assert world.readings == 0
    assert recycler.poll()
    assert recycler.reason == "lifetime"
    (row,) = board.snapshot().workers
    assert row.leaving == "lifetime"
    world.now_s += 1000
    assert not recycler.poll()


def test_old_workers_leave_one_at_a_time(world: World) -> None:
    board = Board(2, replacement_s=0)
    recycler = world.recycler(board, limit=0, lifetime_s=100)
    recycler.poll()
    with subprocess.Popen(["sleep", "1000"]) as other:
        try:
            assert board.take_turn(other.pid)
            world.now_s += 101
            assert not recycler.poll()
        finally:
            other.kill()
    world.now_s += 1
    assert recycler.poll()


def test_lifetimes_are_spread(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []

    def uniform(least: float, most: float) -> float:
        drawn.append((least, most))
        return 7.0

    monkeypatch.setattr("random.uniform", uniform)
    recycler = world.recycler(Board(1), lifetime_s=100, jitter_s=20)
    assert not recycler.poll()
    world.now_s += 106
    assert not recycler.poll()
    world.now_s += 2
    assert recycler.poll()
    assert drawn == [(0, 20)]


def test_once_when_above_the_limit(world: World) -> None:
    board = Board(2)
    recycler = world.recycler(board)
    for private_bytes in (10, LIMIT):
        world.private_bytes = private_bytes
        world.now_s += 1
        assert not recycler.poll()
    world.private_bytes = LIMIT + 1
    world.now_s += 1
    assert recycler.poll()
    assert recycler.reason == "private_memory"
    (row,) = board.snapshot().workers
    assert (row.leaving, board.snapshot().turn_pid) == ("private_memory", os.getpid())
    world.now_s += 1000
    assert not recycler.poll()
    assert board.ended(os.getpid(), 0) == "private_memory"


def test_shared_memory_does_not_count(world: World) -> None:
    """A gigabyte is resident in this world."""
    recycler = world.recycler(Board(1))
    for _ in range(5):
        assert not recycler.poll()
        world.now_s += 1


def test_readings_are_rare_and_go_to_the_board(world: World) -> None:
    board = Board(1)
    recycler = world.recycler(board, interval_s=2)
    for _ in range(100):
        recycler.poll()
    assert world.readings == 1
    (row,) = board.snapshot().workers
    assert (row.private_bytes, row.shared_bytes, row.proportional_bytes) == (10, 20, 30)
    world.now_s += 1.9
    recycler.poll()
    assert world.readings == 1
    world.now_s += 0.2
    recycler.poll()
    assert world.readings == 2


def test_slow_readings_are_rarer(world: World) -> None:
    recycler = world.recycler(Board(1), interval_s=1)
    world.reading_s = 0.5
    recycler.poll()
    world.now_s += 48
    recycler.poll()
    assert world.readings == 1
    world.now_s += 3
    recycler.poll()
    assert world.readings == 2


def test_not_out_of_turn(world: World) -> None:
    board = Board(2, replacement_s=0)
    recycler = world.recycler(board)
    recycler.poll()
    with subprocess.Popen(["sleep", "1000"]) as other:
        try:
            assert board.take_turn(other.pid)
            world.private_bytes = LIMIT + 1
            for _ in range(3):
                world.now_s += 1
                assert not recycler.poll()
            assert board.snapshot().workers[0].leaving == ""
        finally:
            other.kill()
    world.now_s += 1
    assert recycler.poll()


def test_a_young_worker_is_left_alone(world: World) -> None:
    recycler = world.recycler(Board(1), min_age_s=10)
    recycler.poll()
    world.private_bytes = LIMIT + 1
    world.now_s += 9
    assert not recycler.poll()
    world.now_s += 2
    assert recycler.poll()


def test_a_worker_that_has_served_nothing_is_left_alone(world: World) -> None:
    """Where requests are counted at all."""
    board = Board(2)
    board.claim(os.getpid()).write(requests=1)
    board.ended(os.getpid(), "reload")
    recycler = world.recycler(board)
    recycler.poll()
    world.private_bytes = LIMIT + 1
    world.now_s += 100
    assert not recycler.poll()
    board.claim(os.getpid()).count_request()
    world.now_s += 1
    assert recycler.poll()


def test_a_limit_below_what_a_fresh_worker_needs(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Logged once for all workers, and each of them lives ten times as long."""
    board = Board(1, replacement_s=0)
    world.private_bytes = 2 << 20
    with caplog.at_level(logging.WARNING, "cpythonplus.prefork"):
        for _ in range(2):
            recycler = world.recycler(board, min_age_s=10)
            assert not recycler.poll()
            for _ in range(9):
                world.now_s += 10
                assert not recycler.poll()
            world.now_s += 11
            assert recycler.poll()
    (message,) = [record.getMessage() for record in caplog.records]
    assert "2 MiB of private memory, more than the limit of 1000 B" in message
    assert "at most every 100 s" in message


@pytest.mark.parametrize("kind", [PermissionError, RuntimeError])
def test_memory_that_cannot_be_read(world: World, kind: type[Exception]) -> None:
    def read(_: int) -> ProcessMemory:
        world.readings += 1
        raise kind("no")

    recycler = Recycler(LIMIT, Board(1), read=read, clock=world.clock)
    for _ in range(50):
        assert not recycler.poll()
        world.now_s += 1
    assert world.readings == 1


def test_a_full_board_does_not_stop_it(world: World, caplog: pytest.LogCaptureFixture) -> None:
    board = Board(1)
    board.claim(os.getppid())
    recycler = world.recycler(board)
    assert not recycler.poll()
    assert "is not counted: all 1 slots" in caplog.text
    world.private_bytes = LIMIT + 1
    world.now_s += 1
    assert recycler.poll()


def test_real_memory_of_real_workers() -> None:
    """Two workers share 64 MB; one takes 32 MB for itself, and is the one that is told to leave."""
    run_program("""
    from cpythonplus.prefork._limits.recycling import Recycler
    MB = 1 << 20
    shared = bytearray(os.urandom(4096)) * (64 * MB // 4096)
    board = Board(4)
    recycler = Recycler(24 * MB, board, interval_s=1e-6, min_age_s=0)

    def body(size):
        def run(worker):
            assert not recycler.poll()
            worker.say()
            worker.wait()
            own = bytearray(os.urandom(4096)) * (size // 4096)
            time.sleep(0)
            # Until the next reading: the interval follows the cost of the first.
            leaves = recycler.poll()
            while not leaves and row(board, os.getpid()).private_bytes < size:
                time.sleep(0.0005)
                leaves = recycler.poll()
            worker.say(b'y' if leaves else b'n')
            worker.wait()
        return run

    small, large = Worker(body(4 * MB)), Worker(body(32 * MB))
    for worker in (small, large):
        assert worker.said()
        worker.go_on()
    assert (small.said(), large.said()) == (b'n', b'y'), board.snapshot()
    shown = row(board, large.pid)
    assert shown.leaving == 'private_memory' and shown.private_bytes >= 32 * MB, shown
    assert shown.shared_bytes >= 64 * MB, shown
    assert row(board, small.pid).private_bytes < 24 * MB
    for worker in (small, large):
        worker.go_on()
        board.ended(worker.pid, worker.end())
    assert restarts(board) == {'exit': 1, 'private_memory': 1}
    """)
