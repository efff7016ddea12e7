"""Who keeps what, and what has grown: owners, lines, amounts; nothing of the program changes."""

import atexit
import contextlib
import gc
import json
import mmap
import os
import select
import socket
import sys
import threading
import types
from collections import deque
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from cpythonplus import _native, memory
from cpythonplus._doctor.agent.comparing import compared
from cpythonplus._doctor.report.owners import growth_layout
from cpythonplus._doctor.report.text import report_text
from cpythonplus.memory._owners import counting, looking, room
from cpythonplus.memory._owners.spelling import place_of, spelled
from examples.leaks import judge
from tests.damage import damaged
from tests.memory.grown import grown, of_rss
from tests.support import FREE_THREADED, PYMALLOC, child_environment, run_child

SESSIONS: dict[str, list[int]] = {}
MANY = 4000


class Part:
    """What is kept."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.text = f"part {number}"


class Shop:
    """Keeps parts."""

    everywhere: list[Part] = []  # noqa: RUF012  # that is the point

    def __init__(self) -> None:
        self.parts: dict[int, Part] = {}

    @staticmethod
    @cache
    def label(part: Part) -> str:
        """Return what stands on a part."""
        return part.text


SHOP = Shop()


@cache
def rendered(number: int) -> str:
    """Return a text of its own."""
    return f"<p>{number}</p>" * 5


def descriptors_now() -> int:
    """Return how many descriptors this process has."""
    return len([*Path("/proc/self/fd").iterdir()])


def line_of(text: str) -> int:
    """Return the line of this file that begins with a text."""
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip().startswith(text))


def named(found: memory.Growth | memory.Owners, ending: str) -> memory.Owner:
    """Return the owner of that name."""
    rows = [each for each in found.owners if each.name.endswith(ending)]
    assert rows, found
    return rows[0]


class TestNames:
    @of_rss
    def test_a_dict_of_a_module(self) -> None:
        found = grown(lambda: SESSIONS.update((f"s{i}", [i]) for i in range(MANY)))
        SESSIONS.clear()
        row = found.owners[0]
        assert row.name == f"{__name__}.SESSIONS"
        assert row.type == "dict"
        assert (row.entries_before, row.entries) in {(-1, MANY), (0, MANY)}
        assert row.parts == f"{MANY:,} list"
        assert (row.place.file, row.place.line) == (__file__, line_of("SESSIONS:"))
        assert row.amount_bytes > MANY * 100

    def test_an_attribute_of_an_instance(self) -> None:
        found = grown(lambda: SHOP.parts.update((i, Part(i)) for i in range(MANY)))
        SHOP.parts.clear()
        row = named(found, "SHOP.parts")
        assert row is found.owners[0]
        assert row.place.line == line_of("self.parts:")

    def test_an_attribute_of_a_class(self) -> None:
        found = grown(lambda: Shop.everywhere.extend(Part(i) for i in range(MANY)))
        Shop.everywhere.clear()
        assert named(found, "Shop.everywhere").place.line == line_of("everywhere:")

    def test_a_cache(self) -> None:
        found = grown(lambda: [rendered(i) for i in range(MANY)] and None)
        rendered.cache_clear()
        row = named(found, ".rendered")
        assert row.type == "functools._lru_cache_wrapper"
        assert row.entries == MANY
        assert row.place.line == line_of("def rendered")

    def test_a_variable_of_a_function(self) -> None:
        queue: deque[Part] = deque()
        found = grown(lambda: queue.extend(Part(i) for i in range(MANY)))
        row = next(each for each in found.owners if each.entries == MANY)
        assert row.name.startswith("queue of ")
        assert row.place.line == line_of("queue: deque[Part]")
        queue.clear()

    @of_rss
    def test_names_of_a_class_derived_from_str(self) -> None:
        out = run_child(
            """
            import sys
            import types
            from cpythonplus import memory

            class Name(str):
                pass

            module = types.ModuleType("plugin")
            module.__name__ = Name("plugin")
            sys.modules["plugin"] = module

            def work(found):
                local = []
                with memory.growth() as growth:
                    module.cache = [[i] for i in range(4000)]
                    local.extend([i] for i in range(4000))
                return growth.result

            code = work.__code__
            work.__code__ = code.replace(
                co_filename=Name(code.co_filename), co_name=Name("work"), co_qualname=Name("work"))
            print([row.name for row in work(None).owners])
            """
        ).out
        assert "plugin.cache" in out
        assert "local of work" in out

    @of_rss
    def test_no_key_of_the_programs_own_is_compared(self) -> None:
        out = run_child(
            """
            import os
            import sys
            import types
            from cpythonplus import memory

            PROCESS = os.getpid()

            class Key(str):
                def __hash__(self):
                    return hash(str.__str__(self))

                def __eq__(self, other):
                    if os.getpid() != PROCESS:
                        os._exit(3)
                    return False

            module = types.ModuleType("plugin")
            names = dict(vars(module))
            vars(module).clear()
            vars(module).update({Key("__name__"): 1} | names)
            sys.modules["plugin"] = module
            Part = type("Part", (list,), {Key("__module__"): 1, "__module__": "parts"})

            with memory.growth() as growth:
                module.cache = [Part([i]) for i in range(4000)]
            print([(row.name, row.parts) for row in growth.result.owners])
            """
        ).out
        assert "plugin.cache" in out
        assert "parts.Part" in out

    def test_a_long_key(self) -> None:
        out = run_child(
            """
            from cpythonplus import _native

            class Part:
                pass

            kept = {"key" * 1_000_000: [Part() for _ in range(4000)]}
            data, *_ = _native.memory_owners(-1, 1 << 14, False, 60, 1 << 34)
            print(b"keykey" in data, len(data) < 1_000_000)
            """
        ).out
        assert out == "True True\n"

    @pytest.mark.parametrize("name", ["collections.deque", "array.array", "bytearray"])
    def test_a_class_with_the_name_of_a_container(self, name: str) -> None:
        slots = "first", "second", "third", "fourth"

        def make() -> object:
            made = type(name, (), {"__slots__": slots})()
            for slot in slots:
                setattr(made, slot, [[number] for number in range(MANY)])
            return made

        row = next(each for each in grown(make).owners if each.type == f"{__name__}.{name}")
        assert row.entries == -1

    @of_rss
    def test_data_of_a_thread(self) -> None:
        out = run_child(
            """
            import threading
            from cpythonplus import memory

            local = threading.local()
            begin, go_on, end = (threading.Event() for _ in range(3))

            def work():
                local.history = []
                begin.set()
                go_on.wait()
                local.history.extend([i] for i in range(5000))
                begin.set()
                end.wait()

            thread = threading.Thread(target=work)
            thread.start()
            begin.wait()
            with memory.growth() as found:
                begin.clear()
                go_on.set()
                begin.wait()
            end.set()
            thread.join()
            print(found.result.owners[0].name)
            """
        ).out
        assert out == "__main__.local.history\n"

    def test_frames_of_many_threads(self) -> None:
        never, begun = threading.Event(), threading.Semaphore(0)

        def wait_for_ever() -> None:
            data = [0] * 500
            begun.release()
            never.wait()
            data.clear()

        threads: list[threading.Thread] = []

        def start() -> None:
            threads.extend(threading.Thread(target=wait_for_ever) for _ in range(40))
            for each in threads:
                each.start()
            for _ in threads:
                begun.acquire()

        found = grown(start)
        never.set()
        for each in threads:
            each.join()
        row = next(each for each in found.owners if "wait_for_ever()" in each.name)
        assert (row.type, row.entries - row.entries_before) == ("frame", 40)
        assert row.name.startswith("40 x ")
        assert found.threads - found.threads_before > 30  # others may end meanwhile
        assert row.place.line == line_of("def wait_for_ever")

    def test_a_linked_list_is_named_by_its_head(self) -> None:
        head: list[Any] = []
        SESSIONS["head"] = head

        def lengthen() -> None:
            last = head
            for _ in range(MANY):
                last.append([])
                last = last[0]

        found = grown(lengthen)
        del SESSIONS["head"]
        assert found.owners[0].name.startswith(f"{__name__}.SESSIONS")
        assert found.owners[0].amount_bytes > MANY * 50
        while head:
            head[:] = head[0]

    def test_keys_are_not_shown(self) -> None:
        SESSIONS["very-secret-session"] = []
        found = grown(lambda: SESSIONS["very-secret-session"].extend(range(10**6, 10**6 + MANY)))
        SESSIONS.clear()
        assert "secret" not in str(found)
        assert found.owners[0].name == f"{__name__}.SESSIONS['very...]"

    def test_a_cache_of_a_method(self) -> None:
        found = grown(lambda: [Shop.label(Part(i)) for i in range(MANY)])
        Shop.label.cache_clear()
        [row] = [each for each in found.owners if "Shop.label" in each.name]
        assert row.place.line == line_of("def label")

    def test_what_another_module_has_made(self) -> None:
        """`from there import name`: the line is there."""
        steps = [("module", __name__, "module"), ("dict", None, "dict"), ("key", "run_child", "x")]
        place = place_of(steps)
        assert place.file.startswith(str(Path(__file__).parents[1] / "support"))
        assert "def run_child" in Path(place.file).read_text().splitlines()[place.line - 1]

    def test_objects_without_a_label(self) -> None:
        out = run_child(
            """
            import itertools, types
            from cpythonplus import memory

            prices = {}
            box = itertools.repeat(types.MappingProxyType(prices))
            fill = prices.update
            del prices
            waiting = set()

            class Task:
                def __init__(self):
                    self.body = [object() for _ in range(50)]

            with memory.growth() as found:
                fill({f"item {number}": object() for number in range(4000)})
                fill = None
                waiting.update(Task() for _ in range(400))
            for row in found.result.owners[:2]:
                print(row.name, row.type, row.below)
            """
        ).out
        assert sorted(out.splitlines()) == [
            "__main__.box -> mappingproxy mappingproxy ",
            "__main__.waiting set Task.body[...]",
        ]

    def test_steps_of_all_kinds(self) -> None:
        module = ("module", __name__, "module")
        names = ("dict", None, "dict")
        assert spelled([module, names, ("key", "f", "function")]) == f"{__name__}.f"
        closure = [
            ("attribute", "__closure__", "tuple"),
            ("index", 0, "cell"),
            ("attribute", "cell_contents", "list"),
        ]
        assert spelled([module, names, ("key", "f", "function"), *closure]).endswith(".f (closure)")
        closure[1] = ("free variable", "kept", "cell")
        for steps in (closure, closure[:2]):
            told = spelled([module, names, ("key", "f", "function"), *steps])
            assert told.endswith(".f (closure: kept)")
        assert spelled([("root", None, "dict")]).startswith("C code, or a thread")
        assert spelled([module, names, ("key", "d", "dict"), ("key", ("m.K",), "list")]) == (
            f"{__name__}.d[<m.K>]"
        )
        assert spelled([("root", "garbage", "m.Node")]) == "garbage: m.Node"
        assert spelled([]) == "?"
        assert place_of([]) == place_of([("root", None, "dict")])


class TestAmounts:
    def test_what_two_have_is_freed_with_neither(self) -> None:
        shared = [Part(i) for i in range(MANY)]
        first, second = [*shared], [*shared]
        del shared
        found = memory.owners()
        rows = [each for each in found.owners if each.entries == MANY]
        assert {each.name.partition(" ")[0] for each in rows} <= {"first", "second"}
        assert rows[0].amount_bytes > MANY * 100
        assert rows[0].kept_bytes < MANY * 20
        assert len(first) == len(second)

    def test_what_one_has_is_freed_with_it(self) -> None:
        kept = [Part(i) for i in range(MANY)]
        row = named(memory.owners(), "kept of TestAmounts.test_what_one_has_is_freed_with_it()")
        assert row.kept_bytes == row.amount_bytes
        assert row.amount_bytes > sum(map(sys.getsizeof, kept))

    def test_classes_and_where_most_are(self) -> None:
        SHOP.parts.update((i, Part(i)) for i in range(99 * 40))
        others = [Part(i) for i in range(40)]
        rows = {each.type: each for each in memory.owners().classes}
        SHOP.parts.clear()
        row = rows[f"{__name__}.Part"]
        assert row.objects == 4000
        assert row.where[0].objects == 99 * 40
        assert row.where[0].path == f"{__name__}.SHOP.parts[...]"
        assert row.where[1].objects == len(others)

    def test_cyclic_garbage_with_the_collector_off(self) -> None:
        out = run_child(
            """
            import gc
            from cpythonplus import memory

            gc.disable()

            def leave():
                def walk(depth):
                    return data if depth == 0 else walk(depth - 1)
                data = bytearray(500)

            with memory.growth() as found:
                for _ in range(1000):
                    leave()
            row = found.result.owners[0]
            print(row.name, row.type, row.entries, row.place.line, found.result.collects)
            print(found.result)
            """
        ).out
        first, _, rest = out.partition("\n")
        assert first == "garbage: leave.<locals>.walk() garbage 1000 8 False"
        assert "the collector is off" in rest

    @of_rss
    def test_garbage_of_a_class(self) -> None:
        out = run_child(
            """
            import gc
            from cpythonplus import memory

            gc.disable()

            class Node:
                pass

            with memory.growth() as found:
                for _ in range(1000):
                    node = Node()
                    node.other = Node()
                    node.other.other = node
                    node.data = [0] * 50
            for row in found.result.classes:
                if row.type == "__main__.Node":
                    print(*(each.path for each in row.where))
            print(found.result.owners[0].place.line)
            """
        ).out
        first, line, *_ = out.splitlines()
        assert first.startswith("garbage: __main__.Node")
        assert "C code" not in first
        assert line == "7"

    @of_rss
    def test_much_garbage_is_told_though_the_collector_came(self) -> None:
        """It will be as much again: what was there at the first look counts, too."""
        out = run_child(
            """
            import gc
            from cpythonplus import memory

            gc.collect()
            gc.set_threshold(100_000)

            class Node:
                pass

            def solve(size):
                node = Node()
                node.itself, node.data = node, bytearray(size)

            for _ in range(20):
                solve(100_000)
            with memory.growth() as found:
                gc.collect()
                solve(100_000)
            for row in found.result.owners:
                if row.type == "garbage":
                    print(row.name, row.kept_before_bytes > 2_000_000, row.amount_bytes < 0)
            """
        ).out
        assert out == "garbage: __main__.Node True True\n"

    def test_garbage_classes_count_with_their_base(self) -> None:
        """The metaclass says nothing, and a base that is garbage is another one each time."""
        out = run_child(
            """
            import abc
            import gc
            from cpythonplus import memory

            gc.disable()

            class Form(abc.ABC):
                pass

            with memory.growth() as found:
                for number in range(300):
                    base = type(f"Base{number}", (Form,), {})
                    type(f"Form{number}", (base,), {"data": [0] * 50})
            row = found.result.owners[0]
            print(row.name, row.type, row.entries, row.place.line)
            """
        ).out
        assert out == "garbage: subclasses of __main__.Form garbage 299 8\n"

    @of_rss
    def test_a_class_counts_with_its_copy_of_the_docstring(self) -> None:
        out = run_child(
            """
            from cpythonplus import memory

            doc = "a word " * 3000
            kept = []
            with memory.growth() as found:
                for _ in range(100):
                    kept.append(type("Form", (), {"__doc__": doc}))
            row = found.result.owners[0]
            print(row.name, row.amount_bytes > 100 * len(doc))
            """
        ).out
        assert out == "__main__.kept True\n"

    @of_rss
    def test_references_that_c_code_does_not_give_up(self) -> None:
        out = run_child(
            """
            import ctypes
            from cpythonplus import memory

            class Item:
                pass

            with memory.growth() as found:
                for number in range(1000):
                    item = Item()
                    item.data = [number] * 50
                    ctypes.pythonapi.Py_IncRef(ctypes.py_object(item))
            row = found.result.owners[0]
            print(row.name, row.type, row.entries_before, row.place.line, sep="; ")
            """
        ).out
        assert out == "999 x __main__.Item; held by C code; 0; 5\n"

    def test_nothing_grows(self) -> None:
        found = grown(lambda: sum(len(str(i)) for i in range(1000)))
        assert not [each for each in found.owners if each.amount_bytes > 100_000]

    def test_memory_that_only_c_code_knows(self) -> None:
        out = run_child(
            """
            import ctypes
            from cpythonplus import memory

            malloc = ctypes.CDLL(None).malloc
            malloc.restype = ctypes.c_void_p
            with memory.growth() as found:
                for _ in range(1000):
                    malloc(3000)
            result = found.result
            print(result.c_heap_bytes - result.c_heap_before_bytes > 2_900_000, result.owners)
            """
        ).out
        assert out in {"True ()\n", "False ()\n"}
        if _native.memory_malloc_bytes() >= 0:
            assert out == "True ()\n"


class TestNothingIsChanged:
    def test_of_the_process(self) -> None:
        memory.owners()
        gc.collect()  # so that none of the oldest generation is due
        before = (
            descriptors_now(),
            gc.isenabled(),
            gc.get_stats()[2]["collections"],
            sys.getrefcount(Part),
        )
        memory.owners()
        with memory.growth():
            pass
        after = (
            descriptors_now(),
            gc.isenabled(),
            gc.get_stats()[2]["collections"],
            sys.getrefcount(Part),
        )
        assert after == before

    def test_no_child_is_left(self) -> None:
        out = run_child(
            """
            import os, signal
            from cpythonplus import memory

            ALL = 0x40000000  # __WALL
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            memory.owners()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            memory.owners()
            try:
                print(os.waitpid(-1, os.WNOHANG | ALL))
            except ChildProcessError:
                print("none")
            """
        ).out
        assert out == "none\n"

    def test_a_program_that_waits_for_its_children(self) -> None:
        """It gets no child that it has not begun, and no signal."""
        out = run_child(
            """
            import os
            import signal
            import threading
            from cpythonplus import memory

            seen = []
            ended = threading.Event()
            signal.signal(signal.SIGCHLD, lambda number, frame: seen.append(number))

            def reap():
                while not ended.is_set():
                    try:
                        seen.append(os.waitpid(-1, os.WNOHANG))
                    except ChildProcessError:
                        pass

            thread = threading.Thread(target=reap)
            thread.start()
            for _ in range(3):
                assert memory.owners().objects > 0
            ended.set()
            thread.join()
            print(seen)
            """
        ).out
        assert out == "[]\n"

    def test_beside_a_guard_page(self) -> None:
        """A thread stack of the C library has one, where a heap of its malloc may begin."""
        out = run_child(
            """
            import mmap
            import os
            from cpythonplus import memory

            GUARD_INSTALL, STEP = 102, 64 << 20
            mapped = mmap.mmap(-1, 2 * STEP, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            at = next(
                int(line.split("-")[0], 16)
                for line in open("/proc/self/maps")
                if int(line.split()[0].split("-")[1], 16) - int(line.split("-")[0], 16) >= 2 * STEP
                and "rw-p" in line
            )
            try:
                mapped.madvise(GUARD_INSTALL, -at % STEP, mmap.PAGESIZE)
            except OSError:
                print("this kernel has none")
            else:
                print("owners" if memory.owners().objects > 0 else "none")
            """
        ).out
        assert out in {"owners\n", "this kernel has none\n"}

    def test_the_copy_has_no_descriptors_of_the_program(self) -> None:
        """A connection that is closed while it works is closed for the other side."""
        out = run_child(
            """
            import os, threading, time
            from cpythonplus.memory._owners import counting, looking, room

            kept = [[number] for number in range(300_000)]
            ours, theirs = os.pipe()
            with open("/dev/null") as null:
                numbers = []

                def look():
                    task = f"/proc/self/task/{main}/children"
                    while len(numbers) < 2:
                        for child in open(task).read().split():
                            try:
                                found = [
                                    os.readlink(f"/proc/{child}/fd/{each}")
                                    for each in os.listdir(f"/proc/{child}/fd")
                                ]
                            except OSError:
                                continue
                            if len(found) <= 2:
                                numbers.append(sorted(each.partition(":")[0] for each in found))
                                return

                main = threading.get_native_id()
                thread = threading.Thread(target=look, daemon=True)
                thread.start()
                while not numbers:  # the thread may come too late
                    looking.Mark().close()
                thread.join()
            print(numbers)
            """
        ).out
        assert out == "[['/memfd', 'pipe']]\n"

    def test_hooks_of_forks_are_not_called(self) -> None:
        out = run_child(
            """
            import os
            from cpythonplus import memory

            os.register_at_fork(before=lambda: print("before"))
            os.register_at_fork(after_in_child=lambda: print("child"))
            memory.owners()
            print("done")
            """
        ).out
        assert out == "done\n"

    @of_rss
    def test_hooks_of_the_c_library_are_not_called(self) -> None:
        """They start threads, on the stacks of those that the copy does not have, or write."""
        out = run_child(
            """
            import ctypes
            from cpythonplus import memory

            libc = ctypes.CDLL(None)
            assert libc.__register_atfork(libc.abort, libc.abort, libc.abort, None) == 0
            with memory.growth() as found:
                kept = [[number] for number in range(4000)]
            print(found.result.owners[0].name, found.result.lost)
            """
        ).out
        assert out == "__main__.kept \n"

    def test_beside_threads_that_work(self) -> None:
        ended = threading.Event()

        def work() -> None:
            kept: deque[object] = deque(maxlen=1000)
            while not ended.is_set():
                kept.append({"a": [1] * 50, "b": b"x" * 2000})

        threads = [threading.Thread(target=work) for _ in range(4)]
        for each in threads:
            each.start()
        try:
            for _ in range(3):
                assert memory.owners().objects > 0
        finally:
            ended.set()
            for each in threads:
                each.join()


class TestHeldByCCode:
    @of_rss
    def test_objects_with_memory_of_c_code(self) -> None:
        out = run_child(
            """
            import zlib
            from cpythonplus import memory

            streams = {}
            with memory.growth() as found:
                for number in range(20):
                    streams[number] = zlib.compressobj()
            rows = [each for each in found.result.classes if each.type == "zlib.Compress"]
            print([(row.objects, row.is_native, row.where[0].path) for row in rows])
            """
        ).out
        assert out == "[(20, True, '__main__.streams[...]')]\n"

    def test_it_is_told_by_what_it_executes_or_has(self) -> None:
        out = run_child(
            """
            import ctypes
            import functools
            from cpythonplus import memory

            class Item:
                def __init__(self):
                    self.data = [object() for _ in range(50)]

                def close(self):
                    pass

            def close(item):
                pass

            def cell_of(item):
                return (lambda: item).__closure__[0]

            def wait(item):
                yield item

            hold = ctypes.pythonapi.Py_IncRef
            hold.argtypes = [ctypes.py_object]
            with memory.growth() as found:
                for number in range(1000):
                    hold(Item().close)
                    hold((None, number, Item()))
                    hold(functools.partial(close, Item()))
                    hold(cell_of(Item()))
                    hold(Item().data.append)
                    hold(wait(Item()))
            for row in found.result.owners[:6]:
                print(row.name, row.place.line, row.type, row.objects > 50_000)
            """
        ).out
        assert sorted(out.splitlines()) == sorted(
            [
                "1,000 x method Item.close() 10 held by C code True",
                "1,000 x tuple with __main__.Item 6 held by C code True",
                "1,000 x functools.partial with close() 13 held by C code True",
                "1,000 x cell with __main__.Item 6 held by C code True",
                "1,000 x builtin_function_or_method with list 0 held by C code True",
                "1,000 x generator wait() 19 held by C code True",
            ]
        )

    @of_rss
    def test_classes_of_one_name_are_one_row(self) -> None:
        out = run_child(
            """
            import ctypes
            from cpythonplus import memory

            hold = ctypes.pythonapi.Py_IncRef
            hold.argtypes = [ctypes.py_object]

            def make():
                class Answer:
                    pass
                return Answer

            kinds = [make() for _ in range(3)]
            with memory.growth() as found:
                for _ in range(900):
                    for kind in kinds:
                        hold((kind(), kind()))
            print([row.name for row in found.result.owners if "Answer" in row.name])
            """
        ).out
        assert out == "['2,700 x tuple with __main__.make.<locals>.Answer']\n"

    @of_rss
    def test_many_large_ones_are_one_row(self) -> None:
        out = run_child(
            """
            import ctypes
            from cpythonplus import memory

            class Item:
                def __init__(self):
                    self.data = [object() for _ in range(2000)]

            hold = ctypes.pythonapi.Py_IncRef
            hold.argtypes = [ctypes.py_object]
            alone = [object() for _ in range(4000)]
            hold(alone)
            del alone[:]
            held = alone
            with memory.growth() as found:
                for number in range(50):
                    hold((number, Item()))
                held.extend(object() for _ in range(9000))
                del held, alone
            for row in found.result.owners[:2]:
                print(row.name, row.type, row.entries - row.entries_before)
            print([row.name for row in found.result.owners[2:] if row.amount_bytes > 16_000])
            """
        ).out
        assert out.splitlines()[0] == "50 x tuple with __main__.Item held by C code 50"
        assert out.splitlines()[1].startswith("C code, or a thread, has it: list list")
        assert out.splitlines()[2] == "[]"

    @of_rss
    def test_what_the_collector_does_not_know(self) -> None:
        out = run_child(
            """
            import ctypes
            from cpythonplus import memory

            hold = ctypes.pythonapi.Py_IncRef
            hold.argtypes = [ctypes.py_object]
            kept = []
            with memory.growth() as found:
                for number in range(20_000):
                    hold(number + 0.5)
                kept.extend(number + 0.5 for number in range(20_000))
            row = next(each for each in found.result.owners if "float" in each.name)
            print(row.type, row.entries - row.entries_before >= 20_000, row.entries < 25_000)
            parts = {part.name: part for part in found.result.parts}
            part = parts["unexplained_blocks"]
            more = part.size_bytes - part.before_bytes
            print(400_000 < more < 700_000)
            print(found.result)
            """,
            env=child_environment(PYMALLOC),
        ).out
        kind, explained, text = out.split("\n", 2)
        assert kind == "nothing on the heap refers to them True True"
        assert explained == "True"
        assert "- 20," in text
        assert "nothing on the heap refers to them) has grown" in text

    @of_rss
    def test_without_pymalloc(self) -> None:
        """All blocks come from malloc: those of objects are no memory of C code."""
        out = run_child(
            """
            import ctypes
            from cpythonplus import memory

            hold = ctypes.pythonapi.Py_IncRef
            hold.argtypes = [ctypes.py_object]
            kept = []
            with memory.growth() as found:
                kept += [[number] for number in range(20_000)]
                for number in range(20_000):
                    hold(f"no. {number} " + "x" * 150)
            [lost] = [row for row in found.result.owners if row.name.endswith(" x str")]
            print(lost.type, lost.entries - lost.entries_before > 19_900)
            print([row.name for row in found.result.owners if row is not lost])
            more = found.result.c_heap_bytes - found.result.c_heap_before_bytes
            print(abs(more) < 300_000 or more)
            """,
            env=child_environment({"PYTHONMALLOC": "malloc"}),
        ).out
        assert out == ("nothing on the heap refers to them True\n['__main__.kept']\nTrue\n")

    @of_rss
    def test_a_free_variable(self) -> None:
        out = run_child(
            """
            from cpythonplus import memory

            def make():
                values = []
                def add(value):
                    values.append([value])
                return add

            add = make()
            with memory.growth() as found:
                for number in range(9000):
                    add(number)
            print([(row.name, row.type) for row in found.result.owners])
            """,
            env=child_environment(PYMALLOC),
        ).out
        assert out == "[('__main__.add (closure: values)', 'list')]\n"

    @of_rss
    def test_a_greenlet_that_is_suspended(self) -> None:
        """Its variables are named like those of a thread, unless greenlet itself leads to them."""
        pytest.importorskip("greenlet")
        out = run_child(
            """
            from greenlet import getcurrent, greenlet
            from cpythonplus import memory

            def pause():
                getcurrent().parent.switch()

            def fetch():
                kept, texts = [], []
                while True:
                    kept.append([len(kept)])
                    texts.append(f"a longer text, no. {len(kept)} " * 3)
                    sorted([1], key=lambda number: pause())

            workers = [greenlet(fetch) for _ in range(3)]
            with memory.growth() as found:
                for number in range(9000):
                    workers[number % 3].switch()
            rows = [(row.name, row.type) for row in found.result.owners]
            print(sorted(row for row in rows if row != ("3 x fetch()", "frame")))
            """,
            env=child_environment(PYMALLOC),
        ).out
        names = ["kept of fetch()"] * 3 + ["texts of fetch()"] * 3
        names = names if sys.version_info < (3, 15) else ["__main__.workers"]
        assert out == f"{[(name, 'list') for name in names]}\n"

    @of_rss
    def test_short_strings_that_nobody_refers_to(self) -> None:
        """They are shorter than what their class says of itself."""
        out = run_child(
            """
            import ctypes
            from cpythonplus import memory

            hold = ctypes.pythonapi.Py_IncRef
            hold.argtypes = [ctypes.py_object]
            with memory.growth() as found:
                for number in range(20_000):
                    hold(f"no. {number}")
            row = next(each for each in found.result.owners if each.name.endswith(" x str"))
            print(row.type, row.entries - row.entries_before > 19_900)
            """,
            env=child_environment(PYMALLOC),
        ).out
        assert out == "nothing on the heap refers to them True\n"

    def test_names_that_the_interpreter_caches(self) -> None:
        """Its cache of methods keeps those that getattr() is asked for; no C code has lost them."""
        out = run_child(
            """
            from cpythonplus import memory

            class Machine:
                pass

            machine = Machine()
            with memory.growth() as found:
                for number in range(20_000):
                    getattr(machine, f"_received_{number}", None)
            print([(row.name, row.type) for row in found.result.owners if "str" in row.name])
            """,
            env=child_environment(PYMALLOC),
        ).out
        assert out == "[]\n"

    @of_rss
    def test_what_the_collector_has_let_go_of(self) -> None:
        out = run_child(
            """
            import ctypes
            import gc
            from cpythonplus import memory

            hold = ctypes.pythonapi.Py_IncRef
            hold.argtypes = [ctypes.py_object]
            gc.collect()
            with memory.growth() as found:
                for number in range(5000):
                    hold((number, number + 1.5))
                gc.collect()
            rows = [row for row in found.result.owners if "tuple" in row.name]
            print([(row.type, row.entries - row.entries_before >= 4900) for row in rows])
            """,
            env=child_environment(PYMALLOC),
        ).out
        assert out == "[('nothing on the heap refers to them', True)]\n"

    @of_rss
    @pytest.mark.parametrize(
        ("made", "kind", "least"),
        [
            ("bytes(2000)", "bytes", 2000),
            ("f'{number} ' + 'x' * 700", "str", 700),
            ("bytes(200_000)", "bytes", 200_000),  # a mapping of its own
        ],
    )
    def test_large_ones_are_blocks_of_malloc(self, made: str, kind: str, least: int) -> None:
        """They are no memory of C code, and what was freed meanwhile is not among them."""
        out = run_child(
            f"""
            import ctypes
            from cpythonplus import memory

            hold = ctypes.pythonapi.Py_IncRef
            hold.argtypes = [ctypes.py_object]
            with memory.growth() as found:
                freed = [{made} for number in range(300)]
                for number in range(300):
                    hold({made})
                del freed[:200]
            [row] = [each for each in found.result.owners if each.name.endswith(" x {kind}")]
            more = row.entries - row.entries_before  # others come and go
            print(row.type, 290 <= more <= 310 or more)
            print(300 * {least} <= row.amount_bytes < 330 * {least + 100})
            more = found.result.c_heap_bytes - found.result.c_heap_before_bytes
            print(more < 100 * {least})
            """,
            env=child_environment(PYMALLOC),
        ).out
        assert out == "nothing on the heap refers to them True\nTrue\nTrue\n"

    @of_rss
    @pytest.mark.parametrize("made", ["io.StringIO()", "io.BytesIO()"])
    @pytest.mark.parametrize(("count", "length"), [(300, 3000), (4000, 200), (1, 1_000_000)])
    def test_the_buffer_of_a_file_in_memory(self, made: str, count: int, length: int) -> None:
        """It is not lost, although its tp_traverse leaves it out on 3.11."""
        out = run_child(
            f"""
            import io
            from cpythonplus import memory

            kept = [{made} for _ in range({count})]
            text = ("x" if "String" in "{made}" else b"x") * {length}
            with memory.growth() as found:
                print(len([each.write(text + text[:1]) for each in kept]))
            [row] = [row for row in found.result.owners if row.amount_bytes > 100_000]
            print(row.name.partition("[")[0], row.amount_bytes >= {count * length})
            more = found.result.c_heap_bytes - found.result.c_heap_before_bytes
            print(abs(more) < {count * length} // 4 or more)
            """,
            env=child_environment(PYMALLOC),
        ).out
        assert out == f"{count}\n__main__.kept True\nTrue\n"

    @of_rss
    def test_modules_that_c_code_refers_to(self) -> None:
        """They have names: what grows in them is told by these."""
        out = run_child(
            """
            import ctypes
            import sys
            import types
            from cpythonplus import memory

            hold = ctypes.pythonapi.Py_IncRef
            hold.argtypes = [ctypes.py_object]
            for number in range(100):
                module = types.ModuleType(f"plugin_{number}")
                sys.modules[module.__name__] = module
                hold(module)
            with memory.growth() as found:
                module.cache = [[i] for i in range(4000)]
            print([row.name for row in found.result.owners])
            """,
            env=child_environment(PYMALLOC),
        ).out
        assert out == "['plugin_99.cache']\n"

    @of_rss
    def test_a_module_in_which_more_is_dropped_than_grows(self) -> None:
        out = run_child(
            """
            from cpythonplus import memory

            before, after = [[i] for i in range(9000)], []
            with memory.growth() as found:
                del before
                after += [[i] for i in range(4000)]
            print([row.name for row in found.result.owners])
            """,
            env=child_environment(PYMALLOC),
        ).out
        assert out == "['__main__.after']\n"

    @of_rss
    def test_a_lost_dict_stands_for_what_is_in_it(self) -> None:
        out = run_child(
            """
            import ctypes
            import gc
            from cpythonplus import memory

            hold = ctypes.pythonapi.Py_IncRef
            hold.argtypes = [ctypes.py_object]
            gc.collect()
            with memory.growth() as found:
                for number in range(5000):
                    hold({f"a key {number}": number + 1.5})
                gc.collect()
            lost = ("nothing on the heap refers to them", "held by C code")
            for row in found.result.owners:
                if row.type in lost:
                    print(row.name.partition(" x ")[2], row.entries - row.entries_before >= 5000)
            """,
            env=child_environment(PYMALLOC),
        ).out
        assert out == "dict True\n"

    @of_rss
    def test_ways_that_are_spelled_alike_are_one(self) -> None:
        out = run_child(
            """
            import ctypes
            from cpythonplus import memory

            class Item:
                pass

            hold = ctypes.pythonapi.Py_IncRef
            hold.argtypes = [ctypes.py_object]
            with memory.growth() as found:
                for _ in range(3000):
                    hold((Item(),))
            [row] = [each for each in found.result.classes if each.type == "__main__.Item"]
            print([(way.objects, way.path) for way in row.where])
            """
        ).out
        assert out == "[(3000, 'C code, or a thread, has it: tuple[...]')]\n"


class TestBelow:
    def test_tracebacks_of_kept_exceptions(self) -> None:
        def fail() -> None:
            padding = [0] * 3000
            padding[len(padding)] = 1

        def fail_often() -> None:
            for number in range(100):
                try:
                    fail()
                except IndexError as error:
                    SESSIONS[f"{number}"] = error  # type: ignore[assignment]

        found = grown(fail_often)
        SESSIONS.clear()
        row = named(found, "SESSIONS")
        assert row.below.startswith("[...].__traceback__")
        _, [table, *_] = growth_layout(found.as_json(), 5)
        assert table.rows[0][4] == f"IndexError in {row.below}"

    def test_entries_of_entries_say_nothing(self) -> None:
        found = grown(lambda: SESSIONS.update((f"s{i}", [i] * 9) for i in range(MANY)))
        SESSIONS.clear()
        assert named(found, "SESSIONS").below == ""


class TestPaths:
    def test_a_home_goes_before_a_stranger(self) -> None:
        out = run_child(
            """
            import logging
            import sys
            import types
            from cpythonplus import memory

            stranger = types.ModuleType("another")
            stranger.log = logging.getLogger("another")
            stranger.manager = logging.Logger.manager
            others = dict(sys.modules)
            sys.modules.clear()
            sys.modules.update({"another": stranger, **others})
            with memory.growth() as found:
                for number in range(3000):
                    logging.getLogger(f"logger{number}")
            print(found.result.owners[0].name)
            """
        ).out
        assert out.startswith("logging.")
        assert out.endswith(".manager.loggerDict\n")

    def test_the_value_of_a_weak_key_keeps_what_nothing_else_does(self) -> None:
        out = run_child(
            """
            import weakref
            from cpythonplus import memory

            class Task:
                def __init__(self):
                    self.body = [object() for _ in range(40)]

            class State:
                def __init__(self, task):
                    self.task = task

            states, lost = weakref.WeakKeyDictionary(), weakref.WeakKeyDictionary()
            server = {"manager": [{"groups": [{"scopes": [{"tasks": []}]}]}]}

            def serve(states, keep=id):
                with memory.growth() as found:
                    for _ in range(600):
                        task = Task()
                        states[task] = State(task)
                        keep(task)
                        del task
                print(found.result.owners[0].name)

            serve(states, server["manager"][0]["groups"][0]["scopes"][0]["tasks"].append)
            serve(lost)
            """
        ).out
        assert out.splitlines() == [
            "__main__.server['manager'][0]['groups'][0]['scopes'][0]['tasks']",
            "__main__.lost.data",
        ]

    def test_how_most_objects_are_kept(self) -> None:
        out = run_child(
            """
            from cpythonplus._doctor.agent import examining
            from cpythonplus._doctor.report.text import part_text

            class Client:
                pass

            class Pool:
                pass

            CLIENT = Client()
            POOL = Pool()
            POOL.leaked = [Client() for _ in range(900)]
            print(part_text("path", examining.path("__main__.Client")))
            """
        ).out
        assert ".POOL (__main__.Pool) -> .leaked (list) -> [" in out
        assert "\n900 of 901 objects: __main__.POOL.leaked[...]\n" in out
        assert "\n1 of 901 objects: __main__.CLIENT\n" in out


class TestPartsAndKinds:
    @of_rss
    def test_memory_that_c_code_maps(self) -> None:
        def map_memory() -> mmap.mmap:
            mapped = mmap.mmap(-1, 20 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            mapped.write(b"x" * (20 << 20))
            return mapped

        found = grown(map_memory)
        text = found.text()
        first = next(line for line in text.splitlines() if line.startswith("RSS"))
        assert ": anonymous mappings +20" in first
        assert "- Anonymous mappings have grown by 20" in text
        assert "no owner" not in text

    def test_descriptors_by_kind(self) -> None:
        kept: list[Any] = []

        def open_some() -> None:
            kept.extend(select.epoll() for _ in range(60))
            listening = socket.create_server(("127.0.0.1", 0))
            kept.append(listening)
            kept.append(socket.create_connection(listening.getsockname()))
            kept.append(Path(__file__).open())  # noqa: SIM115  # it is to be counted

        found = grown(open_some)
        more = {each.kind: each.count - each.count_before for each in found.kinds}
        port = kept[60].getsockname()[1]
        for each in kept:
            each.close()
        assert more["epoll"] == 60
        assert more["listening socket"] == 1
        assert more[f"socket to 127.0.0.1:{port}"] == 1
        assert more[f"files in {Path(__file__).parent}"] == 1
        assert found.descriptors - found.descriptors_before == 63
        text = found.text()
        assert ": epoll +60, " in text
        assert "63 more descriptors: epoll +60" in text
        assert "ls -l /proc/PID/fd" in text

    @pytest.mark.parametrize(
        ("remote", "told"),
        [
            ("0100007F:1F90", "socket to 127.0.0.1:8080"),
            ("0000000000000000FFFF00000100007F:1F90", "socket to 127.0.0.1:8080"),
            ("00000000000000000000000001000000:1F90", "socket to ::1:8080"),
        ],
    )
    def test_peers(self, remote: str, told: str) -> None:
        if sys.byteorder == "little":
            assert counting._peer(remote) == told

    def test_many_sockets_are_one_kind(self) -> None:
        """Each connection has a port of its own at one of its ends."""
        with socket.create_server(("127.0.0.1", 0), backlog=50) as listening:
            address = listening.getsockname()
            kept: list[socket.socket] = []

            def connect() -> None:
                for _ in range(30):
                    kept.append(socket.create_connection(address))
                    kept.append(listening.accept()[0])

            found = grown(connect)
            for each in kept:
                each.close()
        told = f"socket to 127.0.0.1:{address[1]} +30 and socket accepted at port {address[1]} +30"
        assert f"descriptors: {told}." in " ".join(found.text().split())

    def test_a_socket_behind_many_others_of_the_host(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        line = "0: 0100007F:8301 0100007F:{:04X} 06 00000000:00000000 00:00000000 00000000 0 0 {}"
        lines = [line.format(number, 0) for number in range(50_000)]
        lines.append(line.format(1234, 4711))
        (tmp_path / "net").mkdir()
        (tmp_path / "net" / "tcp").write_text("\n".join(["heads", *lines]))
        monkeypatch.setattr(counting, "_PROC", str(tmp_path))
        assert counting._peers({"4711"}) == {"4711": "socket to 127.0.0.1:1234"}

    def test_sockets_to_many_ports_of_one_host(self) -> None:
        rows = [
            {"what": "descriptors", "kind": f"socket to {host}:{port}", "count": 20}
            for host, ports in (("10.0.0.7", range(90)), ("10.0.0.8", range(2)))
            for port in ports
        ]
        growth = {"kinds": rows, "descriptors": 2000, "descriptors_before": 100}
        text = " ".join(report_text({"growth": growth}).split())
        told = "sockets to 10.0.0.7 +1,800, socket to 10.0.0.8:0 +20 and socket to 10.0.0.8:1 +20."
        assert told in text

    @pytest.mark.parametrize(
        ("target", "kind"),
        [
            ("anon_inode:[eventpoll]", "epoll"),
            ("anon_inode:[eventfd]", "eventfd"),
            ("anon_inode:inotify", "inotify"),
            ("pipe:[123]", "pipe"),
            ("socket:[9]", "socket"),
            ("/memfd:x (deleted)", "memfd"),
            ("/dev/shm/psm_1a2b3c4d", "/dev/shm/psm_*"),
            ("/dev/shm/psm_abcdefab", "/dev/shm/psm_*"),
            ("/dev/shm/torch_417_1099_0 (deleted)", "/dev/shm/torch_*_*_*"),
            ("/dev/shm/sem.mp-abcdefgh", "/dev/shm/sem.mp-*"),
            ("/null", "files in /"),
        ],
    )
    def test_what_a_descriptor_is(self, target: str, kind: str) -> None:
        assert counting._kind(target) == kind

    def test_callbacks_of_the_end(self) -> None:
        def nothing() -> None:
            pass

        def register() -> None:
            for _ in range(60):
                atexit.register(nothing)

        found = grown(register)
        atexit.unregister(nothing)
        assert "callbacks of atexit: +60" in found.text()

    def test_threads_by_function(self) -> None:
        end = threading.Event()

        def wait_for_end() -> None:
            end.wait()

        thread = threading.Thread(target=wait_for_end)
        found = grown(thread.start)
        end.set()
        thread.join()
        [name] = [each.kind for each in found.kinds if "wait_for_end" in each.kind]
        assert name.endswith("wait_for_end()")

    def test_of_two_reports(self) -> None:
        rows = [{"name": "mappings", "resident_bytes": size << 20} for size in (1, 30)]
        first, second = (
            {"owners": {}, "resident": {"parts": [row]}, "target": {"rss_bytes": 0}} for row in rows
        )
        found = compared(first, second)
        assert found["parts"] == [
            {"name": "mappings", "size_bytes": 30 << 20, "before_bytes": 1 << 20}
        ]


class TestText:
    def test_whole_names_where_there_is_room(self, tmp_path: Path) -> None:
        package = tmp_path / "somebody" / "metrics"
        package.mkdir(parents=True)
        for folder in (package, package.parent):
            (folder / "__init__.py").touch()
        name = "package_of_somebody.metrics.registry_of_all_meters_ever"
        row = {"name": name, "type": "list", "amount_bytes": 1 << 20, "entries": 1571}
        for file, told in (
            (package / "__init__.py", "somebody/metrics/__init__.py:3"),
            (package / "meters.py", "somebody/metrics/meters.py:3"),
            (tmp_path / "app.py", " app.py:3"),
            (Path("/gone/metrics/__init__.py"), " metrics/__init__.py:3"),
        ):
            place = {"file": str(file), "line": 3}
            owner = {**row, "place": place, "parts": "1571 tests.of.a.long.name.Meter" * 2}
            found = {"growth": {"seconds": 1.0, "owners": [owner]}}
            narrow, wide = (report_text(found, width=width) for width in (100, 200))
            table = wide.partition("Who keeps")[2]
            assert f"{name} (list)" in table
            assert f"{told}\n" in table
            assert name not in narrow.partition("Who keeps")[2]

    @pytest.mark.parametrize(
        ("kind", "more", "told"),
        [
            ("str", 900, "CPython 3.12.0 to 3.12.6 never frees such a string"),
            ("str", 0, "that it has not given up"),
            ("int", 900, "that it has not given up"),
        ],
    )
    def test_interned_strings(self, kind: str, more: int, told: str) -> None:
        row = {
            "name": f"1,000 x {kind}",
            "type": "nothing on the heap refers to them",
            "amount_bytes": 2 << 20,
            "entries": 1000,
            "entries_before": 0,
        }
        counted = {"what": "interned", "kind": "", "count": more, "count_before": 0}
        found = {"growth": {"owners": [row], "kinds": [counted]}}
        assert told in " ".join(report_text(found).split())

    @pytest.mark.parametrize("kind", ["nothing on the heap refers to them", "held by C code"])
    def test_lost_references(self, kind: str) -> None:
        row = {"name": "900 x dict", "type": kind, "amount_bytes": 2 << 20, "entries": 900}
        row["entries_before"] = 100
        grown = {"name": "unexplained_blocks", "size_bytes": 3 << 20, "before_bytes": 1 << 20}
        text = " ".join(report_text({"growth": {"owners": [row], "parts": [grown]}}).split())
        assert "by 2 MiB: C code took references to them that it has not given up." in text
        assert "growth --native PID" in text
        is_explained = "that no object explains have" not in text
        assert is_explained == kind.startswith("nothing")

    @pytest.mark.parametrize(("mib", "is_told"), [(8, True), (0, False)])
    def test_free_memory_that_grows(self, mib: int, is_told: bool) -> None:
        """If RSS has not grown, the memory was in use before."""
        grown = {"name": "arena_free", "size_bytes": 9 << 20, "before_bytes": 2 << 20}
        found = {"parts": [grown], "rss_bytes": mib << 20, "rss_before_bytes": 0}
        text = " ".join(report_text({"growth": found}).split())
        assert ("- Free memory in Python's arenas has grown by 7 MiB" in text) == is_told
        assert ("`cpythonplus doctor PID`" in text) == is_told

    @pytest.mark.parametrize(
        ("mib", "kept_mib", "is_told"), [(2, 0, False), (2, 2, True), (9, 0, True)]
    )
    def test_mappings_of_the_tracer(self, mib: int, kept_mib: int, is_told: bool) -> None:
        """Those of memray are no leak of the program, for which it would have seen allocations."""
        grown = {"name": "mappings", "size_bytes": (mib + 1) << 20, "before_bytes": 1 << 20}
        found = {"growth": {"parts": [grown]}, "native": {"kept_bytes": kept_mib << 20}}
        assert ("- Anonymous mappings have grown" in report_text(found)) == is_told

    def test_free_memory_comes_after_what_keeps_memory(self) -> None:
        grown = {"name": "c_heap_free", "size_bytes": 9 << 20, "before_bytes": 2 << 20}
        row = {"name": "app.jar", "type": "dict", "amount_bytes": 2 << 20}
        found = {"parts": [grown], "rss_bytes": 9 << 20, "owners": [row]}
        text = report_text({"growth": found})
        assert text.index("- app.jar (dict) has grown most") < text.index("- Free memory")

    def test_objects_that_may_have_the_memory_of_c_code(self) -> None:
        row = {"type": "zlib.Compress", "objects": 900, "objects_before": 600, "is_native": True}
        rows = [
            {**row, "where": [{"objects": 900, "path": "app.streams[...]"}]},
            {**row, "type": "app.Item", "is_native": False},
            {**row, "type": "zlib.Other", "objects_before": 890, "where": [{"path": "app.other"}]},
            {**row, "type": "_thread.lock", "where": [{"path": "app.lock"}]},
            {**row, "type": "_io.Small", "objects": 90_000},
            {**row, "type": "zlib.Part", "where": [{"path": "app.streams[...].part"}]},
        ]
        growth = {"c_heap_bytes": 9 << 20, "c_heap_before_bytes": 1 << 20, "classes": rows}
        text = " ".join(report_text({"growth": growth}).split())
        assert (
            "; it may be that of 10 more zlib.Other by app.other and 300 more zlib.Compress by"
            " app.streams[...]." in text
        )

    def test_objects_that_may_have_blocks_of_the_allocator(self) -> None:
        """As a greenlet has."""
        held = "C code, or a thread, has it: app.Green"
        row = {"type": "app.Green", "objects": 9000, "objects_before": 1000, "is_native": True}
        for path, by in (("app.pile[...]", " by app.pile[...]"), (held, "")):
            rows = [{**row, "where": [{"objects": 9000, "path": path}]}]
            grown = {"name": "unexplained_blocks", "size_bytes": 3 << 20, "before_bytes": 0}
            text = " ".join(report_text({"growth": {"parts": [grown], "classes": rows}}).split())
            assert f"references; it may be that of 8,000 more app.Green{by}." in text

    @pytest.mark.parametrize(
        ("kib", "seconds", "is_slow"),
        [(569, 60.0, True), (569, 3600.0, False), (9000, 60.0, False)],
    )
    def test_a_slow_leak(self, kib: int, seconds: float, is_slow: bool) -> None:
        row = {"name": "m.kept", "type": "list", "amount_bytes": kib << 10}
        text = report_text({"growth": {"owners": [row], "seconds": seconds}})
        assert "- m.kept (list) has grown most" in text
        assert ("doctor growth a.json b.json" in text) == is_slow

    @pytest.mark.parametrize(
        ("kind", "more", "halfway", "is_told"),
        [
            ("list", 300, -1, True),
            ("list", 300, 20, True),
            ("list", 300, 2, False),  # most in one half of the time
            ("list", 90, -1, False),
            ("garbage", 300, -1, False),
        ],
    )
    def test_many_small_entries(self, kind: str, more: int, halfway: int, is_told: bool) -> None:
        row = {"name": "m.kept", "type": kind, "amount_bytes": 40 << 10}
        row |= {"entries": 100 + more, "entries_before": 100}
        grown: dict[str, Any] = {"owners": [row], "seconds": 20.0}
        if halfway >= 0:
            row["halfway_bytes"] = halfway << 10
            grown["halfway_seconds"] = 10.0
        text = report_text({"growth": grown})
        assert ("- m.kept" in text) == is_told
        assert ("doctor growth a.json b.json" in text) == is_told

    def test_interned_strings_are_counted(self) -> None:
        names = [sys.intern(f"interned by a test {number}") for number in range(100)]
        if hasattr(sys, "_getunicodeinternedsize"):
            assert counting.interned_strings() > len(names)
        else:
            assert counting.interned_strings() == 0

    def test_garbage_has_the_next_command(self) -> None:
        rows = [
            {"name": f"garbage: {name}", "type": "garbage", "amount_bytes": 1 << 20}
            for name in ("m.Protocol", "traceback")
        ]
        found = {"target": {"pid": 4711}, "growth": {"owners": rows, "collects": True}}
        text = report_text(found)
        assert "2 MiB of what has grown is cyclic garbage" in text
        assert "cpythonplus doctor cycles 4711" in text
        assert "traceback has grown" not in text


class TestWithoutACopy:
    @of_rss
    @pytest.mark.parametrize("at", [0, 1], ids=["first look", "second look"])
    def test_the_rest_is_told(self, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
        look, looks = looking._look, iter(range(2))

        def failing(before: int, least: int, *, marks: bool) -> tuple[dict[str, Any], int, int]:
            if next(looks) == at:
                raise RuntimeError("the copy of the process was ended by signal 11")
            return look(before, least, marks=marks)

        monkeypatch.setattr(looking, "_look", failing)
        found = grown(lambda: [[number] for number in range(MANY)])
        assert not found.owners
        assert not found.classes
        assert found.rss_bytes > 0
        assert {"live_objects", "code"} <= {each.name for each in found.parts}
        text = str(found)
        assert "who keeps what has grown is not told: the copy of the process was ended" in text
        assert "RSS" in text
        assert "no owner" not in text

    @pytest.mark.parametrize(
        ("parts", "what", "contents"),
        [
            (["live_objects"], "Small blocks of Python's allocator", "blocks that C code has not"),
            (["mimalloc_free"], "The segments of Python's allocator", "or free memory"),
            (["c_heap_used", "large_blocks"], "The C heap in use", "or memory of C code"),
        ],
    )
    def test_parts_that_nothing_divides_have_a_sentence(
        self, parts: list[str], what: str, contents: str
    ) -> None:
        rows = [{"name": name, "size_bytes": 7 << 20, "before_bytes": 1 << 20} for name in parts]
        rows += [{"name": "thread_heaps_used", "size_bytes": 0, "before_bytes": 1 << 20}]
        grown: dict[str, Any] = {"parts": rows, "rss_bytes": 12 << 20, "lost": "it has no room"}
        text = " ".join(report_text({"growth": grown}).split())
        verb = "have" if what.endswith("allocator") else "has"
        more = 6 if len(parts) == 1 else 11
        assert f"- {what} {verb} grown by {more} MiB: " in text
        assert contents in text
        assert "who keeps them: it has no room." in text
        assert "growth --native PID" in text
        assert what not in report_text({"growth": {**grown, "lost": ""}})

    @of_rss
    def test_too_little_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(room, "_left", lambda: iter([1 << 40, 3 << 20]))
        found = grown(list)
        assert found.lost.endswith("and 2 MiB can be had")
        with pytest.raises(MemoryError):
            memory.owners()

    def test_what_can_be_had(self) -> None:
        assert 1 << 20 < room.copy_room() <= 1 << 40

    def test_a_copy_that_needs_more_than_it_may_take(self) -> None:
        with pytest.raises(RuntimeError, match="ended early"):
            _native.memory_owners(-1, 1, False, 60, 16 << 20)


class TestMisuse:
    def test_a_block_that_raises(self) -> None:
        def fail() -> None:
            raise KeyError("x")

        with pytest.raises(KeyError), memory.growth() as found:
            fail()
        assert found.result is None

    def test_growth_without_a_look_before(self) -> None:
        with pytest.raises(LookupError, match="nobody has looked before"):
            looking.growth_since_mark()

    def test_another_file_has_the_number_of_the_first_look(self, tmp_path: Path) -> None:
        """As in a program that becomes a daemon: it closes all descriptors."""
        made = looking.Mark()
        with (tmp_path / "other").open("wb") as other:
            os.dup2(other.fileno(), made.file)
            number = made.file
            with pytest.raises(LookupError, match="closed the file of the first look"):
                made.grown()
            made.close()
            assert os.fstat(number).st_ino == os.fstat(other.fileno()).st_ino
            os.close(number)
        closed = looking.Mark()
        os.close(closed.file)
        closed.close()

    def test_a_damaged_look_harms_nobody(self) -> None:
        made = looking.Mark()
        right = os.pread(made.file, 1 << 30, 0)
        for data in [right[: len(right) // 2], bytes(len(right)), *[*damaged(right)][-80::8]]:
            os.ftruncate(made.file, 0)
            os.pwrite(made.file, data, 0)
            with contextlib.suppress(RuntimeError):  # of the copy
                assert made.grown().objects > 0
        made.close()

    def test_a_second_look_replaces_the_first(self) -> None:
        descriptors = descriptors_now()
        looking.mark()
        looking.mark()
        assert descriptors_now() == descriptors + 1
        looking.growth_since_mark()
        assert descriptors_now() == descriptors

    def test_each_doctor_has_its_own_look(self) -> None:
        descriptors = descriptors_now()
        looking.mark()
        looking.mark("first")
        kept = [[number] for number in range(MANY)]
        looking.mark("second")
        first, second = (looking.growth_since_mark(each) for each in ("first", "second"))
        assert first.objects - first.objects_before > MANY
        assert second.objects - second.objects_before < MANY
        assert len(kept) == MANY
        for number in range(6):  # each has been interrupted
            looking.mark(f"doctor {number}")
        assert descriptors_now() == descriptors + 5
        with pytest.raises(LookupError, match="too many others have since"):
            looking.growth_since_mark("doctor 1")
        assert looking.forget_mark("doctor 1") == {"forgotten": 0}
        for number in range(2, 6):
            assert looking.forget_mark(f"doctor {number}") == {"forgotten": 1}
        looking.growth_since_mark()
        assert descriptors_now() == descriptors

    @pytest.mark.parametrize(
        "arguments", [(), (1,), ("x", 1, True, 1, 1), (-1, -1, True, 1), (-1, 1, True, 1, 1, 1)]
    )
    def test_wrong_arguments_of_the_extension(self, arguments: tuple[Any, ...]) -> None:
        with pytest.raises((TypeError, OverflowError)):
            _native.memory_owners(*arguments)

    def test_a_file_that_is_no_mark(self, tmp_path: Path) -> None:
        for content in (b"", b"x" * 10, b"x" * 1000, b"\xff" * 4096):
            path = tmp_path / "mark"
            path.write_bytes(content)
            with path.open("rb") as file:
                data, _, mark = _native.memory_owners(file.fileno(), 1 << 20, False, 60, 1 << 34)
            assert data
            assert mark == -1

    def test_a_copy_that_takes_too_long(self) -> None:
        code = """
            from cpythonplus import _native

            kept = [[number] for number in range(2_000_000)]
            try:
                _native.memory_owners(-1, 1, False, 0, 1 << 34)
            except RuntimeError as error:
                print(error)
        """
        assert run_child(code).out == "the copy of the process took longer than 0 seconds\n"

    def test_reports_of_two_processes_of_one_number(self) -> None:
        owners = memory.owners().as_json()
        first, second = (
            {"target": {"pid": 7, "started_s": started_s}, "owners": owners}
            for started_s in (1000.0, 9000.5)
        )
        assert compared(first, first)["owners"] == []
        with pytest.raises(ValueError, match="different processes"):
            compared(first, second)

    def test_a_report_of_something_else(self) -> None:
        for found in ({}, {"owners": 3}, {"owners": [{}], "classes": [{}, 1], "seconds": "x"}):
            lines, tables = growth_layout(found, 5)
            assert lines
            assert isinstance(tables, tuple)


def test_rates() -> None:
    """Of entries; of objects where there are no entries more."""
    row: dict[str, object] = {"name": "a.b", "type": "dict", "parts": "7 m.Part", "objects": 500}
    for entries, entries_before, before, told in (
        (7, 2, 100, ("2 -> 7", "+5/s", "Part")),
        (7, 7, 100, ("7 -> 7", "+400 objects/s", "Part")),
        (8, 8, 500, ("8 -> 8", "", "7 Part")),
        (-1, -1, 300, ("", "+200 objects/s", "7 Part")),
    ):
        counts = {"entries": entries, "entries_before": entries_before, "objects_before": before}
        _, tables = growth_layout({"seconds": 1.0, "owners": [{**row, **counts}]}, 5)
        assert tables[0].rows[0][2:5] == told


def test_types_made_at_run_time() -> None:
    forms: list[type] = []
    gc.collect()  # classes of earlier tests
    found = grown(lambda: forms.extend(types.new_class("Form") for _ in range(300)))
    rows = {each.type: each for each in found.classes}
    assert rows["type"].objects - rows["type"].objects_before == 300
    assert found.owners[0].entries == 300
    forms.clear()


def test_the_page_has_the_results_of_the_test_bed() -> None:
    results = {each.stem: json.loads(each.read_text()) for each in judge.RESULTS.glob("*.json")}
    assert len(results) == 5
    assert judge.table(results) in judge.PAGE.read_text()
    for rows in results.values():
        assert [row["service"] for row in rows] == sorted(row["service"] for row in rows)
        assert {row["verdict"] for row in rows if row["service"] != "control"} == {"named"}


@of_rss
@pytest.mark.parametrize("name", ["two_leaks", "control"])
def test_the_test_bed(name: str) -> None:
    source = judge.HERE / f"{name}.py"
    assert judge.judged(source, 1.0)["verdict"] == ("quiet" if name == "control" else "named")


@of_rss
def test_the_container_of_a_native_queue_has_its_name() -> None:
    out = run_child(
        """
        import queue
        from cpythonplus import memory, threads

        threads.patch()
        jobs = queue.Queue()
        with memory.growth() as found:
            for number in range(5000):
                jobs.put({"job": number})
        print(found.result.owners[0].name)
        """
    ).out
    assert out == ("__main__.jobs\n" if FREE_THREADED else "__main__.jobs.queue\n")
