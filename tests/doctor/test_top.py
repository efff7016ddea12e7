"""The looks of `cpythonplus top`: rates, answers that are wrong, the lines, and the keys."""

import json
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from rich.cells import cell_len

from cpythonplus._base.data import Place
from cpythonplus._cli.top_screen import Screen
from cpythonplus._doctor.agent import finding
from cpythonplus._doctor.questions import taken
from cpythonplus._doctor.top import answering, tables
from cpythonplus._doctor.top.looking import Process, ProcessRow, StallRow, TaskRow, ThreadRow
from cpythonplus.gil import _stalls

MS = 1_000_000


def answer(now_ns: int, gil: list[Any] | None, **more: object) -> dict[str, object]:
    """Return an answer of this process, as it comes out of JSON."""
    threads = [[each.ident, each.native_id, each.name, 0, 7] for each in threading.enumerate()]
    found: dict[str, object] = {
        "now_ns": now_ns,
        "threads": threads,
        "functions": [["function", "/a/file.py"]],
        "gil": gil,
        "collections": [3, 2, 1],
        "modules": [],
    }
    return json.loads(json.dumps({**found, **more}))  # type: ignore[no-any-return]


class FakeClient:
    """A client that answers from a list; then the last answer again and again."""

    def __init__(self, *answers: dict[str, object], **others: Mapping[str, object]) -> None:
        self.process = finding.find(os.getpid())
        self.answers = [*answers]
        self.others = others

    def ask(self, name: str, _argument: str = "") -> Mapping[str, object]:
        if name != "top":
            return self.others[name]
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def close(self) -> None:
        pass


def looked(*answers: dict[str, object], **others: Mapping[str, object]) -> ProcessRow:
    """Return the row of this process after so many answers."""
    client: Any = FakeClient(*answers, **{"deadlock": {}, **others})
    process = Process(client.process.pid, client, 1.0)
    for _ in answers:
        process._ask()
    return process.row()


def of(*, serial: int = 5, ident: int, **fields: object) -> list[object]:
    """Return a row of the scheduler."""
    row: dict[str, object] = {
        "level": 1,
        "holds": False,
        "since": 0,
        "owner": 0,
        "waited": 0,
        "held": 0,
        "waits": 0,
        "times": [],
        **fields,
    }
    native_id = threading.get_native_id()
    return [serial, ident, native_id, *(row[name] for name in row)]


@pytest.fixture
def main_and_other() -> Iterator[tuple[int, int]]:
    """Yield the idents of this thread and of another one, which `answer` lists, too."""
    done = threading.Event()
    other = threading.Thread(target=done.wait, name="another thread")
    other.start()
    yield threading.get_ident(), other.ident or 0
    done.set()
    other.join()


def row_of(found: ProcessRow, ident: int) -> ThreadRow:
    return next(each for each in found.threads if each.ident == ident)


def test_shares_and_waits_are_those_between_two_looks(main_and_other: tuple[int, int]) -> None:
    own, other = main_and_other
    first = [of(ident=own, held=50 * MS, times=[1023, 90, 2047, 10]), of(serial=6, ident=other)]
    second = [
        of(ident=own, held=75 * MS, holds=True, times=[1023, 90, 2047, 12, 4095, 2]),
        of(serial=6, ident=other, level=8, since=3 * MS),
    ]
    found = looked(answer(1000 * MS, first), answer(1100 * MS, second))
    mine, others = row_of(found, own), row_of(found, other)
    assert mine.gil == pytest.approx(0.25)
    assert (mine.waits, mine.wait_p50_ns, mine.wait_p99_ns) == (4, 2047, 4095)
    assert (mine.state, mine.since_ns) == ("has the GIL", 0)
    assert (mine.function, mine.file, mine.line) == ("function", "/a/file.py", 7)
    assert (others.state, others.since_ns, others.level) == ("awaits the GIL", 3 * MS, 8)
    assert (others.gil, others.waits, others.wait_p99_ns) == (0, 0, None)
    assert found.collections == [3, 2, 1]
    assert found.scheduled


def test_a_thread_with_the_ident_of_an_ended_one_counts_from_zero(
    main_and_other: tuple[int, int],
) -> None:
    own, other = main_and_other
    first = [of(ident=own, held=500 * MS, times=[1023, 7]), of(serial=6, ident=other)]
    second = [of(serial=9, ident=own, held=10 * MS), of(serial=6, ident=other)]
    found = row_of(looked(answer(0, first), answer(100 * MS, second)), own)
    assert found.gil == pytest.approx(0.1)
    assert found.waits == 0


def test_the_only_thread_is_not_timed() -> None:
    own = threading.get_ident()
    rows = [of(ident=own, held=1)]
    threads = [[own, threading.get_native_id(), "MainThread", 0, 1]]
    looks = [answer(now, rows, threads=threads) for now in (0, 100 * MS)]
    assert row_of(looked(*looks), own).gil is None


