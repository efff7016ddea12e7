"""gunicorn with our hooks: workers that are replaced without a dropped request, and counted."""

import os
import re
import signal
from pathlib import Path

import pytest

from tests.prefork.serving import ASGI_APP, Clients, Server, metric, running, until
from tests.support import run_child

SOON = "from cpythonplus.prefork.gunicorn_service import SERVICE\nSERVICE.min_age_s = 0.0\n"
"""A configuration file by which workers may be replaced as soon as they have served something."""

WORKERS = ("--workers", "2", "--metrics", "/metrics")


def gone(server: Server, pid: int) -> bool:
    return pid not in server.workers()


def ended_well(server: Server) -> None:
    """The server stops when asked to, with status 0, and leaves nothing behind."""
    assert server.stop() == 0, server.output()
    assert server.nothing_left()
    assert "Traceback" not in server.output()


# ---- replacing workers --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", [("sync", False), ("gthread", False), ("gthread", True)], ids=["sync", "new", "kept"]
)
def test_max_requests_drops_no_request(tmp_path: Path, kind: tuple[str, bool]) -> None:
    worker_class, keep_alive = kind
    words = ("--worker-class", worker_class, "--max-requests", "20", "--keep-alive", "30")
    with running(tmp_path, *WORKERS, *words) as server:
        with Clients(server, keep_alive=keep_alive) as clients:
            until(lambda: len(clients.pids) >= 6 or clients.failures, "six workers")
        assert clients.failures == []
        assert not keep_alive or clients.closed >= 4
        replaced = server.metric("worker_restarts_total", reason="max_requests")
        assert replaced >= 4
        assert server.metric("worker_requests_total") >= clients.served * 0.9
        ended_well(server)


def test_a_leaving_worker_answers_on_idle_connections_and_is_replaced_meanwhile(
    tmp_path: Path,
) -> None:
    words = ("--worker-class", "gthread", "--threads", "4", "--max-requests", "5")
    with running(tmp_path, *words, "--keep-alive", "60", "--metrics", "/metrics") as server:
        idle = server.connection()
        idle.request("GET", "/")
        first = int(idle.getresponse().read())
        until(lambda: int(server.get()) != first, "the replacement")
        assert first in server.workers(), "it left while a connection was open"
        idle.request("GET", "/")
        response = idle.getresponse()
        assert int(response.read()) == first
        assert response.getheader("Connection") == "close"
        until(lambda: gone(server, first), "its end")
        ended_well(server)


def test_a_worker_with_too_much_private_memory_is_replaced(tmp_path: Path) -> None:
    limit = "40M"
    words = ("--worker-class", "gthread", "--threads", "2", "--max-private-memory", limit)
    with running(tmp_path, *WORKERS, *words, "-c", "soon.py", files={"soon.py": SOON}) as server:
        with Clients(server, path="/grow", keep_alive=True) as clients:
            until(
                lambda: (
                    server.metric("worker_restarts_total", reason="private_memory") >= 2
                    or clients.failures
                ),
                "two replacements",
            )
        assert clients.failures == []
        assert len(clients.pids) >= 3
        assert "private memory" in server.output()
        ended_well(server)


def test_a_killed_worker_is_replaced_and_counted(tmp_path: Path) -> None:
    with running(tmp_path, *WORKERS) as server:
        server.ready(2)
        for victim in server.workers():
            os.kill(victim, signal.SIGKILL)
        until(lambda: server.workers() and server.metric("workers_ready") == 2, "new workers")

        def killed() -> float:
            # Whether the kernel killed something else just then cannot be excluded.
            reasons = ("killed", "out_of_memory")
            return sum(server.metric("worker_restarts_total", reason=r) for r in reasons)

        until(lambda: killed() == 2, "two counted kills")
        ended_well(server)


def test_hup_replaces_the_workers(tmp_path: Path) -> None:
    with running(tmp_path, *WORKERS) as server:
        server.ready(2)
        before = server.workers()
        server.signal(signal.SIGHUP)
        until(lambda: not before & server.workers(), "new workers")
        server.ready(2)
        assert server.metric("worker_restarts_total", reason="reload") == 2
        assert server.output().count("prepared:") == 2
        ended_well(server)


def test_a_silent_worker_is_counted_as_timed_out(tmp_path: Path) -> None:
    with running(tmp_path, *WORKERS, "--timeout", "2") as server:
        server.ready(2)
        victim = min(server.workers())
        os.kill(victim, signal.SIGSTOP)
        until(lambda: "WORKER TIMEOUT" in server.output(), "the time-out")
        until(lambda: gone(server, victim), "its end")
        until(lambda: server.metric("worker_restarts_total", reason="timeout") == 1, "the count")
        ended_well(server)


# ---- the configuration file ---------------------------------------------------------------------

CONFIGURATION = """
    import os
    def on_starting(server):
        print("theirs: on_starting", flush=True)
    from cpythonplus.prefork.gunicorn import *
    configure(metrics="/metrics", warm_up=["/", "app:warm"])
    def pre_fork(server, worker):
        print("theirs: pre_fork", flush=True)
    def post_fork(server, worker):
        print("theirs: post_fork", flush=True)
    def post_worker_init(worker):
        print("theirs: post_worker_init", flush=True)
    def worker_exit(server, worker):
        import atexit
        atexit.register(print, "theirs: atexit", flush=True)
        raise KeyError("in worker_exit")
    def child_exit(server, worker):
        print("theirs: child_exit", flush=True)
    def on_reload(server):
        print("theirs: on_reload", flush=True)
"""


