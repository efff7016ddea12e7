"""RQ's worker, really started, with a Redis of its own."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

import pytest

from tests import servers
from tests.prefork import services

JOBS = """
    import os, sys, threading
    from cpythonplus import gil, threads

    CATALOGUE = [{"number": n} for n in range(50_000)]

    def warm():
        CATALOGUE.append({"number": "warm"})

    def look(number):
        return {
            "number": number,
            "pid": os.getpid(),
            "parent": os.getppid(),
            "immortal": sys.getrefcount(CATALOGUE[0]) > 1 << 29,
            "gil": gil.active(),
            "native_locks": isinstance(threading.Lock(), threads.Lock),
            "warm": CATALOGUE[-1]["number"],
        }

    def fail():
        raise LookupError("no such item")

    def die():
        os._exit(7)
"""

ASK = """
    import json, os, sys, time, jobs
    import redis, rq

    connection = redis.Redis.from_url(os.environ["URL"])
    queue = rq.Queue(connection=connection)

    def ended(job):
        end = time.monotonic() + 60
        while job.get_status(refresh=True) not in ("finished", "failed"):
            assert time.monotonic() < end, job.get_status()
            time.sleep(0.02)
        return job.return_value() if job.get_status() == "finished" else job.exc_info
"""


@contextmanager
def worker(
    folder: Path, *options: str, name: str = "cpythonplus.prefork.rq.Worker", **settings: str
) -> Iterator[services.Client]:
    path = services.packages("rq", needs="rq")
    (folder / "jobs.py").write_text(dedent(JOBS))
    with servers.redis(folder) as store:
        env = {**services.python_path(str(folder), *path), "URL": store.url, **settings}
        program = "import sys; from rq.cli import main; sys.exit(main())"
        command = [sys.executable, "-c", program, "worker", "--url", store.url]
        with servers.running(
            [*command, "--worker-class", name, *options], folder=folder, env=env
        ) as server:
            server.says("Listening on default")
            yield services.Client(server, folder, env, ASK)


@pytest.mark.needs_gil
@pytest.mark.any_version
def test_work_horses_share_a_prepared_heap(tmp_path: Path) -> None:
    with worker(tmp_path, CPYTHONPLUS_PREFORK_WARM_UP="jobs, jobs:warm") as queue:
        answers = queue.ask("answer = [ended(queue.enqueue(jobs.look, n)) for n in range(3)]")
        assert [answer["number"] for answer in answers] == [0, 1, 2]
        assert len({answer["pid"] for answer in answers}) == 3
        assert {answer["parent"] for answer in answers} == {queue.server.process.pid}
        assert {answer["immortal"] for answer in answers} == {sys.version_info >= (3, 12)}
        assert all(answer["gil"] and answer["native_locks"] for answer in answers)
        assert {answer["warm"] for answer in answers} == {"warm"}
        # Jobs that fail do so as ever.
        why, how = queue.ask("""
            answer = [ended(queue.enqueue(jobs.fail)), ended(queue.enqueue(jobs.die))]
        """)
        assert "LookupError: no such item" in why
        assert "terminated unexpectedly" in how
        assert queue.ask("answer = ended(queue.enqueue(jobs.look, 9))")["number"] == 9
        queue.ends()


@pytest.mark.needs_gil
@pytest.mark.slow
@pytest.mark.any_version
def test_a_subclass_has_its_own_warm_up(tmp_path: Path) -> None:
    (tmp_path / "workers.py").write_text(
        dedent("""
            import jobs
            import cpythonplus.prefork.rq

            class Worker(cpythonplus.prefork.rq.Worker):
                warm_up = staticmethod(jobs.warm)
        """)
    )
    off = {"CPYTHONPLUS_PREFORK_GIL": "off", "CPYTHONPLUS_PREFORK_THREADS": "off"}
    with worker(tmp_path, name="workers.Worker", **off) as queue:
        answer = queue.ask("answer = ended(queue.enqueue(jobs.look, 1))")
        assert answer["warm"] == "warm"
        assert answer["immortal"] == (sys.version_info >= (3, 12))
        assert not answer["gil"]
        assert not answer["native_locks"]
        queue.ends()


@pytest.mark.slow
@pytest.mark.any_version
def test_a_warm_up_that_fails_is_one_line_and_work_goes_on(tmp_path: Path) -> None:
    with worker(tmp_path, CPYTHONPLUS_PREFORK_WARM_UP="jobs:missing") as queue:
        assert queue.ask("answer = ended(queue.enqueue(jobs.look, 1))")["number"] == 1
        text = queue.server.text()
        assert text.count("the warm-up jobs:missing cannot be imported: AttributeError") == 1
        assert "Traceback" not in text
        queue.ends()
