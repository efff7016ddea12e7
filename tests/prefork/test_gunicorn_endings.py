"""How gunicorn's workers end: everything that waits for it is run, and the heap is left alone."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.prefork.serving import APP, ASGI_APP, Server, running, until
from tests.support import child_environment, run_child


def ended_well(server: Server) -> None:
    assert server.stop() == 0, server.output()
    assert server.nothing_left()
    assert "Traceback" not in server.output()


# ---- coverage -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [("gunicorn", "--preload"), ("cpythonplus", "serve"), ("gunicorn", "-c", "conf.py")],
    ids=["stock", "serve", "gunicorn"],
)
def test_coverages_data_of_a_worker(tmp_path: Path, command: tuple[str, ...]) -> None:
    pytest.importorskip("coverage", reason="coverage is not installed")
    files = {"conf.py": "from cpythonplus.prefork.gunicorn import *\n"}
    under = ("coverage", "run", "--parallel-mode", "--source", ".", "-m", *command)
    with running(tmp_path, command=under, files=files) as server:
        worker = int(server.get())
        assert worker != server.process.pid
        ended_well(server)
    for words in (["combine", "--quiet"], ["json", "--quiet", "-o", "found.json"]):
        subprocess.run(
            [sys.executable, "-m", "coverage", *words],
            cwd=tmp_path,
            env=child_environment(),
            check=True,
            timeout=300,
        )
    lines = (tmp_path / "app.py").read_text().splitlines()
    in_worker = 1 + next(i for i, line in enumerate(lines) if "body = str(os.getpid())" in line)
    found = json.loads((tmp_path / "found.json").read_text())
    assert in_worker in found["files"]["app.py"]["executed_lines"]


# ---- finally, with, finalisers ------------------------------------------------------------------

GUARDED_APP = dedent(APP) + dedent("""
    class Guard:
        def __del__(self, write=os.write, getpid=os.getpid):
            write(1, b"finalised in %d " % getpid())
    guard = Guard()
""")

LAUNCHER = """
    import atexit, contextlib, os, sys
    from gunicorn.app.wsgiapp import WSGIApplication
    from cpythonplus.prefork.gunicorn import *
    configure(metrics="/metrics")
    def tell(text):
        os.write(1, f"{text} in {os.getpid()}\\n".encode())
    @contextlib.contextmanager
    def told():
        try:
            yield
        finally:
            tell("with")
    class Application(WSGIApplication):
        def load_config(self):
            super().load_config()
            self.cfg.set("preload_app", True)
    if __name__ == "__main__":
        atexit.register(tell, "atexit")
        with told():
            try:
                Application("%(prog)s APP").run()
            except SystemExit as error:
                tell(f"status {error.code}")
                raise
            finally:
                tell("finally")
"""


def test_what_stands_around_the_server_is_left_in_each_worker(tmp_path: Path) -> None:
    files = {"launcher.py": LAUNCHER}
    with running(tmp_path, command=("launcher",), files=files, app=GUARDED_APP) as server:
        server.ready(1)
        (worker,) = server.workers()
        ended_well(server)
    lines = [line for line in server.output().splitlines() if line.endswith(f" in {worker}")]
    steps = ("status 0", "finally", "with", "atexit")
    assert lines == [f"{step} in {worker}" for step in steps]
    assert f"finalised in {worker} " not in server.output()


def test_workers_do_not_take_their_heap_apart(tmp_path: Path) -> None:
    # Each page of the heap that a worker writes to is copied by a fault, counted at its end.
    text = """
        import resource, sys
        names = [sys.intern(f"name {n}") for n in range(100_000)]
        def child_exit(server, worker):
            print("faults:", resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt, flush=True)
    """
    faults = []
    for number, switch in enumerate(([], ["--no-fast-exit"])):
        folder = tmp_path / str(number)
        folder.mkdir()
        words = ("-c", "conf.py", "--metrics", "/metrics", *switch)
        with running(folder, *words, app=GUARDED_APP, files={"conf.py": text}) as server:
            server.ready(1)
            ended_well(server)
            until(lambda: "faults:" in server.output(), "the count")
        faults.append(int(server.output().split("faults:")[1].split()[0]))
    assert faults[0] + 1000 < faults[1], faults


def test_exit_functions_of_uvicorns_worker_are_not_cut_short(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn_worker", reason="uvicorn-worker is not installed")
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    app = dedent(ASGI_APP) + dedent(f"""
        import atexit
        master = os.getpid()
        @atexit.register
        def end():
            if os.getpid() != master:
                os.write(1, b"<begun>")
                with open({str(gate)!r}, "rb") as opened:
                    opened.read()
                os.write(1, b"<ended>")
    """)
    words = ("--worker-class", "uvicorn_worker.UvicornWorker")
    with running(tmp_path, *words, app=app) as server:
        worker = int(server.get())
        os.kill(worker, signal.SIGTERM)
        until(lambda: "<begun>" in server.output(), "the exit function")
        os.kill(worker, signal.SIGTERM)
        gate.write_bytes(b"")
        until(lambda: "<ended>" in server.output(), "its end")
        until(lambda: worker not in server.workers() and server.workers(), "the next worker")
        assert int(server.get()) != worker  # it has come as far as its exit functions
        os.kill(server.process.pid, signal.SIGTERM)
        gate.write_bytes(b"")
        assert server.process.wait(60) == 0
        assert "Traceback" not in server.output()


# ---- temporary files ----------------------------------------------------------------------------


@pytest.mark.parametrize("command", [("cpythonplus", "serve"), ("launcher",)], ids="-".join)
def test_temporary_files_of_workers(tmp_path: Path, command: tuple[str, ...]) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    app = dedent(APP) + dedent("""
        import tempfile
        of_master = tempfile.NamedTemporaryFile(prefix="master_")
        of_workers = []
    """)
    app = app.replace(
        'if path == "/grow":', 'if path == "/make": make()\n    if path == "/grow":'
    ) + dedent("""
        def make():
            of_workers.append(tempfile.NamedTemporaryFile(prefix="worker_"))
            of_workers.append(tempfile.TemporaryDirectory(prefix="worker_"))
            of_workers.append(tempfile.NamedTemporaryFile(prefix="kept_", delete=False))
    """)
    words = ["--metrics", "/metrics"] if command != ("launcher",) else []
    env = {"TMPDIR": str(folder)}
    files = {"launcher.py": LAUNCHER}

    def kinds() -> list[str]:
        return sorted(name.split("_")[0] for name in os.listdir(folder))  # noqa: PTH208

    with running(tmp_path, *words, command=command, app=app, files=files, env=env) as server:
        server.ready(1)
        server.get("/make")
        assert kinds() == ["kept", "master", "worker", "worker"]
        (first,) = server.workers()
        os.kill(first, 15)
        until(lambda: first not in server.workers(), "its end")
        server.ready(1)
        assert kinds() == ["kept", "master"]
        ended_well(server)
    assert kinds() == ["kept"]


def test_a_signal_in_a_destructor_ends_the_worker() -> None:
    """The exception that ends it gets lost there, and 30 s later the worker was killed."""
    pytest.importorskip("gunicorn")
    child = run_child("""
import atexit, os, signal, sys, time
from cpythonplus.prefork._gunicorn.service import _end_well

class Swallows:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)

hooked = []
sys.unraisablehook = hooked.append
signal.signal(signal.SIGTERM, _end_well)
atexit.register(lambda: print("ends", hooked))
Swallows()
time.sleep(50)
""")
    assert child.out == "ends []\n"
