"""celery's prefork pool, really started, with Redis as its broker."""

import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

import pytest

from tests import servers
from tests.prefork import services
from tests.prefork.serving import metric

APP = """
    import ctypes, os, resource, sys, threading, time
    from celery import Celery
    import cpythonplus.prefork.celery
    from cpythonplus import gil, threads
    from cpythonplus.prefork._engine import Engine

    Engine.min_age_s = Engine.interval_s = 0.01
    CATALOGUE = [{"number": n} for n in range(50_000)]
    KEPT = []
    OTHERS = []

    def wake_often():
        while True:
            time.sleep(0.001)

    def warm():
        CATALOGUE.append({"number": "warm"})

    app = Celery("shop", broker=os.environ["URL"], backend=os.environ["URL"])
    app.conf.update(
        broker_connection_retry_on_startup=True, prefork_warm_up="shop:warm", **SETTINGS
    )

    @app.task
    def look(number):
        return {
            "number": number,
            "pid": os.getpid(),
            "immortal": sys.getrefcount(CATALOGUE[0]) > 1 << 29,
            "gil": gil.active(),
            "native_locks": isinstance(threading.Lock(), threads.Lock),
            "resident_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
            "warm": CATALOGUE[-1]["number"],
        }

    @app.task
    def keep_the_gil():
        if not OTHERS:
            OTHERS.append(threading.Thread(target=wake_often, daemon=True))
            OTHERS[0].start()
        ctypes.PyDLL(None).usleep(400_000)

    @app.task
    def grow(megabytes):
        KEPT.append(bytearray(os.urandom(1024) * 1024 * megabytes))
        return os.getpid()
"""


@contextmanager
def worker(folder: Path, *options: str, **settings: object) -> Iterator[services.Client]:
    path = services.packages("celery", needs="celery")
    text = dedent(APP).replace("**SETTINGS", f"**{settings!r}")
    (folder / "shop.py").write_text(text)
    with servers.redis(folder) as store:
        env = {**services.python_path(str(folder), *path), "URL": store.url}
        command = [sys.executable, "-m", "celery", "-A", "shop", "worker", "-l", "INFO", *options]
        with servers.running(command, folder=folder, env=env) as server:
            server.says("ready.")
            yield services.Client(server, folder, env, "import json, shop")


@pytest.mark.needs_gil
@pytest.mark.any_version
def test_children_share_a_prepared_heap(tmp_path: Path) -> None:
    with worker(tmp_path, "-c", "2") as shop:
        answers = shop.ask(
            "answer = [shop.look.delay(n) for n in range(40)]\n"
            "answer = [each.get(timeout=60) for each in answer]"
        )
        assert [answer["number"] for answer in answers] == list(range(40))
        assert {answer["pid"] for answer in answers} <= shop.server.processes()
        assert shop.server.process.pid not in {answer["pid"] for answer in answers}
        assert {answer["immortal"] for answer in answers} == {sys.version_info >= (3, 12)}
        assert all(answer["gil"] and answer["native_locks"] for answer in answers)
        assert {answer["warm"] for answer in answers} == {"warm"}
        # Once, although two children were started.
        assert shop.server.text().count("prepared: ") == 1
        shop.ends()


