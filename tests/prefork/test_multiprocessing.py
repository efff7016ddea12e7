"""`multiprocessing` and `ProcessPoolExecutor` with a prepared parent, in programs of their own."""

import json
import os
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.support import FREE_THREADED, run_child

IMMORTAL = sys.version_info >= (3, 12) and not FREE_THREADED

# A module of its own: functions of __main__ would be imported once more by the fork server.
CATALOGUE = """
    import os, sys, threading
    from cpythonplus import gil, threads

    ITEMS = [{"number": n} for n in range(50_000)]
    LATER = []

    class Mortal:
        pass

    MORTAL = Mortal()

    def is_mortal(kind):
        return kind is Mortal

    def fetch(address):
        import urllib.request
        return urllib.request.urlopen(address, timeout=60).read().decode()

    def look(number=0):
        return {
            "number": number,
            "pid": os.getpid(),
            "immortal": sys.getrefcount(ITEMS[0]) > 1 << 29,
            "later": bool(LATER) and sys.getrefcount(LATER[0]) > 1 << 29,
            "gil": gil.active(),
            "native_locks": isinstance(threading.Lock(), threads.Lock),
            "kept": sys.getrefcount(MORTAL) < 1 << 29,
            "warm": ITEMS[-1]["number"] == "warm",
        }

    def warm():
        ITEMS.append({"number": "warm"})

    def grow():
        LATER.extend({"later": n} for n in range(100_000))

    def put(queue):
        queue.put(look())

    def fail():
        raise SystemExit(7)
"""

HEAD = """
    import json, logging, multiprocessing, os, sys
    from concurrent.futures import ProcessPoolExecutor
    import catalogue
    import cpythonplus.prefork.multiprocessing
    from cpythonplus.prefork import multiprocessing as prepared

    logging.basicConfig(level=logging.INFO, format="%(message)s")
"""


def run(folder: Path, code: str, **env: str) -> tuple[Any, str]:
    """Run `code`; return what it has put into `answer`, and what it wrote to standard error."""
    (folder / "catalogue.py").write_text(dedent(CATALOGUE))
    body = "\n".join("    " + line for line in dedent(code).strip().splitlines())
    program = f"{dedent(HEAD)}\nif __name__ == '__main__':\n{body}\n    print(json.dumps(answer))\n"
    path = {"PYTHONPATH": _path(folder), **env}
    child = run_child(program, env=path)
    return json.loads(child.out.splitlines()[-1]), child.err


def _path(folder: Path) -> str:
    return os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(folder)]))


def test_a_forked_pool_is_prepared_once(tmp_path: Path) -> None:
    answer, err = run(
        tmp_path,
        """
        prepared.install(warm_up=catalogue.warm)
        fork = multiprocessing.get_context("fork")
        with fork.Pool(4) as pool:
            answer = pool.map(catalogue.look, range(20), chunksize=1)
        with ProcessPoolExecutor(2, mp_context=fork) as pool:
            answer += pool.map(catalogue.look, range(20, 30))
        """,
    )
    assert [each["number"] for each in answer] == list(range(30))
    assert {each["immortal"] for each in answer} == {IMMORTAL}
    assert all(each["warm"] for each in answer)
    # Children of computing pools are left as they are.
    assert not any(each["gil"] or each["native_locks"] for each in answer)
    assert err.count("prepared: ") == 1


@pytest.mark.needs_gil
def test_what_has_grown_since_is_prepared_too(tmp_path: Path) -> None:
    answer, err = run(
        tmp_path,
        """
        prepared.install(gil=True, threads=True, prepare_again=1 << 30)
        fork = multiprocessing.get_context("fork")
        with fork.Pool(1) as pool:
            answer = [pool.apply(catalogue.look)]
        catalogue.grow()
        with fork.Pool(1) as pool:
            answer.append(pool.apply(catalogue.look))
        prepared.uninstall()
        with fork.Pool(1) as pool:
            answer.append(pool.apply(catalogue.look))
        """,
    )
    assert [each["later"] for each in answer] == [False, IMMORTAL, IMMORTAL]
    assert [each["gil"] for each in answer] == [True, True, False]
    assert [each["native_locks"] for each in answer] == [True, True, False]
    assert err.count("prepared: ") == 2


def test_a_parent_that_forks_a_pool_for_each_batch_does_not_grow(tmp_path: Path) -> None:
    """What is not there any more at the next batch must not be immortal."""
    answer, err = run(
        tmp_path,
        """
        from cpythonplus import prefork
        prepared.install()
        fork = multiprocessing.get_context("fork")
        private = []
        for turn in range(8):
            catalogue.LATER[:] = []
            if turn:
                catalogue.grow()  # some 20 MB
            with fork.Pool(1) as pool:
                assert pool.apply(catalogue.look)["number"] == 0
            private.append(prefork.private_bytes())
        counted = prefork.statistics()
        answer = [counted.prepares, counted.refused > 0, private]
        """,
    )
    prepares, refused, private = answer
    assert prepares == 1
    assert refused
    assert max(private) < 1.5 * private[1] + (30 << 20), private
    assert err.count("prepared: ") == 1
    assert err.count("is not prepared again") == 1


