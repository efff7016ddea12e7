"""What answers at the other end of the doctor's socket may be broken, or mean no good.

A process of its own listens where an agent would, and answers what a test tells it to. Whatever
that is: one line and status 1, or a report, never a traceback.
"""

import base64
import contextlib
import io
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cpythonplus._cli import watch_screen
from cpythonplus._cli.main import main
from cpythonplus._doctor.agent import client, finding
from cpythonplus._doctor.agent.client import Client
from cpythonplus._doctor.agent.finding import Process, Unreachable
from tests.cli.support import run
from tests.damage import damaged
from tests.doctor import examinations

pytestmark = pytest.mark.any_version

# Answers by the name of the request: what goes over the wire, and whether it hangs up then.
SERVER = """\
import base64, json, os, socket, sys
folder = os.environ["XDG_RUNTIME_DIR"] + "/cpythonplus"
os.mkdir(folder, 0o700)
listening = socket.socket(socket.AF_UNIX)
listening.bind(f"{folder}/{os.getpid()}.sock")
listening.listen(64)
print("ready", flush=True)
while True:
    connection, _ = listening.accept()
    with connection, connection.makefile("rb") as lines:
        try:
            for line in lines:
                name = line.split()[2].decode()
                with open(folder + "/answers") as file:
                    answers = json.load(file)
                wire, hangs_up = answers.get(name) or answers["*"]
                connection.sendall(base64.b64decode(wire))
                if hangs_up:
                    break
        except OSError:
            pass  # the doctor has had enough
"""
COMMANDS: tuple[list[str], ...] = (
    ["attach"],
    ["attach", "--format=json"],
    ["attach", "--format=html", "--output=page.html"],
    ["watch"],
    ["trim"],
    ["referrers", "app.Node"],
    ["path", "app.Node"],
)
NAMES = (
    "hello",
    "resident",
    "census",
    "caches",
    "key_sharing",
    "exceptions",
    "gil",
    "threads",
    "workers",
)


def wire(body: bytes, failed: bytes = b"0", length: int | None = None) -> bytes:
    return struct.pack(">cI", failed, len(body) if length is None else length) + body