def test_a_lock_is_named_by_its_owner_and_the_line_that_made_it(
    main_and_other: tuple[int, int],
) -> None:
    own, other = main_and_other
    rows = [of(ident=own, owner=6), of(serial=6, ident=other)]
    assert row_of(looked(answer(0, rows)), own).state == "Lock of another thread"
    waits = {
        "waits": [
            {
                "ident": own,
                "kind": "RLock",
                "method": "acquire",
                "made_at": {"file": "b.py", "line": 9},
                "waited_ns": 4 * MS,
                "owners": [other],
            }
        ],
        "names": {str(own): "MainThread", str(other): "another thread"},
        "deadlocks": [{"kind": "cycle", "threads": [own, other]}],
    }
    found = looked(answer(0, rows), deadlock=waits)
    mine = row_of(found, own)
    assert (mine.state, mine.since_ns, mine.made_at) == (
        "RLock of another thread",
        4 * MS,
        "b.py:9",
    )
    assert found.deadlocks == [["MainThread", "another thread"]]
    assert "  ! deadlock: MainThread, another thread" in tables.head_lines([found], 200)
    assert any(
        " /a/file.py:7; made at b.py:9 function" in line
        for line in tables.thread_lines(found.threads, 200)
    )
    ended = {"ident": own, "kind": "RLock", "method": "acquire", "owners": [], "owner_ended": True}
    found = looked(answer(0, rows), deadlock={"waits": [ended]})
    assert row_of(found, own).state == "RLock of an ended thread"
    queue = {"waits": [{"ident": own, "kind": "Queue", "method": "get", "owners": []}]}
    assert row_of(looked(answer(0, rows), deadlock=queue), own).state == "Queue.get"


@pytest.mark.parametrize(
    "wrong",
    [
        {"threads": None, "gil": 7},
        {"threads": [[1], "x", [True, 2, 3, 4, 5], ["a", 1, 2, 3, 4]], "functions": {}},
        {"threads": [[1, None, None, 99, "x"]], "functions": [["f"], 7]},
        {"gil": [[1, 2], [1, 2, 3, "x", 5, None, {}, 8, 9, 10, [1]], [[], 1] * 5]},
        {"collections": ["x", None], "now_ns": "soon", "modules": [7]},
        {"threads": [[1, 2, "\x1b[2Jname", 0, 7]], "functions": [["\x9b1m", "\u202e.py"]]},
    ],
)
def test_an_answer_that_is_wrong_shows_the_rest(wrong: dict[str, object]) -> None:
    """The process may be of another version, or malicious."""
    found = looked(answer(0, []), {**answer(100, []), **wrong})
    lines = tables.process_lines([found], [], 200)
    assert not any(character in line for line in lines for character in "\x1b\x9b\u202e")
    json.dumps(found.as_json())


# ---- inside of the process ----------------------------------------------------------------------


def test_the_answer_of_this_process() -> None:
    found = json.loads(json.dumps(answering.top()))
    mine = next(row for row in found["threads"] if row[0] == threading.get_ident())
    assert mine[1:3] == [threading.get_native_id(), threading.current_thread().name]
    name, file = found["functions"][mine[3]]
    assert (name, file) == (answering.top.__qualname__, answering.__file__)
    assert found["pid"] > 0


def test_a_stack() -> None:
    found: Any = taken("stack", str(threading.get_ident()))
    names = [row["function"] for row in found["stack"]]
    assert names.index("test_a_stack") > names.index("stack")
    with pytest.raises(LookupError, match="there is no thread 1"):
        taken("stack", "1")
    with pytest.raises(ValueError, match="invalid literal"):
        taken("stack", "me")


# ---- lines --------------------------------------------------------------------------------------


def thread(name: str = "worker", **fields: object) -> ThreadRow:
    known: dict[str, Any] = {
        "pid": 1,
        "native_id": 11,
        "ident": hash(name),
        "level": 2,
        "gil": 0.5,
        "cpu": 0.25,
        "waits": 3,
        "wait_p50_ns": 1000,
        "wait_p99_ns": 2 * MS,
        "state": "sleeps",
        "since_ns": 0,
        "made_at": "",
        "function": "function",
        "file": "/some/where/file.py",
        "line": 7,
        **fields,
    }
    return ThreadRow(name=name, **known)


def process(rows: list[ThreadRow], command: str = "app", problem: str = "") -> ProcessRow:
    return ProcessRow(
        pid=1,
        command=command,
        problem=problem,
        scheduled=True,
        cpu=None,
        rss_bytes=1 << 40,
        private_bytes=0,
        native_threads=9999,
        collections=[1, 2, 3],
        deadlocks=[],
        threads=rows,
    )


