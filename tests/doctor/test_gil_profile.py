"""The profile of the GIL: exact counts by stack, its limits, and the formats of its file."""

import json
import re

import pytest

from cpythonplus._doctor.gil_profile import writing
from tests.support import run_child

pytestmark = pytest.mark.needs_gil

BUSY = """
import gc, os, sys, threading, weakref
from cpythonplus import _native, gil
from cpythonplus._doctor.gil_profile import recording

gil.install()


def held(statistics):
    both = (statistics.interactive, statistics.batch)
    return sum(each.holds.count for each in both), sum(each.waits.count for each in both)


def compute(stop, began=threading.Event()):
    while not stop.is_set():
        sum(range(500))
        began.set()


def give_up():
    os.stat("/")


def work(turns=200, function=give_up):
    stop, began = threading.Event(), threading.Event()
    thread = threading.Thread(target=compute, args=(stop, began), name="computes")
    thread.start()
    began.wait()
    for _ in range(turns):
        function()
    stop.set()
    thread.join()


def sums(rows):
    return tuple(sum(row[at][0] for row in rows) for at in (1, 2))
"""


def test_each_hold_and_each_wait_is_counted_once() -> None:
    """What the scheduler counts before and after encloses what the profile counts."""
    run_child(
        BUSY
        + """
outer = held(gil.statistics())
recording.start()
inner = held(gil.statistics())
work()
rows_1 = sums(_native.gil_profile_rows())
inner_end = held(gil.statistics())
rows_2 = sums(_native.gil_profile_rows())
outer_end = held(gil.statistics())
for i in (0, 1):
    assert inner_end[i] - inner[i] <= rows_2[i], (i, inner, inner_end, rows_2)
    assert rows_1[i] <= outer_end[i] - outer[i], (i, outer, outer_end, rows_1)
assert rows_1[0] > 50 and rows_1[1] > 0, rows_1
"""
    )


def test_a_stack_has_its_functions_and_lines() -> None:
    run_child(
        BUSY
        + """
recording.start()
work()
found = recording.taken()
names = [each[0] for each in found["functions"]]
stacks = [[(names[n], line) for n, line in each["frames"]] for each in found["stacks"]]
computing = [each for each in stacks if any(name == "compute" for name, _ in each)]
first = compute.__code__.co_firstlineno
lines = {line for each in computing for name, line in each if name == "compute"}
assert lines and lines <= {*range(first, first + 4)}, lines
assert {each[-1][0] for each in computing} == {"Thread._bootstrap"}, computing
assert any(name == "work" for each in stacks for name, _ in each)
for each in found["stacks"]:
    for count, total, longest in (each["holds"], each["waits"]):
        assert longest <= total and bool(count) == bool(total), each
"""
    )


def test_a_deep_stack_is_cut_and_full_tables_are_told() -> None:
    run_child(
        BUSY
        + """
def deep(n):
    return deep(n - 1) if n else work(20)


recording.start()
deep(300)
found = recording.taken()
cut = [each for each in found["stacks"] if each["is_cut"]]
assert cut and all(len(each["frames"]) == 128 for each in cut)

functions = {}
for number in range(17_000):  # more stacks than there are rows
    exec(f"def f{number}():\\n    os.stat('/')", globals(), functions)
stop = threading.Event()
thread = threading.Thread(target=compute, args=(stop,))
thread.start()
for function in functions.values():
    function()
stop.set()
thread.join()
rows = _native.gil_profile_rows()
assert len(rows) <= 16384, len(rows)
full = len(rows) == 16384
assert not full or rows[0][1][0] > 0, rows[0]
rest = [each for each in recording.taken()["stacks"] if each["is_rest"]]
assert bool(rest) == full
"""
    )


def test_code_objects_live_as_long_as_the_profile() -> None:
    run_child(
        BUSY
        + """
space = {"os": os}
exec("def short_lived():\\n    os.stat('/')", space)
gone = weakref.ref(space["short_lived"].__code__)
recording.largest()
work(300, space.pop("short_lived"))
names = [each[0] for each in recording.taken()["functions"]]
assert "short_lived" in names, names
gc.collect()
assert gone() is not None
recording.end()
assert _native.gil_profile_rows() == [(0, (0, 0, 0), (0, 0, 0))]
gc.collect()
assert gone() is None
"""
    )


def test_a_doctors_profile_ends_by_itself_but_not_the_programs() -> None:
    run_child(
        BUSY
        + """
_native.gil_profile_start(10)
work()
assert sum(sums(_native.gil_profile_rows())) == 10
recording.largest()
work()
assert sum(sums(_native.gil_profile_rows())) > 10
recording.start()
recording.end()
before = sum(sums(_native.gil_profile_rows()))
assert before > 10
work()
assert sum(sums(_native.gil_profile_rows())) > before
"""
    )


