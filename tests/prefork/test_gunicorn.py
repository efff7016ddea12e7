"""gunicorn with our hooks: workers that are replaced without a dropped request, and counted."""

import contextlib
import os
import re
import signal
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.prefork.serving import APP, ASGI_APP, Clients, Server, metric, running, until
from tests.servers import free_port
from tests.support import run_child

SOON = "from cpythonplus.prefork._gunicorn.service import SERVICE\nSERVICE.min_age_s = 0.0\n"
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
    "kind",
    [
        ("sync", False),
        ("gthread", False),
        ("gthread", True),
        ("uvicorn_worker.UvicornWorker", True),
    ],
    ids=["sync", "new", "kept", "uvicorn"],
)
def test_max_requests_drops_no_request(tmp_path: Path, kind: tuple[str, bool]) -> None:
    worker_class, keep_alive = kind
    if worker_class.startswith("uvicorn"):
        pytest.importorskip("uvicorn_worker", reason="uvicorn-worker is not installed")
    words = ("--worker-class", worker_class, "--max-requests", "20", "--keep-alive", "30")
    app = APP if worker_class[0] in "sg" else ASGI_APP
    with running(tmp_path, *WORKERS, *words, app=app) as server:
        with Clients(server, keep_alive=keep_alive) as clients:
            until(lambda: len(clients.pids) >= 6 or clients.failures, "six workers")
        assert clients.failures == []
        assert not keep_alive or clients.closed >= 4
        # Counted when a worker is gone, which may be later than its successor's first answer.
        until(
            lambda: server.metric("worker_restarts_total", reason="max_requests") >= 4,
            "four replacements",
        )
        # uvicorn's workers tell their number once a second.
        served = clients.served * 0.9
        until(lambda: server.metric("worker_requests_total") >= served, "the count of requests")
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sync", "gthread", "uvicorn_worker.UvicornWorker"])
def test_an_old_worker_is_replaced_without_a_refused_request(tmp_path: Path, kind: str) -> None:
    is_asgi = kind.startswith("uvicorn")
    if is_asgi:
        pytest.importorskip("uvicorn_worker", reason="uvicorn-worker is not installed")
    limits = ("--max-worker-lifetime", "1", "--max-worker-lifetime-jitter", "0.5")
    words = (*WORKERS, "--worker-class", kind, *limits)
    with running(tmp_path, *words, app=ASGI_APP if is_asgi else APP) as server:
        with Clients(server, keep_alive=kind == "gthread") as clients:
            until(
                lambda: (
                    (
                        server.metric("worker_restarts_total", reason="lifetime") >= 3
                        and len(clients.pids) >= 4  # a worker may come and go without a client
                    )
                    or clients.failures
                ),
                "three replacements",
            )
        assert clients.failures == []
        assert "has lived for long enough and is recycled" in server.output()
        assert server.metric("worker_restarts_total", reason="exit") == 0
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
        until(lambda: server.metric("worker_restarts_total", reason="reload") == 2, "the count")
        assert server.output().count("prepared:") == 1
        ended_well(server)


@pytest.mark.slow
def test_a_silent_worker_is_counted_as_timed_out(tmp_path: Path) -> None:
    with running(tmp_path, *WORKERS, "--timeout", "2") as server:
        server.ready(2)
        victim = min(server.workers())
        os.kill(victim, signal.SIGSTOP)
        until(lambda: "WORKER TIMEOUT" in server.output(), "the time-out")
        until(lambda: gone(server, victim), "its end")
        until(lambda: server.metric("worker_restarts_total", reason="timeout") >= 1, "the count")
        ended_well(server)


def test_after_hup_no_replacement_is_missing_for_an_old_worker() -> None:
    run_child("""
        from types import SimpleNamespace
        from cpythonplus.prefork._board.channel import Channel
        from cpythonplus.prefork._gunicorn.service import Service
        service = Service()
        server = SimpleNamespace(num_workers=2, worker_age=2)
        server.WORKERS = {100 + age: SimpleNamespace(age=age) for age in (1, 2)}
        service.lines[1], worker = Channel.pair()
        worker.send("leaving")
        service.hear()
        assert service.leaving(server) == 1
        service.on_reload(server)
        server.WORKERS.update({100 + age: SimpleNamespace(age=age) for age in (3, 4)})
        assert service.leaving(server) == 0
    """)


