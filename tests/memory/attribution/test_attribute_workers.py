"""Celery's tasks and dask's, executed by their workers."""

import json
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests import servers
from tests.prefork import services
from tests.support import SANITIZED, run_child

pytestmark = [
    pytest.mark.slow,
    pytest.mark.needs_gil,
    pytest.mark.any_version,
    pytest.mark.skipif(SANITIZED, reason="malloc is the sanitizer's"),
]

SHOP = """
    import os
    from celery import Celery
    from cpythonplus import memory

    KEPT, TABLE = [], {}
    app = Celery("shop", broker=os.environ.get("URL", "memory://"), backend=os.environ.get("URL"))
    app.conf.update(broker_connection_retry_on_startup=True, worker_hijack_root_logger=False)
    memory.attribute_celery(app)
    from cpythonplus.memory._attribution import measuring
    from cpythonplus.memory._attribution.recording import Recorder

    measuring._TOO_LONG_NS = 1 << 60
    Recorder._later = lambda recorder: None  # each call is measured

    @app.task
    def leaks(number):
        KEPT.append(f"{number:>2000}")

    @app.task
    def works(number):
        return len([str(part) for part in range(500)])

    @app.task
    def warms(number):
        if not TABLE:
            TABLE.update((key, f"{key:>100}") for key in range(5_000))

    @app.task
    def fails(number):
        raise KeyError(number)

    @app.task
    def attributed():
        return os.getpid(), memory.attributed().as_json()
"""


def celery(folder: Path) -> dict[str, str]:
    path = services.packages("celery", needs="celery")
    (folder / "shop.py").write_text(dedent(SHOP))
    return services.python_path(str(folder), *path)


@pytest.mark.parametrize("pool", ["prefork", "solo"])
def test_a_worker_of_celery(pool: str, tmp_path: Path) -> None:
    """Each child of a prefork pool has its own."""
    environment = celery(tmp_path)
    with servers.redis(tmp_path) as store:
        env = {**environment, "URL": store.url}
        command = [sys.executable, "-m", "celery", "-A", "shop", "worker", "-l", "INFO"]
        command += ["-c", "2", "-P", pool]
        with servers.running(command, folder=tmp_path, env=env) as server:
            server.says("ready.")
            shop = services.Client(server, tmp_path, env, "import json, shop")
            answers = shop.ask("""
                for _ in range(8):
                    shop.attributed.delay().get(timeout=60)  # frees what importing has left
                shop.fails.delay(1)
                sent = [
                    task.delay(number)
                    for number in range(500) for task in (shop.leaks, shop.works, shop.warms)
                ]
                for each in sent:
                    each.get(timeout=60)
                asked = [shop.attributed.delay() for _ in range(20)]
                answer = [each.get(timeout=60) for each in asked]
            """)
            by_process = dict(answers)
            assert (server.process.pid in by_process) == (pool == "solo")
            assert 1 <= len(by_process) <= 2
            fails = 0
            for report in by_process.values():
                rows = {row["name"]: row for row in report["rows"]}
                assert [n for n, row in rows.items() if row["finding"] == "grows"] == [
                    "shop.leaks"
                ], report
                assert 1_500 < rows["shop.leaks"]["bytes_per_call"] < 4_000
                fails += rows["shop.fails"]["calls"] if "shop.fails" in rows else 0
            assert fails == 1
            shop.ends()


DASK = """
import asyncio
import builtins
import json
from distributed import Client, LocalCluster
from cpythonplus import memory


def leaks(number):
    builtins.KEPT = getattr(builtins, "KEPT", [])
    builtins.KEPT.append(bytes(100_000))
    return number


def returns(number):
    return bytearray(1_000_000)


def configured():
    from cpythonplus.memory._attribution import measuring
    from cpythonplus.memory._attribution.recording import Recorder

    measuring._TOO_LONG_NS = 1 << 60
    Recorder._later = lambda recorder: None  # each call is measured
    memory.attribute.configure()


if __name__ == "__main__":
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster, Client(cluster) as client:
        client.run(configured)
        memory.attribute_dask(client)
        kept = []
        for turn in range(100):
            if turn == 20:
                client.run(memory.attributed)  # frees what importing has left
            kept.append(client.submit(returns, turn))
            client.submit(leaks, turn).result()
            kept[-1].result()
        (found,) = client.run(memory.attributed).values()
        print(json.dumps(found.as_json()))
"""


def test_a_worker_of_dask(tmp_path: Path) -> None:
    """Results that it keeps are no leak: it knows of them."""
    said = run_child(DASK, timeout=120)
    report = json.loads(said.out.splitlines()[-1])
    rows = {row["name"]: row for row in report["rows"]}
    assert rows.keys() == {"leaks", "returns"}
    assert rows["leaks"]["finding"] == "grows", report
    # A megabyte each, which dask knows but for what malloc adds to it.
    assert rows["returns"]["bytes_per_call"] < 20_000, report
    assert 90_000 < rows["leaks"]["bytes_per_call"] < 150_000, report
