"""`cpythonplus doctor run`, `doctor PID` and what else is asked of a PID, up to the report."""

import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import pytest

from cpythonplus._cli.commands import doctor, doctor_live
from cpythonplus._cli.main import main
from cpythonplus._doctor.agent import client, finding, listing, watched
from cpythonplus._doctor.agent.client import AskError, Client
from cpythonplus._doctor.agent.finding import Process, Unreachable
from cpythonplus._doctor.agent.listing import Candidate
from cpythonplus._doctor.report.labels import LABELS
from cpythonplus._doctor.report.live import line, screen
from tests.cli.support import MODULE, PYTHON, RUNNER, environment, execute, listening
from tests.servers import until

PROGRAM = """\
import sys
class Node: pass
class Leaf: pass
class User: pass
USERS = {"bob@example.org": User()}
KEPT = [Node() for _ in range(30_000)]
def grow():
    KEPT.extend(Leaf() for _ in range(30_000))
print("ready", flush=True)
for line in sys.stdin:
    grow()
    print("grown", flush=True)
"""


IDLE = """\
import time
print("ready", flush=True)
while True:
    time.sleep(0.01)
"""


target = partial(listening, program=PROGRAM)


def test_what_only_the_process_knows_of_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    program = (
        """\
from cpythonplus._doctor.questions import register
register("pool", "The pool", lambda: {"held_bytes": 3 << 20, "rows": [{"name": "app.Pool"}]})
"""
        + IDLE
    )
    with target(*RUNNER, program=program) as process:
        assert main(["doctor", str(process.pid)]) == 0
        text = capsys.readouterr().out
        assert all(said in text for said in ("The pool\n--------", "3 MiB", "app.Pool"))
        assert main(["doctor", "--format", "html", str(process.pid)]) == 0
        assert '<section id="pool"' in capsys.readouterr().out
        connection = client.reach(finding.find(process.pid))
        assert connection is not None
        watch = watched.Watched(connection)
        watch.look()
        assert watch.examination()["pool"] == {
            "held_bytes": 3 << 20,
            "rows": [{"name": "app.Pool"}],
        }