IDLE = """
    import socket, time
    from collections import deque
    from concurrent.futures import Future
    from selectors import DefaultSelector
    from types import SimpleNamespace
    from gunicorn.workers import gthread
    from cpythonplus.prefork._gunicorn import workers as gunicorn_workers
    from cpythonplus.prefork._gunicorn.versions import require
    from cpythonplus.prefork._gunicorn.workers import STOP_LINGER_S

    def new_worker():
        worker = object.__new__(getattr(gunicorn_workers, require().worker))
        worker.alive = False
        worker.poller = DefaultSelector()
        worker.keepalived_conns, worker.pending_conns = deque(), deque()
        worker.nr_conns = 1
        return worker

    def back_from_the_pool(worker, sock):
        conn = gthread.TConn(SimpleNamespace(keepalive=1000), sock, None, None)
        buf = SimpleNamespace(getvalue=lambda: b"")
        conn.parser = SimpleNamespace(unreader=SimpleNamespace(buf=buf))
        future = Future()
        future.set_result(True)
        worker.finish_request(conn, future)
        return conn

    here, there = socket.socketpair()
"""


def modern_gthread() -> None:
    gthread = pytest.importorskip("gunicorn.workers.gthread", reason="gunicorn is not installed")
    if not hasattr(gthread, "PollableMethodQueue"):
        pytest.skip("this gunicorn's gthread worker is another one")


def test_a_leaving_worker_keeps_what_the_answer_promised() -> None:
    modern_gthread()
    run_child(f"""{IDLE}
    worker = new_worker()
    conn = back_from_the_pool(worker, here)
    assert list(worker.keepalived_conns) == [conn]
    assert conn.timeout - time.monotonic() > 500
    worker = new_worker()
    worker.told_to_stop = True
    assert back_from_the_pool(worker, there).timeout - time.monotonic() <= STOP_LINGER_S
    """)


def test_a_closed_connection_does_not_end_a_leaving_worker() -> None:
    modern_gthread()
    run_child(f"""{IDLE}
    worker = new_worker()
    closed = socket.socketpair()[0]
    make = gthread.TConn
    def tconn(*arguments):
        conn = make(*arguments)
        closed.close()
        return conn
    gthread.TConn = tconn
    back_from_the_pool(worker, closed)
    assert worker.nr_conns == 0 and not worker.keepalived_conns
    """)


def test_the_gthread_worker_of_a_gunicorn_without_pending_connections() -> None:
    modern_gthread()
    run_child(f"""{IDLE}
    worker = new_worker()
    for name in ("murder_pending", "on_pending_socket_readable"):
        if hasattr(gthread.ThreadWorker, name):  # gunicorn 25.2 on
            delattr(gthread.ThreadWorker, name)
    worker._turn(0)
    """)


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
        until(lambda: server.metric("worker_restarts_total", reason="reload") == 1, "the count")
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


def test_what_is_wrong_in_configure_is_told_there() -> None:
    pytest.importorskip("gunicorn", reason="gunicorn is not installed")
    env = {"CPYTHONPLUS_PREFORK_GIL": "off", "CPYTHONPLUS_PREFORK_FILL_POOLS": "perhaps"}
    code = """
        from cpythonplus.prefork.gunicorn import configure
        from cpythonplus.prefork._gunicorn.service import SERVICE
        wrong = ({"max_private_memory": -1}, {"max_private_memory": "3 apples"},
                 {"metrics": "here"}, {"warm_up": ["index html"]})
        for each in wrong:
            try:
                configure(**each)
            except ValueError:
                continue
            raise AssertionError(each)
        configure(max_private_memory=3e8)
        assert SERVICE.options.max_private_memory == 300_000_000
        assert not SERVICE.options.gil and SERVICE.options.fill_pools
    """
    err = run_child(code, env=env).err
    assert err.count("fill_pools: expected on or off, got 'perhaps'") == err.count("\n") == 1


def test_the_warm_up_is_not_deaf_and_its_threads_are_told_of(tmp_path: Path) -> None:
    text = """
        import signal, threading
        from cpythonplus.prefork.gunicorn import *
        def warm():
            print("blocked:", signal.pthread_sigmask(signal.SIG_BLOCK, []), flush=True)
            threading.Thread(target=threading.Event().wait, name="mine", daemon=True).start()
        configure(warm_up=[warm])
        def pre_fork(server, worker):
            print("blocked:", signal.pthread_sigmask(signal.SIG_BLOCK, []), flush=True)
    """
    with running(
        tmp_path, "-c", "conf.py", command=("gunicorn",), files={"conf.py": text}
    ) as server:
        assert server.output().count("blocked: set()") == 2
        warning = r"\[WARNING\] threads of the master: mine\. No worker will have them, .*post_fork"
        assert re.search(warning, server.output())
        ended_well(server)