class Agent:
    """The process, and what it answers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-E", "-c", SERVER],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "XDG_RUNTIME_DIR": str(folder)},
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def answers(self, by_name: dict[str, bytes], *, hangs_up: bool = False) -> None:
        table = {n: (base64.b64encode(w).decode(), hangs_up) for n, w in by_name.items()}
        (self.folder / "cpythonplus" / "answers").write_text(json.dumps(table))

    def asked(self, *words: str) -> tuple[int, str, str]:
        """Run the doctor; a watch looks twice."""
        looks = []

        def sleep(_seconds: float) -> None:
            looks.append(1)
            if len(looks) > 1:
                raise KeyboardInterrupt

        out, err = io.StringIO(), io.StringIO()
        with (
            pytest.MonkeyPatch.context() as patches,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            patches.chdir(self.folder)
            patches.setattr(watch_screen, "sleep", sleep)
            patches.setattr(client, "_ABSENCE_S", 0.0)
            examination, *rest = words or ("attach",)
            status = main(["doctor", examination, str(self.process.pid), *rest])
        return status, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def agent() -> Iterator[Agent]:
    folder = Path(tempfile.mkdtemp(prefix="cpp-"))  # a path that is short enough for sockets
    found = Agent(folder)
    with found.process:
        yield found
        found.process.kill()
    shutil.rmtree(folder)


def test_an_agent_that_answers_as_it_should(agent: Agent) -> None:
    """Else nothing below would tell anything."""
    path = {"steps": ["module app", ".CACHE (dict)"], "rows": [], "before_bytes": 1024}
    agent.answers({"*": wire(json.dumps({**path, "after_bytes": 0, "pid": 7}).encode())})
    for words in COMMANDS:
        status, _, err = agent.asked(*words)
        assert (status, err) == (0, ""), words
    assert agent.asked("path", "app.Node")[1] == "module app -> .CACHE (dict)\n"
    assert "pid 7" in agent.asked()[1]


# ---- what is no answer --------------------------------------------------------------------------

NO_ANSWERS = {
    "nothing": b"",
    "half of a head": b"0\0\0",
    "no head": b"HTTP/1.1 200 OK\r\n\r\n",
    "less than was said": wire(b"{}", length=1000),
    "an empty text": wire(b""),
    "no JSON": wire(b"{'pid': 5}"),
    "a cut one": wire(b'{"pid": '),
    "more behind it": wire(b"{} {}"),
    "two in one": wire(b"{}") + b"garbage",
    "an array": wire(b"[1, 2]"),
    "a text": wire(b'"pid"'),
    "a number": wire(b"5"),
    "null": wire(b"null"),
    "no UTF-8": wire(b'{"pid": "\xff"}'),
    "a surrogate": wire(b'{"pid": "\xed\xa0\x80"}'),
    "UTF-16": wire('{"pid": 5}'.encode("utf-16")),
    "NaN": wire(b'{"rss_bytes": NaN}'),
    "infinity": wire(b'{"rss_bytes": -Infinity}'),
    "infinity in disguise": wire(b'{"rss_bytes": 1e999}'),
    "a number of 5000 digits": wire(b'{"rss_bytes": %s}' % (b"9" * 5000)),
    "a number of 4000 digits": wire(b'{"rss_bytes": %s}' % (b"9" * 4000)),
    "deep arrays": wire(b'{"a": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"),
    "arrays just too deep to be written": wire(b'{"a": ' + b"[" * 400 + b"]" * 400 + b"}"),
    "deep objects": wire(b'{"a": ' * 100_000 + b"1" + b"}" * 100_000),
    "a failure that is none": wire(b"[]", b"1"),
    "a failure in no JSON": wire(b"it failed", b"1"),
    "neither failed nor not": wire(b"{}", b"\x1b"),
}


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("what", NO_ANSWERS)
def test_what_is_no_answer_is_one_line(agent: Agent, what: str, words: list[str]) -> None:
    # The one that is cut short would be waited for: it hangs up.
    agent.answers({"*": NO_ANSWERS[what]}, hangs_up=what in list(NO_ANSWERS)[:4])
    status, out, err = agent.asked(*words)
    if what == "two in one" and words == ["watch"]:
        # It has begun, and ends; or the rest came with its first question.
        assert (status, (out + err).count("\n")) in {(0, 1), (1, 1)}
        return
    if what == "two in one" and words[0] in ("trim", "referrers", "path"):
        assert "is incomplete" in err  # it has read no further
    else:
        assert f"process {agent.process.pid} does not " in err
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("cpythonplus doctor: ")
    assert err[:-1].isprintable()


@pytest.mark.parametrize("name", NAMES[1:])
def test_what_is_no_answer_in_the_middle_is_one_line(agent: Agent, name: str) -> None:
    agent.answers({"*": wire(b"{}"), name: wire(b"[" * 200_000)})
    status, out, err = agent.asked()
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert f"({name}: JSON that is too large or too deep)" in err


def test_an_answer_that_is_too_long_is_not_read(agent: Agent) -> None:
    """Of a part: the others are there; of all: one line."""
    agent.answers({"*": wire(b"{}"), "census": wire(b"", length=(64 << 20) + 1)})
    status, out, err = agent.asked("attach", "--format=json")
    assert (status, err) == (0, "")
    assert json.loads(out)["census"] == {"error": "its answer to census is larger than 64 MiB"}
    assert json.loads(out)["workers"] == {}
    agent.answers({"*": wire(b"", length=0xFFFFFFFF)})
    status, out, err = agent.asked()
    assert (status, out) == (1, "")
    assert err == "cpythonplus doctor: its answer to hello is larger than 64 MiB\n"


def test_a_reason_is_one_line_of_what_can_be_seen(agent: Agent) -> None:
    for error in ("\x1b]0;title\x07\r\nand\u2028more", "x" * 100_000, 5, None, ["a"], "", " \n"):
        agent.answers({"*": wire(json.dumps({"error": error}).encode(), b"1")})
        status, out, err = agent.asked()
        assert (status, out, err.count("\n")) == (1, "", 1)
        assert err[:-1].isprintable()
        assert len(err) < 600
        is_reason = isinstance(error, str) and bool(error.strip())
        assert (err == "cpythonplus doctor: no reason was given\n") != is_reason


# ---- answers of the wrong kind ------------------------------------------------------------------


def test_what_is_missing_is_told(agent: Agent) -> None:
    agent.answers({"*": wire(b"{}")})
    for words in (["trim"], ["path", "app.Node"], ["referrers", "app.Node"]):
        status, out, err = agent.asked(*words)
        assert (status, out) == (1, "")
        assert err.endswith("is incomplete\n")
    for words in COMMANDS[:4]:
        assert agent.asked(*words)[::2] == (0, "")


def test_what_a_terminal_would_obey_is_escaped(agent: Agent) -> None:
    name = "\x1b]0;title\x07\x9b2J\u202egnp\r\n\ud800"
    row = {"name": name, "objects": 5, "size_bytes": 9 << 20, "resident_bytes": 9 << 20}
    row = {**row, "step": name, "type": name}
    full = {key: [row] for key in ("by_type", "by_owner", "parts", "threads", "workers", "steps")}
    texts = {"command": name, "steps": [name, row], "rows": [row], "before_bytes": 7, "pid": 3}
    first = {**full, **texts, "file": name, "error": name}
    grown = {"by_type": [{**row, "objects": 7, "size_bytes": 20 << 20}]}
    del first["error"]
    agent.answers({"*": wire(json.dumps({**first, **grown}).encode())})
    seen = 0
    for words in COMMANDS:
        status, out, err = agent.asked(*words)
        assert (status, err) == (0, "")
        assert out.replace("\n", "").isprintable(), words
        seen += "\\x1b]0;title\\x07" in out
        if "--format=json" in words:
            assert json.loads(out)["target"]["command"] == name
    assert seen == 4  # the report and the smaller questions; JSON and the page have their own way


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**64)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(examinations.HOSTILE),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401  # JSON
    """Yield the ways to everything inside."""
    inside: dict[Any, Any] = value if isinstance(value, dict) else {}
    if isinstance(value, list):
        inside = dict(enumerate(value))
    for key, each in inside.items():
        yield (*way, key)
        yield from places(each, (*way, key))


def whole() -> dict[str, Any]:
    """Return good answers by name, `*` for the smaller questions."""
    found = examinations.everything()
    answers = {
        name: found["target" if name == "hello" else name] for name in NAMES if name in found
    }
    step = {"name": "C heap", "freed_bytes": 2 << 20, "took_ns": 5, "note": "once"}
    small = {
        "rows": [{"name": "list", "references": 3}],
        "before_bytes": 5,
        "after_bytes": 3,
        "steps": ["module a", step],
    }
    return {"hello": {}, **answers, "*": small}


@st.composite
def wrong_answers(draw: st.DrawFn) -> dict[str, Any]:
    """Good answers in which some values are others, or missing, or something is added."""
    answers = json.loads(json.dumps(whole()))
    for _ in range(draw(st.integers(1, 6))):
        ways = [way for way in places(answers) if len(way) > 1]
        *way, key = draw(st.sampled_from(ways))
        table = answers
        for each in way:
            table = table[each]
        if draw(st.booleans()):
            table[key] = draw(json_values)
        elif isinstance(table, dict):
            del table[key]
    return answers  # type: ignore[no-any-return]


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(wrong_answers())
def test_values_of_other_kinds_are_no_traceback(agent: Agent, answers: dict[str, Any]) -> None:
    agent.answers({name: wire(json.dumps(each).encode()) for name, each in answers.items()})
    for words in COMMANDS:
        status, out, err = agent.asked(*words)
        assert status in (0, 1), words
        assert err.count("\n") == status, words
        assert (out.replace("\n", "") + err.replace("\n", "")).isprintable(), words
        if "--format=json" in words:
            found = json.loads(out)
            assert found["census"] == answers["census"]


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=64), st.booleans())
def test_any_bytes_are_no_traceback(agent: Agent, data: bytes, has_head: bool) -> None:
    agent.answers({"*": wire(data) if has_head else data}, hangs_up=True)
    for words in (["attach"], ["path", "app.Node"]):
        status, _, err = agent.asked(*words)
        assert (status, err.count("\n")) in ((0, 0), (1, 1))


# ---- who takes his time -------------------------------------------------------------------------


def test_damaged_answers_are_one_line(agent: Agent) -> None:
    """Cut at many places, and with bits flipped, also of the length."""
    right = wire(json.dumps({"rows": [], "before_bytes": 5, "after_bytes": 3}).encode())
    for data in damaged(right, most=len(right)):
        agent.answers({"*": data}, hangs_up=True)
        status, out, err = agent.asked("trim")
        assert status in (0, 1), data
        assert err.count("\n") == status, (data, err)
        assert bool(out) != bool(status)


def test_one_deadline_for_a_whole_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte a second keeps no doctor: by a clock of the test's own."""
    now = [0.0]
    monkeypatch.setattr(client, "time", SimpleNamespace(monotonic=lambda: now[0]))
    ours, theirs = socket.socketpair()
    theirs.close()

    class Trickling(socket.socket):
        def recv(self, length: int, flags: int = 0) -> bytes:
            del length, flags
            now[0] += 1.0
            return data.pop(0)

        def sendall(self, data: object, flags: int = 0) -> None:
            del data, flags

    body = b'{"pid":' + b" " * 1000 + b"5}"
    data = [bytes([each]) for each in wire(body)]
    found = Client(Process(os.getpid(), (0, 0, 0, 0), os.getpid(), 13), "")
    found._socket = Trickling(fileno=ours.detach())
    with found, pytest.raises(Unreachable, match="does not answer"):
        found.ask("hello")
    assert now[0] < client._ANSWER_TIMEOUT_S + 2


