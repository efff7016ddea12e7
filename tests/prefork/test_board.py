"""What workers write on the board, and what is counted when they end, however they do."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cpythonplus.prefork._board.board import REASONS, Board, BoardFull
from cpythonplus.prefork._board.counts import MOST_LABELS
from cpythonplus.prefork._board.records import Record
from cpythonplus.prefork._limits.endings import (
    OutOfMemoryKills,
    exists,
    reason_of_status,
    start_ticks,
)
from tests.prefork.forked_workers import run_program

Start = Callable[[], subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts processes that do nothing but be there."""
    started: list[subprocess.Popen[bytes]] = []

    def one() -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(["sleep", "1000"]))
        return started[-1]

    yield one
    for process in started:
        process.kill()
        process.wait()


def end(process: subprocess.Popen[bytes]) -> int:
    process.kill()
    process.wait()
    return process.pid


def restarts(board: Board) -> dict[str, int]:
    return {reason: count for reason, count in board.snapshot().restarts.items() if count}


# ---- slots --------------------------------------------------------------------------------------


def test_an_empty_board() -> None:
    shown = Board(3).snapshot()
    assert shown.workers == ()
    assert dict(shown.restarts) == dict.fromkeys(REASONS, 0)
    assert (shown.requests, shown.gil_waits, shown.gil_wait_ns, shown.turn_pid) == (0, 0, 0, 0)


@pytest.mark.parametrize("slots", [0, -1])
def test_a_board_without_slots(slots: int) -> None:
    with pytest.raises(ValueError, match="at least one slot"):
        Board(slots)


def test_what_a_worker_writes() -> None:
    board = Board(2)
    slot = board.claim(os.getpid())
    assert not board.snapshot().workers[0].ready
    slot.ready()
    slot.write(private_bytes=1, shared_bytes=2, proportional_bytes=3)
    slot.write(requests=4, gil_waits=5, gil_wait_ns=6)
    slot.count_request()
    slot.leaves("reload")
    (row,) = board.snapshot().workers
    assert (row.pid, row.slot, row.ready, row.leaving) == (os.getpid(), 0, True, "reload")
    assert (row.private_bytes, row.shared_bytes, row.proportional_bytes) == (1, 2, 3)
    assert (row.requests, row.gil_waits, row.gil_wait_ns) == (5, 5, 6)
    assert slot.requests == 5


def test_numbers_out_of_range_are_the_nearest_in_it() -> None:
    board = Board(1)
    board.claim(os.getpid()).write(private_bytes=-1, gil_wait_ns=2**70)
    (row,) = board.snapshot().workers
    assert (row.private_bytes, row.gil_wait_ns) == (0, 2**64 - 1)
    board.ended(os.getpid())
    assert board.snapshot().gil_wait_ns == 2**64 - 1


def test_claiming_again_gives_the_same_slot() -> None:
    board = Board(2)
    slot = board.claim(os.getpid())
    slot.write(requests=3)
    assert board.claim(os.getpid()) is slot
    assert board.snapshot().requests == 3


def test_a_full_board(start: Start) -> None:
    board = Board(2)
    first, second, third = start(), start(), start()
    board.claim(first.pid)
    board.claim(second.pid)
    with pytest.raises(BoardFull, match="all 2 slots"):
        board.claim(third.pid)
    board.ended(end(first), "killed")
    assert board.claim(third.pid).index == 0
    assert [row.pid for row in board.snapshot().workers] == [second.pid, third.pid]


def test_a_process_that_is_not_there(start: Start) -> None:
    board = Board(2)
    with pytest.raises(ProcessLookupError):
        board.claim(end(start()))
    assert board.snapshot().workers == ()


def test_slots_of_the_dead_are_used_and_they_are_counted_once(start: Start) -> None:
    board = Board(1)
    first, second = start(), start()
    board.claim(first.pid)
    end(first)
    board.claim(second.pid)
    assert restarts(board) == {"exit": 1}
    board.ended(first.pid, int(signal.SIGKILL))
    assert restarts(board) == {"exit": 1}
    board.ended(end(second), int(signal.SIGKILL))
    assert restarts(board) == {"exit": 1, "killed": 1}


