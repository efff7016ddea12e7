"""prefork.prepare: what it makes immortal, what it leaves, what it reports."""

import sys
from textwrap import dedent

import pytest

from cpythonplus import prefork
from cpythonplus.prefork._fork.preparing import Budget
from tests.prefork.test_hazards import PRELUDE
from tests.support import PYMALLOC, SANITIZED, run_child

HAS_IMMORTAL = sys.version_info >= (3, 12)


def check(program: str, **options: object) -> str:
    return run_child(PRELUDE + dedent(program), **options).out  # type: ignore[arg-type]


@pytest.mark.needs_gil
@pytest.mark.skipif(not HAS_IMMORTAL, reason="objects can be immortal from 3.12 on")
def test_everything_reachable_is_immortal() -> None:
    check(
        """
        import collections, enum, typing
        class Item:
            __slots__ = ("name", "rest")
            def __init__(self, name):
                self.name, self.rest = name, {"size": 1e6 + len(name)}
        class Plain:
            def __init__(self):
                self.text = "".join(["built ", "at ", "run time"])
        class Names(collections.OrderedDict):
            pass
        def function(argument, *, option=("a tuple", 12345)):
            "documentation of it"
            return lambda: argument
        data = {
            "items": [Item(f"name {n}") for n in range(100)],
            ("tuple", 4.5): frozenset({"in a set", 99999}),
            "nested": ([{"deep": [b"bytes", 2**100]}],),
        }
        plain, names = Plain(), Names(a=["value"])
        asked = Plain()
        vars(asked)  # has a dict from here on, of a string only
        report = prefork.prepare()
        assert report.immortal and not report.note
        assert report.objects > 1000 and report.bytes > 10_000
        found = [
            data, *data, *data.values(), *data["items"], Item, Item.__init__, function,
            function.__code__, function.__code__.co_consts, function.__code__.co_name,
            function.__kwdefaults__["option"], function.__doc__, plain, plain.text,
            names, names["a"], sys.modules, collections, typing.Any, data["items"][7].name,
            data["items"][7].rest, data["items"][7].rest["size"], data["nested"][0][0]["deep"][1],
            Item.__dict__["name"], Item.__name__, str.__dict__["join"], vars(asked),
        ]
        if DEBUG:
            found = [op for op in found if not isinstance(op, str)]
        mortal = [op for op in found if not is_immortal(op)]
        assert not mortal, mortal
        assert not is_immortal(found)  # new
    """,
        env=PYMALLOC,
    )


@pytest.mark.needs_gil
@pytest.mark.skipif(not HAS_IMMORTAL, reason="objects can be immortal from 3.12 on")
def test_what_is_new_is_added_by_the_next_call() -> None:
    check("""
        old = {"list": []}
        first = prefork.prepare()
        old["new"] = ["hung on an old dict"]
        old["list"].append(leaf := b"".join([b"a ", b"leaf"]))
        fresh = [object()]
        assert not is_immortal(fresh)
        second = prefork.prepare()
        assert is_immortal(old["new"]) and is_immortal(leaf) and is_immortal(fresh[0])
        assert second.objects < first.objects // 5
        third = prefork.prepare()
        assert third.objects < 100
        # But for the few that the calls themselves had in use.
        assert gc.get_freeze_count() > first.frozen - 100
    """)


@pytest.mark.needs_gil
@pytest.mark.skipif(not HAS_IMMORTAL, reason="objects can be immortal from 3.12 on")
def test_strings_are_what_the_interpreter_asserts() -> None:
    """The import reads code, whose names it interns: some of them have been strings of the heap."""
    check("""
        interned = sys.intern("".join(["interned ", "before"]))
        kept = "".join(["interned ", "later"])
        equal = "".join(["interned ", "later"])
        prefork.prepare()
        import wave
        assert is_immortal(interned)
        assert is_immortal(kept) == (not DEBUG)
        assert sys.intern("".join(["interned ", "before"])) is interned
        assert sys.intern(kept) is kept is sys.intern(equal)
        prefork.prepare()
        assert is_immortal(kept)
        assert sys.intern("".join(["interned ", "later"])) is kept
        import tarfile
    """)


