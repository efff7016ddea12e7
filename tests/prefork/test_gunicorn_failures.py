"""What goes wrong in gunicorn's master while it runs: it is told, and the workers go on."""

import os
import re
import signal
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from tests.prefork.services import packages
from tests.prefork.serving import APP, Server, running, until
from tests.prefork.serving import python_path as path_with
from tests.support import run_child

METRICS = ("--metrics", "/metrics")
CONF = (*METRICS, "-c", "conf.py")


def reloads(server: Server) -> None:
    """HUP brings a new set of workers."""
    before = server.workers()
    server.signal(signal.SIGHUP)
    until(lambda: server.process.poll() is not None or not before & server.workers(), "new workers")
    assert server.process.poll() is None, "HUP has ended the master"
    server.ready(len(before))


def told(server: Server, pattern: str) -> None:
    """Wait for a line of the log."""
    until(lambda: re.search(pattern, server.output()), pattern)
    assert server.process.poll() is None


def ends(server: Server, *, traceback: bool = False) -> None:
    assert server.stop() == 0, server.output()
    assert server.nothing_left()
    assert ("Traceback" in server.output()) == traceback


# ---- Django that is there and not used ----------------------------------------------------------


def test_django_that_is_imported_and_not_configured(tmp_path: Path) -> None:
    pytest.importorskip("django", reason="Django is not installed")
    with running(tmp_path, *METRICS, app=f"import django.db\n{dedent(APP)}") as server:
        server.ready(1)
        reloads(server)
        assert "Django" not in server.output()
        ends(server)


def test_django_that_is_imported_later_is_there_when_hup_comes(tmp_path: Path) -> None:
    pytest.importorskip("django", reason="Django is not installed")
    with running(tmp_path, *CONF, files={"conf.py": ""}) as server:
        (tmp_path / "conf.py").write_text("import django.db\n")
        reloads(server)
        reloads(server)
        ends(server)


def test_sentry_beside_django(tmp_path: Path) -> None:
    pytest.importorskip("django", reason="Django is not installed")
    folders = packages("sentry", needs="sentry_sdk")
    app = f"import sentry_sdk\nsentry_sdk.init()\nimport django.db\n{dedent(APP)}"
    env = {"PYTHONPATH": os.pathsep.join([path_with(tmp_path), *folders])}
    with running(tmp_path, *METRICS, "--warm-up", "/", app=app, env=env) as server:
        server.ready(1)
        reloads(server)
        ends(server)


def test_a_connection_of_djangos_that_cannot_be_closed() -> None:
    pytest.importorskip("django", reason="Django is not installed")
    done = run_child("""
        import logging
        from django.conf import settings
        name = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
        settings.configure(DATABASES={"default": name, "other": name})
        from django.db import connections
        from cpythonplus.prefork._fork import pools
        from cpythonplus.prefork._options import log
        logging.basicConfig(level=logging.INFO)
        closed = []
        def fail():
            raise SystemExit("cannot be closed")
        connections["default"].close = fail
        connections["other"].close = lambda: closed.append("other")
        assert pools.close_known(log, warmed=False, whole=False) == ""
        assert closed == ["other"]
    """)
    assert "closing a connection of Django's before the fork failed: SystemExit" in done.err
    assert "Traceback" not in done.err


# ---- hooks --------------------------------------------------------------------------------------

HOOKS = """
    class Failure(BaseException):
        pass
    def fail(name):
        raise (SystemExit if name == "on_reload" else Failure)(f"in {name}")
    def on_reload(server):
        fail("on_reload")
    def pre_fork(server, worker):
        if worker.age > 1:
            fail("pre_fork")
    def child_exit(server, worker):
        fail("child_exit")
    def nworkers_changed(server, new, old):
        if new == 3:
            fail("nworkers_changed")
"""


