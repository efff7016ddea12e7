"""`cpythonplus top`: what it prints of a process, and what its screen does on a terminal."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cpythonplus._cli.commands import top
from cpythonplus._cli.main import main
from cpythonplus._doctor.agent.client import connect
from cpythonplus._doctor.agent.finding import Unreachable
from cpythonplus._doctor.top.looking import Top
from tests.cli.support import (
    MODULE,
    RUNNER,
    assert_refused,
    environment,
    execute,
    listening,
)
from tests.servers import until

pytestmark = pytest.mark.needs_gil

PROGRAM = """\
import threading, time
lock = threading.RLock()
taken = threading.Event()
def own():
    with lock:
        taken.set()
        time.sleep(1000)
def want():
    with lock:
        pass
def compute():
    while True:
        sum(range(1000))
def start(function):
    threading.Thread(target=function, name=f"it {function.__name__}s", daemon=True).start()
start(compute)
start(own)
taken.wait()
start(want)
print("ready", flush=True)
input()
"""
IDLE = "print('ready', flush=True); input()"
SCREEN_LIMIT_S = 200


def test_once_as_json() -> None:
    with listening(*RUNNER, program=PROGRAM) as process:
        result = execute([*MODULE, "top", "--once", "--format", "json", str(process.pid)])
    assert (result.status, result.err) == (0, "")
    [found] = json.loads(result.out)["processes"]
    assert (found["pid"], found["problem"], found["scheduled"]) == (process.pid, "", True)
    threads = {each["name"]: each for each in found["threads"]}
    assert {*threads} >= {"MainThread", "it owns", "it wants", "it computes"}
    assert threads["it wants"]["state"] in {"Lock of it owns", "RLock of it owns"}
    assert threads["it wants"]["function"] == "want"
    assert (threads["it owns"]["file"], threads["it owns"]["line"]) == ("<string>", 7)
    assert threads["it computes"]["gil"] > threads["it owns"]["gil"]
    assert threads["it computes"]["level"] > threads["MainThread"]["level"]
    assert found["rss_bytes"] >= found["private_bytes"] > 1 << 20
    assert found["collections"]
    assert all(type(each) is int for each in found["collections"])
    assert len({each["native_id"] for each in found["threads"]}) == len(found["threads"])


def test_without_a_terminal_it_prints_once() -> None:
    with listening(*RUNNER, program=PROGRAM) as process:
        result = execute([*MODULE, "top", "--interval", "0.2", str(process.pid)])
        usual = execute([*MODULE, "top", "--once", str(process.pid)], env={"COLUMNS": "100"})
        narrow = execute([*MODULE, "top", "--once", str(process.pid)], env={"COLUMNS": "60"})
    assert re.search(r"it wants .* <string>:9 want\n", narrow.out), narrow.out
    assert max(map(len, usual.out.splitlines())) <= 100
    for each in (result, usual):
        assert (each.status, each.err) == (0, "")
        assert re.search(
            r"it wants .* R?Lock of it ow.* <string>:9(; made at <string>:2)? want\n", each.out
        ), each.out
    assert max(map(len, narrow.out.splitlines())) <= 60
    assert "\x1b" not in result.out


STALLS = """\
import threading, time
lock = threading.Lock()
def want():
    with lock:
        pass
def own():
    with lock:
        thread.start()
        time.sleep(1)
thread = threading.Thread(target=want)
own()
thread.join()
print("ready", flush=True)
input()
"""


def test_stalls_of_the_last_minute() -> None:
    with listening(*RUNNER, "--stalls", program=STALLS) as process:
        text = execute([*MODULE, "top", "--interval", "0.2", str(process.pid)]).out
        result = execute([*MODULE, "top", "--format", "json", str(process.pid)])
    stalls = json.loads(result.out)["processes"][0]["stalls"]
    [stall] = [each for each in stalls if each["what"] == "had a lock made at <string>:2"]
    assert (stall["file"], stall["line"], stall["function"]) == ("<string>", 9, "own")
    assert (stall["count"], stall["waiters"]) == (1, 1)
    assert re.search(r"  ! stall: <string>:9 in own: \d", text), text


ASYNC = """\
import asyncio
async def sleeper():
    await asyncio.sleep(1000)
async def main():
    tasks = [asyncio.ensure_future(sleeper()) for _ in range(20)]
    await asyncio.sleep(0)
    print("ready", flush=True)
    await asyncio.sleep(1000)