@pytest.mark.skipif(HAS_IMMORTAL, reason="this interpreter has immortal objects")
def test_before_3_12_the_heap_is_frozen_only_and_it_says_so() -> None:
    check("""
        report = prefork.prepare()
        assert not report.immortal and report.objects == 0 and report.frozen > 1000
        assert "3.12" in report.note and report.note in str(report)
    """)


def test_what_can_be_switched_off() -> None:
    out = check("""
        thing = [object()]
        report = prefork.prepare(immortal=False, fill_pools=False)
        assert not report.immortal and report.filled_bytes == 0 and report.frozen > 0
        assert not is_immortal(thing[0])
        print(report)
    """)
    assert "nothing made immortal" in out


@pytest.mark.needs_gil
@pytest.mark.skipif(SANITIZED, reason="the sanitizer's allocator has no pools")
def test_free_blocks_are_filled_once() -> None:
    check(
        """
        holes = [bytearray(5) for _ in range(20_000)]
        del holes[::2]
        first = prefork.prepare()
        prefork.prepare()  # takes also what the first one needed for itself
        third = prefork.prepare()
        # The odd ones lie between the gaps; then there are none.
        assert first.filled_bytes > 100_000 > third.filled_bytes, (first, third)
    """,
        env=PYMALLOC,
    )


@pytest.mark.needs_gil
@pytest.mark.skipif(SANITIZED, reason="the sanitizer's allocator has no gaps to see")
def test_small_gaps_of_the_c_heap_are_filled_too() -> None:
    """C libraries ask for small blocks: between shared ones each would make a page private."""
    check(
        """
        import ctypes
        libc = ctypes.CDLL(None)
        if not hasattr(libc, "mallinfo2"):
            sys.exit()
        libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
        blocks = [libc.malloc(40 + 16 * (n % 30)) for n in range(30_000)]
        gaps = blocks[::2]
        for each in gaps:
            libc.free(each)
        prefork.prepare()
        first, last = min(blocks), max(blocks)
        found = [libc.malloc(40 + 16 * (n % 30)) for n in range(3000)]
        # glibc keeps some from us in its caches.
        assert len([each for each in found if first <= each <= last]) < 150
    """,
        env=PYMALLOC,
    )


@pytest.mark.skipif(SANITIZED, reason="the sanitizer's allocator has no gaps to see")
def test_a_parent_that_goes_on_working_does_not_lose_its_gaps_each_time() -> None:
    check("""
        kept, filled = [], 0
        for turn in range(8):
            batch = []
            for number in range(4000):
                batch.append(bytearray(8000))
                if number % 40 == 0:
                    kept.append(bytearray(600))  # between the batch's blocks, and so gaps below it
            del batch
            filled += prefork.prepare().filled_bytes
        assert filled < 140 * 2**20, filled
    """)


@pytest.mark.needs_gil
@pytest.mark.skipif(not HAS_IMMORTAL, reason="objects can be immortal from 3.12 on")
def test_a_walk_that_fails_leaves_the_heap_frozen() -> None:
    check("""
        from cpythonplus import _native
        first = prefork.prepare()
        def fail(types, mortal, spared, limit_bytes):
            raise MemoryError
        _native.prefork_immortalize = fail
        try:
            prefork.prepare()
        except MemoryError:
            assert gc.get_freeze_count() > first.frozen - 100 and gc.isenabled()
        else:
            raise AssertionError
    """)


@pytest.mark.needs_gil
@pytest.mark.parametrize("allocator", ["malloc", "pymalloc_debug", "debug", "mimalloc"])
def test_another_allocator(allocator: str) -> None:
    if allocator == "mimalloc" and sys.version_info < (3, 13):
        pytest.skip("mimalloc came with 3.13")
    run_child(
        PRELUDE
        + dedent("""
        holes = [bytearray(5) for _ in range(20_000)]
        del holes[::2]
        report = prefork.prepare()
        assert report.filled_bytes == 0 and "allocator" in report.note, report
        in_child(lambda: None)
        """),
        env={"PYTHONMALLOC": allocator},
    )


