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

    @pytest.mark.parametrize("more", [{"collects": False}, {"frozen_objects": 900}])
    def test_garbage_is_named_before_it_is_summed(self, more: dict[str, object]) -> None:
        rows = [
            {"name": f"garbage: m.{name}", "type": "garbage", "amount_bytes": size}
            for name, size in (("Solver", 2 * MIB), ("Array", MIB))
        ]
        cache = {"name": "m.cache", "type": "dict", "amount_bytes": int(2.5 * MIB)}
        found = {"collects": True, "objects": 1000, **more}
        named, summed, last = grown(rows[0], cache, rows[1], **found)
        assert named.startswith("garbage: m.Solver has grown")
        assert summed.startswith("3 MiB of what has grown is cyclic garbage")
        assert last.startswith("m.cache")

    def test_garbage_that_the_collector_will_free_is_one_sentence(self) -> None:
        """Between two collections it grows in any program, so none of it is a leak."""
        rows = [
            {"name": f"garbage: m.{name}", "type": "garbage", "amount_bytes": size}
            for name, size in (("Solver", 2 * MIB), ("Array", MIB))
        ]
        rows[0] |= {"halfway_bytes": MIB, "place": {"file": "m.py", "line": 7}}
        found = {"collects": True, "objects": 1000, "halfway_seconds": 3.0}
        [sentence] = grown(*rows, **found)
        assert sentence == (
            "3 MiB of what has grown is cyclic garbage, which waits for the collector; most is"
            " garbage: m.Solver, made at m.py:7."
        )
        little = {**rows[0], "amount_bytes": 200 << 10, "halfway_bytes": 100 << 10}
        assert grown(little, **found) == []

    @pytest.mark.parametrize("objects", [400, 90_000])
    def test_much_garbage_in_few_objects_is_told_though_it_has_not_grown(
        self, objects: int
    ) -> None:
        """The collector counts objects: large arrays wait as long as small ones."""
        row = {"name": "garbage: m.Solver", "type": "garbage", "amount_bytes": -7 * MIB}
        row |= {"kept_before_bytes": 8 * MIB, "kept_bytes": MIB, "objects": 50}
        row["objects_before"] = objects
        cache = {"name": "m.cache", "type": "dict", "amount_bytes": MIB}
        found = grown(cache, row, collects=True, objects=200_000)
        assert ["8 MiB of cyclic garbage, 400 objects only" in each for each in found] == (
            [True, False] if objects == 400 else [False]
        )

    @pytest.mark.parametrize(
        ("free_before", "more", "told"),
        [
            (5, {}, ""),
            (0, {}, "may be that of garbage: m.Socket, which waits for the collector"),
            (5, {"collects": False}, "is C code's"),
            (5, {"owners": []}, "is C code's"),
        ],
        ids=["it was free", "it was not free", "collector off", "no garbage"],
    )
    def test_garbage_has_memory_of_c_code(
        self, free_before: int, more: dict[str, Any], told: str
    ) -> None:
        """A compressor or a TLS context that waits for the collector keeps its memory."""
        free = {"name": "c_heap_free", "size_bytes": 0, "before_bytes": free_before * MIB}
        row = {"name": "garbage: m.Socket", "type": "garbage", "amount_bytes": 30 << 10}
        row |= {"objects": 700, "objects_before": 100}
        found = {"collects": True, "objects": 90_000, "parts": [free], "owners": [row], **more}
        found |= {"c_heap_bytes": 10 * MIB, "c_heap_before_bytes": 5 * MIB}
        [*_, sentence] = [*grown(*found.pop("owners"), **found), ""][:1]
        assert (told in sentence) if told else not sentence

    def test_a_large_leak_of_c_code_is_no_garbage(self) -> None:
        row = {"name": "garbage: m.Socket", "type": "garbage", "amount_bytes": 30 << 10}
        row |= {"objects": 200, "objects_before": 100}
        found = {"collects": True, "c_heap_bytes": 50 * MIB, "c_heap_before_bytes": 5 * MIB}
        assert "50 MiB of the C heap" in grown(row, **found)[0]

    def test_a_value_that_is_being_made_is_told_last(self) -> None:
        """The list that a comprehension has so far is gone when it has ended."""
        row = {"name": "temporary value of tick()", "type": "list", "amount_bytes": 6 * MIB}
        kept = {"name": "m.kept", "type": "list", "amount_bytes": MIB}
        first, last = grown(kept, row)
        assert first.startswith("m.kept (list) has grown most")
        assert last.startswith("temporary value of tick()")
        lasting = {**row, "objects_before": 90, "kept_before_bytes": MIB}
        assert grown(lasting, kept)[0].startswith("temporary value of tick()")

    @pytest.mark.parametrize(("then", "told"), [(0, False), (3, True), (6, True), (-1, True)])
    def test_a_value_made_in_the_second_half_has_no_sentence(self, then: int, told: bool) -> None:
        """Nothing is known of its growth; that of a thread's list is seen by the next look."""
        row = {"name": "found of work()", "type": "list", "amount_bytes": 6 * MIB}
        row |= {"is_local": True, "halfway_bytes": then * MIB if then > 0 else then}
        assert bool(grown(row, halfway_seconds=3.0)) is told
        row["kept_before_bytes"] = 200
        assert grown(row, halfway_seconds=3.0)

    @pytest.mark.parametrize(
        ("free_before", "then", "told"),
        [(0, 9, True), (5, 9, False), (5, 5, False), (5, 7.5, True), (5, -1, True)],
        ids=["new", "first half", "second half", "both", "unknown"],
    )
    def test_c_code_that_takes_what_was_free_takes_it_all_the_time(
        self, free_before: int, then: float, told: bool
    ) -> None:
        """Compressors and buffers of connections come and go within what the C library keeps."""
        free = {"name": "c_heap_free", "size_bytes": 0, "before_bytes": free_before * MIB}
        found: dict[str, Any] = {"parts": [free], "halfway_seconds": 3.0}
        found |= {"c_heap_bytes": 10 * MIB, "c_heap_before_bytes": 5 * MIB}
        found["c_heap_halfway_bytes"] = then * MIB if then > 0 else then
        assert ("is C code's" in " ".join(grown(**found))) is told

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