WIDE_NAME = "日本語の名前を持つスレッド"


@pytest.mark.parametrize("width", [1, 20, 40, 80, 100, 120, 200])
def test_lines_fit_the_terminal(width: int) -> None:
    rows = [
        thread("x" * 100, state="y" * 100, function="z" * 300, pid=2**22),
        thread(WIDE_NAME, function=WIDE_NAME * 20),
        thread(gil=None, cpu=None, level=None, wait_p99_ns=None, file="", function=""),
        thread(waits=10**9, wait_p99_ns=10**13, cpu=64.0, native_id=2**22),
    ]
    task = TaskRow(1, "asyncio", 10**6, "f" * 200, "s" * 200, "file", 1)
    stall = StallRow("w" * 100, WIDE_NAME, 10**6, 10**12, 10**11, 99, "f" * 200, 10**6, "g" * 200)
    busy = replace(process(rows, "c" * 300, "p" * 300), stalls=[stall] * 9)
    lines = tables.process_lines([busy] * 9, [task], width)
    assert max(map(cell_len, lines)) <= width
    if width >= 40:
        assert any("and 3 more processes" in line for line in lines)
        assert sum("and 6 more places with stalls" in line for line in lines) == 6


def test_a_narrow_terminal_gets_fewer_columns() -> None:
    least, narrow, wide = (
        tables.thread_lines([thread()], width)[0].split() for width in (40, 80, 140)
    )
    assert least == ["name", "GIL%", "CPU%", "at"]
    assert narrow == ["name", "level", "GIL%", "CPU%", "p99", "does", "at"]
    assert wide == ["TID", *narrow[:4], "waits", "p50", *narrow[4:]]
    assert tables.thread_lines([thread(pid=1), thread(pid=2)], 80)[0].split()[0] == "PID"


LONG_PATH = "/srv/shop/releases/2026-11-30/application/services/inventories/synchronising.py"
LONG_FUNCTION = "InventorySynchronisationService.synchronise_all_warehouses_with_remote"


@pytest.mark.parametrize("width", [40, 80, 100, 120, 200])
def test_lines_of_the_program_are_whole_at_each_width(width: int) -> None:
    at: dict[str, Any] = {"file": LONG_PATH, "line": 1234, "function": LONG_FUNCTION}
    waits = {"state": "Lock of another", "made_at": f"{LONG_PATH}:56", **at}
    head, first, second = tables.thread_lines([thread(**at), thread("w", **waits)], width)
    column = head.rindex("at")
    for line in (first, second):
        assert re.match(r"\S*sing\.py:1234(;| |$)", line[column:].lstrip("…")), line
    assert ("; made at" in second) == (width >= 120)
    if width >= 120:
        assert re.search(r"; made at \S*ising\.py:56( |$)", second), second
    kept = f"had a lock made at {LONG_PATH}:56"
    stall = StallRow(kept, "worker", 36, 11 * 10**9, 5 * 10**8, 2, LONG_PATH, 1234, LONG_FUNCTION)
    _, *lines = tables.head_lines([replace(process([]), stalls=[stall])], width)
    assert re.match(r"  ! stall: (synchro|…)\S*nising\.py:1234(:|$)", lines[0]), lines
    if width >= 80:
        assert "longest 500 ms, 36 times in a minute" in lines[0]
        assert "had a lock made at synchronising.py:56, worker" in lines[1]
    task = TaskRow(1, "asyncio", 20, LONG_FUNCTION, "waits", LONG_PATH, 1234)
    if width >= 80:
        assert "synchronising.py:1234" in tables.task_lines([task], width)[1]
    frame = {"function": LONG_FUNCTION, "file": LONG_PATH, "line": 1234}
    [line] = tables.stack_lines({"stack": [frame]}, width)
    assert "synchronising.py:1234" in line
    stack = {"holds": [3, 9 * MS, 5 * MS], "waits": [1, MS, MS], "frames": [[0, 1234], [0, 5]]}
    profile = {"functions": [[LONG_FUNCTION, LONG_PATH]], "stacks": [stack]}
    head, line = tables.profile_lines({1: profile}, width)
    assert re.match(r"\S*nising\.py:1234", line[head.index("at, ") :].lstrip("…")), line


def test_filter() -> None:
    rows = [thread("Alpha"), thread("b", state="Lock of Alpha"), thread("c", function="ALPHA.x")]
    assert tables.matching([*rows, thread("d")], "alpha") == rows


# ---- keys ---------------------------------------------------------------------------------------