@pytest.mark.parametrize("command", [("gunicorn",), ("cpythonplus", "serve")], ids="-".join)
def test_one_line_in_a_configuration_file(tmp_path: Path, command: tuple[str, ...]) -> None:
    files = {"conf.py": CONFIGURATION}
    words = ("-c", "conf.py", "--worker-class", "gthread")
    with running(tmp_path, *words, command=command, files=files) as server:
        server.ready(1)
        first = server.workers()
        server.signal(signal.SIGHUP)
        until(lambda: not first & server.workers(), "a new worker")
        server.ready(1)
        assert server.metric("worker_restarts_total", reason="reload") == 1
        assert server.stop() == 0
        assert server.nothing_left()
    output = server.output()
    assert f"warmed in {server.process.pid}" in output
    assert "warm-up of /: the application answered 200" in output
    assert "prepared:" in output
    for hook in ("pre_fork", "post_fork", "post_worker_init", "child_exit", "atexit"):
        assert output.count(f"theirs: {hook}\n") == 2, f"{hook}\n{output}"
    assert output.count("theirs: on_starting\n") == 1
    assert output.count("theirs: on_reload\n") == 1
    assert output.count("Exception during worker exit") == 2


def test_settings_are_names_in_a_configuration_file(tmp_path: Path) -> None:
    text = 'metrics = "/metrics"\nwarm_up = ["/missing"]\nno_immortal = True\n'
    with running(tmp_path, "-c", "conf.py", files={"conf.py": text}) as server:
        server.ready(1)
        output = server.output()
        assert "[WARNING] warm-up of /missing: the application answered 404" in output
        assert re.search(r"prepared: nothing made immortal", output)
        ended_well(server)


def test_metrics_at_a_port_of_their_own(tmp_path: Path) -> None:
    # Port 0 is any free one, which the log does not name: found among the master's sockets.
    with running(tmp_path, "--metrics", "127.0.0.1:0", "--workers", "2") as server:
        other = until(lambda: listening_ports(server) - {server.port}, "the port").pop()
        text = Server(server.process, other, server.log).get("/metrics")
        assert metric(text, "workers") >= 1
        assert not server.get("/metrics").startswith("#"), "the application has the path"
        ended_well(server)


def listening_ports(server: Server) -> set[int]:
    """The ports of loopback sockets in state LISTEN that the server's master has open."""
    inodes = set()
    for entry in Path(f"/proc/{server.process.pid}/fd").iterdir():
        inodes.update(re.findall(r"^socket:\[(\d+)\]$", str(entry.readlink())))
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and row[9] in inodes}


# ---- endings ------------------------------------------------------------------------------------


def test_the_status_of_a_worker_that_cannot_start_is_gunicorns(tmp_path: Path) -> None:
    text = SOON + (
        "def post_worker_init(worker):\n"
        "    if worker.age > 1:\n"
        "        raise RuntimeError('on purpose')\n"
    )
    with running(tmp_path, "-c", "conf.py", files={"conf.py": text}) as server:
        server.signal(signal.SIGTTIN)
        boot_error = 3
        assert server.process.wait(60) == boot_error
        assert server.nothing_left()


@pytest.mark.parametrize("switch", ["--no-fast-exit", "--no-immortal", "--no-gil", "--no-threads"])
@pytest.mark.slow
def test_each_part_can_be_left_out(tmp_path: Path, switch: str) -> None:
    with running(tmp_path, *WORKERS, "--worker-class", "gthread", switch) as server:
        server.ready(2)
        ended_well(server)


# ---- ASGI ---------------------------------------------------------------------------------------


def test_uvicorns_worker(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn_worker", reason="uvicorn-worker is not installed")
    words = ("--worker-class", "uvicorn_worker.UvicornWorker", "--warm-up", "/")
    files = {"soon.py": SOON}
    with running(tmp_path, *WORKERS, *words, "-c", "soon.py", app=ASGI_APP, files=files) as server:
        server.ready(2)
        assert "warm-up of /: the application answered 200" in server.output()
        until(lambda: server.get() and server.metric("worker_requests_total") >= 1, "counts")
        victim = min(server.workers())
        os.kill(victim, signal.SIGTERM)
        until(lambda: gone(server, victim), "its end")
        until(lambda: server.metric("worker_restarts_total", reason="exit") == 1, "the count")
        ended_well(server)


def test_gunicorns_own_asgi_worker(tmp_path: Path) -> None:
    pytest.importorskip("gunicorn.workers.gasgi", reason="this gunicorn has no ASGI worker")
    words = ("--worker-class", "asgi", "--warm-up", "/")
    with running(tmp_path, *WORKERS, *words, app=ASGI_APP) as server:
        server.ready(2)
        assert "warm-up of /: the application answered 200" in server.output()
        ended_well(server)


def test_requests_are_rehearsed() -> None:
    run_child("""
        from gunicorn.config import Config
        from cpythonplus.prefork.gunicorn_rehearsal import rehearse_requests
        config = Config()
        config.set("pre_request", lambda worker, request: 1 / 0)
        assert rehearse_requests(config)
    """)