def test_sweep(start: Start) -> None:
    board = Board(4)
    workers = [start() for _ in range(3)]
    for worker in workers:
        board.claim(worker.pid)
    assert board.sweep() == 0
    end(workers[0])
    end(workers[2])
    assert board.sweep() == 2
    assert [row.pid for row in board.snapshot().workers] == [workers[1].pid]
    assert restarts(board) == {"exit": 2}


def test_another_process_cannot_write() -> None:
    """Neither the master, nor a child of the worker that inherited the slot."""
    run_program("""
    board = Board(1)

    def body(worker):
        slot = board.claim(os.getpid())
        slot.count_request()
        if os.fork() == 0:
            slot.write(requests=100)
            slot.count_request()
            slot.ready()
            os._exit(0)
        os.wait()
        slot.count_request()
        worker.say()
        worker.wait()

    worker = Worker(body)
    assert worker.said()
    board.claim(worker.pid).write(requests=50)
    shown = row(board, worker.pid)
    assert (shown.requests, shown.ready) == (2, False), shown
    worker.go_on()
    worker.end()
    """)


def test_the_master_claims_for_the_worker() -> None:
    run_program("""
    board = Board(2)

    def body(worker):
        worker.wait()
        board.claim(os.getpid()).write(requests=1)
        worker.say()
        worker.wait()

    worker = Worker(body)
    index = board.claim(worker.pid).index
    worker.go_on()
    assert worker.said()
    shown = board.snapshot().workers
    assert [(r.pid, r.slot, r.requests) for r in shown] == [(worker.pid, index, 1)], shown
    worker.go_on()
    worker.end()
    """)


def test_threads_that_count() -> None:
    run_program("""
    import threading
    sys.setswitchinterval(1e-5)
    board = Board(1)
    slot = board.claim(os.getpid())

    def count():
        for _ in range(500):
            slot.count_request()

    threads = [threading.Thread(target=count) for _ in range(4)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert board.snapshot().requests == 2000, board.snapshot()
    """)


def test_all_workers_claim_at_once() -> None:
    run_program("""
    board = Board(8)

    def body(worker):
        worker.wait()
        board.claim(os.getpid()).write(requests=1)
        worker.say()
        worker.wait()

    workers = [Worker(body) for _ in range(8)]
    for worker in workers: worker.go_on()
    for worker in workers: assert worker.said()
    shown = board.snapshot()
    assert {r.pid for r in shown.workers} == {w.pid for w in workers}
    assert sorted(r.slot for r in shown.workers) == list(range(8))
    assert shown.requests == 8
    for worker in workers:
        worker.go_on()
        assert board.ended(worker.pid, worker.end()) == 'exit'
    assert board.snapshot().requests == 8
    """)


# ---- ends ---------------------------------------------------------------------------------------


def test_reasons_of_real_ends() -> None:
    run_program("""
    board = Board(2)

    def ends(how, expected, noted=None, ready=True, with_signal=None):
        def body(worker):
            slot = board.claim(os.getpid())
            if ready: slot.ready()
            if noted: slot.leaves(noted)
            worker.say()
            worker.wait()
            sys.exit(how)
        worker = Worker(body)
        assert worker.said()
        worker.go_on() if with_signal is None else None
        before = restarts(board).get(expected, 0)
        got = board.ended(worker.pid, worker.end(with_signal))
        assert got == expected, (got, expected)
        assert restarts(board)[expected] == before + 1
        assert board.snapshot().workers == ()

    ends(0, 'exit')
    ends(1, 'exit')
    ends(3, 'boot_error', ready=False)
    ends(0, 'exit', ready=False)
    ends(0, 'private_memory', noted='private_memory')
    ends(0, 'killed', with_signal=signal.SIGKILL)
    ends(0, 'exit', with_signal=signal.SIGTERM)
    ends(0, 'killed', with_signal=signal.SIGSEGV)
    ends(0, 'max_requests', noted='max_requests', with_signal=signal.SIGKILL)
    """)


def test_a_reason_given_by_the_master(start: Start) -> None:
    board = Board(1)
    board.claim((worker := start()).pid)
    assert board.ended(end(worker), "timeout") == "timeout"
    assert restarts(board) == {"timeout": 1}