# ---- other people's folders ---------------------------------------------------------------------


def process_like(**changes: Any) -> Process:  # noqa: ANN401
    own = finding.find(os.getpid())
    return Process(**{**{each: getattr(own, each) for each in Process.__slots__}, **changes})


@pytest.fixture
def asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[[int], str]]:
    """A function that has a process of a user examined, which does not listen, and returns a line.

    Its temporary folder is `tmp_path`.
    """
    monkeypatch.setattr(finding, "_TEMPORARY", str(tmp_path))
    monkeypatch.setattr(finding, "_environment", lambda _pid: {})
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    with subprocess.Popen(["sleep", "600"]) as sleeping:

        def ask(uid: int) -> str:
            process = process_like(pid=sleeping.pid, uids=(uid,) * 4, minor=11)
            monkeypatch.setattr(client, "find", lambda _pid: process)
            assert main(["doctor", str(sleeping.pid)]) == 1
            out, err = capsys.readouterr()
            assert (out, err.count("\n")) == ("", 1)
            told = err.removeprefix(f"cpythonplus doctor: process {sleeping.pid} ")
            return told.removesuffix("; set its XDG_RUNTIME_DIR to a private folder of its user\n")

        yield ask
        sleeping.kill()


def test_why_there_is_no_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked_about: Callable[[int], str]
) -> None:
    own = os.geteuid()
    why = "does not listen because it has no folder for its socket: "
    plain = asked_about(own)
    assert "start it with `cpythonplus run`" in plain
    folder = tmp_path / f"cpythonplus-{own}"
    folder.mkdir(mode=0o755)
    assert asked_about(own) == f"{why}{folder} is accessible to other users"
    folder.chmod(0o700)
    assert asked_about(own) == plain
    theirs = folder.rename(tmp_path / f"cpythonplus-{own + 1}")
    user = finding.user_name(own)
    assert asked_about(own + 1) == f"{why}{theirs} belongs to another user ({user})"
    (tmp_path / f"cpythonplus-{own}").symlink_to(theirs)
    assert asked_about(own) == f"{why}{folder} is not a folder"
    folder.unlink()
    statvfs, read_only = os.statvfs, SimpleNamespace(f_flag=os.ST_RDONLY)
    at = str(tmp_path)
    monkeypatch.setattr(os, "statvfs", lambda path: read_only if path == at else statvfs(path))
    assert asked_about(own) == f"{why}{tmp_path} is on a read-only file system"
    # A runtime folder is another place.
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    monkeypatch.setattr(finding, "_environment", lambda _pid: {"XDG_RUNTIME_DIR": str(runtime)})
    (runtime / "cpythonplus").mkdir(mode=0o755)
    assert asked_about(own) == f"{why}{runtime}/cpythonplus is accessible to other users"
    monkeypatch.undo()