@pytest.mark.needs_gil
@pytest.mark.skipif(not HAS_IMMORTAL, reason="objects can be immortal from 3.12 on")
def test_types_that_are_to_stay_mortal() -> None:
    check("""
        class Kept:
            pass
        class Derived(Kept):
            pass
        class Number(int):
            pass
        things = [Kept(), Derived(), Kept()]
        numbers = [Number(5)] * 10
        asked = []
        def keep(kind):
            asked.append(kind)
            return kind in (Kept, Number)
        report = prefork.prepare(keep_mortal=keep)
        assert not any(map(is_immortal, things)) and not is_immortal(numbers[0])
        assert is_immortal(Kept) and is_immortal(things)
        kept = report.kept_mortal
        assert (kept["type __main__.Kept"], kept["type __main__.Derived"]) == (2, 1), kept
        assert kept["type __main__.Number"] == 1, kept
        assert len(asked) == len({id(kind) for kind in asked})
    """)


def test_the_warm_up_is_called_first_and_may_fail() -> None:
    check("""
        made = []
        prefork.prepare(lambda: made.append(object()))
        assert len(made) == 1 and (not IMMORTAL or is_immortal(made[0]))
        frozen = gc.get_freeze_count()
        def fail():
            raise LookupError("no such page")
        late = [object()]
        try:
            prefork.prepare(fail)
        except LookupError:
            pass
        else:
            raise AssertionError
        assert not is_immortal(late[0]) and gc.isenabled() and gc.get_freeze_count() == frozen
    """)


def test_the_collector_is_left_as_it_was() -> None:
    check("""
        gc.disable()
        prefork.prepare()
        assert not gc.isenabled()
        gc.enable()
        prefork.prepare()
        assert gc.isenabled()
    """)


def test_metaclasses_that_cannot_be_hashed() -> None:
    check("""
        class Meta(type):
            __hash__ = None
            def __eq__(cls, other):
                raise RuntimeError("compared")
        class Odd(metaclass=Meta):
            def __del__(self):
                pass
        class Unhashable(list, metaclass=Meta):
            pass
        things = [Odd(), Unhashable()]
        report = prefork.prepare(keep_mortal=lambda kind: kind is Unhashable)
        if IMMORTAL:
            assert not is_immortal(things[0]) and not is_immortal(things[1])
        in_child(lambda: None)
    """)


def test_objects_that_lie_about_their_class() -> None:
    check("""
        class Liar:
            @property
            def __class__(self):
                raise RuntimeError("asked for its class")
        things = [Liar() for _ in range(3)]
        prefork.prepare()
        in_child(lambda: None)
    """)


@pytest.mark.needs_gil
@pytest.mark.parametrize("allocator", ["pymalloc", "malloc"])
def test_has_grown(allocator: str) -> None:
    program = """
        assert prefork.has_grown()
        prefork.prepare()
        assert not prefork.has_grown()
        more = [object() for _ in range(100_000)]
        assert prefork.has_grown()
        prefork.prepare()
        assert not prefork.has_grown()
    """
    run_child(PRELUDE + dedent(program), env={"PYTHONMALLOC": allocator})


@pytest.mark.needs_gil
@pytest.mark.skipif(not HAS_IMMORTAL, reason="objects can be immortal from 3.12 on")
def test_a_worker_shares_what_it_looks_at() -> None:
    # What all of this is for, in pages: looking at the whole catalogue makes next to none private.
    out = check("""
        def private():
            with open("/proc/self/smaps_rollup") as file:
                return sum(int(line.split()[1]) for line in file if line.startswith("Private_"))
        def cost(data):
            reader, writer = os.pipe()
            pid = os.fork()
            if pid == 0:
                before = private()
                for each in data:
                    for inner in each:
                        inner
                gc.collect()
                os.write(writer, b"%d" % (private() - before))
                os._exit(0)
            os.waitpid(pid, 0)
            return int(os.read(reader, 100))
        make = float if DEBUG else str
        data = [[make(f"{n}.{m}") for m in range(20)] for n in range(20_000)]
        plain = cost(data)
        prefork.prepare()
        print(plain, cost(data))
    """)
    plain, prepared = map(int, out.split())
    assert prepared < plain / 4, out