def test_an_end_without_a_status(start: Start) -> None:
    board = Board(1)
    board.claim((worker := start()).pid)
    assert board.ended(end(worker)) == "exit"
    board.claim(os.getpid()).leaves("max_requests")
    assert board.ended(os.getpid()) == "max_requests"


def test_a_worker_that_never_got_onto_the_board(start: Start) -> None:
    board = Board(1)
    assert board.ended(end(start()), 3 << 8) == "boot_error"
    assert restarts(board) == {"boot_error": 1}


def test_an_unknown_reason() -> None:
    board = Board(1)
    with pytest.raises(ValueError, match="'bored' is not a reason"):
        board.ended(os.getpid(), "bored")
    with pytest.raises(ValueError, match="'bored' is not a reason"):
        board.claim(os.getpid()).leaves("bored")
    assert restarts(board) == {}


def test_sums_stay_when_workers_go() -> None:
    board = Board(1)
    for _ in range(3):
        board.claim(os.getpid()).write(requests=10, gil_waits=20, gil_wait_ns=30)
        board.ended(os.getpid(), "reload")
        assert board.snapshot().workers == ()
    shown = board.snapshot()
    assert (shown.requests, shown.gil_waits, shown.gil_wait_ns) == (30, 60, 90)
    # A new owner of the slot begins at zero.
    assert board.claim(os.getpid()).requests == 0


def counter(folder: Path, count: int) -> tuple[Path, ...]:
    path = folder / "memory.events"
    path.write_text(f"low 0\nhigh 3\noom 9\noom_kill {count}\noom_group_kill 0\n")
    return (folder / "none", path)


def test_kills_for_want_of_memory(tmp_path: Path) -> None:
    now_s = 0.0
    kills = OutOfMemoryKills(counter(tmp_path, 5), lambda: now_s)
    assert not kills.look()
    counter(tmp_path, 6)
    assert kills.look()
    assert not kills.look()
    # Three at once: each is reported by itself, but not for ever.
    counter(tmp_path, 9)
    assert kills.look()
    assert kills.look()
    now_s += kills.SAME_EVENT_S + 1
    assert not kills.look()


def test_no_counter_of_kills(tmp_path: Path) -> None:
    kills = OutOfMemoryKills((tmp_path / "none",))
    assert not kills.look()


def test_sigkill_with_and_without_the_kernels_counter() -> None:
    def reason(*, out_of_memory: bool, noted: str | None = None) -> str:
        return reason_of_status(
            signal.SIGKILL, noted=noted, ready=True, out_of_memory=lambda: out_of_memory
        )

    assert reason(out_of_memory=True) == "out_of_memory"
    assert reason(out_of_memory=False) == "killed"
    assert reason(out_of_memory=True, noted="timeout") == "timeout"


def test_processes_are_known_by_pid_and_start(start: Start) -> None:
    worker = start()
    ticks = start_ticks(worker.pid)
    assert ticks
    assert exists(worker.pid, ticks)
    assert exists(worker.pid, 0)
    assert not exists(worker.pid, ticks + 1)  # another process with the same number
    worker.kill()
    os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)
    assert not exists(worker.pid, ticks)  # a zombie
    worker.wait()
    assert start_ticks(worker.pid) is None


# ---- the turn -----------------------------------------------------------------------------------


def test_one_at_a_time(start: Start) -> None:
    board = Board(4)
    first, second = start(), start()
    assert board.take_turn(first.pid)
    assert board.take_turn(first.pid)
    assert not board.take_turn(second.pid)
    assert board.snapshot().turn_pid == first.pid


def test_the_turn_of_a_dead_process(start: Start) -> None:
    board = Board(4, replacement_s=0)
    first, second = start(), start()
    assert board.take_turn(first.pid)
    end(first)
    assert board.take_turn(second.pid)
    assert not board.take_turn(first.pid)


