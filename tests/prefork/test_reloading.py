"""Where `serve` reforks, HUP loads new code: in another process than the master."""

import os
import resource
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from textwrap import dedent

import pytest

from tests.prefork.serving import (
    AIOHTTP_APP,
    ASGI_APP,
    DEADLINE_S,
    Clients,
    Server,
    python_path,
    running,
    until,
)
from tests.servers import free_port
from tests.support import child_environment

APP = """
    import os
    with open("loaded", "a") as file:
        print(os.getpid(), file=file)
    import version
    def app(environ, start_response):
        body = str(os.getpid()).encode()
        if environ["PATH_INFO"] == "/version":
            body = version.NUMBER.encode()
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]
"""
REFORK: tuple[str, ...] = ("--workers", "2", "--refork", "--refork-after", "1000000")


def version(folder: Path, text: str) -> dict[str, str]:
    """The module that a reload brings anew; a file of another size, for its cached bytecode."""
    (folder / "version.py").write_text(text)
    return {"version.py": text}


def told(server: Server, what: str, count: int = 1) -> None:
    until(lambda: server.output().count(what) >= count, what)


def all_started(server: Server, count: int = 3) -> set[int]:
    """Wait for two workers and their loader."""
    until(lambda: len(server.workers()) == count, "all processes")
    return server.workers()


def loaders(folder: Path) -> list[int]:
    return [int(each) for each in (folder / "loaded").read_text().split()]


CONFIG = """
    from cpythonplus.prefork.gunicorn import *
    workers = 2
    configure(refork=True)
"""


@pytest.mark.parametrize("place", ["serve", "gunicorn's configuration file"])
def test_hup_loads_new_code_and_no_request_is_refused(tmp_path: Path, place: str) -> None:
    files = {**version(tmp_path, "NUMBER = '1'"), "config.py": CONFIG}
    words, command = REFORK, ["cpythonplus", "serve"]
    if place != "serve":
        words, command = ("-c", "config.py"), ["gunicorn"]
    with running(tmp_path, *words, app=APP, files=files, command=command) as server:
        assert server.get("/version") == "1"
        before = all_started(server)
        with Clients(server) as clients:
            for number in ("22", "333"):
                version(tmp_path, f"NUMBER = {number!r}")
                server.signal(signal.SIGHUP)
                until(lambda number=number: server.get("/version") == number, "new code")  # type: ignore[misc]
            until(lambda: not before & server.workers(), "the end of all before")
        assert clients.failures == []
        all_started(server)
        assert len(loaders(tmp_path)) == 3
        assert server.process.pid not in loaders(tmp_path)
        assert server.stop() == 0, server.output()
        assert server.nothing_left()
        assert "Traceback" not in server.output()


@pytest.mark.parametrize(
    ("broken", "line"),
    [
        ("NUMBER = ", "SyntaxError"),
        ("raise LookupError('on purpose')", "on purpose"),
        ("raise SystemExit('not today')", "not today"),
        ("import os; os.kill(os.getpid(), 9)", "it has ended"),
    ],
)
def test_code_that_cannot_be_loaded_changes_nothing(tmp_path: Path, broken: str, line: str) -> None:
    files = version(tmp_path, "NUMBER = '1'")
    with running(tmp_path, *REFORK, app=APP, files=files) as server:
        before = all_started(server)
        version(tmp_path, broken)
        with Clients(server) as clients:
            server.signal(signal.SIGHUP)
            told(server, "HUP failed, the workers continue unchanged")
        assert clients.failures == []
        assert line in server.output()
        assert all_started(server) == before
        assert server.get("/version") == "1"
        version(tmp_path, "NUMBER = '4444'")
        server.signal(signal.SIGHUP)
        until(lambda: server.get("/version") == "4444", "new code")
        assert server.stop() == 0, server.output()
        assert server.nothing_left()


def test_a_configuration_that_cannot_be_used_changes_nothing(tmp_path: Path) -> None:
    files = {**version(tmp_path, "NUMBER = '1'"), "config.py": "prefork_refork = True"}
    with running(tmp_path, *REFORK[:2], "-c", "config.py", app=APP, files=files) as server:
        before = all_started(server)
        refork = "prefork_refork = True\n"
        texts = (
            "1 / 0",
            "preload_app = False",
            refork + "worker_class = 'none.such'",
            refork + "worker_tmp_dir = '/none/such'",
            refork + "pidfile = '/none/such/pid'",
        )
        _refused(server, tmp_path, texts)
        assert all_started(server) == before
        assert server.get("/version") == "1"
        assert server.stop() == 0, server.output()