def test_a_report_is_frozen() -> None:
    report = prefork.PrepareReport(True, 1, 2, {"x": 3}, 4, 5, 0.5, "")
    with pytest.raises(AttributeError):
        report.objects = 2  # type: ignore[misc]
    assert str(report).startswith("prepared: 1 objects")


def test_statistics_count_what_all_calls_did() -> None:
    check("""
        from cpythonplus.prefork._fork import preparing
        assert preparing.statistics() == preparing.PrepareStatistics()
        reports = [prefork.prepare() for _ in range(3)]
        counted = preparing.statistics()
        assert counted.prepares == 3 and counted.refused == 0
        assert counted.objects == sum(each.objects for each in reports)
        assert counted.immortal_bytes == sum(each.bytes for each in reports)
        assert counted.filled_bytes == sum(each.filled_bytes for each in reports)
        assert counted.seconds == sum(each.seconds for each in reports) > 0
        def body():
            assert preparing.statistics() == counted  # inherited
        in_child(body)
    """)


GROW = """
        from cpythonplus.prefork._fork import preparing
        def grow(count=100_000):
            # Kept by nothing but the caller: the next batch takes its place.
            return [[number] for number in range(count)]
"""


def test_a_budget_prepares_once_by_default() -> None:
    check(
        GROW
        + """
        budget = preparing.Budget()
        assert budget.left_bytes is None and not budget.spent
        first = budget.prepare()
        assert first is not None and first.budget_left_bytes == budget.left_bytes == 0
        assert budget.spent
        assert budget.prepare() is None  # nothing new: not refused
        assert preparing.statistics().refused == 0
        for turn in range(5):
            batch = grow()
            assert budget.prepare() is None
            assert not is_immortal(batch[5])
        counted = preparing.statistics()
        assert (counted.prepares, counted.refused) == (1, 5), counted
        assert counted.immortal_bytes == first.bytes
    """
    )


@pytest.mark.skipif(SANITIZED, reason="the sanitizer's allocator is not as easily measured")
def test_a_budget_is_never_exceeded() -> None:
    check(
        GROW
        + """
        limit = 20 * 2**20
        budget = preparing.Budget(limit)
        first = budget.prepare()
        assert first.budget_left_bytes == limit
        left, again, kept = limit, 0, []
        for turn in range(20):
            batch = grow()
            if not IMMORTAL:
                kept.append(batch)  # else the heap would not grow
            report = budget.prepare()
            if report is None:
                continue
            again += report.bytes
            assert report.budget_left_bytes < left, report
            left = report.budget_left_bytes
            assert not IMMORTAL or ("budget is spent" in report.note) is (left == 0), report
        assert left == 0 and budget.spent
        assert again <= limit + 10_000, again  # the last object may go beyond
        counted = preparing.statistics()
        assert 3 <= counted.prepares <= 10 and counted.prepares + counted.refused == 21, counted
        # What stayed mortal is as ever.
        def body():
            assert batch[7] == [7]
            batch.clear()
            gc.collect()
        in_child(body)
    """
    )


def test_a_budget_as_large_as_the_first_heap() -> None:
    check(
        GROW
        + """
        budget = preparing.Budget(None)
        first = budget.prepare()
        assert first.budget_left_bytes == budget.left_bytes > 0
        if IMMORTAL:
            assert budget.left_bytes == first.bytes
        for turn in range(20):
            batch = grow()
            budget.prepare()
        assert budget.spent
        assert preparing.statistics().immortal_bytes <= 2 * first.bytes + 10_000
    """
    )


def test_a_budget_that_is_at_work_keeps_nobody_waiting() -> None:
    check("""
        budget, inner = prefork.Budget(), []
        def keep(kind):
            if not inner:
                inner.append(budget.prepare())
            return False
        assert budget.prepare(keep_mortal=keep) is not None
        assert inner == [None] and prefork.statistics().prepares == 1
        # One that raises has spent nothing.
        budget = prefork.Budget()
        more = [[n] for n in range(100_000)]
        try:
            budget.prepare(keep_mortal=lambda kind: 1 / 0)
        except ZeroDivisionError:
            pass
        assert budget.left_bytes is None and budget.prepare() is not None
    """)


def test_a_negative_budget() -> None:
    with pytest.raises(ValueError, match="negative"):
        Budget(-1)
