"""`prefork.install`: what counts as a fork, how often it prepares, what that keeps."""

from textwrap import dedent

import pytest

from tests.prefork.test_hazards import PRELUDE
from tests.support import SANITIZED, run_child

HEAD = """
import pty, subprocess, threading

GROWN = []

def grow():
    GROWN[:] = [[[n] for n in range(100_000)]]

def fork():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0

def prepares():
    return prefork.statistics().prepares
"""


def check(program: str) -> None:
    run_child(PRELUDE + HEAD + dedent(program))


def test_each_fork_prepares_once_by_default() -> None:
    check("""
        warmed = []
        prefork.install(warm_up=lambda: warmed.append(1))
        fork()
        for turn in range(4):
            grow()
            fork()
        counted = prefork.statistics()
        assert (counted.prepares, counted.refused) == (1, 4), counted
        assert warmed == [1]
        prefork.install()  # anew
        fork()
        assert prepares() == 2
        prefork.uninstall()
        grow()
        fork()
        assert prefork.statistics().prepares == 2
    """)


def test_forks_prepare_again_within_a_budget() -> None:
    check("""
        prefork.install(prepare_again=12 << 20)
        fork()
        first = prefork.statistics()
        for turn in range(20):
            grow()
            fork()
        counted = prefork.statistics()
        assert counted.prepares > 1, counted
        if IMMORTAL:  # else what is replaced is freed, and the heap does not grow
            assert counted.prepares + counted.refused == 21, counted
        assert counted.immortal_bytes <= first.immortal_bytes + (12 << 20) + 10_000, counted
    """)


@pytest.mark.skipif(SANITIZED, reason="the sanitizer's allocator keeps what is freed")
def test_a_master_whose_thread_refreshes_a_table_does_not_grow() -> None:
    check("""
        from queue import SimpleQueue
        table, wanted, done = {}, SimpleQueue(), SimpleQueue()
        def refresh():
            while wanted.get():
                table.clear()
                table.update((n, [n, str(n)]) for n in range(60_000))
                done.put(True)
        thread = threading.Thread(target=refresh)
        thread.start()
        prefork.install()
        private = []
        for turn in range(10):
            wanted.put(True)
            done.get()
            fork()
            private.append(prefork.private_bytes())
        wanted.put(False)
        thread.join()
        assert prepares() == 1
        assert private[-1] < 1.5 * private[1] + (20 << 20), private  # it was four times as much
    """)


def test_what_becomes_another_program_is_no_fork() -> None:
    check("""
        prefork.install(warm_up=grow)
        done = subprocess.run(["/bin/true"], preexec_fn=lambda: None)
        assert done.returncode == 0 and not GROWN and prepares() == 0
        fork()
        assert GROWN and prepares() == 1
    """)


def test_a_terminal_is_no_fork() -> None:
    check("""
        from os import forkpty as renamed
        prefork.install(warm_up=grow)

        def by_attribute():
            return os.forkpty()

        def by_name(forkpty=os.forkpty):
            return forkpty()

        def both(first):
            # The name is there, but it is not what is called.
            if first:
                return os.forkpty()
            return os.fork(), None

        def end(pid, descriptor):
            if pid == 0:
                os._exit(0)
            if descriptor is not None:
                os.close(descriptor)
            os.waitpid(pid, 0)

        for function in (pty.fork, by_attribute, by_name, lambda: both(True)):
            end(*function())
            assert prepares() == 0 and not GROWN, function
        end(*both(False))
        assert prepares() == 1 and GROWN
        grow()
        end(*renamed())  # cannot be told, and does no harm: it was prepared once
        assert prepares() == 1
    """)


def test_children_have_what_is_asked_for() -> None:
    check("""
        import socket, threading, urllib.request
        from cpythonplus import threads
        held = socket.socket()  # it does not listen: nobody else is given the port
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        prefork.install(threads=True, metrics=str(port))
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(writer)
            status = 0 if isinstance(threading.Lock(), threads.Lock) else 1
            os.read(reader, 1)
            os._exit(status)
        address = f"http://127.0.0.1:{port}/metrics"
        text = urllib.request.urlopen(address, timeout=60).read().decode()
        assert "cpythonplus_workers 1\\n" in text, text
        os.close(reader)
        os.close(writer)
        assert os.waitpid(pid, 0)[1] == 0
        try:
            prefork.install(max_private_memory="1G")
        except ValueError as error:
            assert "is not available with os.fork" in str(error)
        else:
            raise AssertionError
    """)