def test_a_hook_that_fails_does_not_end_a_master_that_runs(tmp_path: Path) -> None:
    with running(tmp_path, *CONF, files={"conf.py": HOOKS}) as server:
        server.ready(1)
        reloads(server)
        server.signal(signal.SIGTTIN)
        server.ready(2)
        server.signal(signal.SIGTTIN)
        server.ready(3)
        told(server, r"\[ERROR\] the hook on_reload failed: SystemExit: in on_reload \(.*conf\.py")
        for hook in ("pre_fork", "child_exit", "nworkers_changed"):
            told(server, rf"\[ERROR\] the hook {hook} failed: Failure: in {hook} \(.*conf\.py")
        ends(server)


def test_a_hook_stops_the_server_by_halt_server_and_logs_its_traceback_if_asked(
    tmp_path: Path,
) -> None:
    text = """
        from gunicorn.errors import HaltServer
        loglevel = "debug"
        def on_reload(server):
            raise LookupError("in on_reload")
        def nworkers_changed(server, new, old):
            if new == 2:
                raise HaltServer("enough", 7)
    """
    status = 7
    with running(tmp_path, *CONF, files={"conf.py": text}) as server:
        reloads(server)
        assert "Traceback" in server.output()
        server.signal(signal.SIGTTIN)
        assert server.process.wait(60) == status
        assert server.nothing_left()


def test_a_hook_that_fails_at_the_start_ends_it(tmp_path: Path) -> None:
    text = "def pre_fork(server, worker):\n    raise SystemExit(9)\n"
    with (
        pytest.raises(pytest.fail.Exception, match="the server ended with 9"),
        running(tmp_path, *CONF, files={"conf.py": text}),
    ):
        pass


def test_our_part_that_fails_does_not_end_a_master_that_runs(tmp_path: Path) -> None:
    text = """
        from cpythonplus.prefork._warming import warming
        from cpythonplus.prefork._gunicorn.service import SERVICE
        from cpythonplus.prefork._fork.preparing import Budget
        class Failure(BaseException):
            pass
        def fail(*_, **__):
            raise Failure("on purpose")
        def when_ready(server):
            Budget.prepare = SERVICE.leaving = SERVICE.look_at_the_dead = fail
            warming.warm_up = SERVICE._listen = fail
    """
    with running(tmp_path, "-c", "conf.py", files={"conf.py": text}) as server:
        before = server.workers()
        server.signal(signal.SIGHUP)
        until(lambda: not before & server.workers() and len(server.workers()) == 1, "a new worker")
        for part in ("the warm-up", "preparing the fork", "HUP", "looking at workers that are"):
            told(server, rf"\[ERROR\] {part}.* failed: Failure: on purpose")
        server.signal(signal.SIGTTOU)
        ends(server)


def test_usr2_that_fails_leaves_the_workers_alone(tmp_path: Path) -> None:
    text = "def pre_exec(server):\n    raise LookupError('not now')\n"
    with running(tmp_path, *CONF, files={"conf.py": text}) as server:
        server.ready(1)
        before = server.workers()
        server.signal(signal.SIGUSR2)
        told(server, r"\[ERROR\] USR2: no new master: LookupError: not now")
        until(lambda: server.workers() == before, "the end of the copy")
        server.ready(1)
        ends(server)


# ---- a warm-up that ends the program ------------------------------------------------------------


def test_a_warm_up_that_fails_at_hup(tmp_path: Path) -> None:
    app = (
        dedent(APP)
        + "times = []\ndef twice():\n    times.append(1)\n    len(times) > 1 and exit(5)\n"
    )
    with running(tmp_path, *METRICS, "--warm-up", "app:twice", app=app) as server:
        reloads(server)
        told(server, r"\[ERROR\] the warm-up app:twice raised SystemExit: 5")
        ends(server)


def test_a_file_of_requests_that_is_damaged_ends_the_start(tmp_path: Path) -> None:
    (tmp_path / "requests").write_text('[{"path": 1}]')
    why = r"ended with 1(.|\n)*Reason: the warm-up's requests requests: request 1: expected a path"
    with (
        pytest.raises(pytest.fail.Exception, match=why) as failed,
        running(tmp_path, "--warm-up-requests", "requests"),
    ):
        pass
    assert "Traceback" not in str(failed.value)


