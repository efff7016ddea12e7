"""What the doctor says of a master: generations, and what its workers do not share."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.prefork.serving import Clients, Server, running, until
from tests.support import FREE_THREADED, child_environment

APP = """
    import os
    rows = []
    def app(environ, start_response):
        if not rows:
            rows.extend({"id": i} for i in range(20_000))
        body = str(os.getpid()).encode()
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]
"""


def processes(server: Server) -> list[dict[str, Any]]:
    words = ["doctor", str(server.process.pid), "--format", "json"]
    done = subprocess.run(
        [sys.executable, "-m", "cpythonplus", *words],
        env=child_environment({}),
        capture_output=True,
        text=True,
        check=False,
    )
    # Some parts of the report are refused without a GIL, and the status says so.
    assert done.returncode == int(FREE_THREADED), done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["generations"]["processes"]
    return found


def answering(server: Server) -> bool:
    """Say whether workers of the later generation answer requests, and no earlier one is left."""
    workers = [each for each in processes(server) if each["role"] == "worker"]
    return all(each["generation"] for each in workers) and any(each["requests"] for each in workers)


def test_a_master_names_its_mold_and_what_its_workers_do_not_share(tmp_path: Path) -> None:
    words = ("--workers", "2", "--refork", "--refork-after", "10", "--metrics", "/metrics")
    with running(tmp_path, *words, app=APP) as server:
        with Clients(server):
            until(lambda: "workers of generation 1" in server.output(), "a mold")
            until(lambda: answering(server), "its workers")
        until(lambda: len(processes(server)) == 5, "the end of the earlier ones")
        found = processes(server)
        roles = [each["role"] for each in found]
        assert roles == ["master", "mold", "mold", "worker", "worker"]
        assert found[0]["pid"] == server.process.pid
        assert f"process {found[1]['pid']} has loaded" in server.output()
        assert f"forked from process {found[2]['pid']} " in server.output()
        for worker in found[3:]:
            assert 0 < worker["private_bytes"] < worker["resident_bytes"]
            assert worker["causes"]