class TestInCalls:
    """A buffer that `socket.recv()` fills has no reference on the heap, and is not lost."""

    @pytest.mark.parametrize(
        ("before", "now", "threads", "halfway_bytes", "told"),
        [
            (0, 1, 5, 0, False),
            (0, 4, 5, 0, False),
            (0, 4, 3, 0, True),
            (0, 5, 9, 0, True),
            (7, 7, 5, 0, True),
            (0, 2, 5, MIB // 2, True),
        ],
        ids=["one", "as many as threads", "more than threads", "many", "larger", "one by one"],
    )
    def test_of_a_few_threads(
        self, *, before: int, now: int, threads: int, halfway_bytes: int, told: bool
    ) -> None:
        row: dict[str, object] = {"name": f"{now} x bytes", "entries": now}
        row |= {"type": "nothing on the heap refers to them", "amount_bytes": MIB}
        row |= {"entries_before": before, "halfway_bytes": halfway_bytes}
        found = grown(row, threads=threads, halfway_seconds=3.0)
        assert ["x bytes (nothing on the heap" in each for each in found] == [True] * told


def traced(c_heap_more: int, *owners: dict[str, object]) -> list[str]:
    """Return the sentences on 3 MiB that memray has seen taken and not freed."""
    row = {"library": "numpy", "size_bytes": 3 * MIB, "count": 12, "native": "default_malloc"}
    row["place"] = {"file": "app.py", "line": 10}
    growth = {"seconds": 6.0, "owners": list(owners), "collects": True, "objects": 1000}
    growth |= {"c_heap_before_bytes": 5 * MIB, "c_heap_bytes": 5 * MIB + c_heap_more}
    growth["parts"] = [{"name": "c_heap_used", "size_bytes": 9 * MIB, "before_bytes": 6 * MIB}]
    found = {"growth": growth, "native": {"kept_bytes": 3 * MIB, "rows": [row]}}
    return [each.sentence for each in statements(found)]


class TestNative:
    """Memory that the tracer has seen is told first only if no object explains it."""

    def test_objects_have_it(self) -> None:
        cache = {"name": "m.arrays", "type": "list", "amount_bytes": 2 * MIB}
        first, last = traced(0, cache)
        assert first.startswith("m.arrays (list) has grown most")
        assert last.startswith("3 MiB from numpy, called at app.py:10")

    def test_nothing_explains_it(self) -> None:
        cache = {"name": "m.arrays", "type": "list", "amount_bytes": 9 * MIB}
        assert traced(3 * MIB, cache)[0].startswith("3 MiB from numpy, called at app.py:10")


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