asyncio.run(main())
"""


def test_tasks_of_asyncio_are_counted_by_function() -> None:
    with listening(*RUNNER, program=ASYNC) as process:
        result = execute([*MODULE, "top", "--format", "json", str(process.pid)])
    tasks = {each["function"]: each for each in json.loads(result.out)["tasks"]}
    assert tasks["sleeper"]["count"] == 20
    assert (tasks["sleeper"]["kind"], tasks["sleeper"]["line"]) == ("asyncio", 3)


CHILDREN = """\
import os, threading, time
threading.Thread(target=time.sleep, args=(1000,), name="the master's", daemon=True).start()
if os.fork() == 0:
    threading.Thread(target=time.sleep, args=(1000,), name="the worker's", daemon=True).start()
    while os.getppid() != 1:
        time.sleep(0.01)
    os._exit(0)
print("ready", flush=True)
input()
"""


def test_the_children_are_shown_with_their_parent() -> None:
    with listening(*RUNNER, program=CHILDREN) as process:
        processes: list[dict[str, Any]] = []
        limit = time.monotonic() + SCREEN_LIMIT_S  # the child opens its socket behind the fork
        while time.monotonic() < limit:
            result = execute([*MODULE, "top", "--format", "json", str(process.pid)])
            processes = json.loads(result.out)["processes"]
            if len(processes) == 2:
                break
        process.stdin.close()  # type: ignore[union-attr]
        process.wait()
    names = [{thread["name"] for thread in each["threads"]} for each in processes]
    assert "the master's" in names[0]
    assert "the worker's" in names[1]
    assert "the master's" not in names[1]


# ---- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ([], ["expected one PID", "doctor list"]),
        (["1", "2"], ["expected one PID"]),
        (["me"], ["expected a PID, got 'me'"]),
        (["0"], ["expected a PID, got '0'"]),
        (["--onec", "1"], ["unknown option '--onec'", "--once?"]),
        (["--interval", "0", "1"], ["--interval: expected 0.1 to 3600 seconds"]),
        (["--interval", "x", "1"], ["--interval: "]),
        (["--format", "html", "1"], ["--format: expected text or json"]),
    ],
)
def test_wrong_words(words: list[str], parts: list[str]) -> None:
    assert_refused(execute([*MODULE, "top", *words]), "cpythonplus top: ", *parts)


def test_a_process_that_cannot_be_shown() -> None:
    with subprocess.Popen(["sleep", "1000"]) as sleep:
        result = execute([*MODULE, "top", "--once", str(sleep.pid)])
        sleep.kill()
    assert (result.status, result.out) == (1, "")
    assert result.err.count("\n") == 1
    assert "is not a Python program" in result.err
    gone = execute([*MODULE, "top", "--once", str(sleep.pid)])
    assert (gone.status, gone.err) == (1, f"cpythonplus top: there is no process {sleep.pid}\n")


@pytest.mark.parametrize("is_json", [False, True])
def test_a_process_that_ends_meanwhile(*, is_json: bool) -> None:
    with listening(*RUNNER, program=IDLE) as process, connect(process.pid) as client:
        shown = Top(client, 0.1)
        process.kill()
        process.wait()
        until("its end", lambda: shown.first.is_over)
        with pytest.raises(Unreachable, match=f"process {process.pid}"):
            top._tell(shown, 0.1, is_json=is_json)
        shown.stop()


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "--help"]) == 0
    text = capsys.readouterr().out
    assert "usage: cpythonplus top [options] PID\n" in text
    assert all(option.flag in text for option in top.OPTIONS)


# ---- the screen ---------------------------------------------------------------------------------


class Terminal:
    """A pseudo-terminal on which a `top` runs."""

    def __init__(self, pid: int, width: int, env: dict[str, str]) -> None:
        self.child, self.fd = pty.fork()
        if self.child == 0:
            size = {"COLUMNS": str(width), "LINES": "24", "TERM": "xterm-256color"}
            command = [*MODULE, "top", "--interval", "0.2", str(pid)]
            os.execve(command[0], command, environment({**size, **env}))
        self.seen = b""

    def wait_for(self, pattern: str) -> str:
        """Return what was written since the last call, up to the pattern."""
        limit = time.monotonic() + SCREEN_LIMIT_S
        while not re.search(pattern, plain(self.seen), re.DOTALL):
            assert time.monotonic() < limit, plain(self.seen)[-4000:]
            if select.select([self.fd], [], [], 1)[0]:
                try:
                    self.seen += os.read(self.fd, 65536)
                except OSError:  # the end
                    text = plain(self.seen)
                    assert re.search(pattern, text, re.DOTALL), text[-4000:]
        text, self.seen = plain(self.seen), b""
        return text

    def press(self, keys: bytes) -> None:
        os.write(self.fd, keys)

    def end(self) -> int:
        """Return the exit status."""
        limit = time.monotonic() + SCREEN_LIMIT_S
        while time.monotonic() < limit:
            try:
                if select.select([self.fd], [], [], 1)[0]:
                    self.seen += os.read(self.fd, 65536)
            except OSError:
                break
        return os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1])


def plain(data: bytes) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", data.decode(errors="replace"))


@contextmanager
def shown(pid: int, width: int, env: dict[str, str] | None = None) -> Iterator[Terminal]:
    terminal = Terminal(pid, width, env or {})
    try:
        yield terminal
    finally:
        try:
            os.kill(terminal.child, signal.SIGKILL)
            os.waitpid(terminal.child, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        os.close(terminal.fd)


@pytest.mark.parametrize("width", [80, 200])
def test_the_screen_and_its_keys(width: int) -> None:
    with listening(*RUNNER, program=PROGRAM) as process, shown(process.pid, width) as terminal:
        text = terminal.wait_for(r"it computes.*q quit")
        assert ("p50" in text) == (width == 200)
        assert f"{process.pid}  CPU" in text
        terminal.press(b"s")
        terminal.wait_for(r"sorted by CPU%")
        terminal.press(b"r")
        terminal.wait_for(r"sorted by CPU%, reversed")
        terminal.press(b"/wants")
        terminal.wait_for(r"/wants_")
        terminal.press(b"\n")
        text = terminal.wait_for(r"only 'wants'")
        terminal.press(b"\n")
        terminal.wait_for(r"stack of it wants, innermost first\s+<string>:9  want")
        terminal.press(b"\x1b")
        terminal.wait_for(r"view: threads")
        terminal.press(b"g")
        terminal.wait_for(r"longest at, called by\s+.*<string>:1[23] compute")
        terminal.press(b"a")
        terminal.wait_for(r"view: tasks")
        terminal.press(b" ")
        terminal.wait_for(r"held: space goes on")
        terminal.press(b"q")
        assert terminal.end() == 0


def test_no_color() -> None:
    colours = re.compile(rb"\x1b\[[0-9;]*3[0-9]m")
    with listening(*RUNNER, program=PROGRAM) as process:
        for coloured in (True, False):
            env = {} if coloured else {"NO_COLOR": "1"}
            with shown(process.pid, 80, env) as terminal:
                limit = time.monotonic() + SCREEN_LIMIT_S
                while time.monotonic() < limit and not (
                    b"q quit" in terminal.seen and (not coloured or colours.search(terminal.seen))
                ):
                    terminal.seen += os.read(terminal.fd, 65536)
                assert bool(colours.search(terminal.seen)) == coloured
                terminal.press(b"q")
                assert terminal.end() == 0


def test_the_process_ends_while_it_is_shown() -> None:
    with listening(*RUNNER, program=IDLE) as process, shown(process.pid, 80) as terminal:
        terminal.wait_for("q quit")
        process.kill()
        process.wait()
        text = terminal.wait_for(f"process {process.pid}( has ended)?\r\n$")
        assert "Traceback" not in text
        assert terminal.end() == 0


def test_the_terminal_is_restored_by_a_signal() -> None:
    with listening(*RUNNER, program=IDLE) as process, shown(process.pid, 80) as terminal:
        terminal.wait_for("q quit")
        os.kill(terminal.child, signal.SIGTERM)
        assert terminal.end() == -signal.SIGTERM
        assert b"\x1b[?1049l" in terminal.seen


# ---- a process that does not answer -------------------------------------------------------------

STUCK = """\
import ctypes, sys, threading
print("ready", flush=True)
sys.stdin.readline()
ctypes.PyDLL(None).sleep(1000)  # with the GIL
"""


def test_a_process_that_holds_the_gil_is_shown_by_what_the_kernel_knows() -> None:
    with listening(*RUNNER, program=STUCK) as process:
        process.stdin.write("\n")  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
        limit = time.monotonic() + 20
        while "nanosleep" not in Path(f"/proc/{process.pid}/wchan").read_text():
            if time.monotonic() > limit:
                break
        result = execute([*MODULE, "top", "--once", "--format", "json", str(process.pid)])
    assert result.status == 1
    [found] = json.loads(result.out)["processes"]
    assert "no answer for" in found["problem"]
    assert process.pid in {each["native_id"] for each in found["threads"]}
