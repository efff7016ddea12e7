"""`doctor growth --native`: which C code keeps memory, and that the program is left as it was."""

import json
import re
import sys
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from cpythonplus._cli.main import main
from cpythonplus._doctor.native_traces import reading, tracing
from cpythonplus._doctor.report.text import report_text
from cpythonplus._doctor.report.verdict import statements
from tests.cli.support import RUNNER, listening
from tests.support import SANITIZED

pytest.importorskip("memray")
pytestmark = pytest.mark.needs_gil

SHOP = """\
import gc, json, os, sys, tempfile, threading, time
from lxml import etree
from cpythonplus import _native
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
    while not (traced() and _native.memory_profilers()):
        time.sleep(0.001)
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


def grown(pid: int, capsys: pytest.CaptureFixture[str], *, seconds: float = 1) -> dict[str, Any]:
    asked = ["doctor", "growth", "--native", "--seconds", str(seconds), "--format", "json"]
    assert main([*asked, str(pid)]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_library_and_the_line_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    with listening(*RUNNER, program=SHOP) as process:
        before = said(process, TELL)
        found = grown(process.pid, capsys)
        row = found["native"]["rows"][0]
        assert row["library"] == "lxml"
        assert row["place"] == {"file": "<string>", "line": 6, "function": "leak"}
        assert "xml" in row["native"]
        assert row["size_bytes"] > 1 << 18
        assert found["native"]["ended_by"] == ""
        text = report_text(found, 10, 200)
        first = next(line for line in text.splitlines() if line.startswith("- "))
        assert "from lxml, called at <string>:6; native: xml" in first
        assert "growth --native" not in text  # it has been asked for
        # The collector, threads and descriptors are as before, the file is gone.
        assert json.loads(said(process, TELL)) == json.loads(before)
        again = grown(process.pid, capsys)
        kinds = {row["kind"] for row in again["growth"]["kinds"]}
        assert again["native"]["rows"][0]["library"] == "lxml"
        assert not kinds & {"pipe", "files in /tmp"}


GREENLETS = """\
import greenlet
hub, rounds = threading.local(), [0]
def deep(depth):
    before = bytes(600)
    if depth:
        deep(depth - 1)
    hub.current.switch()
    return before, bytes(700)
def switch(waits):
    if waits:
        wait_until_traced()
    hub.current = greenlet.getcurrent()
    waiting = []
    while True:
        waiting = [each for each in waiting if not each.dead]
        while len(waiting) < 20:
            depth = len(waiting)
            waiting.append(greenlet.greenlet(lambda: [deep(depth) for _ in range(9)]))
        for each in waiting:
            each.switch()
        rounds[0] += 1
        time.sleep(0.001)
"""


@pytest.mark.slow
@pytest.mark.parametrize("waits", [False, True])
def test_greenlets_switch_meanwhile(waits: bool, capfd: pytest.CaptureFixture[str]) -> None:
    program = SHOP.replace('print("ready"', f'{GREENLETS}print("ready"')
    with listening(*RUNNER, program=program) as process:
        start = f"threading.Thread(target=switch, args=({waits},), daemon=True).start()"
        said(process, f"{start}; print(flush=True)")
        for _ in range(2):  # memray sets its trace function the first time only
            found = grown(process.pid, capfd)["native"]
            assert "error" not in found, found
            assert found["rows"][0]["library"] == "lxml"
        line = "before = rounds[0]; time.sleep(0.5); print(rounds[0] > before > 0, flush=True)"
        assert said(process, line) == "True\n"
        assert "xperiment" not in capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(SANITIZED, reason="the sanitizer's allocator maps memory of its own")
@pytest.mark.parametrize(
    "leak", ["C.PyMem_Malloc(400)", "C.Py_IncRef(ctypes.py_object(bytes(4000)))"]
)
def test_what_no_object_explains_has_a_line(leak: str, capsys: pytest.CaptureFixture[str]) -> None:
    program = SHOP.replace("from lxml import etree", "import ctypes; C = ctypes.PyDLL(None)")
    program = re.sub(r"    kept.append.*", f"    for _ in range(20):\n        {leak}", program)
    with listening(*RUNNER, program=program) as process:
        found = [row.sentence for row in statements(grown(process.pid, capsys, seconds=4))]
    assert any("at <string>:7" in each for each in found), found


def test_a_fork_ends_it_first(capsys: pytest.CaptureFixture[str]) -> None:
    program = SHOP.replace(
        'print("ready"',
        """\
def fork_when_traced():
    wait_until_traced()
    before = len(kept)
    while len(kept) < before + 5:  # there is something to tell
        time.sleep(0.001)
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
        found = grown(process.pid, capsys, seconds=5)
        assert found["native"]["ended_by"] == "fork"
        assert found["native"]["rows"][0]["library"] == "lxml"
        assert said(process, "forker.join(); print(status, flush=True)") == "0\n"


def test_a_profiler_of_the_program_stays(capsys: pytest.CaptureFixture[str]) -> None:
    program = SHOP.replace(
        'print("ready"',
        """\
def profile(frame, event, arg):
    pass
ended = threading.Event()
def set_when_traced():
    wait_until_traced()
    threading.setprofile(profile)
    sys.setprofile(profile)
    ended.wait()
    globals()["stays"] = sys.getprofile() is profile and threading.getprofile() is profile
setter = threading.Thread(target=set_when_traced)
print("ready\"""",
    )
    with listening(*RUNNER, program=program) as process:
        said(process, "setter.start(); print(flush=True)")
        assert grown(process.pid, capsys)["native"]["rows"]
        assert said(process, "ended.set(); setter.join(); print(stays, flush=True)") == "True\n"
        # One that is there before keeps memray away.
        said(process, "sys.setprofile(profile); print(flush=True)")
        assert main(["doctor", "growth", "--native", str(process.pid)]) == 1
        assert "has a profile function" in capsys.readouterr().err
        assert said(process, "print(sys.getprofile() is profile, flush=True)") == "True\n"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("sys.modules['memray'] = None", f"{sys.executable} -m pip install 'cpythonplus[native]'"),
        ("import cpythonplus.tasklets", "a program with tasklets"),
        ("import gevent; gevent.config.monitor_thread = True", "gevent's monitor"),
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