@pytest.mark.needs_gil
def test_a_process_under_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with target(*RUNNER) as process:
        pid = process.pid
        assert main(["doctor", "--format", "json", str(pid)]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["target"]["pid"] == pid
        assert "Node" in found["target"]["command"]
        assert found["gil"]["active"] is True
        assert found["exceptions"] == {"hoards": []}
        rows = {row["name"]: row["objects"] for row in found["census"]["by_type"]}
        assert rows["__main__.Node"] == 30_000
        assert found["resident"]["rss_bytes"] > 1 << 20
        # The report for people, and as a page.
        page = tmp_path / f"page-{pid}.html"
        words = ["--format", "html", "--output", f"{tmp_path}/page-%p.html"]
        assert main(["doctor", "attach", str(pid), *words]) == 0
        assert page.read_text().startswith("<!DOCTYPE html>")
        assert capsys.readouterr().out == ""
        assert main(["doctor", str(pid), "--format=html"]) == 0
        assert capsys.readouterr().out.startswith("<!DOCTYPE html>")
        assert main(["doctor", str(pid), "--top", "5"]) == 0
        text = capsys.readouterr().out
        assert f"pid {pid}" in text
        assert "__main__.Node" in text
        # The smaller questions.
        assert main(["doctor", "referrers", str(pid), "__main__.Node"]) == 0
        assert "list" in capsys.readouterr().out
        assert main(["doctor", "path", str(pid), "__main__.Node"]) == 0
        assert "KEPT" in capsys.readouterr().out
        for words, shown in (([], "['bob@...]"), (["--show-keys"], "['bob@example.org']")):
            assert main(["doctor", "path", *words, str(pid), "__main__.User"]) == 0
            assert shown in capsys.readouterr().out
        assert main(["doctor", "path", str(pid), "no.Such"]) == 1
        assert "no.Such" in capsys.readouterr().err
        assert main(["doctor", "trim", str(pid)]) == 0
        assert " resident before, " in capsys.readouterr().out
        process.send_signal(signal.SIGTERM)
        process.wait()
        assert main(["doctor", str(pid)]) == 1
        assert capsys.readouterr().err == f"cpythonplus doctor: there is no process {pid}\n"


@pytest.mark.slow
@pytest.mark.needs_gil
def test_what_grows_in_a_process(capsys: pytest.CaptureFixture[str]) -> None:
    program = """\
import time
KEPT = []
print("ready", flush=True)
while True:
    KEPT.extend([number] for number in range(1000))
    time.sleep(0.02)
"""
    with target(*RUNNER, program=program) as process:
        words = [str(process.pid), "--seconds", "2"]
        assert main(["doctor", "growth", *words]) == 0
        told = capsys.readouterr().out
        assert "RSS +" in told
        assert "__main__.KEPT (list)" in told
        assert main(["doctor", "growth", *words, "--format", "json"]) == 0
        found = json.loads(capsys.readouterr().out)["growth"]
        row = found["owners"][0]
        assert (row["name"], row["type"]) == ("__main__.KEPT", "list")
        assert row["entries"] > row["entries_before"] > 0
        assert main(["doctor", "growth", *words, "--format", "html"]) == 0
        told = capsys.readouterr().out
        assert "__main__.KEPT" in told
        assert "Nothing was examined" not in told


@pytest.mark.needs_gil
def test_an_interrupted_look_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    with target(*RUNNER) as process:
        monkeypatch.setattr(time, "sleep", interrupt)
        assert main(["doctor", "growth", str(process.pid)]) == 130
        assert capsys.readouterr().err == "cpythonplus doctor: interrupted\n"
        open_now = [str(each.readlink()) for each in Path(f"/proc/{process.pid}/fd").iterdir()]
        assert not [each for each in open_now if "cpythonplus-mark" in each]


@pytest.mark.needs_gil
def test_cycles_of_a_process_that_runs(capsys: pytest.CaptureFixture[str]) -> None:
    program = """\
import time
def leave():
    def walk(depth):
        return 0 if depth == 0 else walk(depth - 1)
    walk(2)
print("ready", flush=True)
while True:
    for _ in range(2000):
        leave()
    time.sleep(0.01)
"""
    with target(*RUNNER, program=program) as process:
        told, words = "", [""]
        for seconds in ("0.5", "2", "8", "32"):
            words = ["--seconds", seconds, str(process.pid)]
            assert main(["doctor", "cycles", *words]) == 0
            told = capsys.readouterr().out
            if "walk" in told:
                break  # otherwise the process may have had no processor meanwhile
        assert "walk" in told
        assert "<string>:3" in told
        assert main(["doctor", "cycles", "--format=json", *words]) == 0
        cycles = json.loads(capsys.readouterr().out)["cycles"]["cycles"]  # of imports, too
        assert "walk" in [(cycle["cause"] or {}).get("variable") for cycle in cycles]
        assert main(["doctor", "cycles", "--seconds", "x", str(process.pid)]) == 2
        assert "--seconds" in capsys.readouterr().err


@pytest.mark.needs_gil
def test_what_has_grown_between_two_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(tmp_path / name) for name in ("a.json", "b.json")]
    with target(*RUNNER) as process:
        for file in files:
            words = ["--format", "json", "--output", file]
            assert main(["doctor", str(process.pid), *words]) == 0
            assert process.stdin is not None
            assert process.stdout is not None
            print(file=process.stdin, flush=True)
            assert process.stdout.readline() == "grown\n"
            assert json.loads(Path(file).read_text())["owners"]["collects"] is True
    assert main(["doctor", "growth", *files, "--top", "3"]) == 0
    told = capsys.readouterr().out
    [row] = [line for line in told.splitlines() if "  __main__.KEPT (list)" in line]
    assert "60,000" in row
    assert "the collector is off" not in told
    assert "__main__.Leaf" in told
    other = tmp_path / "other.json"
    for content, complaint in (
        ("{", "is no report: not JSON"),
        ("[]", "is no report: not an object"),
        ("{}", "the second file has no owners"),
        (None, "cannot read"),
    ):
        other.unlink(missing_ok=True)
        if content is not None:
            other.write_text(content)
        assert main(["doctor", "growth", files[0], str(other)]) == 2
        assert complaint in capsys.readouterr().err
    found = json.loads(Path(files[1]).read_text())
    found["target"]["pid"] += 1
    other.write_text(json.dumps(found))
    assert main(["doctor", "growth", files[0], str(other)]) == 2
    assert "different processes" in capsys.readouterr().err
    found = json.loads(Path(files[1]).read_text())
    found["target"]["when"] = "2001-01-01 00:00:00+0000"
    other.write_text(json.dumps(found))
    assert main(["doctor", "growth", files[0], str(other)]) == 2
    assert "the first report is the later one" in capsys.readouterr().err
    saved = tmp_path / "saved.json"
    assert main(["doctor", "growth", *files, "--output", str(saved), "--format", "json"]) == 0
    assert json.loads(saved.read_text())["growth"]["owners"]
    found = json.loads(Path(files[1]).read_text())
    found["owners"]["owners"][0]["amount_bytes"] = 10**400
    other.write_text(json.dumps(found))
    assert main(["doctor", "growth", files[0], str(other)]) == 2
    assert "is no report: a number with too many digits" in capsys.readouterr().err
    for words, complaint in (
        ([*files, "--seconds", "5"], "--seconds: two reports"),
        ([*files, files[0]], f"unexpected argument {files[1]!r}"),
        ([files[0]], "expected a PID"),
        (["1", "--seconds", "1e9"], "expected 0.1 to 1,000,000 seconds"),
    ):
        assert main(["doctor", "growth", *words]) == 2
        assert complaint in capsys.readouterr().err


