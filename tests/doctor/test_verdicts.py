"""What a report says first: too many of one kind, a collector that is off, and no cry of wolf."""

import asyncio
import gc
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cpythonplus import memory
from cpythonplus._doctor.agent.examining import tasks, threads
from cpythonplus._doctor.report.sections import sections
from cpythonplus._doctor.report.time_line import owner_lines
from cpythonplus._doctor.report.treemap import owners_treemap
from cpythonplus._doctor.report.verdict import statements

pytestmark = pytest.mark.needs_gil
MIB = 1 << 20


def said(**parts: object) -> str:
    return " ".join(each.sentence for each in statements(parts))


def garbage(*, collects: bool, size_bytes: int, frozen: int = 0) -> dict[str, object]:
    row = {"name": "garbage: m.Node", "type": "garbage", "kept_bytes": size_bytes}
    return {"objects": 1000, "collects": collects, "frozen_objects": frozen, "owners": [row]}


class TestCollector:
    """Garbage that waits for ever is said; garbage that waits for its turn is not."""

    def test_off(self) -> None:
        found = said(owners=garbage(collects=False, size_bytes=9 * MIB))
        assert "The collector is off: 9 MiB of cyclic garbage waits" in found
        assert "garbage: m.Node" in found

    def test_on(self) -> None:
        assert "garbage" not in said(owners=garbage(collects=True, size_bytes=9 * MIB))

    def test_little(self) -> None:
        assert "collector" not in said(owners=garbage(collects=False, size_bytes=9000))

    def test_frozen(self) -> None:
        found = garbage(collects=True, size_bytes=9 * MIB, frozen=900)
        assert "900 objects are frozen" in said(owners=found)
        assert "frozen" not in said(owners={**found, "frozen_objects": 10})

    def test_of_this_process(self) -> None:
        gc.disable()
        try:
            found = memory.owners().as_json()
        finally:
            gc.enable()
        assert found["collects"] is False


def grown(*owners: dict[str, object], **more: object) -> list[str]:
    found = {"seconds": 6.0, "owners": list(owners), **more}
    return [each.sentence for each in statements({"growth": found, "target": {"pid": 4711}})]


class TestGrowth:
    """The sentence that names the cause comes first; C code's memory counts by its rate."""

    def test_garbage_is_named_before_it_is_summed(self) -> None:
        rows = [
            {"name": f"garbage: m.{name}", "type": "garbage", "amount_bytes": size}
            for name, size in (("Solver", 2 * MIB), ("Array", MIB))
        ]
        cache = {"name": "m.cache", "type": "dict", "amount_bytes": int(2.5 * MIB)}
        named, summed, last = grown(rows[0], cache, rows[1])
        assert named.startswith("garbage: m.Solver has grown")
        assert summed.startswith("3 MiB of what has grown is cyclic garbage")
        assert last.startswith("m.cache")

    @pytest.mark.parametrize(("seconds", "told"), [(6.0, True), (60.0, False)])
    def test_little_of_c_code_is_told_of_a_short_time(self, *, seconds: float, told: bool) -> None:
        found = grown(seconds=seconds, c_heap_bytes=7 * MIB, c_heap_before_bytes=6.5 * MIB)
        assert ("7 MiB of the C heap" in " ".join(found)) is told
        blocks = {
            "name": "unexplained_blocks",
            "size_bytes": int(6.5 * MIB),
            "before_bytes": 6 * MIB,
        }
        free = {**blocks, "name": "arena_free"}
        found = grown(seconds=seconds, parts=[blocks, free])
        assert ["that no object explains" in each for each in found] == [True] * told