def test_the_turn_is_kept_for_the_replacement() -> None:
    run_program("""
    board = Board(4, replacement_s=1000)

    def body(worker):
        slot = board.claim(os.getpid())
        worker.say()
        worker.wait()
        slot.ready()
        worker.say()
        worker.wait()

    first, second = Worker(body), Worker(body)
    for worker in (first, second):
        assert worker.said()
        worker.go_on()
        assert worker.said()
    assert board.take_turn(first.pid)
    board.ended(first.pid, first.end(signal.SIGKILL))
    assert not board.take_turn(second.pid), 'nobody has replaced the first yet'
    third = Worker(body)
    assert third.said()
    assert not board.take_turn(second.pid), 'the replacement is not ready yet'
    third.go_on()
    assert third.said()
    assert board.take_turn(second.pid)
    assert not board.take_turn(third.pid)
    second.end(signal.SIGKILL)
    third.end(signal.SIGKILL)
    """)


def test_the_turn_goes_to_one_of_many() -> None:
    run_program("""
    board = Board(8)

    def body(worker):
        worker.wait()
        worker.say(b'y' if board.take_turn(os.getpid()) else b'n')
        worker.wait()

    workers = [Worker(body) for _ in range(6)]
    for worker in workers: worker.go_on()
    # Those who found the board being changed go without.
    assert [w.said() for w in workers].count(b'y') == 1
    for worker in workers:
        worker.go_on()
        worker.end()
    """)


def test_warn_once() -> None:
    board = Board(1)
    assert [board.warn_once() for _ in range(3)] == [True, False, False]


# ---- whatever happens meanwhile -----------------------------------------------------------------

EACH_LINE = """
# A board for each line, made before the two workers that are on all of them.
ALL = [Board(3, replacement_s=0) for _ in range(400)]


def is_there(worker):
    for board in ALL:
        board.claim(os.getpid()).write(requests=10, gil_waits=10)
    worker.say()
    worker.wait()


def claim():
    board.claim(os.getpid())


def write():
    board.claim(os.getpid()).write(requests=5, gil_waits=5)


def turn():
    board.take_turn(os.getpid())


def ended():
    board.ended(gone.pid, 'killed')


gone, stays = Worker(is_there), Worker(is_there)
assert gone.said() and stays.said()
gone.end(signal.SIGKILL)
for number, board in enumerate(ALL, 1):
    if not check():
        break
else:
    raise AssertionError('more lines than boards')
assert number > 10, number
stays.go_on()
stays.end()
"""


@pytest.mark.parametrize("change", ["claim", "write", "turn", "ended"])
@pytest.mark.slow
def test_killed_at_each_line(change: str) -> None:
    """By SIGKILL: the board is as it was before, or as it should be; and can be changed again."""
    check = f"""
def check():
    def body(worker):
        at_line(number, {change}, lambda: os.kill(os.getpid(), signal.SIGKILL), READING)

    killed = Worker(body)
    was_killed = killed.end() != 0
    shown = board.snapshot()
    pids = [r.pid for r in shown.workers]
    assert stays.pid in pids, (number, shown)
    assert (gone.pid in pids) == (restarts(board) == {{}}), (number, shown)
    mine = 5 * any(r.pid == killed.pid and r.requests for r in shown.workers)
    assert shown.requests == shown.gil_waits == 20 + mine, (number, shown)
    board.sweep()
    board.claim(os.getpid()).write(requests=1)
    assert [r.pid for r in board.snapshot().workers] == [stays.pid, os.getpid()]
    assert board.snapshot().requests == 21 + mine
    assert board.take_turn(stays.pid)
    return was_killed
"""
    run_program(check + EACH_LINE)


@pytest.mark.parametrize("change", ["claim", "write", "turn", "ended"])
@pytest.mark.slow
def test_a_signal_handler_at_each_line(change: str) -> None:
    """It may report an end, and note that its process leaves."""
    check = f"""
def check():
    slot = None if {change!r} == 'claim' else board.claim(os.getpid())

    def handler():
        board.ended(stays.pid, 'timeout')
        if slot is not None:
            slot.leaves('reload')

    lines = at_line(number, {change}, handler)
    if lines < number:
        return False
    counted = restarts(board)
    assert counted.pop('timeout') == 1, number
    assert counted == ({{'killed': 1}} if {change!r} == 'ended' else {{}}), (number, counted)
    shown = board.snapshot()
    mine = 5 * ({change!r} == 'write')
    assert shown.requests == shown.gil_waits == 20 + mine, (number, shown)
    me = row(board, os.getpid()) if {change!r} == 'claim' or slot else None
    assert me.leaving == ('reload' if slot else ''), (number, shown)
    assert shown.turn_pid == (os.getpid() if {change!r} == 'turn' else 0), (number, shown)
    return True
"""
    run_program(check + EACH_LINE)