def test_a_process_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    """Without `run`: looked at where Python can be asked to listen, one line elsewhere."""
    with target(PYTHON, program=IDLE) as process:
        status = main(["doctor", "--format", "json", str(process.pid)])
        out, err = capsys.readouterr()
        if not hasattr(sys, "remote_exec"):
            assert (status, out, err.count("\n")) == (1, "", 1)
            assert "does not listen: start it with `cpythonplus run`" in err
            return
        assert (status, err) == (0, "")
        assert json.loads(out)["target"]["pid"] == process.pid
        # Nothing stays: no thread, no socket.
        while len(os.listdir(f"/proc/{process.pid}/task")) > 1:  # noqa: PTH208
            pass


@pytest.mark.skipif(not hasattr(sys, "remote_exec"), reason="Python 3.14 and later have it")
def test_a_process_that_does_not_want_to_be_asked(capsys: pytest.CaptureFixture[str]) -> None:
    with target(PYTHON, PYTHON_DISABLE_REMOTE_DEBUG="1") as process:
        assert main(["doctor", str(process.pid)]) == 1
        assert "cannot be asked to listen: " in capsys.readouterr().err


BECOMES = """\
import os
os.setgroups([])
os.setresgid(*{gids})
os.setresuid(*{uids})
"""


@pytest.mark.skipif(
    not hasattr(sys, "remote_exec") or os.geteuid() != 0, reason="root, and Python 3.14 or later"
)
def test_root_asks_processes_of_others(capsys: pytest.CaptureFixture[str]) -> None:
    """One that is somebody's altogether is looked at; one that can become root again is not."""
    nobody = (65534,) * 3
    program = BECOMES.format(uids=nobody, gids=nobody) + IDLE
    with target(PYTHON, program=program, XDG_RUNTIME_DIR="") as process:
        before = {*Path(tempfile.gettempdir()).glob("cpythonplus-doctor-*")}
        assert main(["doctor", "--format", "json", str(process.pid)]) == 0, capsys.readouterr().err
        assert json.loads(capsys.readouterr().out)["target"]["pid"] == process.pid
        others = {*Path(tempfile.gettempdir()).glob("cpythonplus-doctor-*")} - before
        until("the end of what other tests have", lambda: not any(x.exists() for x in others))
    for kind, uids, gids in (
        ("user", (65534, 65534, 0), nobody),
        ("user", (0, 65534, 0), nobody),
        ("group", nobody, (65534, 65534, 0)),
    ):
        program = BECOMES.format(uids=uids, gids=gids) + IDLE
        with target(PYTHON, program=program, XDG_RUNTIME_DIR="") as process:
            assert main(["doctor", str(process.pid)]) == 1
            out, err = capsys.readouterr()
            assert (out, err.count("\n")) == ("", 1)
            assert f"process {process.pid} has more than one {kind} (real " in err
            assert len(os.listdir(f"/proc/{process.pid}/task")) == 1  # noqa: PTH208


