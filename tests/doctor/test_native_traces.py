"""`doctor growth --native`: which C code keeps memory, and that the program is left as it was."""

import json
import sys
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from cpythonplus._cli.main import main
from cpythonplus._doctor.native_traces import reading, tracing
from cpythonplus._doctor.report.text import report_text
from tests.cli.support import RUNNER, listening

pytest.importorskip("memray")
pytestmark = pytest.mark.needs_gil

SHOP = """\
import gc, json, os, sys, tempfile, threading, time
from lxml import etree
kept = []
def leak():
    kept.append(etree.fromstring("<a>" + "<b>x</b>" * 500 + "</a>"))
def work():
    while True:
        leak()
        json.loads('{"noise": [1, 2]}')
        time.sleep(0.005)
threading.Thread(target=work, daemon=True).start()
def traced():  # into a file: the first tracer only warms up
    return bool(files())
def files():
    found = []
    for number in {*os.listdir("/proc/self/fd")} - {"0", "1", "2"}:
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:
            pass
    return [name for name in found if name.startswith(tempfile.gettempdir())]
def state():
    return [files(), repr(threading.getprofile()), repr(sys.getprofile()), gc.isenabled(),
            "_name" in vars(threading.Thread)]
def wait_until_traced():
    while not traced():
        time.sleep(0.001)
    time.sleep(0.1)
print("ready", flush=True)
for line in sys.stdin:
    exec(line)
"""
TELL = "print(json.dumps(state()), flush=True)"


def said(process: "Popen[str]", line: str) -> str:
    """Have the program execute a line, and return what it prints."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    return process.stdout.readline()


def grown(pid: int, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    asked = ["doctor", "growth", "--native", "--seconds", "1", "--format", "json"]
    assert main([*asked, str(pid)]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_library_and_the_line_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    with listening(*RUNNER, program=SHOP) as process:
        before = said(process, TELL)
        found = grown(process.pid, capsys)
        row = found["native"]["rows"][0]
        assert row["library"] == "lxml"
        assert row["place"] == {"file": "<string>", "line": 5, "function": "leak"}
        assert "xml" in row["native"]
        assert row["size_bytes"] > 1 << 20
        assert found["native"]["ended_by"] == ""
        text = report_text(found, 10, 200)
        first = next(line for line in text.splitlines() if line.startswith("- "))
        assert "from lxml, called at <string>:5; native: xml" in first
        assert "growth --native" not in text  # it has been asked for
        # The collector, threads and descriptors are as before, the file is gone.
        assert json.loads(said(process, TELL)) == json.loads(before)
        again = grown(process.pid, capsys)
        kinds = {row["kind"] for row in again["growth"]["kinds"]}
        assert again["native"]["rows"][0]["library"] == "lxml"
        assert not kinds & {"pipe", "files in /tmp"}


def test_greenlets_that_nobody_uses_are_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with listening(*RUNNER, program=SHOP) as process:
        said(process, "import greenlet; print(flush=True)")
        assert grown(process.pid, capsys)["native"]["rows"][0]["library"] == "lxml"
        line = "print(greenlet.gettrace(), sys.modules['greenlet'] is greenlet, flush=True)"
        assert said(process, line) == "None True\n"


def test_a_fork_ends_it_first(capsys: pytest.CaptureFixture[str]) -> None:
    program = SHOP.replace(
        'print("ready"',
        """\
def fork_when_traced():
    wait_until_traced()
    pid = os.fork()
    if not pid:
        clean = sys.getprofile() is None and "_name" not in vars(threading.Thread)
        os._exit(0 if clean else 1)
    globals()["status"] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
forker = threading.Thread(target=fork_when_traced)
print("ready\"""",
    )
    with listening(*RUNNER, program=program) as process:
        assert said(process, "forker.start(); print('started', flush=True)") == "started\n"
        found = grown(process.pid, capsys)
        assert found["native"]["ended_by"] == "fork"
        assert found["native"]["rows"][0]["library"] == "lxml"
        assert said(process, "forker.join(); print(status, flush=True)") == "0\n"