def _refused(server: Server, folder: Path, texts: Sequence[str]) -> None:
    for count, text in enumerate(texts, 1):
        (folder / "config.py").write_text(text)
        server.signal(signal.SIGHUP)
        told(server, "HUP failed, the workers continue unchanged", count)


SETTINGS = """
    prefork_refork = True
    workers = {workers}
    bind = "127.0.0.1:{port}"
    raw_env = [{environment}]
    prefork_metrics = "127.0.0.1:{metrics}"
"""


def settings(folder: Path, **values: object) -> dict[str, str]:
    text = dedent(SETTINGS).format(**values)
    (folder / "config.py").write_text(text)
    return {"config.py": text}


def _get(port: int, path: str) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


def test_hup_takes_over_the_configuration(tmp_path: Path) -> None:
    """Other addresses too, which the loader does not have: the master sends it the sockets."""
    first, second, metrics, other_metrics = (free_port() for _ in range(4))
    app = APP.replace("version.NUMBER.encode()", "os.environ.get('PLACE', 'none').encode()")
    files = {
        **version(tmp_path, "NUMBER = '1'"),
        **settings(tmp_path, workers=2, port=first, environment="'PLACE=here'", metrics=metrics),
    }
    words = ("-c", "config.py")
    with running(tmp_path, *words, app=app, files=files, port=first, binds=False) as server:
        assert server.get("/version") == "here"
        assert "cpythonplus_workers_ready" in _get(metrics, "/metrics")
        with socket.create_server(("127.0.0.1", second)):
            settings(tmp_path, workers=3, port=second, environment="", metrics=other_metrics)
            server.signal(signal.SIGHUP)
            told(server, "HUP failed, the workers continue unchanged")
        assert _get(first, "/version") == "here"
        server.signal(signal.SIGHUP)
        until(lambda: _get(second, "/version") == "none", "an answer at the new address")
        until(lambda: "cpythonplus_workers_ready 3" in _get(other_metrics, "/metrics"), "metrics")
        all_started(server, 4)
        assert _get(first, "/version") == ""
        assert server.stop() == 0, server.output()
        assert server.nothing_left()