def test_switched_off(capsys: pytest.CaptureFixture[str]) -> None:
    with target(*RUNNER, "--no-doctor") as process:
        assert not any("cpythonplus-" in name for name in _sockets(process.pid))
        assert len(os.listdir(f"/proc/{process.pid}/task")) == 1  # noqa: PTH208
    assert capsys.readouterr().err == ""


def _sockets(pid: int) -> list[str]:
    return re.findall(rf"\S*/{pid}\.sock", Path("/proc/net/unix").read_text())


@pytest.mark.needs_gil
def test_watched_elsewhere_than_on_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.html"
    # Everything is asked for at each look, however long the one before took.
    monkeypatch.setattr(watched, "_LOOKS_PER_PAUSE", 0)
    monkeypatch.setattr(watched, "_LOOKS_PER_COPY", 0)
    with target(*RUNNER) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def between_two_looks(seconds: float) -> None:
            assert seconds == 1.5
            looks.append(capsys.readouterr().out)
            if len(looks) == 1:
                print("more", file=process.stdin, flush=True)
                assert process.stdout is not None
                assert process.stdout.readline() == "grown\n"
            else:
                process.kill()
                process.wait()

        looks: list[str] = []
        monkeypatch.setattr("cpythonplus._cli.watch_screen.sleep", between_two_looks)
        words = ["--interval", "1.5", "--format", "html", "--output", str(page)]
        assert main(["doctor", "watch", str(process.pid), *words]) == 0
    assert "  RSS " in looks[0]
    assert "  grown: __main__.Leaf +" in looks[1]
    assert capsys.readouterr().out == f"process {process.pid} has ended\n"
    assert "<svg" in page.read_text()


@pytest.mark.slow
def test_watched_on_a_terminal() -> None:
    """`q` and Ctrl-C end it, with status 0."""
    with target(*RUNNER) as process:
        for key in (b"q", None):
            try:
                master, slave = pty.openpty()
            except OSError as error:
                pytest.skip(f"no terminals here: {error}")
            words = [*MODULE, "doctor", "watch", str(process.pid)]
            env = environment({"TERM": "xterm", "COLUMNS": "100", "LINES": "40"})
            with subprocess.Popen(
                words,
                stdin=slave,
                stdout=slave,
                stderr=slave,
                env=env,
                start_new_session=True,
                # Ignored, as under nohup, it would stay so.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
            ) as watching:
                os.close(slave)
                seen = b""
                while b"to stop" not in seen:
                    seen += os.read(master, 4096)
                if key is None:
                    watching.send_signal(signal.SIGINT)
                else:
                    os.write(master, key)
                while True:
                    try:
                        seen += os.read(master, 4096)
                    except OSError:  # its other end is closed
                        break
                assert watching.wait(60) == 0, seen.decode()
            assert b"Traceback" not in seen, seen.decode()
            assert b"RSS" in seen
            os.close(master)