def test_a_program_without_a_place_for_its_socket_goes_on(tmp_path: Path) -> None:
    """Somebody else's name stands where its folder would be."""
    folder = tmp_path / "cpythonplus"
    folder.write_text("no folder")
    code = "from cpythonplus import _native; print(repr(_native.memory_agent_path()))"
    done = run("-c", code, XDG_RUNTIME_DIR=str(tmp_path))
    assert (done.status, done.err) == (0, "")
    assert not done.out.startswith(f"'{tmp_path}")


def test_what_is_not_connected_to(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in a folder of others, or a link: it may lead to any socket of the machine."""
    process = finding.find(agent.process.pid)
    folder = agent.folder / "cpythonplus"
    path = f"{folder}/{process.pid}.sock"
    assert finding.may_be_its(process, path)
    assert client._listening(process) is not None
    # A link to it, a link to its folder, a folder that others can write to, no folder at all.
    (tmp_path / "folder").symlink_to(folder)
    own = tmp_path / "own"
    own.mkdir(mode=0o700)
    (own / "x.sock").symlink_to(path)
    (own / "file").touch()
    links = (f"{tmp_path}/folder/{process.pid}.sock", f"{own}/x.sock")
    for each in (*links, f"{own}/file", f"{own}/none", f"{tmp_path}/none/x.sock"):
        assert not finding.may_be_its(process, each)
    folder.chmod(0o722)
    assert not finding.may_be_its(process, path)
    folder.chmod(0o700)
    # Whose the folder is: 5 asks about a process of 6.
    theirs = process_like(uids=(6, 6, 6, 6))
    status, lstat = folder.stat(), os.lstat
    monkeypatch.setattr(os, "geteuid", lambda: 5)
    for owner, trusted in ((0, True), (5, True), (6, True), (7, False)):
        found = os.stat_result((*status[:4], owner, *status[5:]))
        with monkeypatch.context() as patches:
            at = str(folder)
            patches.setattr(
                os, "lstat", lambda name, found=found, at=at: found if name == at else lstat(name)
            )
            assert finding.may_be_its(theirs, path) == trusted
    monkeypatch.setattr(client, "may_be_its", lambda *_: False)
    monkeypatch.setattr(client, "_open", lambda *_: pytest.fail("it was connected to"))
    assert client._listening(process) is None
