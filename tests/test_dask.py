"""A dask cluster whose workers have the plugin: real processes, nannies and heartbeats."""

from importlib.util import find_spec

import pytest

from tests.support import FREE_THREADED, run_child

# Not imported in this process: dask changes how every exception is pickled.
pytestmark = [
    pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not installed"),
    pytest.mark.skipif(FREE_THREADED, reason="there is no GIL to schedule"),
]

TIMEOUT_S = 240.0
# Nothing listens beyond this machine, and there is no dashboard.
PROGRAM = """
import ctypes, threading, time
from dask.distributed import Client, LocalCluster
import cpythonplus.dask
from cpythonplus import gil, memory


def state():
    from cpythonplus import gil, threads
    return gil.active(), isinstance(threading.Lock(), threads.Lock)


def kept():
    # The loop of the worker wants the GIL meanwhile.
    ctypes.PyDLL(None).usleep(400_000)


def leaks(number):
    import builtins
    builtins.__dict__.setdefault("kept_by_the_test", []).append(bytearray(100_000))
    return number


def shown(client):
    [worker] = client.scheduler_info()["workers"].values()
    return worker["metrics"].get("cpythonplus", {{}})


def until(condition):
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


if __name__ == "__main__":
    cluster = LocalCluster(
        n_workers=1, threads_per_worker=2, dashboard_address=None, {more}
    )
    with cluster, Client(cluster) as client:
{body}
"""


def run(body: str, more: str = "", **env: str) -> str:
    lines = "\n".join(f"        {line}" for line in body.strip().splitlines())
    return run_child(PROGRAM.format(more=more, body=lines), timeout=TIMEOUT_S, env=env).err


BODY = """
[(active, locks)] = client.run(state).values()
assert active
assert locks
until(lambda: "stalls" in shown(client))
# On a busy machine the loop may come too late to wait for one of them.
before = shown(client)["stalls"]
until(lambda: client.submit(kept, pure=False).result() or shown(client)["stalls"] > before)
assert shown(client)["stall_seconds"] >= 0.1
assert shown(client)["gil_waits"] > 0
"""


def test_the_plugin() -> None:
    log = run("client.register_plugin(cpythonplus.dask.Plugin())" + BODY)
    assert "C code kept the GIL for " in log
    assert " in kept" in log


def test_the_preload() -> None:
    run(BODY, 'preload=["cpythonplus.dask"]')


def test_its_options() -> None:
    run(
        """
plugin = cpythonplus.dask.Plugin(job_share="25%", stalls_ms=0, trim=False, growth=True)
client.register_plugin(plugin)
client.gather(client.map(leaks, range(60), pure=False))
[found] = client.run(memory.attributed).values()
assert "leaks" in [row.name for row in found.rows], found
client.unregister_worker_plugin("cpythonplus")
until(lambda: not shown(client))
assert [each for each, _ in client.run(state).values()] == [True]
try:
    cpythonplus.dask.Plugin(job_share="95%")
except ValueError as error:
    assert "expected 0% to 90%, got '95%'" in str(error), error
else:
    raise AssertionError("it was taken")
        """
    )


def test_it_is_switched_off() -> None:
    run(
        """
[(active, locks)] = client.run(state).values()
assert not active
assert not locks
        """,
        'preload=["cpythonplus.dask"]',
        CPYTHONPLUS_DISABLE="1",
    )