class Canned(Client):
    """A process that answers what it is told to."""

    def __init__(self, *answers: dict[str, dict[str, object]]) -> None:
        super().__init__(Process(os.getpid(), (0, 0, 0, 0), os.getpid(), 13), "")
        self.answers = list(answers)
        self.asked: list[str] = []

    def ask(self, name: str, argument: str = "", *, takes_s: float = 0.0) -> dict[str, object]:
        del argument, takes_s
        self.asked.append(name)
        if name == "hello" and len(self.answers) > 1 and "gil" in self.asked:
            self.answers.pop(0)
        if name not in self.answers[0]:
            raise AskError(f"no {name}")
        return self.answers[0][name]


def _answers(nodes: int, wait_ns: int) -> dict[str, dict[str, object]]:
    times = {"waits": {"total_ns": wait_ns, "count": nodes}}
    return {
        "hello": {"pid": 5, "command": "app", "rss_bytes": nodes << 20},
        "census": {
            "objects": nodes,
            "size_bytes": nodes * 100,
            "pause_ns": 0,
            "by_type": [{"name": "Node", "objects": nodes, "size_bytes": nodes * 100}],
        },
        "resident": {"parts": [{"name": "live_objects", "resident_bytes": nodes << 19}]},
        "gil": {"active": True, "switches": 3, "interactive": times, "batch": times},
    }


def test_the_screen(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    client = Canned(_answers(10, 1000), _answers(30, 5_001_000))
    found = watched.Watched(client)
    found.keep_target()
    found.look()
    sample = found.look()
    assert sample["growth"] == [{"name": "Node", "objects": 20, "size_bytes": 2000}]
    assert sample["gil"] == {"wait_ns": 10_002_000, "waits": 60, "switches": 3}
    sample["t_s"] = float(str(found.samples[0]["t_s"])) + 2
    text = line(found.samples)
    assert "RSS 30 MiB (+20 MiB)  objects 30 2.9 KiB  grown: Node +2 KiB" in text
    assert "  GIL waits 5 ms/s in 20 waits/s" in text
    console = Console(width=100, file=sys.stdout, color_system=None)
    console.print(screen(found.examination(), 5, 100))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].rstrip() == "pid 5, app"
    assert "live Python objects 15 MiB" in "".join(lines)
    assert any(re.fullmatch(r"\+2 KiB +\+20 +Node *", each) for each in lines)
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("width", [40, 66, 67, 80, 100])
def test_the_legend_keeps_a_name_and_its_size_in_one_line(
    width: int, capsys: pytest.CaptureFixture[str]
) -> None:
    from rich.console import Console

    names = ("live_objects", "c_heap_used", "c_heap_top", "large_blocks", "code")
    parts = [{"name": name, "resident_bytes": (12 + n) << 20} for n, name in enumerate(names)]
    found = watched.Watched(Canned({**_answers(10, 1000), "resident": {"parts": parts}}))
    found.look()
    Console(width=width, file=sys.stdout, color_system=None).print(
        screen(found.examination(), 5, width)
    )
    lines = capsys.readouterr().out.splitlines()
    for n, name in enumerate(names):
        assert any(f"\u2588 {LABELS[name].title} {12 + n} MiB" in each for each in lines), lines


def test_a_process_that_tells_little_can_be_watched() -> None:
    found = watched.Watched(Canned({"hello": {"pid": 5}}))
    found.look()
    found.look()
    assert "RSS " in line(found.samples)
    assert screen(found.examination(), 5, 80)
    assert found.examination()["census"] == {"error": "no census"}


def test_what_stops_the_process_is_asked_for_less_often() -> None:
    answers = _answers(10, 0)
    answers["census"]["pause_ns"] = 10**12
    client = Canned(answers)
    found = watched.Watched(client)
    found.look()
    found.look()
    assert client.asked.count("census") == 1
    assert client.asked.count("resident") == 2