def test_a_warm_up_that_fails_does_not_end_the_start(tmp_path: Path) -> None:
    (tmp_path / "requests").write_text('{"path": "/?a=secret"}\n{"path": "/raises"}')
    words = ["--warm-up-failure", "continue", "--warm-up-requests", "requests"]
    for target in ("app:fails", "/raises", "/hangs", "app:warm"):
        words += ["--warm-up", target]
    app = dedent(APP).replace(
        "    if path", "    if path == '/hangs': time.sleep(600)\n    if path", 1
    )
    with running(tmp_path, *METRICS, *words, "--warm-up-timeout", "2", app=app) as server:
        server.ready(1)
        for line in (
            r"\[WARNING\] the warm-up app:fails raised ZeroDivisionError: .*; the start goes on",
            r"\[WARNING\] the warm-up of /raises raised LookupError: on purpose .* goes on",
            r"\[WARNING\] the warm-up of /hangs was ended: it took longer than 2 s \(at .*app.py",
            r"warmed in",
            r"warm-up of GET / \(line 1\): the application answered 200",
            r"\[WARNING\] the warm-up of GET /raises \(line 2\) raised LookupError",
        ):
            told(server, line)
        assert "secret" not in server.output()
        ends(server)


def test_what_a_warm_up_forks_ends_as_it_wants_to() -> None:
    run_child("""
        import os, sys
        from cpythonplus.prefork._warming import warming
        def warm():
            if os.fork() == 0:
                sys.exit(6)
            assert os.waitstatus_to_exitcode(os.wait()[1]) == 6
            raise KeyError("in the parent")
        try:
            warming.warm_up(warming.WarmUp(targets=[warm]), print)
        except warming.Failed as error:
            assert "KeyError" in str(error)
        else:
            raise AssertionError
    """)


# ---- what cannot be taken over ------------------------------------------------------------------


def test_a_hook_that_stops_the_server_while_hup_is_at_work(tmp_path: Path) -> None:
    text = """
        from gunicorn.errors import HaltServer
        def nworkers_changed(server, new, old):
            if old is not None:
                raise HaltServer("enough", 7)
    """
    status = 7
    with running(tmp_path, *CONF, files={"conf.py": text}) as server:
        server.signal(signal.SIGHUP)
        assert server.process.wait(60) == status
        assert server.nothing_left()


@pytest.mark.parametrize("command", [("gunicorn",), ("cpythonplus", "serve")], ids="-".join)
@pytest.mark.parametrize(
    "broken", ["def (\n", "workers = 'many'\n", "import nothing\n", "worker_class = 'nothing'\n"]
)
def test_a_broken_configuration_at_hup(
    tmp_path: Path, command: tuple[str, ...], broken: str
) -> None:
    good = """
        import os
        from cpythonplus.prefork.gunicorn import *
        configure(metrics="/metrics")
        raw_env = ["OURS=1"]
        def post_fork(server, worker):
            print("OURS is", os.environ["OURS"], flush=True)
    """
    with running(tmp_path, "-c", "conf.py", command=command, files={"conf.py": good}) as server:
        server.ready(1)
        before = server.workers()
        (tmp_path / "conf.py").write_text(f"raw_env = ['OURS=2']\n{broken}")
        server.signal(signal.SIGHUP)
        told(server, r"\[ERROR\] HUP failed, the workers continue unchanged: ")
        assert server.workers() == before
        os.kill(min(before), signal.SIGKILL)
        until(lambda: not before & server.workers(), "a new worker")
        server.ready(1)
        assert server.output().count("OURS is 1") == 2
        (tmp_path / "conf.py").write_text(dedent(good))
        reloads(server)
        assert server.stop() == 0
        assert server.nothing_left()


LAUNCHER = """
    import sys
    from gunicorn.app.wsgiapp import WSGIApplication
    from cpythonplus.prefork.gunicorn import *
    configure(metrics="/metrics")
    class Application(WSGIApplication):
        def load_config(self):
            super().load_config()
            self.cfg.set("preload_app", True)
        def reload(self):
            self.callable = None
            sys.modules.pop("app", None)
            super().reload()
    if __name__ == "__main__":
        Application("%(prog)s APP").run()
"""