class FakeTop:
    """The processes that a screen shows; notes what it asks for."""

    def __init__(self, rows: list[ThreadRow]) -> None:
        self.asked: list[object] = []
        self.process = process(rows)

    def rows(self) -> list[ProcessRow]:
        return [self.process]

    def want(self, *arguments: object) -> None:
        self.asked.append(arguments)

    def no_longer(self, name: str) -> None:
        self.asked.append(f"not {name}")

    def want_tasks(self) -> None:
        self.asked.append("tasks")

    def end_profile(self) -> None:
        self.asked.append("end of profile")

    def tasks(self) -> list[TaskRow]:
        return []

    def answers(self, _name: str) -> dict[int, Any]:
        return {}


@pytest.fixture
def screen() -> Screen:
    rows = [thread("a", gil=0.9, cpu=0.1), thread("b", gil=0.2, cpu=0.8), thread("c", gil=0.1)]
    top: Any = FakeTop(rows)
    shown = Screen(top, 1.0)
    shown.picture(top.rows(), 80, 24)
    return shown


def press(screen: Screen, *keys: str) -> list[str]:
    """Press keys, and return the names in the order of the picture."""
    picture = ""
    for key in keys:
        assert screen.obey(key)
        picture = screen.picture(screen._top.rows(), 80, 24).plain
    assert len(picture.splitlines()) == 24
    return [row.name for row in screen._threads]


def asked(screen: Screen) -> list[object]:
    top: Any = screen._top
    return top.asked  # type: ignore[no-any-return]


def test_sorting_and_filtering(screen: Screen) -> None:
    assert press(screen, "x") == ["a", "b", "c"]
    assert press(screen, "s") == ["b", "c", "a"]  # by CPU
    assert press(screen, "r") == ["a", "c", "b"]
    assert press(screen, "/", *"bq") == []
    assert press(screen, "backspace") == ["b"]
    assert press(screen, "enter", "escape") == ["a", "c", "b"]
    assert not screen.obey("q")


def test_the_stack_of_the_chosen_thread(screen: Screen) -> None:
    press(screen, "down", "down", "up", "enter")
    assert asked(screen) == [("stack", str(hash("b")), 1)]
    press(screen, "escape")
    assert asked(screen)[1:] == ["not stack"]


def test_a_choice_stays_with_its_thread(screen: Screen) -> None:
    press(screen, "down", "s", "enter")
    assert asked(screen) == [("stack", str(hash("b")), 1)]


def test_costly_answers_are_asked_for_only_while_they_are_shown(screen: Screen) -> None:
    press(screen, "a", "g", "escape")
    assert asked(screen) == [
        "tasks",
        "not tasks",
        "not tasklets",
        ("gil_profile",),
        "not gil_profile",
        "end of profile",
    ]


@pytest.mark.parametrize(("width", "height"), [(1, 1), (20, 3), (80, 5), (400, 100)])
def test_any_size_of_the_terminal(screen: Screen, width: int, height: int) -> None:
    picture = screen.picture(screen._top.rows(), width, height).plain
    assert len(picture.split("\n")) == height


def test_many_threads_scroll_with_the_choice() -> None:
    top: Any = FakeTop([thread(f"t{number:03}", gil=1 - number / 1000) for number in range(500)])
    screen = Screen(top, 1.0)
    for key in ("page down",) * 5:
        screen.picture(top.rows(), 80, 24)
        screen.obey(key)
    shown = screen.picture(top.rows(), 80, 24).plain
    assert "t100" in shown
    assert "t000" not in shown


def test_stalls_of_the_last_minute_by_place() -> None:
    def stall(ago_s: float, line: int, hold_ns: int) -> _stalls.Stall:
        place = Place("app.py", line, "parse")
        kept = {"waiters": 2, "waited_ns": 5, "kind": "C", "stack": (place,)}
        return _stalls.Stall(time.time() - ago_s, "worker", 1, 2, hold_ns, **kept)  # type: ignore[arg-type]

    before = [*_stalls._kept]
    _stalls._kept.clear()
    try:
        _stalls.note(stall(90, 1, 10**9), stall(9, 1, 10**8), stall(8, 2, 3 * 10**8))
        _stalls.note(stall(5, 1, 4 * 10**8))
        found = looked(json.loads(json.dumps(answering.top()))).stalls
    finally:
        _stalls._kept.clear()
        _stalls._kept.extend(before)
        _stalls.untold.clear()
    kept = "C code kept the GIL"
    assert found == [
        StallRow(kept, "worker", 2, 5 * 10**8, 4 * 10**8, 2, "app.py", 1, "parse"),
        StallRow(kept, "worker", 1, 3 * 10**8, 3 * 10**8, 2, "app.py", 2, "parse"),
    ]
    lines = tables.head_lines([replace(process([]), stalls=found)], 200)
    twice = "longest 400 ms, 2 times in a minute, 500 ms together"
    assert lines[1:] == [
        f"  ! stall: app.py:1 in parse: {twice}, worker: {kept}",
        f"  ! stall: app.py:2 in parse: 300 ms, worker: {kept}",
    ]