@pytest.mark.parametrize("change", ["claim", "write", "ended"])
@pytest.mark.slow
def test_a_signal_handler_that_raises_at_each_call(change: str) -> None:
    """As those of servers do, to leave: all the same the board can be changed by everybody."""
    check = f"""
import threading


class Leave(Exception):
    pass


def check():
    def handler():
        raise Leave

    def other_thread():
        board.claim(stays.pid)
        seen.append(board.take_turn(stays.pid))

    def other_process(worker):
        board.sweep()
        board.claim(os.getpid()).write(requests=1)

    slot = board.claim(os.getpid()) if {change!r} == 'write' else None
    try:
        calls = at_call(number, {change}, handler)
    except Leave:
        pass
    else:
        return False
    assert board.snapshot().requests in (20, 25)
    # First of all: this process may put right what it left when it changes the board again.
    assert Worker(other_process).end() == 0
    if slot:
        slot.leaves('reload')
        assert row(board, os.getpid()).leaving == 'reload'
    board.claim(os.getpid()).write(requests=5, gil_waits=5)
    seen = []
    thread = threading.Thread(target=other_thread)
    thread.start()
    thread.join()
    assert seen == [True], number
    board.sweep()
    assert board.ended(gone.pid, 'killed')
    shown = board.snapshot()
    assert gone.pid not in [r.pid for r in shown.workers]
    assert (shown.requests, shown.gil_waits) == (26, 25), (number, shown)
    return True
"""
    run_program(check + EACH_LINE)


def test_a_stopped_process_that_keeps_the_lock() -> None:
    """The others give up after a while, and nothing is lost."""
    run_program("""
    boards._PATIENCE_S = 0.05
    board = Board(3)

    def body(worker):
        with board._exclusively():
            worker.say()
            os.kill(os.getpid(), signal.SIGSTOP)

    def victim(worker):
        board.claim(os.getpid())
        worker.say()
        worker.wait()

    dead = Worker(victim)
    assert dead.said()
    dead.end(signal.SIGKILL)
    stopped = Worker(body)
    assert stopped.said()
    os.waitid(os.P_PID, stopped.pid, os.WSTOPPED | os.WNOWAIT)
    try:
        board.claim(os.getpid())
    except boards.BoardBusy as error:
        assert 'stopped?' in str(error)
    else:
        raise AssertionError('claimed')
    assert not board.take_turn(os.getpid())
    assert board.ended(dead.pid, 'killed') == 'killed'
    assert restarts(board) == {} and len(board.snapshot().workers) == 1
    stopped.end(signal.SIGKILL)
    board.claim(os.getpid())
    assert restarts(board) == {'killed': 1}
    assert [r.pid for r in board.snapshot().workers] == [os.getpid()]
    """)


def test_an_end_that_waits_is_not_counted_by_a_child_too() -> None:
    run_program("""
    board = Board(2)

    def body(worker):
        board.claim(os.getpid())

    with board._exclusively():
        board.ended(12345678, 'killed')
        worker = Worker(body)
    worker.end()
    assert restarts(board) == {}
    board.claim(os.getpid())
    assert restarts(board) == {'killed': 1}
    """)


def test_a_lock_file_that_the_program_has_closed() -> None:
    child = run_program("""
    board = Board(2)
    os.closerange(3, 100)
    other = [open(os.devnull) for _ in range(20)]
    try:
        board.claim(os.getpid())
    except boards.BoardError as error:
        assert 'closed' in str(error)
    else:
        raise AssertionError('claimed')
    assert not board.take_turn(os.getpid())
    board.snapshot()
    del board  # closes nothing of others
    for file in other: os.fstat(file.fileno())
    """)
    assert child.err == ""


