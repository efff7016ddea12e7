"""How gunicorn's workers end: everything that waits for it is run, and the heap is left alone."""

import os
from pathlib import Path
from textwrap import dedent

import pytest

from tests.prefork.serving import APP, Server, running, until


def ended_well(server: Server) -> None:
    assert server.stop() == 0, server.output()
    assert server.nothing_left()
    assert "Traceback" not in server.output()


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