def test_children_end_as_ever(tmp_path: Path) -> None:
    """Status, signals, exit functions of `multiprocessing` and what was printed."""
    (answer, others), err = run(
        tmp_path,
        """
        import atexit, time
        from multiprocessing.util import Finalize

        def printing():
            Finalize(None, print, args=("finalised",), exitpriority=1)
            print("from a child")

        prepared.install()
        fork = multiprocessing.get_context("fork")
        ends = [fork.Process(target=target) for target in (printing, catalogue.fail)]
        ends.append(fork.Process(target=time.sleep, args=(600,)))
        for each in ends:
            each.start()
        ends[-1].terminate()
        for each in ends:
            each.join(60)
        queue = fork.Queue()
        nested = fork.Process(target=lambda: fork.Process(target=queue.put, args=(5,)).start())
        nested.start()
        value = queue.get(timeout=60)
        nested.join(60)
        answer = [[each.exitcode for each in ends], [value, nested.exitcode]]
        """,
    )
    assert answer == [0, 7, -15]
    assert others == [5, 0]
    assert err.count("prepared: ") == 1


@pytest.mark.needs_gil
def test_the_fork_server_is_prepared_after_what_it_preloads(tmp_path: Path) -> None:
    answer, _ = run(
        tmp_path,
        """
        server = multiprocessing.get_context("forkserver")
        server.set_forkserver_preload(["catalogue"])
        prepared.install(gil=True, threads=True)
        with server.Pool(2) as pool:
            answer = pool.map(catalogue.look, range(10), chunksize=1)
        with ProcessPoolExecutor(2, mp_context=server) as pool:
            answer += pool.map(catalogue.look, range(10, 20))
        """,
        CPYTHONPLUS_PREFORK_WARM_UP="catalogue:warm",
    )
    assert [each["number"] for each in answer] == list(range(20))
    assert {each["immortal"] for each in answer} == {IMMORTAL}
    assert all(each["warm"] and each["gil"] and each["native_locks"] for each in answer)


def test_the_fork_server_with_a_list_of_ones_own(tmp_path: Path) -> None:
    """Not the last one of the list: what comes later is prepared before the first fork."""
    answer, _ = run(
        tmp_path,
        """
        server = multiprocessing.get_context("forkserver")
        server.set_forkserver_preload(["cpythonplus.prefork.multiprocessing.preload", "catalogue"])
        with server.Pool(2) as pool:
            answer = pool.map(catalogue.look, range(10), chunksize=1)
        """,
    )
    assert {each["immortal"] for each in answer} == {IMMORTAL}
    assert not any(each["gil"] or each["native_locks"] for each in answer)


def test_a_fork_server_that_runs_already_is_told(tmp_path: Path) -> None:
    answer, err = run(
        tmp_path,
        """
        server = multiprocessing.get_context("forkserver")
        server.set_forkserver_preload(["catalogue"])
        with server.Pool(1) as pool:
            answer = [pool.apply(catalogue.look)]
        prepared.install()
        with server.Pool(1) as pool:
            answer.append(pool.apply(catalogue.look))
        """,
    )
    assert err.count("the fork server is already running") == 1
    assert not any(each["immortal"] for each in answer)


def test_children_have_what_is_asked_for(tmp_path: Path) -> None:
    """With both start methods: metrics on a port, classes that stay mortal."""
    answer, err = run(
        tmp_path,
        """
        import socket, urllib.request
        answer = []
        for method in ("fork", "forkserver"):
            held = socket.socket()  # it does not listen: nobody else is given the port
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.bind(("127.0.0.1", 0))
            port = held.getsockname()[1]
            prepared.install(
                metrics=str(port), keep_mortal="catalogue:is_mortal", warm_up="catalogue:warm"
            )
            context = multiprocessing.get_context(method)
            with context.Pool(2) as pool:
                found = pool.apply(catalogue.look)
                address = f"http://127.0.0.1:{port}/metrics"
                text = pool.apply(catalogue.fetch, [address])
                answer.append([found["warm"], found["kept"], "cpythonplus_workers_ready " in text])
            prepared.uninstall()
        assert not [name for name in os.environ if name.startswith("CPYTHONPLUS_PREFORK")]
        """,
    )
    assert answer == [[True, True, True]] * 2, err


def test_what_cannot_be_had_is_refused(tmp_path: Path) -> None:
    answer, _ = run(
        tmp_path,
        """
        answer = []
        for each in ({"max_private_memory": "1G"}, {"fast_exit": False}, {"gil": "perhaps"}):
            try:
                prepared.install(**each)
            except ValueError as error:
                answer.append(str(error))
        """,
    )
    assert [each.partition(":")[0] for each in answer] == [
        "max_private_memory is not available with multiprocessing",
        "fast_exit is not available with multiprocessing",
        "gil",
    ]


def test_an_unknown_fork_server_is_told(tmp_path: Path) -> None:
    answer, err = run(
        tmp_path,
        """
        from multiprocessing import forkserver
        del forkserver._forkserver._preload_modules
        prepared.install()
        fork = multiprocessing.get_context("fork")
        with fork.Pool(1) as pool:
            answer = [pool.apply(catalogue.look)]
        """,
    )
    assert answer[0]["immortal"] is IMMORTAL
    assert err.count("set_forkserver_preload") == 1


def test_other_forks_are_left_alone(tmp_path: Path) -> None:
    answer, err = run(
        tmp_path,
        """
        prepared.install()
        pid = os.fork()
        if pid == 0:
            os._exit(sys.getrefcount(catalogue.ITEMS[0]) > 1 << 29)
        answer = os.waitpid(pid, 0)[1]
        """,
    )
    assert answer == 0
    assert "prepared: " not in err


def test_a_warm_up_that_fails_is_told_and_the_pool_works(tmp_path: Path) -> None:
    answer, err = run(
        tmp_path,
        """
        prepared.install(warm_up=lambda: 1 / 0)
        fork = multiprocessing.get_context("fork")
        with fork.Pool(1) as pool:
            answer = [pool.apply(catalogue.look)]
        """,
    )
    assert answer[0]["immortal"] is IMMORTAL
    assert err.count("the warm-up <lambda> raised ZeroDivisionError") == 1
    assert "Traceback" not in err
