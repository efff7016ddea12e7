"""Many that grow alike are one row; a table that was only made larger is none; what is steady."""

import contextvars
import ctypes
import threading
from _thread import start_new_thread
from collections.abc import Callable
from functools import partial
from multiprocessing.shared_memory import SharedMemory

import pytest

from cpythonplus import memory
from cpythonplus._doctor.agent.comparing import with_halfway
from cpythonplus._doctor.report.owners import growth_layout
from cpythonplus._doctor.report.text import report_text
from tests.memory.grown import grown, of_rss

pytestmark = pytest.mark.needs_gil

VARIABLE: contextvars.ContextVar[list[list[int]]] = contextvars.ContextVar("request_data")
CACHE: dict[int, object] = {}
SEEN: set[int] = set()
QUEUE: list[object] = []
FORMS: list[type] = []


class Session:
    """Keeps what came in."""

    def __init__(self) -> None:
        self.history: list[list[int]] = []

    def close(self, code: int = 0) -> None:
        """End."""


def extended(session: object) -> bool:
    assert isinstance(session, Session)
    session.history.extend([number] for number in range(20))
    return True


def rows(found: memory.Growth) -> dict[str, memory.Owner]:
    return {each.name: each for each in found.owners}


class Threads:
    """Threads that have each a list: in a variable, or in their context."""

    def __init__(self, count: int, *, in_context: bool) -> None:
        self.ready, self.ended = threading.Barrier(count + 1), threading.Barrier(count + 1)
        self.end = threading.Event()
        self.lists: list[list[list[int]]] = []
        for _ in range(count):  # threading's own refer to their context, from 3.14 on
            start_new_thread(self.contextual if in_context else self.worker, ())
        self.ready.wait()

    def worker(self) -> None:
        queue: list[list[int]] = []
        self.lists.append(queue)
        self.ready.wait()
        self.end.wait()
        self.ended.wait()

    def contextual(self) -> None:
        VARIABLE.set([])
        self.lists.append(VARIABLE.get())
        self.ready.wait()
        self.end.wait()
        self.ended.wait()

    def grow(self, entries: int) -> memory.Growth:
        """Make each list longer while nobody else refers to it."""
        addresses = [id(each) for each in self.lists]
        self.lists.clear()  # each is kept by its thread

        def extend() -> None:
            for address in addresses:
                at = ctypes.cast(address, ctypes.py_object).value
                at.extend([number] for number in range(entries))

        found = grown(extend)
        self.end.set()
        self.ended.wait()
        return found


@of_rss
def test_a_variable_of_many_threads() -> None:
    found = rows(Threads(20, in_context=False).grow(300))
    row = found["20 x queue of Threads.worker()"]
    assert (row.type, row.entries) == ("list", 20 * 300)
    assert row.amount_bytes > 20 * 300 * 60
    assert not [name for name in found if name.startswith("queue of")]


@of_rss
def test_contexts_of_many_threads() -> None:
    row = rows(Threads(20, in_context=True).grow(300))["20 x context of a thread[request_data]"]
    assert (row.type, row.entries) == ("list", 20 * 300)


@of_rss
def test_contexts_that_have_grown_a_little_each() -> None:
    ending = " x _contextvars.Context, as context of a thread"
    found = Threads(60, in_context=True).grow(30)
    [row] = [each for each in found.owners if each.name.endswith(ending)]
    assert row.entries_before == row.entries >= 60
    assert row.amount_bytes > 60 * 30 * 60


@of_rss
def test_a_few_are_told_one_by_one() -> None:
    found = Threads(3, in_context=False).grow(300)
    names = [each.name for each in found.owners]
    assert names.count("queue of Threads.worker()") == 3


@of_rss
def test_what_many_sessions_have() -> None:
    CACHE.update((number, Session()) for number in range(3000))
    found = grown(lambda: [*map(extended, CACHE.values())])
    CACHE.clear()
    row = found.owners[0]
    assert (row.name, row.below) == (f"{__name__}.CACHE", "[...].history")
    assert (row.entries_before, row.entries) == (3000, 3000)
    assert row.amount_bytes > 3000 * 20 * 60
    assert [each.name for each in found.owners if "history" in each.name] == []