def start(folder: Path, *words: str, app: str) -> "subprocess.CompletedProcess[str]":
    """Run a server that cannot start."""
    (folder / "app.py").write_text(dedent(app))
    where = () if "--bind" in words else ("--bind", "127.0.0.1:0")
    return subprocess.run(
        [sys.executable, "-m", "cpythonplus", "serve", "app:app", *where, *words],
        cwd=folder,
        env=child_environment({"PYTHONPATH": python_path(folder)}),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


# With the output, the child would keep the test waiting too.
LEAVES_A_CHILD = """
    import os
    if os.fork() == 0:
        os.execlp("sh", "sh", "-c", "exec sleep 30 >&- 2>&-")
    1 / 0
"""


@pytest.mark.parametrize(
    ("app", "words", "status", "line"),
    [
        ("import none_such", (), 4, "No module named 'none_such'"),
        ("import sys; sys.exit('no settings')", (), 1, "no settings"),
        ("import os; os.kill(os.getpid(), 11)", (), 1, "ended by signal 11"),
        ("import sys; sys.exit()", (), 1, "sys.exit(None) was called"),
        ("import os; os._exit(0)", (), 1, "has ended the process that loads it"),
        (LEAVES_A_CHILD, (), 4, "zero"),
        ("raise RuntimeError('x' + '\\u00e4' * 2000)", (), 4, "RuntimeError"),
        ("app = print\ndef warm(): 1 / 0", ("--warm-up", "app:warm"), 1, "division by zero"),
        ("app = print", ("--metrics", "127.0.0.1:1x"), 2, "1x"),
    ],
)
def test_a_start_that_fails_ends_with_one_line(
    tmp_path: Path, app: str, words: tuple[str, ...], status: int, line: str
) -> None:
    pytest.importorskip("gunicorn")
    pidfile = tmp_path / "pid"
    done = start(tmp_path, *REFORK, "--pid", str(pidfile), *words, app=app)
    assert done.returncode == status, done.stderr
    assert line in done.stderr
    assert "Traceback" not in done.stderr
    assert not pidfile.exists()


def test_without_any_mold_the_application_is_loaded_again(tmp_path: Path) -> None:
    files = version(tmp_path, "NUMBER = '1'")
    with running(tmp_path, *REFORK, app=APP, files=files) as server:
        all_started(server)
        with Clients(server) as clients:
            os.kill(loaders(tmp_path)[0], signal.SIGKILL)
            told(server, "is given up: ")
            server.signal(signal.SIGTTIN)
            until(lambda: len(loaders(tmp_path)) == 2, "another loader")
            all_started(server, 4)
        assert clients.failures == []
        assert server.stop() == 0, server.output()
        assert server.nothing_left()


SLOW = """
    import os, time
    with open("loaded", "a") as file:
        print(os.getpid(), file=file)
    import version
    while version.NUMBER == "slow" and not os.path.exists("go"):
        time.sleep(0.01)
    def app(environ, start_response):
        start_response("200 OK", [("Content-Length", str(len(version.NUMBER)))])
        return [version.NUMBER.encode()]
"""


def test_hup_ends_a_loader_that_still_loads(tmp_path: Path) -> None:
    files = version(tmp_path, "NUMBER = '1'")
    with running(tmp_path, *REFORK, app=SLOW, files=files) as server:
        version(tmp_path, "NUMBER = 'slow'")
        server.signal(signal.SIGHUP)
        until(lambda: len(loaders(tmp_path)) == 2, "a loader")
        slow = loaders(tmp_path)[1]
        version(tmp_path, "NUMBER = '55555'")
        server.signal(signal.SIGHUP)
        until(lambda: server.get() == "55555", "new code")
        until(lambda: not Path(f"/proc/{slow}").exists(), "the end of the first loader")
        assert server.stop() == 0, server.output()
        assert server.nothing_left()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_a_server_that_ends_while_it_loads(
    tmp_path: Path, number: signal.Signals
) -> None:
    files = version(tmp_path, "NUMBER = '1'")
    with running(tmp_path, *REFORK, app=SLOW, files=files) as server:
        version(tmp_path, "NUMBER = 'slow'")
        server.signal(signal.SIGHUP)
        until(lambda: len(loaders(tmp_path)) == 2, "a loader")
        server.signal(number)
        server.process.wait(DEADLINE_S)
        until(server.nothing_left, "the end of all")


def test_what_the_configuration_does_before_the_start_reaches_the_application(
    tmp_path: Path,
) -> None:
    config = """
        import os
        def on_starting(server):
            os.environ["PREPARED"] = "12"
    """
    app = """
        import os
        prepared = os.environ["PREPARED"].encode()
        def app(environ, start_response):
            start_response("200 OK", [("Content-Length", str(len(prepared)))])
            return [prepared]
    """
    words = (*REFORK, "-c", "config.py")
    with running(tmp_path, *words, app=app, files={"config.py": config}) as server:
        assert server.get() == "12"
        assert server.stop() == 0, server.output()


SCHEDULER = """
    import os, threading, time
    def tick():
        while True:
            with open("ticks", "a") as file:
                print(os.getpid(), file=file)
            time.sleep(0.05)
    threading.Thread(target=tick, daemon=True).start()
    def app(environ, start_response):
        body = str(os.getpid()).encode()
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]
"""


def test_what_runs_beside_the_workers_runs_once(tmp_path: Path) -> None:
    """A scheduler that the application starts at import: with --preload it runs in the master."""
    words = ("--workers", "2", "--refork", "--refork-after", "10")
    ticks = tmp_path / "ticks"
    with running(tmp_path, *words, app=SCHEDULER) as server:
        with Clients(server):
            told(server, "workers of generation 2")
        count = len(ticks.read_text().split())
        until(lambda: len(ticks.read_text().split()) > count + 3, "the scheduler")
        assert len(set(ticks.read_text().split())) == 1
        assert server.stop() == 0, server.output()
        assert server.nothing_left()


@pytest.mark.slow
@pytest.mark.parametrize("refork", [True, False], ids=["refork", "no refork"])
@pytest.mark.parametrize("kind", ["uvicorn", "aiohttp"])
def test_hup_cuts_no_connection_of_asyncios_workers(
    tmp_path: Path, kind: str, refork: bool
) -> None:
    """gunicorn sends SIGTERM, at which both close what has no request just then."""
    app, worker = AIOHTTP_APP, "aiohttp.GunicornWebWorker"
    if kind == "uvicorn":
        app, worker = ASGI_APP, "uvicorn_worker.UvicornWorker"
        pytest.importorskip("uvicorn_worker")
    pytest.importorskip(kind)
    words = (*REFORK[: None if refork else 2], "--worker-class", worker, "--metrics", "/metrics")
    with running(tmp_path, *words, app=app) as server:
        all_started(server, 2 + refork)
        with Clients(server, count=4, keep_alive=True) as clients:
            for _ in range(2):
                before = server.workers()
                server.signal(signal.SIGHUP)
                until(lambda before=before: not before & server.workers(), "other workers")  # type: ignore[misc]
        assert clients.failures == []
        if kind == "uvicorn":
            assert server.metric("worker_restarts_total", reason="reload") == 4
        assert server.stop() == 0, server.output()
        assert server.nothing_left()


ODD = {
    "handlers": """
        import signal
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    """,
    "thread": """
        import threading, time
        threading.Thread(target=time.sleep, args=(1e6,)).start()
    """,
}


@pytest.mark.slow
@pytest.mark.parametrize("odd", ODD)
def test_what_an_application_does_at_import_harms_nobody(tmp_path: Path, odd: str) -> None:
    """Its handlers do not take the place of the mold's, and its threads do not keep an old one."""
    files = version(tmp_path, "NUMBER = '1'")
    hooks = "def on_exit(server): print('on_exit', server.pid)"
    words = (*REFORK, "-c", "config.py")
    app = dedent(ODD[odd]) + dedent(APP)
    with running(tmp_path, *words, app=app, files={**files, "config.py": hooks}) as server:
        before = all_started(server)
        for number in ("22", "333"):
            version(tmp_path, f"NUMBER = {number!r}")
            server.signal(signal.SIGHUP)
            until(lambda number=number: server.get("/version") == number, "new code")  # type: ignore[misc]
        until(lambda: not before & server.workers(), "the end of all before")
        all_started(server)
        assert "on_exit" not in server.output()
        assert server.stop() == 0, server.output()
        until(server.nothing_left, "the end of all")


def test_after_winch_hup_and_ttin_bring_workers_back(tmp_path: Path) -> None:
    """WINCH, to a daemon, ends its workers and waits: the usual way back after USR2."""
    version(tmp_path, "NUMBER = '1'")
    port = free_port()
    pidfile = tmp_path / "pid"
    words = (*REFORK, "--daemon", "--pid", str(pidfile), "--error-logfile", str(tmp_path / "log"))
    assert start(tmp_path, *words, "--bind", f"127.0.0.1:{port}", app=APP).returncode == 0
    until(lambda: _get(port, "/version") == "1", "an answer")
    pid = int(pidfile.read_text())
    try:
        for number in (signal.SIGHUP, signal.SIGTTIN):
            os.kill(pid, signal.SIGWINCH)
            until(lambda: len(_children(pid)) == 1, "the loader alone")
            os.kill(pid, number)
            until(lambda: _get(port, "/version") == "1", "an answer")
    finally:
        os.kill(pid, signal.SIGTERM)
        until(lambda: _has_ended(pid), "its end")


def _has_ended(pid: int) -> bool:
    """Whether it runs no more; where nobody reaps orphans it stays a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signals_while_the_application_is_loaded_at_the_start(
    tmp_path: Path, number: signal.Signals
) -> None:
    version(tmp_path, "NUMBER = 'slow'")
    (tmp_path / "app.py").write_text(dedent(SLOW))
    pidfile = tmp_path / "pid"
    command = ["serve", "app:app", "-b", "127.0.0.1:0", *REFORK, "--pid", str(pidfile)]
    with (tmp_path / "log").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "cpythonplus", *command],
            cwd=tmp_path,
            env=child_environment({"PYTHONPATH": python_path(tmp_path)}),
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    server = Server(process, 0, tmp_path / "log")
    try:
        until((tmp_path / "loaded").exists, "a loader")
        server.signal(number)
        if number in {signal.SIGHUP, signal.SIGUSR1}:
            (tmp_path / "go").touch()
            told(server, "Booting worker")
            server.signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0, server.output()
        assert not pidfile.exists()
        assert "Traceback" not in server.output()
        until(server.nothing_left, "the end of all")
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.slow
def test_ports_that_are_shared_are_only_the_workers(tmp_path: Path) -> None:
    """With reuse_port each worker has its own listen queue: a mold's would never be emptied."""
    port = free_port()
    words = ("--workers", "2", "--refork", "--refork-after", "10", "--reuse-port")
    with running(tmp_path, *words, port=port) as server:
        # What waits in the queue of a worker that leaves is lost.
        until(lambda: _get(port, "/") and "workers of generation 2" in server.output(), "a mold")
        until(lambda: len(server.workers()) == 4, "two workers, their mold, the loader")
        assert sum(bool(_get(port, "/")) for _ in range(60)) > 55
        assert server.stop() == 0, server.output()


def descriptors(server: Server) -> dict[int, str]:
    """Return what the master has open, by number."""
    found = {}
    for each in Path(f"/proc/{server.process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it has been closed meanwhile
            found[int(each.name)] = str(each.readlink())
    return found


def has_workers(server: Server, count: int) -> bool:
    """Whether the master has taken over so many workers: it has a file of each."""
    return sum("wgunicorn-" in each for each in descriptors(server).values()) == count


@pytest.mark.parametrize("spare", [0, 1])
def test_a_want_of_descriptors_forks_no_worker_in_vain(tmp_path: Path, spare: int) -> None:
    """A worker takes two, and may not be forked where there is one."""
    files = version(tmp_path, "NUMBER = '1'")
    with running(tmp_path, *REFORK, app=APP, files=files) as server:
        before = all_started(server)
        until(lambda: has_workers(server, 2), "both workers' descriptors")
        limits = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
        used = descriptors(server)
        free = [number for number in range(len(used) + 2) if number not in used]
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (free[spare], limits[1]))
        server.signal(signal.SIGTTIN)
        told(server, "no worker can be forked now", 2)
        server.signal(signal.SIGHUP)
        told(server, "HUP failed, the workers continue unchanged")
        assert server.workers() == before, server.output()
        assert server.output().count("Booting worker") == 2
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, limits)
        all_started(server, 4)
        assert server.stop() == 0, server.output()
        assert server.nothing_left()