def test_reload_beside_the_one_line_does_not_preload(tmp_path: Path) -> None:
    text = "from cpythonplus.prefork.gunicorn import *\n"
    words = ("-c", "conf.py", "--reload")
    with running(tmp_path, *words, command=("gunicorn",), files={"conf.py": text}) as server:
        assert "preload_app is off" in server.output()
        ended_well(server)


def test_preload_off_in_a_file_is_obeyed_and_hup_then_loads_new_code(tmp_path: Path) -> None:
    files = {"conf.py": "preload_app = False\nprefork_refork = True\n"}
    with running(tmp_path, "-c", "conf.py", files=files) as server:
        output = server.output()
        assert "serve: preload_app is off: the application is loaded in each worker" in output
        assert "no reforking: the application is loaded in each worker" in output
        assert "preload_app is on" not in output
        text = (tmp_path / "app.py").read_text().replace("str(os.getpid())", "'new code'")
        (tmp_path / "app.py").write_text(text)
        server.signal(signal.SIGHUP)
        until(lambda: server.get() == "new code", "new code")
        ended_well(server)


def test_one_line_lists_the_settings_that_are_not_gunicorns(tmp_path: Path) -> None:
    with running(tmp_path, "--threads", "2") as server:
        line = "other settings than gunicorn's: preload_app is on, "
        assert line in server.output()
        assert "worker_class gthread is a subclass" in server.output()
        ended_well(server)


def test_settings_are_names_in_a_configuration_file(tmp_path: Path) -> None:
    text = 'prefork_metrics = "/metrics"\nprefork_warm_up = "/missing"\nprefork_immortal = False\n'
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
        with contextlib.suppress(FileNotFoundError):  # it has been closed meanwhile
            inodes.update(re.findall(r"^socket:\[(\d+)\]$", str(entry.readlink())))
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and row[9] in inodes}


def test_a_port_of_the_metrics_is_chosen_by_hup(tmp_path: Path) -> None:
    with running(tmp_path, "-c", "conf.py", files={"conf.py": ""}) as server:
        first = server.workers()
        (tmp_path / "conf.py").write_text("prefork_metrics = '127.0.0.1:0'\n")
        server.signal(signal.SIGHUP)
        until(lambda: not first & server.workers() or server.process.poll(), "a new worker")
        other = until(lambda: listening_ports(server) - {server.port}, "the port").pop()
        text = Server(server.process, other, server.log).get("/metrics")
        assert metric(text, "workers") >= 1
        ended_well(server)


@pytest.mark.slow
def test_usr2_hands_the_port_of_the_metrics_on(tmp_path: Path) -> None:
    at, port = free_port(), free_port()
    with running(tmp_path, "--metrics", str(port), port=at) as server:
        old = server.process.pid
        before = server.workers()
        server.signal(signal.SIGUSR2)
        new = until(lambda: server.workers() - before, "the new master").pop()
        children = Path(f"/proc/{new}/task/{new}/children")
        until(lambda: children.exists() and children.read_text(), "its worker")
        assert server.stop() == 0
        text = until(lambda: shown(Server(server.process, port, server.log)), "its metrics")
        assert metric(text, "workers") == 1
        assert f'pid="{old}"' not in text
        os.kill(new, signal.SIGTERM)
        until(server.nothing_left, "the end of the new master")
        assert "cannot listen" not in server.output()


def shown(server: Server) -> str:
    with contextlib.suppress(OSError):
        return server.get("/metrics")
    return ""


def test_a_worker_of_another_user_says_what_memory_it_has() -> None:
    pytest.importorskip("gunicorn", reason="gunicorn is not installed")
    run_child("""
        import os
        from types import SimpleNamespace
        from cpythonplus.prefork._board.board import Board
        from cpythonplus.prefork._gunicorn.service import Service
        from cpythonplus.prefork._options import Options
        for user, told in ((os.geteuid(), False), (os.geteuid() + 1, True)):
            service = Service()
            service.options = Options(metrics="/metrics")
            service._user = user
            service.board = Board(1)
            service._slot = service.board.claim(os.getpid())
            worker = SimpleNamespace(wsgi=print, run=print, notify=lambda: None, alive=True, nr=0)
            worker.ppid = os.getppid()
            service.post_worker_init(worker)
            worker.notify()
            assert (service.board.snapshot().workers[0].private_bytes > 0) == told
    """)


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


@pytest.mark.slow
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