def test_a_snapshot_while_the_board_changes_at_each_line() -> None:
    """It is what stood there before or after: no worker is counted twice, or not at all."""
    check = """
def check():
    board.claim(os.getpid()).write(requests=5, gil_waits=5)

    def replaced():
        board.ended(os.getpid(), 'exit')
        board.claim(os.getpid()).write(requests=1, gil_waits=1)

    shown = []
    lines = at_line(number, lambda: shown.append(board.snapshot()), replaced)
    assert shown[0].requests == shown[0].gil_waits, (number, shown)
    assert shown[0].requests in (25, 26), (number, shown)
    assert len(shown[0].workers) == 3, (number, shown)
    return lines >= number
"""
    run_program(check + EACH_LINE)


def test_a_record_that_was_torn_is_not_believed() -> None:
    words = memoryview(bytearray(8 * Record.span(2))).cast("Q")
    record = Record(words, 0, 2)
    assert record.read() == [0, 0]
    record.write([1, 2])
    record.write([3, 2**64 - 1])
    first = {tuple(words)[i : i + 2]: i for i in range(len(words))}
    words[first[1, 2]] = 9  # somebody has begun to write the next one
    assert record.read() == [3, 2**64 - 1]
    words[first[3, 2**64 - 1]] = 9
    with pytest.raises(RuntimeError, match="all the time"):
        record.read()


def test_readers_see_whole_records() -> None:
    """While a worker writes, and while others come and go."""
    run_program("""
    board = Board(4)

    def writes(worker):
        slot = board.claim(os.getpid())
        number = 0
        while True:
            number += 1
            slot.write(private_bytes=number, shared_bytes=2 * number, requests=3 * number,
                       gil_waits=4 * number)
            if number == 1: worker.say()

    def comes_and_goes(worker):
        number = 0
        while True:
            number += 1
            board.claim(os.getpid()).write(requests=3, gil_waits=4)
            board.ended(os.getpid(), 'exit')
            if number == 1: worker.say()

    workers = [Worker(writes), Worker(comes_and_goes)]
    for worker in workers: assert worker.said()
    requests = changes = 0
    while changes < 300:
        shown = board.snapshot()
        for r in shown.workers:
            assert 4 * r.requests == 3 * r.gil_waits, shown
            assert r.shared_bytes == 2 * r.private_bytes, shown
        assert 4 * shown.requests == 3 * shown.gil_waits, shown
        assert shown.requests >= requests, (shown, requests)
        changes += shown.requests > requests
        requests = shown.requests
    for worker in workers: worker.end(signal.SIGKILL)
    """)


def test_fork_leaves_the_locks_of_other_threads_behind() -> None:
    run_program("""
    import threading
    board = Board(2)
    slot = board.claim(os.getpid())
    held, go = threading.Event(), threading.Event()

    def hold():
        with board._local().lock, slot._lock:
            held.set()
            go.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()

    def body(worker):
        slot.count_request()
        board.claim(os.getpid()).count_request()
        board.ended(os.getpid(), 'exit')

    assert Worker(body).end() == 0
    go.set()
    thread.join()
    assert restarts(board) == {'exit': 1}
    assert board.snapshot().requests == 1
    """)


def test_stalls_are_counted_by_line_up_to_a_number_of_lines() -> None:
    board = Board(1)
    for line in range(MOST_LABELS + 3):
        board.count_stall("C", f"app.py:{line}", 5)
    board.count_stall("C", "app.py:0", 2)
    board.count_stall("lock", "app.py:0", 2)
    rows = board.stalls()
    assert len(rows) == MOST_LABELS + 1
    assert rows[0] == ("C", "app.py:0", 2, 7)
    assert rows[-1] == ("other", "other", 4, 17)


def test_the_end_of_a_long_path_is_kept() -> None:
    board = Board(1)
    for end in ("a.py:7", "a.py:8"):
        board.count_stall("loop", "/\u65e5" * 200 + end, 5)
    assert [row.at[-6:] for row in board.stalls()] == ["a.py:7", "a.py:8"]


def test_stalls_of_several_processes_are_counted_together() -> None:
    child = run_program("""
        board = Board(1)
        pids = []
        for _ in range(3):
            pid = os.fork()
            if pid == 0:
                for _ in range(20):
                    board.count_stall("C", "app.py:1", 1)
                os._exit(0)
            pids.append(pid)
        assert [os.waitpid(pid, 0)[1] for pid in pids] == [0, 0, 0]
        assert board.stalls() == [("C", "app.py:1", 60, 60)]
    """)
    assert child.err == ""