def test_an_application_that_cannot_be_loaded_at_hup(tmp_path: Path) -> None:
    files: Mapping[str, str] = {"launcher.py": LAUNCHER}
    with running(tmp_path, command=("launcher",), files=files) as server:
        server.ready(1)
        before = server.workers()
        path = tmp_path / "app.py"
        text = path.read_text()
        for number, broken in enumerate(("undefined\n", "raise SystemExit(4)\n")):
            path.write_text(text + broken)
            os.utime(path, (4_000_000_000 + number,) * 2)
            server.signal(signal.SIGHUP)
            until(
                lambda number=number: server.output().count("HUP failed") == number + 1,  # type: ignore[misc]
                "the line",
            )
        assert server.workers() == before
        path.write_text(text.replace("str(os.getpid())", "'new'"))
        os.utime(path, (4_000_000_100,) * 2)
        reloads(server)
        assert server.get() == "new"
        assert server.stop() == 0
        assert server.nothing_left()


# ---- threads of the master that import ----------------------------------------------------------

IMPORTING = {
    "conf.py": """
        import threading
        import app
        def load():
            import slow
        def pre_fork(server, worker):
            if worker.age > 1 and not app.begun.is_set():
                threading.Thread(target=load, daemon=True).start()
                app.begun.wait()
    """,
    "slow.py": """
        import os, time
        import app
        app.begun.set()
        time.sleep(float(os.environ["IMPORT_SECONDS"]))
    """,
}
IMPORTING_APP = dedent(APP) + dedent("""
    import threading
    begun = threading.Event()
    answer = app
    def app(environ, start_response):
        if environ["PATH_INFO"] == "/slow":
            import slow
        return answer(environ, start_response)
""")


def replaced(server: Server) -> None:
    (old,) = server.workers()
    os.kill(old, signal.SIGKILL)
    until(lambda: server.workers() and old not in server.workers(), "another worker")


def test_a_fork_waits_for_what_a_thread_imports(tmp_path: Path) -> None:
    words = ("-c", "conf.py", "--timeout", "5")
    env = {"IMPORT_SECONDS": "0.1"}
    with running(tmp_path, *words, app=IMPORTING_APP, files=IMPORTING, env=env) as server:
        replaced(server)
        assert int(server.get("/slow")) in server.workers()


def test_an_import_that_does_not_end_is_told_of_once(tmp_path: Path) -> None:
    words = ("-c", "conf.py")
    env = {"IMPORT_SECONDS": "3600"}
    with running(tmp_path, *words, app=IMPORTING_APP, files=IMPORTING, env=env) as server:
        for _ in range(2):
            replaced(server)
            assert int(server.get()) in server.workers()
        assert server.output().count("workers are forked while a thread imports slow") == 1


def test_a_worker_that_cannot_boot_is_not_waited_for() -> None:
    """gunicorn before 27 reaps it, and leaves it among the workers that a stop waits for."""
    pytest.importorskip("gunicorn")
    run_child(
        """
        import os, time
        from types import SimpleNamespace
        from gunicorn.arbiter import Arbiter
        from gunicorn.errors import HaltServer
        from cpythonplus.prefork._gunicorn.master import Overseer

        def reap_workers(self):
            if first:
                os.waitpid(first.pop(), 0)
                raise HaltServer("Worker failed to boot.", 3)

        Arbiter.reap_workers = reap_workers
        pids = []
        for seconds in (0, 1e6):
            pids.append(os.fork())
            if pids[-1] == 0:
                time.sleep(seconds)
                os._exit(3)
        first = pids[:1]
        master = Overseer.__new__(Overseer)
        master.log = None
        closed = []
        file = SimpleNamespace(close=lambda: closed.append(True))
        master.WORKERS = {pid: SimpleNamespace(tmp=file) for pid in pids}
        try:
            master.reap_workers()
        except HaltServer:
            pass
        os.kill(pids[1], 9)
        assert list(master.WORKERS) == pids[1:], master.WORKERS
        assert closed == [True]
        """
    )