@of_rss
@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (lambda session: session.close, "method Session.close()"),
        (lambda session: (1, session.close), "tuple with Session.close()"),
        (lambda session: partial(session.close, 1), "functools.partial with Session.close()"),
        (lambda session: (1, session), "tuple"),
        (lambda session: session, f"{__name__}.Session"),
    ],
)
def test_parts_are_told_by_what_they_execute(make: Callable[[Session], object], parts: str) -> None:
    row = grown(lambda: QUEUE.extend(make(Session()) for _ in range(900))).owners[0]
    QUEUE.clear()
    assert (row.name, row.parts) == (f"{__name__}.QUEUE", f"900 {parts}")
    _, [table, *_] = growth_layout({"owners": [row.as_json()], "seconds": 1.0}, 5)
    column = str(table.rows[0][4])
    assert column.startswith(parts.rpartition(f"{__name__}.")[2])


@of_rss
def test_what_many_classes_in_a_list_have() -> None:
    FORMS.extend(type("Form", (), {"rows": []}) for _ in range(12))
    found = rows(grown(lambda: [each.rows.extend([i] for i in range(500)) for each in FORMS]))  # type: ignore[attr-defined]
    FORMS.clear()
    row = found[f"{__name__}.FORMS"]
    assert (row.entries_before, row.entries, row.below) == (12, 12, "[...].rows")


@of_rss
def test_shares_of_what_is_behind_many_classes() -> None:
    """Each class in a list has a namespace of its own, but no name."""
    found = grown(
        lambda: FORMS.extend(type("Form", (), {"session": Session()}) for _ in range(300))
    )
    FORMS.clear()
    [kept] = [each for each in found.classes if each.type == f"{__name__}.Session"]
    assert kept.objects == 300
    assert [(each.objects, each.path) for each in kept.where] == [
        (300, f"{__name__}.FORMS[...].session")
    ]


@of_rss
def test_what_c_code_holds_and_has_grown_alike() -> None:
    sessions = [Session() for _ in range(50)]
    for each in sessions:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))
    addresses = [id(each) for each in sessions]
    sessions.clear()
    del each

    def extend() -> None:
        for address in addresses:
            session = ctypes.cast(address, ctypes.py_object).value
            session.history.extend([number] for number in range(100))

    row = rows(grown(extend))[f"50 x {__name__}.Session"]
    assert (row.entries_before, row.entries) == (50, 50)
    assert row.amount_bytes > 50 * 100 * 60
    for address in addresses:
        session = ctypes.cast(address, ctypes.py_object)
        ctypes.pythonapi.Py_DecRef(session)


@of_rss
@pytest.mark.parametrize("kind", ["dict", "set", "list"])
def test_a_table_that_is_made_larger_is_no_row(kind: str) -> None:
    """Filled until one more needs another table."""
    name = {"dict": "CACHE", "set": "SEEN", "list": "QUEUE"}[kind]
    add = {"dict": lambda n: CACHE.update({n: None}), "set": SEEN.add, "list": QUEUE.append}[kind]
    number, size = 0, 0
    table: list[object] | dict[int, object] | set[int] = globals()[name]
    while number < 100_000 or table.__sizeof__() == size:
        size = table.__sizeof__()
        add(number % 200)
        add(number)
        number += 1
    table.clear()
    for each in range(number - 1):
        add(each % 200)
        add(each)
    found = grown(lambda: [add(number - 1) for _ in range(4)] and None)
    table.clear()
    grown_names = [each.name for each in found.owners]
    assert f"{__name__}.{name}" not in grown_names
    [row] = [each for each in found.resized if each.name.endswith(f".{name}")]
    assert row.amount_bytes > 64 << 10
    lines, _ = growth_layout({**found.as_json(), "seconds": 1.0}, 5)
    [line] = [line for line in lines if line.startswith("tables made larger")]
    assert f"{__name__}.{name} ({kind}) +" in line


@of_rss
def test_a_cache_that_fills_is_a_row_although_its_table_was_made_larger() -> None:
    CACHE.update((number, None) for number in range(1000))
    found = grown(lambda: CACHE.update((number, [number]) for number in range(1000, 9000)))
    CACHE.clear()
    row = rows(found)[f"{__name__}.CACHE"]
    assert (row.entries_before, row.entries) == (1000, 9000)
    assert row.amount_bytes > 8000 * 60