def test_a_mold_that_cannot_fork_for_a_while_stays(tmp_path: Path) -> None:
    """A want of memory or of processes: what the mold has loaded is not thrown away for it."""
    config = """
        import os, sys
        from cpythonplus.prefork._gunicorn import mold
        fork, full = os.fork, os.path.abspath("full")
        def fork_if_there_is_room():
            if os.path.exists(full) and sys._getframe(1).f_globals is vars(mold):
                raise BlockingIOError(11, "Resource temporarily unavailable")
            return fork()
        os.fork = fork_if_there_is_room
    """
    files = {**version(tmp_path, "NUMBER = '1'"), "config.py": config}
    with running(tmp_path, *REFORK, "-c", "config.py", app=APP, files=files) as server:
        before = all_started(server)
        until(lambda: has_workers(server, 2), "both workers")
        (tmp_path / "full").touch()
        (lost, _) = before - {*loaders(tmp_path)}
        os.kill(lost, signal.SIGKILL)
        told(server, "no worker can be forked now: OSError: BlockingIOError: [Errno 11]", 2)
        assert server.get("/version") == "1"
        (tmp_path / "full").unlink()
        assert len(all_started(server) & before) == 2
        assert len(loaders(tmp_path)) == 1
        assert "is given up" not in server.output()
        assert server.stop() == 0, server.output()
        assert server.nothing_left()


def test_a_folder_that_is_gone_is_no_reason_to_give_the_mold_up(tmp_path: Path) -> None:
    """The master's own folder is gone: a mold that it asks next would be given up for it, too."""
    folder = tmp_path / "beats"
    folder.mkdir()
    files = version(tmp_path, "NUMBER = '1'")
    words = (*REFORK, "--worker-tmp-dir", str(folder))
    with running(tmp_path, *words, app=APP, files=files) as server:
        all_started(server)
        until(lambda: has_workers(server, 2), "both workers")
        folder.rmdir()
        server.signal(signal.SIGTTIN)
        told(server, "no worker can be forked now: RuntimeError: ", 2)
        folder.mkdir()
        all_started(server, 4)
        assert len(loaders(tmp_path)) == 1
        assert "is given up" not in server.output()
        assert server.stop() == 0, server.output()
        assert server.nothing_left()