class TestMany:
    """Threads, tasks and classes, from so many on."""

    def test_threads(self) -> None:
        rows = [{"function": "worker", "file": "app.py", "line": 9, "name": "w"}] * 120
        found: dict[str, Any] = {
            "threads": [*rows, {"function": "main", "file": "m.py", "line": 1}]
        }
        assert "120 threads execute `worker()` at app.py:9." in said(threads=found)
        assert "threads execute" not in said(threads={"threads": rows[:20]})
        [section] = sections({"threads": found}, 10)
        assert [row[0] for row in section.tables[0].rows] == [120, 1]

    def test_tasks(self) -> None:
        row = {"count": 8160, "function": "handle", "file": "app.py", "line": 30}
        found = said(tasks={"tasks": [row]})
        assert "8,160 tasks of `handle()` have not ended; most wait at app.py:30." in found
        assert said(tasks={"tasks": [{**row, "count": 20}]}) == ""

    def test_classes(self) -> None:
        def make() -> type:
            return type("Row", (), {"__module__": "made.up"})

        kept = [make() for _ in range(150)]
        instances = [kind() for kind in kept for _ in range(2)]
        found = memory.census()
        assert ("made.up.Row", 150) in [(row.name, row.objects) for row in found.same_name]
        rows = [row for row in found.by_owner if row.name == "made.up.Row"]
        assert [row.objects for row in rows] == [len(instances)]
        assert "150 classes have the name made.up.Row" in said(census=found.as_json())

    def test_each_class_of_a_name_can_be_asked_about(self) -> None:
        few, many = (type("Twin", (), {"__module__": "made.up"}) for _ in range(2))
        held = [[few()], [many() for _ in range(5)]]
        found = memory.census()
        counts = [
            sum(row.references for row in found.referrers(name).rows if row.name == "list")
            for name in ("made.up.Twin", "made.up.Twin#1", "made.up.Twin#2")
        ]
        assert counts == [5, 5, 1]
        assert len(held) == 2
        for wrong in ("made.up.Twin#3", "made.up.Twin#0", "made.up.Twin#x", "made.up.Twin#"):
            with pytest.raises(LookupError, match="class"):
                found.referrers(wrong)


class TestTasks:
    """By function, with the line at which most wait."""

    def test_those_that_wait(self) -> None:
        async def wait(event: asyncio.Event) -> None:
            await event.wait()

        async def main() -> dict[str, Any]:
            event = asyncio.Event()
            waiting = [asyncio.create_task(wait(event)) for _ in range(70)]
            ended = asyncio.create_task(asyncio.sleep(0))
            await ended
            await asyncio.sleep(0)
            found = tasks()
            event.set()
            await asyncio.gather(*waiting)
            return found

        found = asyncio.run(main())
        rows = {row["function"].rpartition(".")[2]: row for row in found["tasks"]}
        assert rows["wait"]["count"] == 70
        assert rows["wait"]["line"] == wait_line()
        assert rows["main"]["count"] == 1
        assert "sleep" not in rows

    def test_one_without_init_hides_no_others(self) -> None:
        async def main() -> dict[str, Any]:
            unborn = asyncio.Task.__new__(asyncio.Task)
            found = tasks()
            del unborn
            return found

        [row] = asyncio.run(main())["tasks"]
        assert row["function"].endswith("main")

    def test_none_are_left(self) -> None:
        names = [row["function"] for row in tasks()["tasks"]]  # type: ignore[attr-defined]
        assert not any(__name__ in name or "TestTasks" in name for name in names)


def wait_line() -> int:
    """Return the line of `await event.wait()` above."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return 1 + [line.strip() for line in lines].index("await event.wait()")


@pytest.fixture
def waiting() -> Iterator[threading.Event]:
    event = threading.Event()
    kept = [threading.Thread(target=event.wait) for _ in range(3)]
    for each in kept:
        each.start()
    yield event
    event.set()
    for each in kept:
        each.join()


@pytest.mark.usefixtures("waiting")
def test_threads_at_one_line_are_one_row() -> None:
    found = threads()
    [section] = sections({"threads": found}, 50)
    counts = [int(row[0]) for row in section.tables[0].rows]
    assert sum(counts) == len(found["threads"])  # type: ignore[arg-type]
    assert max(counts) >= 3


class TestDrawings:
    """The page's pictures of owners."""

    def test_the_treemap_has_each_owner(self) -> None:
        rows = [
            {"name": "app.sessions", "kept_bytes": 6 * MIB, "objects": 9},
            {"name": "app.<log>", "kept_bytes": 3 * MIB, "objects": 5},
        ]
        drawn = owners_treemap({"owners": rows, "size_bytes": 10 * MIB, "objects": 20})
        assert "app.sessions: 6 MiB, 60.0 %, 9 objects" in drawn
        assert "app.&lt;log&gt;" in drawn
        assert "several together, or small ones: 1 MiB, 10.0 %, 6 objects" in drawn
        assert owners_treemap({"owners": []}) == ""

    def test_the_lines_are_of_the_looks_that_had_owners(self) -> None:
        def look(t_s: float, amount_bytes: int) -> dict[str, object]:
            return {"t_s": t_s, "owners": [{"name": "app.log", "amount_bytes": amount_bytes}]}

        samples: list[dict[str, object]] = [
            look(1, 0),
            {"t_s": 2},
            look(3, 2 * MIB),
            look(5, 4 * MIB),
        ]
        drawn = owner_lines(samples)
        assert 'points="0.0,1000.0 500.0,500.0 1000.0,0.0"' in drawn
        assert "app.log +4 MiB" in drawn
        assert owner_lines(samples[:2]) == ""