def test_a_table_of_an_owner_has_no_line_of_its_own() -> None:
    row = {"name": "m.CACHE", "type": "dict", "amount_bytes": 1 << 20}
    for owners, told in (([], True), ([row], False)):
        lines, _ = growth_layout({"owners": owners, "resized": [row], "seconds": 1.0}, 5)
        assert any("m.CACHE (dict) +1 MiB" in line for line in lines) == told


def steadily(*rows: tuple[str, int, int]) -> dict[str, object]:
    """Return a report of owners that have grown by so much, and by so much at half of the time."""
    now, then = (
        [{"name": name, "type": "list", "amount_bytes": sizes[at]} for name, *sizes in rows]
        for at in (0, 1)
    )
    growth = {"seconds": 60.0, "rss_bytes": 90 << 20, "owners": now}
    return {"growth": with_halfway(growth, {"seconds": 30.0, "owners": then})}


def test_what_has_grown_in_both_halves_of_the_time() -> None:
    text = report_text(
        steadily(("m.large", 50 << 20, 49 << 20), ("m.slow", 569 << 10, 280 << 10)), width=200
    )
    assert "m.large (list) has grown most, by 50 MiB, most in one half of the time." in text
    assert "m.slow (list) has grown by 569 KiB, in both halves of the time." in text
    assert "doctor growth a.json b.json" in text
    assert [line.split()[-1] for line in text.splitlines() if line.endswith("dy")] == ["steady"]


def test_many_are_the_same_row_whatever_their_number() -> None:
    now, then = (
        {"name": f"{count:,} x m.Job", "type": "held by C code", "amount_bytes": count << 10}
        for count in (4000, 2000)
    )
    growth = with_halfway({"owners": [now]}, {"owners": [then], "seconds": 30.0})
    assert growth["owners"] == [{**now, "halfway_bytes": 2000 << 10}]


def test_the_sentence_has_the_way_to_what_grows_inside_entries() -> None:
    row = {"name": "m.forms", "type": "dict", "amount_bytes": 9 << 20, "below": "[...]._abc_impl"}
    text = report_text({"growth": {"seconds": 60.0, "owners": [row]}}, width=200)
    assert "by 9 MiB; most of what it keeps is in [...]._abc_impl." in text


def test_little_that_is_not_steady_has_no_sentence() -> None:
    text = report_text(steadily(("m.large", 50 << 20, 25 << 20), ("m.little", 90 << 10, 0)))
    assert "m.little (list) has grown" not in text
    assert "growth a.json" not in text


def test_each_cause_of_one_percent_has_a_sentence() -> None:
    rows = [(f"m.cause{number}", (9 - number) << 20, 0) for number in range(9)]
    text = report_text(steadily(*rows))
    assert [f"m.cause{number} (list) has grown" in text for number in range(9)] == [True] * 9


def test_a_third_look_is_for_longer_times(monkeypatch: pytest.MonkeyPatch) -> None:
    from cpythonplus._cli.commands import doctor_live

    asked: list[object] = []

    class Client:
        def ask(self, *words: str) -> dict[str, object]:
            asked.append(words)
            return {"seconds": 1.0}

        def close(self) -> None:
            asked.append("closed")

    monkeypatch.setattr("time.sleep", asked.append)
    assert doctor_live._wait(Client(), 6.0, "me") is None  # type: ignore[arg-type]
    assert doctor_live._wait(Client(), 60.0, "me") == {"seconds": 1.0}  # type: ignore[arg-type]
    assert asked == [6.0, 30.0, ("growth_so_far", "me"), "closed", 30.0]


@of_rss
def test_files_of_shared_memory_by_kind() -> None:
    blocks: list[SharedMemory] = []

    def share() -> None:
        blocks.extend(SharedMemory(create=True, size=1 << 20) for _ in range(5))
        for each in blocks:
            assert each.buf is not None
            each.buf[:] = bytes(1 << 20)

    found = grown(share)
    text = found.text()
    for each in blocks:
        each.close()
        each.unlink()
    [row] = [each for each in found.kinds if each.what == "shared"]
    assert row.kind.startswith("/dev/shm/psm_")
    assert row.count - row.count_before == 5
    assert "mappings of shared memory: /dev/shm/psm_* +5" in text
    assert "Shared memory has grown by 5 MiB, by mappings: /dev/shm/psm_* +5." in text
    assert "/dev/shm/psm_* +" in text.partition("descriptors:")[2].partition("\n")[0]
