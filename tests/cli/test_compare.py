"""`cpythonplus compare`: what it refuses, what it shows, what it leaves."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.support import MODULE, PYTHON, Result, assert_refused, environment, execute
from tests.servers import free_port

COMPARE = (*MODULE, "compare")

SERVER = """
import http.server, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hi")

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


URL = ("--rate", "5", "--url", "http://127.0.0.1:8/")


def compare(*words: str, cwd: Path | None = None) -> Result:
    return execute([*COMPARE, *words], cwd=cwd)


def job(folder: Path, code: str) -> list[str]:
    (folder / "job.py").write_text(code)
    return ["--", PYTHON, "job.py"]


def test_help() -> None:
    result = compare("--help")
    assert (result.status, result.stderr) == (0, b"")
    assert "cpythonplus compare [options] -- PROGRAM" in result.out


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ([], ["after --"]),
        (["--"], ["after --"]),
        (["python", "job.py"], ["expected -- in front of the program: -- python job.py"]),
        (["--rounds", "0"], ["--rounds", "'0'"]),
        (["--rounds", "many"], ["--rounds", "'many'"]),
        (["--rate", "0", "--url", "http://127.0.0.1/"], ["--rate", "'0'"]),
        (["--rate", "nan", "--url", "http://127.0.0.1/"], ["--rate", "'nan'"]),
        (["--duration", "-1"], ["--duration", "'-1'"]),
        (["--connections", "501"], ["--connections", "'501'"]),
        (["--rate", "5", "--", "python"], ["--rate", "require --url"]),
        (["--any-host", "--", "python"], ["--any-host require --url"]),
        (["--url", "http://127.0.0.1/", "--", "python"], ["--url requires --rate"]),
        (["--url", "http://192.0.2.1/", "--rate", "5", "--", "python"], ["not loopback"]),
        (["--url", "ftp://127.0.0.1/", "--rate", "5", "--", "python"], ["http://"]),
        (["--header", "A: b", "--", "python"], ["--header requires --url"]),
        (["--requests", "x", "--", "python"], ["--requests requires --url"]),
        ([*URL, "--url", "http://127.0.0.1:9/", "--", "python"], ["of one host and port"]),
        ([*URL, "--weights", "1,2", "--", "python"], ["a weight for each of 1 URLs"]),
        ([*URL, "--weights", "0", "--", "python"], ["a weight from 1 to 1000, got 0"]),
        ([*URL, "--header", "a", "--", "python"], ["expected NAME: VALUE, got 'a'"]),
        ([*URL, "--method", "a b", "--", "python"], ["a method like GET, got 'a b'"]),
        (
            [*URL, "--requests", "/no/file", "--", "python"],
            ["--requests: No such file", "/no/file"],
        ),
        ([*URL, "--requests", "x", "--data", "y", "--", "python"], ["no option of requests"]),
        (["--format", "xml"], ["--format", "xml"]),
        (["--plus", "walk", "--", PYTHON, "-c", ""], ["--plus", "walk"]),
        (
            ["--", "no-such-program-anywhere", "x"],
            ["program 'no-such-program-anywhere' was not found"],
        ),
        (["--", "/bin/sh", "-c", "true"], ["not a Python program"]),
        (["--", PYTHON], ["a script, -m MODULE or -c CODE"]),
        (["--output", "/no/such/folder/x", "--", PYTHON, "-c", ""], ["'/no/such/folder'"]),
        (["--output", "/", "--", PYTHON, "-c", ""], ["is a folder"]),
    ],
)
def test_what_is_refused(words: list[str], parts: list[str]) -> None:
    assert_refused(compare(*words), "cpythonplus compare: ", *parts)


def test_a_job(tmp_path: Path) -> None:
    code = "import sys; open('seen', 'a').write(f\"{'cpythonplus.gil' in sys.modules}\\n\")"
    result = compare("--rounds", "2", *job(tmp_path, code), cwd=tmp_path)
    assert result.status == 0, result
    assert "\nwall time, " in result.out
    assert "\nToo few rounds for a verdict: 2 complete" in result.out
    steps = ["1 of 2: stock", "1 of 2: plus", "2 of 2: plus", "2 of 2: stock"]
    assert result.err == "".join(f"round {step}\n" for step in steps)
    assert (tmp_path / "seen").read_text().split() == ["False", "True", "True", "False"]