@pytest.mark.any_version
def test_the_smaller_questions(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    answers: dict[str, dict[str, object]] = {
        "referrers": {"type": "app.Node", "rows": [{"name": "list", "references": 3}], "more": 0},
        "path": {"steps": ["app.CACHE", "[3]\x1b[31m\x7f"]},
        "trim": {
            "before_bytes": 3 << 20,
            "after_bytes": 1 << 20,
            "steps": [{"name": "C heap", "freed_bytes": 2 << 20, "took_ns": 5, "note": "once"}],
        },
    }
    canned = Canned(answers)
    monkeypatch.setattr("cpythonplus._doctor.agent.client.connect", lambda _pid: canned)
    told = []
    for name, *words in (["referrers", "app.Node"], ["path", "app.Node"], ["trim"]):
        assert main(["doctor", name, "12", *words]) == 0
        told.append(capsys.readouterr().out)
        assert (
            main(["doctor", name, "--format=json", "--output", f"{tmp_path}/%p", "12", *words]) == 0
        )
        assert capsys.readouterr().out == ""
        assert json.loads((tmp_path / "12").read_text()) == answers[name]
    assert told[0] == "to objects of app.Node\n\n  references  from\n           3  list\n"
    assert told[1] == "app.CACHE -> [3]\\x1b[31m\\x7f\n"
    assert told[2].startswith("3 MiB resident before, 1 MiB after\n")
    assert told[2].splitlines()[-1].split() == ["2", "MiB", "5", "ns", "C", "heap", "once"]


@pytest.mark.any_version
def test_wrong_words_are_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for words, told in (
        (["0"], "expected a PID, got '0'"),
        (["9" * 5000], "expected a PID, got '999"),
        (["12", "13"], "attach: unexpected argument '13'"),
        (["list", "12"], "list: unexpected argument '12'"),
        (["watch"], "watch: expected PID"),
        (["path", "12"], "path: expected TYPE"),
        (["wach", "12"], "unknown examination 'wach' (did you mean watch?)"),
        (
            ["watch", "--intervall", "1", "12"],
            "(did you mean --interval?); see cpythonplus doctor w",
        ),
        (
            ["12", "--show-keys"],
            "unknown option '--show-keys'; see cpythonplus doctor attach --help",
        ),
        (["path", "12", "x", "--show-keys=1"], "--show-keys takes no value"),
        (["12", "--output"], "--output: expected a value"),
        (["12", "--output", f"{tmp_path}/no/x"], "does not exist"),
        (["12", "--format", "jsn"], "--format: expected text or json or html, got 'jsn' (did you"),
        (["trim", "12", "--format", "html"], "--format: expected text or json, got 'html'"),
        (["watch", "12", "--format", "html"], "--format requires --output"),
        (["12", "--top", "0"], "--top: expected a number of 1 or more"),
        (["watch", "12", "--interval", "x"], "--interval: expected a number, got 'x'"),
        (
            ["watch", "12", "--interval", "0"],
            "--interval: expected 0.1 to 1,000,000 seconds, got '0'",
        ),
        (["path", "12", "a b"], "expected the name of a type, got 'a b'"),
        (["run", "--top", "0", "x.py"], "--top: expected a number of 1 or more, got '0'"),
        (["run"], "expected a script, -m MODULE"),
    ):
        assert main(["doctor", *words]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert err.startswith("cpythonplus doctor: ")
        assert told in err


@pytest.mark.any_version
def test_help_names_each_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--help"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 100
    for examination in doctor_live.EXAMINATIONS:
        assert f"\n  {examination.usage} " in text
        assert main(["doctor", examination.name, "--help"]) == 0
        own = capsys.readouterr().out
        assert max(map(len, own.splitlines())) <= 100
        for option in examination.options:
            assert f"    {option.flag} " in own
    assert doctor.main(["run", "--help"]) == 0
    assert "--output FILE" in capsys.readouterr().out


@pytest.mark.needs_gil
def test_which_processes_can_be_examined(capsys: pytest.CaptureFixture[str]) -> None:
    began = time.time()
    with target(*RUNNER) as process, target(*RUNNER, "--no-doctor") as silent:
        assert main(["doctor", "list", "--format", "json"]) == 0
        found = {x["pid"]: x for x in json.loads(capsys.readouterr().out)["processes"]}
        assert os.getpid() not in found
        assert found[process.pid]["reached_by"] == "socket"
        assert "class Node" in found[process.pid]["command"]
        assert abs(found[process.pid]["started_s"] - began) < 60
        ways = {found[silent.pid]["reached_by"], found[silent.pid]["why_not"]}
        assert "" in ways
        assert main(["doctor", "list"]) == 0
        heading, *lines = capsys.readouterr().out.splitlines()
        assert heading == "    PID   parent  resident       age  reached by       command"
        row = rf" *{process.pid} +{os.getpid()} +\S+ MiB +\d+ s  socket  "
        assert any(re.match(row, line) for line in lines)
        silent.send_signal(signal.SIGSTOP)
        assert main(["doctor", "list", "--format=json"]) == 0
        found = {x["pid"]: x for x in json.loads(capsys.readouterr().out)["processes"]}
        assert found[silent.pid]["reached_by"] == ""
        assert found[silent.pid]["why_not"].startswith(f"process {silent.pid} is stopped")


def test_a_process_that_can_be_asked_to_listen_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "reach", lambda _process: None)
    with target(PYTHON) as process:
        found = {each.pid: each for each in listing.candidates()}
    assert found[process.pid].reached_by == "sys.remote_exec"


@pytest.mark.any_version
def test_the_list_of_processes() -> None:
    now = time.time()
    one = Candidate(12, "python \x1b[31m", now - 11_000, "socket", "", 1, 300 << 20)
    other = Candidate(13, "python", 0.0, "", "process 13 does not listen")
    text = doctor_live.list_text([one, other])
    row = text.splitlines()[1]
    assert row.split()[:7] == ["12", "1", "300", "MiB", "3", "h", "03"]
    assert row.endswith("  socket           python \\x1b[31m")
    ages = [
        doctor_live.list_text([Candidate(1, "p", now - age, "socket")]).splitlines()[1].split()[4:6]
        for age in (0, 65, 90_000)
    ]
    assert ages == [["0", "s"], ["1", "min"], ["1", "d"]]
    assert "other Python processes: 1;" in text
    assert doctor_live.list_text([]).startswith("no process can be examined; ")


@pytest.mark.any_version
def test_interrupted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(_pid: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cpythonplus._doctor.agent.client.connect", interrupt)
    assert main(["doctor", "12"]) == 130
    assert capsys.readouterr().err == "cpythonplus doctor: interrupted\n"

    def unreachable(_pid: int) -> None:
        raise Unreachable("process 12 cannot be reached")

    monkeypatch.setattr("cpythonplus._doctor.agent.client.connect", unreachable)
    assert main(["doctor", "12"]) == 1
    assert capsys.readouterr().err == "cpythonplus doctor: process 12 cannot be reached\n"


# ---- doctor run ---------------------------------------------------------------------------------

ENDING = """\
import sys
class Node: pass
KEPT = [Node() for _ in range(30_000)]
def fetch():
    try:
        int("x")
    except ValueError as error:
        last = error
fetch()
print("done", *sys.argv[1:])
sys.exit(3)
"""


@pytest.mark.needs_gil
def test_run_examines_the_program_at_its_end(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(ENDING)
    words = ["--format", "json", "--output", "found.json"]
    done = execute([*MODULE, "doctor", "run", *words, "program.py", "a"], cwd=tmp_path)
    assert (done.status, done.out, done.err) == (3, "done a\n", "")
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["argv"] == [PYTHON, "program.py", "a"]
    [cycle] = found["cycles"]["cycles"]
    assert cycle["cause"]["variable"] == "last"
    rows = {row["name"]: row["objects"] for row in found["census"]["by_type"]}
    assert rows["__main__.Node"] == 30_000
    assert not [name for name, each in found.items() if isinstance(each, dict) and "error" in each]
    words = ["--format", "html", "--output", "page.html"]
    done = execute([*MODULE, "doctor", "run", *words, "program.py", "a"], cwd=tmp_path)
    assert (done.status, done.out, done.err) == (3, "done a\n", "")
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.needs_gil
@pytest.mark.parametrize("word", ["run", "cycles"])
def test_sigterm_ends_the_program_behind_the_report(tmp_path: Path, word: str) -> None:
    report = tmp_path / "report.json"
    command = [*MODULE, "doctor", word, "--format", "json", "--output", str(report)]
    with target(*command) as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == -signal.SIGTERM
    assert "cycles" in json.loads(report.read_text())


@pytest.mark.needs_gil
def test_a_program_that_handles_sigterm_does_so(tmp_path: Path) -> None:
    program = "import signal\nsignal.signal(signal.SIGTERM, lambda *_: exit(7))\n" + IDLE
    report = tmp_path / "report.json"
    command = [*MODULE, "doctor", "run", "--format", "json", "--output", str(report)]
    with target(*command, program=program) as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 7
    assert "census" in json.loads(report.read_text())


@pytest.mark.needs_gil
def test_sigterm_ends_a_watch_behind_the_report(tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    words = ["watch", "--interval", "0.2", "--format", "html", "--output", str(report)]
    with target(*RUNNER) as process:
        command = [*MODULE, "doctor", *words, str(process.pid)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=environment({})
        ) as watching:
            assert watching.stdout is not None
            assert watching.stdout.readline()
            watching.send_signal(signal.SIGTERM)
            assert watching.wait(60) == -signal.SIGTERM
    assert report.read_text().startswith("<!DOCTYPE html>")


def test_a_process_that_is_hidden_is_another_users(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbid(_pid: int, _signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", forbid)
    with pytest.raises(Unreachable, match="belongs to another user"):
        finding.find(2**22 + 1)


@pytest.mark.needs_gil
def test_run_tells_what_has_grown(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    words = ["--growth", "--format", "json", "--output", str(report)]
    program = "KEPT = [[number] for number in range(30_000)]"
    done = execute([*MODULE, "doctor", "run", *words, "-c", program], cwd=tmp_path)
    assert (done.status, done.err) == (0, "")
    rows = json.loads(report.read_text())["growth"]["owners"]
    assert rows[0]["name"] == "__main__.KEPT"


@pytest.mark.needs_gil
def test_run_tells_people_on_standard_error(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(ENDING)
    done = execute([*MODULE, "doctor", "run", "--top", "5", "program.py"], cwd=tmp_path)
    assert (done.status, done.out) == (3, "done\n")
    assert "__main__.Node" in done.err
    assert "Traceback" not in done.err


@pytest.mark.needs_gil
@pytest.mark.parametrize("collects", [True, False])
def test_whether_the_collector_is_on(
    collects: bool,  # a parameter
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The agent answers with the collector off, which is none of the program's doing."""
    program = IDLE if collects else f"import gc\ngc.disable()\n{IDLE}"
    with target(*RUNNER, program=program) as process:
        for words in (["growth", "--seconds", "0.1", str(process.pid)], [str(process.pid)]):
            assert main(["doctor", *words, "--format", "json"]) == 0
            found = json.loads(capsys.readouterr().out)
            assert (found.get("growth") or found["owners"])["collects"] is collects


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_memory_of_a_copy_is_announced_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    doctor_live._announce_copy(Canned())
    assert capsys.readouterr() == ("", "")
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    doctor_live._announce_copy(Canned())
    assert re.fullmatch(
        rf"cpythonplus doctor: process {os.getpid()} copies itself for a moment, which takes up to"
        r" [\d.]+ MiB more memory; where less can be had, the report goes without owners\n",
        terminal.getvalue(),
    )