@pytest.mark.needs_gil
@pytest.mark.slow
@pytest.mark.any_version
def test_a_child_that_grew_is_replaced_and_no_task_is_lost(tmp_path: Path) -> None:
    with worker(tmp_path, "-c", "2", prefork_max_private_memory="150M") as shop:
        before = shop.server.processes()
        grown, answers = shop.ask("""
            import time
            grown = shop.grow.delay(200).get(timeout=60)
            answers, end = [], time.monotonic() + 60
            while time.monotonic() < end:
                sent = [shop.look.delay(n) for n in range(20)]
                answers += [each.get(timeout=60) for each in sent]
                if len({each["pid"] for each in answers[-20:]} - {grown}) == 2:
                    break
            answer = [grown, answers]
        """)
        assert grown in before
        assert [answer["number"] for answer in answers] == list(range(20)) * (len(answers) // 20)
        shop.server.until("its end", lambda: grown not in shop.server.processes())
        new = {answer["pid"] for answer in answers} - before
        assert len(new) == 1  # the other child has stayed
        assert all(answer["immortal"] for answer in answers if answer["pid"] in new) or (
            sys.version_info < (3, 12)
        )
        assert f"worker {grown} has more than 150 MiB of private memory" in shop.server.text()
        shop.ends()


@pytest.mark.slow
@pytest.mark.any_version
def test_children_answer_for_metrics_and_count_their_tasks(tmp_path: Path) -> None:
    port = servers.free_port()
    settings = {"prefork_metrics": f"127.0.0.1:{port}", "prefork_fast_exit": False}
    with worker(tmp_path, "-c", "2", **settings) as shop:
        shop.ask("answer = [shop.look.delay(n).get(timeout=60) for n in range(7)]")

        def read() -> str:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
                text: str = answer.read().decode()
            return text

        shop.server.until("both are ready", lambda: metric(read(), "workers_ready") == 2)
        # They are counted after the result is there.
        shop.server.until("all tasks", lambda: metric(read(), "worker_requests_total") == 7)
        assert metric(read(), "master_prepares_total") == 1
        assert shop.server.text().count("fast_exit is not available with celery") == 1
        shop.ends()


@pytest.mark.needs_gil
@pytest.mark.any_version
def test_the_use_of_each_task(tmp_path: Path) -> None:
    port = servers.free_port()
    with worker(tmp_path, "-c", "1", prefork_metrics=f"127.0.0.1:{port}") as shop:
        shop.ask("""
            sent = [task.delay(*args) for task, args in 3 * [(shop.keep_the_gil, ())]
                    + 4 * [(shop.look, (1,))]]
            answer = [each.get(timeout=60) for each in sent]
        """)

        def read(name: str, task: str) -> float:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
                text: str = answer.read().decode()
            if f'_runs_total{{task="{task}"}}' not in text:
                return 0
            return metric(text, f"task_{name}_total", task=task)

        # The last one is told although no further one comes.
        shop.server.until("all tasks", lambda: read("runs", "shop.look") == 4)
        keeps = "shop.keep_the_gil"
        assert read("runs", keeps) == 3
        assert read("gil_hold_seconds", keeps) >= 1.2
        assert read("cpu_seconds", keeps) < 0.3
        # On a busy machine the kernel stops a holder now and then: a stall more, but not three
        # where none is.
        assert read("stalls", keeps) >= 3
        assert read("stalls", "shop.look") < 3
        shop.ends()


@pytest.mark.slow
@pytest.mark.any_version
def test_resident_memory_does_not_count(tmp_path: Path) -> None:
    """What celery's own setting would count is far above the limit."""
    with worker(tmp_path, "-c", "1", prefork_max_private_memory="45M") as shop:
        answers = shop.ask(
            "answer = [shop.look.delay(n).get(timeout=60) for n in range(30)]",
        )
        assert len({answer["pid"] for answer in answers}) == 1
        assert min(answer["resident_kib"] for answer in answers) > 45 * 1024
        shop.ends()


@pytest.mark.slow
@pytest.mark.any_version
@pytest.mark.parametrize("stock", [False, True], ids=["private", "stock"])
def test_celerys_own_limit_counts_private_memory(tmp_path: Path, *, stock: bool) -> None:
    """Every child is above it from the start, if what children share is counted."""
    settings = {"worker_max_memory_per_child": 45 * 1024}
    if stock:
        settings["prefork_max_private_memory"] = 0
    with worker(tmp_path, "-c", "1", **settings) as shop:
        answers = shop.ask("answer = [shop.look.delay(n).get(timeout=60) for n in range(10)]")
        assert min(answer["resident_kib"] for answer in answers) > 45 * 1024
        assert len({answer["pid"] for answer in answers}) == (10 if stock else 1)
        line = "worker_max_memory_per_child (45 MiB) counts private memory"
        assert shop.server.text().count(line) == (not stock)
        if not stock:
            grown, after = shop.ask("""
                import time
                grown, after = shop.grow.delay(200).get(timeout=60), 0
                end = time.monotonic() + 60
                while after in {0, grown} and time.monotonic() < end:
                    after = shop.look.delay(1).get(timeout=60)["pid"]
                answer = [grown, after]
            """)
            assert grown == answers[0]["pid"] != after
        shop.ends()


@pytest.mark.slow
@pytest.mark.any_version
def test_a_wrong_setting_is_one_line_and_work_goes_on(tmp_path: Path) -> None:
    settings = {
        "prefork_max_private_memory": "much",
        "prefork_gil": "off",
        "prefork_threads": False,
    }
    with worker(tmp_path, "-c", "1", **settings) as shop:
        answer = shop.ask("answer = shop.look.delay(1).get(timeout=60)")
        assert not answer["gil"]
        assert not answer["native_locks"]
        lines = [line for line in shop.server.text().splitlines() if "max_private_memory" in line]
        assert len(lines) == 1, lines
        assert "got 'much'" in lines[0]
        assert "Traceback" not in shop.server.text()
        shop.ends()


@pytest.mark.slow
@pytest.mark.any_version
def test_a_pool_that_cannot_fork_is_left_alone(tmp_path: Path) -> None:
    with worker(tmp_path, "--pool", "solo", prefork_metrics="0") as shop:
        answer = shop.ask("answer = shop.look.delay(1).get(timeout=60)")
        assert answer["pid"] == shop.server.process.pid
        assert not answer["gil"]
        assert "prepared: " not in shop.server.text()
        assert shop.server.text().count("no metrics: they are those of the prefork pool") == 1
        shop.ends()