def test_json_and_page(tmp_path: Path) -> None:
    program = job(tmp_path, "")
    result = compare("--rounds", "1", "--format", "json", *program, cwd=tmp_path)
    data = json.loads(result.out)
    assert [each["side"] for each in data["samples"]] == ["stock", "plus"]
    words = ["--rounds", "1", "--format", "html", "--output", "page.html", "--plus", "stock"]
    result = compare(*words, *program, cwd=tmp_path)
    assert result.status == 0
    assert result.out.endswith("\nhtml: page.html\n")
    assert "\nwall time, " in result.out
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")


def test_a_side_that_fails(tmp_path: Path) -> None:
    code = "import sys\nif 'cpythonplus.gil' in sys.modules: sys.exit('too bad')"
    result = compare("--rounds", "3", *job(tmp_path, code), cwd=tmp_path)
    assert result.status == 2
    assert "wall time" in result.out, "what was measured is shown"
    assert result.err.endswith("cpythonplus compare: plus ended with status 1: too bad\n")
    result = compare("--ignore-status", "--rounds", "1", *job(tmp_path, code), cwd=tmp_path)
    assert result.status == 0
    assert "Note: plus ended with status 1." in result.out


def test_a_server(tmp_path: Path) -> None:
    port = str(free_port())
    (tmp_path / "server.py").write_text(SERVER)
    words = ["--url", f"http://127.0.0.1:{port}/", "--rate", "50", "--duration", "0.2"]
    command = [*words, "--rounds", "1", "--", PYTHON, "server.py", port]
    result = compare(*command, cwd=tmp_path)
    assert result.status == 0, result
    for part in ("open loop:\n", "closed loop:\n", "process tree:\n", "\np99.9, ", "\nstop, "):
        assert part in result.out


@pytest.mark.slow
def test_a_server_with_light_and_heavy_requests(tmp_path: Path) -> None:
    port = str(free_port())
    (tmp_path / "server.py").write_text(SERVER)
    light = {"path": "/light", "weight": 9}
    (tmp_path / "requests.jsonl").write_text(f"{json.dumps(light)}\n" + '{"path": "/heavy"}\n')
    words = ["--url", f"http://127.0.0.1:{port}/", "--rate", "50", "--duration", "0.4"]
    words += ["--requests", "requests.jsonl", "--rounds", "1", "--", PYTHON, "server.py", port]
    result = compare(*words, cwd=tmp_path)
    assert result.status == 0, result
    said = " ".join(result.out.split())
    assert f"2 different requests, http://127.0.0.1:{port}: 50/s" in said
    for kind in ("GET /light", "GET /heavy"):
        assert f"open loop, {kind}:\n" in result.out
    table = result.out.partition("\nopen loop:")[2]  # behind the commands, which may be long
    assert max(map(len, table.splitlines())) <= 80


def test_a_server_that_never_answers() -> None:
    words = ["--url", "http://127.0.0.1:1/", "--rate", "5", "--wait", "1"]
    code = "import time; print('hello', flush=True); time.sleep(600)"
    result = compare(*words, "--", PYTHON, "-c", code)
    assert result.status == 2
    assert result.stdout == b""
    line = result.err.splitlines()[-1]
    assert line.startswith("cpythonplus compare: stock: http://127.0.0.1:1/ did not answer")
    assert "the server printed: " in line


WAITS_IN_THE_SECOND_ROUND = """
import os, time
with open("runs", "a") as file:
    file.write(f"{os.getpid()}\\n")
if len(open("runs").readlines()) == 3:
    time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_shows_what_was_measured(
    tmp_path: Path, number: signal.Signals
) -> None:
    words = [*COMPARE, "--rounds", "3", *job(tmp_path, WAITS_IN_THE_SECOND_ROUND)]
    runs = tmp_path / "runs"
    with subprocess.Popen(
        words,
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # It is ignored where the tests run under nohup.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    ) as process:
        while not runs.exists() or runs.read_text().count("\n") < 3:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "Note: only 1 of 3 rounds were completed.\n" in out
    assert err.endswith("cpythonplus compare: interrupted\n")
    with pytest.raises(ProcessLookupError):
        os.kill(int(runs.read_text().split()[-1]), 0)