def test_a_forked_child_counts_from_zero() -> None:
    run_child(
        BUSY
        + """
recording.start()
work()
before = sums(_native.gil_profile_rows())
if (child := os.fork()) == 0:
    mine = sums(_native.gil_profile_rows())
    work()
    more = sums(_native.gil_profile_rows())
    os._exit(0 if mine[0] < before[0] and more[0] > mine[0] else 1)
assert os.waitpid(child, 0)[1] == 0
assert sums(_native.gil_profile_rows()) >= before
"""
    )


def test_threads_that_come_and_go_while_it_begins_and_ends() -> None:
    run_child(
        BUSY
        + """
stop = threading.Event()
threads = [threading.Thread(target=compute, args=(stop,)) for _ in range(2)]
[each.start() for each in threads]
def churn():
    while not stop.is_set():
        thread = threading.Thread(target=os.stat, args=("/",))
        thread.start()
        thread.join()
churning = threading.Thread(target=churn)
churning.start()
for _ in range(100):
    recording.largest()
    os.stat("/")
    recording.end()
stop.set()
[each.join() for each in [*threads, churning]]
"""
    )


def test_without_a_scheduled_gil_there_is_none() -> None:
    run_child(
        BUSY
        + """
gil.uninstall()
try:
    recording.largest()
except LookupError as error:
    assert str(error) == "the GIL of this process is not scheduled"
else:
    assert False
"""
    )


PROFILE = {
    "pid": 7,
    "functions": [("main", "/app/app.py", 1), ("work;er", "/app/app.py", 10)],
    "stacks": [
        {
            "frames": [(1, 12), (0, 3)],
            "holds": (4, 8_000_000, 5_000_000),
            "waits": (2, 3_000, 2_000),
        },
        {"frames": [(0, 3)], "holds": (1, 1_000, 1_000), "waits": (0, 0, 0)},
        {"frames": [], "holds": (1, 2_000, 2_000), "waits": (0, 0, 0), "is_rest": True},
    ],
}
for _stack in PROFILE["stacks"]:  # type: ignore[attr-defined]
    _stack.setdefault("is_cut", len(_stack["frames"]) == 1)
    _stack.setdefault("is_rest", False)


def test_folded_stacks() -> None:
    assert writing.written(PROFILE, "x.folded").splitlines() == [
        "holds the GIL;main (app.py:3);work:er (app.py:12) 8000",
        "holds the GIL;more callers;main (app.py:3) 1",
        "holds the GIL;stacks for which there was no room 2",
        "waits for the GIL;main (app.py:3);work:er (app.py:12) 3",
    ]


def test_speedscope() -> None:
    found = json.loads(writing.written(PROFILE, "x.speedscope.json"))
    names = [each["name"] for each in found["shared"]["frames"]]
    sums = {}
    for each in found["profiles"]:
        assert (each["type"], each["startValue"]) == ("sampled", 0)
        assert each["endValue"] == sum(each["weights"])
        assert len(each["samples"]) == len(each["weights"])
        sums[each["name"]] = (each["unit"], each["endValue"])
    assert sums == {
        "holds the GIL: time": ("nanoseconds", 8_003_000),
        "holds the GIL: count": ("none", 6),
        "waits for the GIL: time": ("nanoseconds", 3_000),
        "waits for the GIL: count": ("none", 2),
    }
    first = found["profiles"][0]["samples"][0]
    assert [names[number] for number in first] == ["main", "work;er"]


def test_firefox() -> None:
    """Each column has the length of its table, and each number leads to a row."""
    found = json.loads(writing.written(PROFILE, "x.firefox.json"))
    holds, waits = found["threads"]
    assert sum(holds["samples"]["weight"]) == pytest.approx(8.003)
    assert waits["samples"]["weight"] == [0.003]
    assert holds["samples"]["time"] == pytest.approx([0, 8, 8.001])
    for thread in (holds, waits):
        tables = {name: each for name, each in thread.items() if isinstance(each, dict)}
        for name, table in tables.items():
            columns = {len(each) for each in table.values() if isinstance(each, list)}
            assert columns == {table["length"]}, name
        for name, column, into in (
            ("samples", "stack", "stackTable"),
            ("stackTable", "prefix", "stackTable"),
            ("stackTable", "frame", "frameTable"),
            ("frameTable", "func", "funcTable"),
        ):
            numbers = [each for each in tables[name][column] if each is not None]
            assert all(0 <= each < tables[into]["length"] for each in numbers), (name, column)
        strings = thread["stringArray"]
        functions = tables["funcTable"]
        assert {strings[each] for each in functions["name"]} >= {"main", "work;er"}
        # A prefix comes before the stacks that it is of.
        for number, prefix in enumerate(tables["stackTable"]["prefix"]):
            assert prefix is None or prefix < number


def test_the_ending_of_the_name_chooses_the_format() -> None:
    with pytest.raises(ValueError, match=re.escape(".folded, .speedscope.json, .firefox.json")):
        writing.format_of("profile.json")