@pytest.mark.slow
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
        from cpythonplus.prefork._gunicorn.service import rehearse_requests
        config = Config()
        config.set("pre_request", lambda worker, request: 1 / 0)
        assert rehearse_requests(config)
    """)


# ---- the first moments of a worker --------------------------------------------------------------

SIDE_CAR = """
    import os, signal, subprocess, sys, threading
    from cpythonplus.prefork.gunicorn import *
    configure(metrics="/metrics")
    def post_fork(server, worker):
        server.car = subprocess.Popen([sys.executable, "-c", "while True: input()"],
                                      stdin=subprocess.PIPE)
        blocked = []
        thread = threading.Thread(
            target=lambda: blocked.append(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
        thread.start()
        thread.join()
        print("blocked:", blocked, signal.pthread_sigmask(signal.SIG_BLOCK, []), flush=True)
    def post_worker_init(worker):
        print("blocked:", [signal.pthread_sigmask(signal.SIG_BLOCK, [])], flush=True)
    def worker_exit(server, worker):
        server.car.terminate()
        print("side-car:", server.car.wait(60), flush=True)
"""


def test_what_post_fork_starts_hears_signals(tmp_path: Path) -> None:
    files = {"conf.py": SIDE_CAR}
    with running(tmp_path, "-c", "conf.py", command=("gunicorn",), files=files) as server:
        server.ready(1)
        ended_well(server)
        assert server.output().count("blocked: [set()] set()\n") == 1
        assert server.output().count("blocked: [set()]\n") == 1
        assert f"side-car: {-signal.SIGTERM}\n" in server.output()


@pytest.mark.parametrize("when", ["in post_fork", "before it"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT], ids=lambda n: n.name)
def test_a_signal_that_comes_before_a_worker_has_handlers(
    tmp_path: Path, when: str, number: signal.Signals
) -> None:
    # Sent by the worker itself at the two moments. Its second incarnation stays.
    text = f"""
        import os, signal
        from cpythonplus.prefork.gunicorn import *
        from cpythonplus.prefork._fork.early_signals import EarlySignals
        configure(metrics="/metrics")
        keep = EarlySignals.keep
        def send(worker_age, moment):
            if worker_age == 2 and moment == {when!r}:
                os.kill(os.getpid(), {int(number)})
        def early(self):
            send(age, "before it")
            keep(self)
        EarlySignals.keep = early
        def pre_fork(server, worker):
            global age
            age = worker.age
        def post_fork(server, worker):
            send(worker.age, "in post_fork")
    """
    words = ("-c", "conf.py", "--timeout", "0")
    with running(tmp_path, *words, command=("gunicorn",), files={"conf.py": text}) as server:
        server.ready(1)
        os.kill(min(server.workers()), signal.SIGKILL)
        until(lambda: server.output().count("Booting worker with pid") == 3, "the third worker")
        server.ready(1)
        assert server.stop() == 0
        assert server.nothing_left()


# ---- preparing again ----------------------------------------------------------------------------

GROWS = """
    kept = []
    def on_reload(server):
        kept.append([[n] for n in range(60_000)])
"""


@pytest.mark.slow
@pytest.mark.needs_gil
@pytest.mark.parametrize(
    ("words", "setting", "prepares"),
    [
        ([], "", 1),
        (["--prepare-again", "100M"], "", 2),
        (["--prepare-again", "0"], "prefork_prepare_again = '100M'", 1),
        ([], "from cpythonplus.prefork.gunicorn import *\nconfigure(prepare_again='100M')", 2),
    ],
    ids=["default", "again", "none", "configure"],
)
def test_a_master_that_has_grown_is_prepared_again_within_a_budget(
    tmp_path: Path, words: list[str], setting: str, prepares: int
) -> None:
    files = {"conf.py": f"{setting}\n{dedent(GROWS)}"}
    with running(tmp_path, *WORKERS, "-c", "conf.py", *words, files=files) as server:
        server.ready(2)
        immortal = server.metric("master_immortal_bytes")
        assert server.metric("master_prepares_total") == 1
        seconds = server.metric("master_prepare_seconds_total")
        before = server.workers()
        server.signal(signal.SIGHUP)
        until(lambda: not before & server.workers(), "new workers")
        server.ready(2)
        expected = (prepares, 2 - prepares)
        until(
            lambda: (
                (
                    server.metric("master_prepares_total"),
                    min(server.metric("master_prepares_refused_total"), 1),
                )
                == expected
            ),
            "the numbers on the board",
        )
        grown = server.metric("master_immortal_bytes") > immortal
        assert grown == (prepares == 2 and sys.version_info >= (3, 12))
        assert (server.metric("master_prepare_seconds_total") > seconds) == (prepares == 2)
        assert server.metric("master_resident_bytes") > server.metric("master_private_bytes") > 0
        assert server.output().count("prepared:") == prepares
        assert server.output().count("is not prepared again") == 2 - prepares
        ended_well(server)
