"""The command that lists what a program uses of eventlet and gevent."""

import io
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from cpythonplus import tasklets
from cpythonplus.tasklets import io as tasklets_io
from cpythonplus.tasklets import locks
from cpythonplus.tasklets.migrate import _names
from cpythonplus.tasklets.migrate.__main__ import main
from cpythonplus.tasklets.migrate._names import NONE, STAYS, WRITE, advice
from cpythonplus.tasklets.migrate._uses import python_uses, text_uses
from tools.setup_env import ROOT


def found(source: str) -> list[tuple[int, str, str]]:
    uses = python_uses(textwrap.dedent(source))
    return [(use.line, use.name, use.advice.kind) for use in uses]


def test_names_by_any_import() -> None:
    assert found(
        """
        import eventlet
        import gevent.monkey as m
        from eventlet import sleep as pause, greenpool
        from eventlet.green import socket
        m.patch_all()
        pause(1)
        eventlet.hubs.trampoline(3)
        greenpool.GreenPool(4).spawn(socket.socket)
        """
    ) == [
        (6, "gevent.monkey.patch_all", WRITE),
        (7, "eventlet.sleep", WRITE),
        (8, "eventlet.hubs.trampoline", WRITE),
        (9, "eventlet.green.socket.socket", WRITE),
        (9, "eventlet.greenpool.GreenPool", WRITE),
    ]


def test_a_name_before_its_import() -> None:
    source = """
        def later():
            return gevent.spawn(print)
        import gevent
        """
    assert found(source) == [(3, "gevent.spawn", WRITE)]


def test_other_modules_of_the_same_name() -> None:
    source = """
        from .gevent import spawn
        from mine import eventlet
        import eventlet_tools
        spawn(eventlet.sleep)
        """
    assert found(source) == []


def test_imports_without_a_use() -> None:
    assert found("import eventlet\nfrom gevent import events\n") == [
        (1, "import eventlet", WRITE),
        (2, "import gevent.events", NONE),
    ]


def test_what_may_stay() -> None:
    source = """
        import greenlet
        try:
            import gevent
        except ImportError:
            gevent = None
        greenlet.getcurrent()
        """
    assert found(source) == [(4, "import gevent", STAYS), (7, "greenlet.getcurrent", STAYS)]


def test_an_import_that_fails_for_another_reason() -> None:
    assert found("try:\n    import gevent\nexcept ValueError:\n    pass\n") == [
        (2, "import gevent", WRITE)
    ]


def test_words_in_strings() -> None:
    assert found("run(async_mode='gevent')\npatch('eventlet.sleep', 'gevents', 'a gevent')\n") == [
        (1, "'gevent'", WRITE),
        (2, "'eventlet.sleep'", WRITE),
    ]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("eventlet.tpool.Proxy", NONE),
        ("eventlet.tpool.execute", WRITE),
        ("eventlet.websocket.WebSocketWSGI", NONE),
        ("gevent.Greenlet", NONE),
        ("gevent.unheard_of", NONE),
        ("greenlet.greenlet", STAYS),
    ],
)
def test_kinds(name: str, kind: str) -> None:
    assert advice(name).kind == kind


def test_what_to_write_exists() -> None:
    """Each name of ours that the tables write."""
    places = {"io": tasklets_io, "locks": locks}
    texts = " ".join(each.text for each in _names._TABLE.values())
    names = re.findall(r"\b(io|locks)\.(\w+)", texts)
    assert len(names) > 20
    assert [name for place, name in names if not hasattr(places[place], name)] == []
    for name in (
        "getcurrent",
        "schedule",
        "run",
        "run_for",
        "channel",
        "dump",
        "report",
        "dump_on",
    ):
        assert f"{name}(" in texts
        assert hasattr(tasklets, name)
    for page in re.findall(r"how-to ([\w-]+)", texts):
        assert (ROOT / "docs/how-to" / f"{page}.md").exists()


def test_configurations() -> None:
    text = 'eventlet==0.36\ngunicorn -k eventlet app\n"gevent>=1",\nEVENTLET_HUB=x\nzope.event\n'
    text += "--worker-class=gevent\n"
    assert [(use.line, use.name) for use in text_uses(text)] == [
        (1, "eventlet"),
        (2, "-k eventlet"),
        (3, "gevent"),
        (6, "--worker-class=gevent"),
    ]


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's program gives the list that stands below it."""
    page = (ROOT / "docs/how-to/from-eventlet.md").read_text("utf-8")
    program = re.search(r"needs eventlet -->\n```python\n(.*?)```", page, re.DOTALL)
    listed = re.search(r"migrate old.py\n(.*?)```", page, re.DOTALL)
    assert program is not None
    assert listed is not None
    (tmp_path / "old.py").write_text(program[1])
    monkeypatch.chdir(tmp_path)
    out = io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    assert main(["old.py"]) == 1
    assert out.getvalue() == listed[1]


def test_folders_and_statuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "x.py").write_text("import gevent\n")
    (tmp_path / "fine.py").write_text("import time\n")
    (tmp_path / "notes.txt").write_text("gevent\n")
    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("0 uses in 0 files")
    (tmp_path / "python2.py").write_text("print 'gevent'\n")
    (tmp_path / "requirements-dev.txt").write_text("gevent\n")
    assert main([str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "python2.py: not read: " in out
    assert "requirements-dev.txt:1: gevent: write instead: cpythonplus\n" in out
    assert out.endswith("1 to write anew, 0 without a counterpart, 0 may stay; 1 files not read\n")
    with pytest.raises(SystemExit) as end:
        main([str(tmp_path / "nowhere")])
    assert end.value.code == 2


def test_what_cannot_be_read_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "deep.py").write_text("x = " + "-" * 100_000 + "1\n")
    (tmp_path / "encoded.py").write_text("# coding: rot13\nvzcbeg trirag\n")
    (tmp_path / "used.py").write_text("import gevent\ngevent.spawn('\\d')\n")
    os.mkfifo(tmp_path / "pipe.py")
    names = ["deep.py", "encoded.py", "pipe.py", "used.py"]
    assert main([str(tmp_path / name) for name in names]) == 1
    *lines, last = capsys.readouterr().out.splitlines()
    assert [Path(line.partition(":")[0]).name for line in lines] == names
    assert [": not read: " in line for line in lines] == [True, True, True, False]
    assert last.startswith("1 uses in 1 files")
    with pytest.raises(SystemExit) as end:
        main(["a" * 5000])
    assert end.value.code == 2


def test_names_and_outputs_of_any_kind(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff\n.py")).write_text("import gevent\ngevent.spawn(f)\n")
    command = [sys.executable, "-m", "cpythonplus.tasklets.migrate", str(tmp_path)]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (said.returncode, said.stderr) == (1, "")
    assert said.stdout.startswith(f"{tmp_path}/\\udcff\\n.py:2: gevent.spawn: ")
    with Path("/dev/full").open("w") as full:
        said = subprocess.run(command, stdout=full, stderr=-1, text=True, check=False)
    assert (said.returncode, said.stderr) == (
        2,
        "migrate: standard output: No space left on device\n",
    )
    reader, writer = os.pipe()
    os.close(reader)
    said = subprocess.run(command, stdout=writer, stderr=-1, text=True, check=False)
    os.close(writer)
    assert (said.returncode, said.stderr) == (1, "")