def test_a_profiler_of_the_program_stays(capsys: pytest.CaptureFixture[str]) -> None:
    program = SHOP.replace(
        'print("ready"',
        """\
def profile(frame, event, arg):
    pass
def set_when_traced():
    wait_until_traced()
    threading.setprofile(profile)
    sys.setprofile(profile)
    while "_name" in vars(threading.Thread):
        time.sleep(0.001)
    globals()["stays"] = sys.getprofile() is profile and threading.getprofile() is profile
setter = threading.Thread(target=set_when_traced)
print("ready\"""",
    )
    with listening(*RUNNER, program=program) as process:
        said(process, "setter.start(); print(flush=True)")
        assert grown(process.pid, capsys)["native"]["rows"]
        assert said(process, "setter.join(); print(stays, flush=True)") == "True\n"
        # One that is there before keeps memray away.
        said(process, "sys.setprofile(profile); print(flush=True)")
        assert main(["doctor", "growth", "--native", str(process.pid)]) == 1
        assert "has a profile function" in capsys.readouterr().err
        assert said(process, "print(sys.getprofile() is profile, flush=True)") == "True\n"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("sys.modules['memray'] = None", f"{sys.executable} -m pip install 'cpythonplus[native]'"),
        ("import greenlet; greenlet.getcurrent()", "a program with greenlets"),
        ("import cpythonplus.tasklets", "a program with tasklets"),
        ("import memray; t = memray.Tracker('/dev/null'); t.__enter__()", "traces this process"),
    ],
)
def test_it_says_why_not(line: str, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    with listening(*RUNNER, program=SHOP) as process:
        said(process, f"{line}; print(flush=True)")
        assert main(["doctor", "growth", "--native", str(process.pid)]) == 1
        error = capsys.readouterr().err
        assert reason in error
        assert error.count("\n") == 1
        assert json.loads(said(process, TELL))[0] == []


def test_memray_is_missing_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with listening(*RUNNER, program=SHOP) as process:
        monkeypatch.setitem(sys.modules, "memray", None)
        assert main(["doctor", "growth", "--native", str(process.pid)]) == 1
        error = capsys.readouterr().err
        assert f"{sys.executable} -m pip install 'cpythonplus[native]'" in error


def test_the_file_has_a_limit(capsys: pytest.CaptureFixture[str]) -> None:
    line = "import cpythonplus._doctor.native_traces.tracing as t; t._LARGEST = 100_000"
    with listening(*RUNNER, program=SHOP) as process:
        said(process, f"{line}; print(flush=True)")
        found = grown(process.pid, capsys)
        assert found["native"]["ended_by"] == "size"
        assert "its file was full" in report_text(found, 10, 200)


def test_it_ends_with_the_doctor() -> None:
    with Path("/dev/null").open("rb") as file:
        assert tracing._wait(file, 0.2, 1, 1 << 20) == ""
        thread_that_ends = Popen(["sleep", "0.2"])
        thread_that_ends.wait()
        assert tracing._wait(file, 0.1, thread_that_ends.pid, 1 << 20) == ""  # never seen
        assert tracing._wait(file, 60.0, 1, 0) == "size"


def test_the_program_is_told_from_what_it_uses() -> None:
    stack = [
        ("validate", "/venv/lib/python3.11/site-packages/pydantic/type_adapter.py", 210),
        ("load", "/usr/lib/python3.11/json/__init__.py", 3),
        ("order", "/srv/shop/orders.py", 14),
    ]
    assert reading._places(stack) == (stack[0], "/srv/shop/orders.py:14")
    assert reading._places(stack[2:]) == (stack[2], "")
    assert reading._places([]) == (("", "", 0), "")
    packages = "/venv/lib/python3.11/site-packages"
    for file, name in {
        f"{packages}/pydantic_core/_pydantic_core.cpython-311.so": "pydantic_core",
        f"{packages}/numpy.libs/libscipy_openblas64_-8fb3d286.so": "numpy",
        f"{packages}/_brotli.cpython-311-x86_64-linux-gnu.so": "_brotli",
        "/usr/lib/python3.11/lib-dynload/_sqlite3.cpython-311.so": "_sqlite3",
        "/usr/lib/x86_64-linux-gnu/libsqlite3.so.0.8.6": "libsqlite3",
    }.items():
        assert reading._package(file) == name, Path(file).name
