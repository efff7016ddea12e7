"""`blame`: what a worker did to its memory is named as what it was.

Each case is a program of its own: it makes objects, forks a worker that does one known thing to
them, and a third process that asks; the parent does nothing meanwhile, so that all is the worker's.
"""

import ctypes
import json
import mmap
import os
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpythonplus.prefork._blame.blaming import blame
from cpythonplus.prefork._blame.blocks import POOL_BYTES, Block, Chunks, Pool
from cpythonplus.prefork._blame.objects import Layout, Objects, keys_table_bytes
from cpythonplus.prefork._blame.pages import Mapping, Memory, mappings, stack_pointers
from cpythonplus.prefork._blame.reasons import Category
from tests.support import DEBUG, PYMALLOC, run_child

COUNT = 8_000

PROGRAM = """
import gc, json, os, sys
from cpythonplus.prefork._blame.blaming import blame

COUNT = {count}
gc.disable()  # a collection on its own account would touch everything

class Item:
    __slots__ = ("a", "b")
    def __init__(self):
        self.a = self.b = None

{setup}

def work():
{work}

def wait_for(pipe):
    assert os.read(pipe[0], 1)

def tell(pipe):
    assert os.write(pipe[1], b"x") == 1

def child(function):
    pid = os.fork()
    if pid == 0:
        try:
            function()
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    return pid

def worker():
    wait_for(start)
    kept.append(work())
    tell(done)
    wait_for(end)

def asker():
    wait_for(done)
    report = blame(pid, reference=os.getppid(), top=100_000)
    print(json.dumps(report.as_json()), flush=True)
    tell(end)

kept = []
start, done, end = os.pipe(), os.pipe(), os.pipe()
pid = child(worker)
second = child(asker)
tell(start)
status = os.waitpid(second, 0)[1]
os.waitpid(pid, 0)
sys.exit(status != 0)
"""


@dataclass(frozen=True)
class Answer:
    """A report that came back as JSON."""

    report: dict[str, Any]

    def share(self, category: Category) -> dict[str, Any]:
        shares = self._shares("by_category")
        return next((each for each in shares if each["category"] == category), {})

    def pages(self, category: Category) -> int:
        return int(self.share(category).get("pages", 0))

    def words(self, what: str, name: str, category: Category) -> int:
        share = next((each for each in self._shares(what) if each["name"] == name), None)
        return int(share["by_category"].get(category, 0)) if share else 0

    def _shares(self, what: str) -> list[dict[str, Any]]:
        return list(self.report[what])

    def __str__(self) -> str:
        shown = [*self._shares("by_category"), *self._shares("by_type")[:10]]
        return "\n".join(map(str, shown))


def ask(setup: str, work: str) -> Answer:
    program = PROGRAM.format(
        count=COUNT, setup=dedent(setup), work=indent(dedent(work).strip("\n"), "    ")
    )
    answer = Answer(json.loads(run_child(program, env=PYMALLOC).out))
    assert answer.report["note"] == ""
    assert answer.report["unread_pages"] == 0
    return answer


@dataclass(frozen=True)
class Case:
    """Objects made before the fork, what the worker does, and what has to be said about it."""

    setup: str
    work: str
    category: Category
    name: str = ""
    """The type that has to be named; the others have no type or are not in any object."""
    pages: int = 50
    words: int = COUNT - 10


CASES = {
    "references held": Case(
        "items = [Item() for _ in range(COUNT)]",
        "return list(items)",
        Category.REFERENCE_COUNTS,
        "__main__.Item",
    ),
    "fields written": Case(
        "items = [Item() for _ in range(COUNT)]",
        "for item in items: item.b = True",
        Category.OBJECT_FIELDS,
        "__main__.Item",
    ),
    "dictionaries written": Case(
        "dicts = [{str(k): None for k in range(7)} for _ in range(COUNT)]",
        "for each in dicts: each['3'] = True",
        Category.DICT_TABLES,
        "(dict table)",
    ),
    "small lists written": Case(
        "lists = [[None] * 20 for _ in range(COUNT)]",
        "for each in lists: each[7] = True",
        Category.OBJECT_FIELDS,
        "(array of references)",
    ),
    "large lists written": Case(
        "lists = [[None] * 200 for _ in range(COUNT)]",
        "for each in lists: each[100] = True",
        Category.OBJECT_FIELDS,
        "(array of references)",
    ),
    "one huge list written": Case(
        "huge = [None] * (200 * COUNT)",
        "for i in range(0, len(huge), 200): huge[i] = True",
        Category.OBJECT_FIELDS,
        "(array of references)",
    ),
    "neighbours in the collector's list freed": Case(
        """
        items, others = [], []
        for i in range(COUNT):
            items.append(Item())
            others.append({i})
        """,
        "others.clear()",
        Category.GC_HEADERS,
        "__main__.Item",
    ),
    "blocks freed": Case(
        "items = [Item() for _ in range(COUNT)]",
        "del items[::2]",
        Category.ALLOCATOR,
        words=0,
    ),
    "free blocks used": Case(
        "items = [Item() for _ in range(2 * COUNT)]\ndel items[::2]",
        "return [Item() for _ in range(COUNT // 2)]",
        Category.NEW_OBJECTS,
        "__main__.Item",
        words=COUNT,
        pages=30,
    ),
    "buffers of C written": Case(
        """
        from array import array
        buffers = [array("b", b"z" * 2000) for _ in range(COUNT // 10)]
        """,
        "for each in buffers: each[1000] = 1",
        Category.C_HEAP,
        words=0,
    ),
    # A bytearray has a buffer of its own until 3.14, and a bytes object from 3.15 on.
    "bytearrays written": Case(
        "buffers = [bytearray(b'z' * 2000) for _ in range(COUNT // 10)]",
        "for each in buffers: each[1000] = 1",
        Category.OBJECT_FIELDS if sys.version_info >= (3, 15) else Category.C_HEAP,
        "bytes" if sys.version_info >= (3, 15) else "",
        words=COUNT // 10,
    ),
    "classes changed": Case(
        """
        classes = [type(f"Made{i}", (), {"f": None, "__module__": "made"}) for i in range(600)]
        for each in classes: each.f  # has the class get a version
        """,
        "for each in classes: each.f = 1",
        Category.TYPE_FIELDS,
        "type made.Made7",
        words=1,
    ),
    "the stack of C": Case(
        """
        lists, tuples = [], ()
        for _ in range(800):
            lists, tuples = [lists], (tuples,)
        repr(lists)
        """,
        "repr(tuples)",
        Category.STACKS,
        pages=10,
        words=0,
    ),
}


@pytest.mark.needs_gil
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_the_worker_did(case: Case) -> None:
    answer = ask(case.setup, case.work)
    assert answer.pages(case.category) >= case.pages, answer
    if case.name:
        assert answer.words("by_type", case.name, case.category) >= case.words, answer


@pytest.mark.needs_gil
def test_what_is_written_back_is_restored() -> None:
    answer = ask("items = [Item() for _ in range(COUNT)]", "for item in items: pass")
    share = answer.share(Category.RESTORED)
    assert share["pages"] >= 50, answer
    assert share["words"] == 0
    assert answer.words("by_type", "__main__.Item", Category.REFERENCE_COUNTS) < 100, answer


@pytest.mark.needs_gil
def test_inline_caches_are_named_by_file() -> None:
    answer = ask(
        """
        space = {}
        source = "\\n".join(
            f"def f{i}(x):\\n    return x.a, x.b, x.a, x.b, x.a, x.b, x.a, x.b, x.a, x.b, x.a"
            for i in range(400)
        )
        exec(compile(source, "made/functions.py", "exec"), space)
        functions = [space[f"f{i}"] for i in range(400)]
        """,
        """
        item = Item()
        for _ in range(100):
            for f in functions: f(item)
        """,
    )
    assert answer.words("by_module", "made/functions.py", Category.INLINE_CACHES) >= 400, answer
    assert answer.words("by_type", "code", Category.INLINE_CACHES) >= 400, answer


@pytest.mark.needs_gil
def test_new_memory_is_new_pages() -> None:
    answer = ask("", "return bytes(8_000_000) + b'x'")
    assert answer.share(Category.NEW_PAGES)["bytes"] >= 8_000_000, answer


@pytest.mark.needs_gil
def test_a_class_of_another_module_is_named_with_it() -> None:
    answer = ask(
        "from fractions import Fraction\nitems = [Fraction(1, 3) for _ in range(COUNT)]",
        "return list(items)",
    )
    name = "fractions.Fraction"
    count = answer.words("by_type", name, Category.REFERENCE_COUNTS)
    assert count >= COUNT - 10, answer
    assert answer.words("by_module", "fractions", Category.REFERENCE_COUNTS) >= count


@pytest.mark.needs_gil
def test_shares_add_up() -> None:
    answer = ask("items = [Item() for _ in range(COUNT)]", "return items[::2]")
    shares = answer.report["by_category"]
    assert sum(each["bytes"] for each in shares) == answer.report["private_bytes"]
    assert all(each["alone"] <= each["pages"] for each in shares)
    assert sum(each["bytes"] for each in answer.report["by_type"]) <= answer.report["private_bytes"]


@pytest.mark.needs_gil
def test_a_worker_asks_about_itself() -> None:
    """Compared with its parent, and printed as tables."""
    child = run_child(
        """
        import os, sys
        from cpythonplus.prefork._blame.blaming import blame

        items = [[] for _ in range(100_000)]
        pid = os.fork()
        if pid == 0:
            held = items[:]
            report = blame(top=3)
            assert (report.pid, report.reference) == (os.getpid(), os.getppid())
            assert len(report.by_type) <= 3 and len(report.by_module) <= 3
            print(report, flush=True)
            os._exit(0)
        sys.exit(os.waitpid(pid, 0)[1] != 0)
        """,
        env=PYMALLOC,
    )
    assert "reference counts" in child.out
    assert "pages compared with process" in child.out
    assert "list" in child.out


# ---- what cannot be asked -----------------------------------------------------------------------


@pytest.mark.any_version
def test_processes_that_are_not_there() -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    for pid in (ended.pid, 0, -1, 2**40):
        with pytest.raises(ProcessLookupError, match=f"there is no running process {pid}$"):
            blame(pid)
    with pytest.raises(ProcessLookupError, match=f"there is no running process {ended.pid}$"):
        blame(reference=ended.pid)


@pytest.mark.any_version
def test_a_process_that_was_not_waited_for() -> None:
    with subprocess.Popen(["true"]) as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(ProcessLookupError, match="there is no running process"):
            blame(ended.pid)


@pytest.mark.any_version
@pytest.mark.parametrize("ending", ["worker", "reference"])
def test_a_process_that_ends_while_it_is_read(ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What can no longer be read must not pass for pages that are not there."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:

        def last_question(pid: int) -> list[int]:
            process.communicate(b"")
            return stack_pointers(pid)

        monkeypatch.setattr("cpythonplus.prefork._blame.pages.stack_pointers", last_question)
        pids = (process.pid, os.getpid())
        worker, reference = pids if ending == "worker" else pids[::-1]
        with pytest.raises(ProcessLookupError, match=f"process {process.pid} ended while its"):
            blame(worker, reference=reference)


@pytest.mark.any_version
def test_a_process_without_a_parent_in_sight() -> None:
    with pytest.raises(ProcessLookupError, match="process 1 has no parent that is visible"):
        blame(1)


@pytest.mark.any_version
def test_a_worker_whose_parent_has_ended() -> None:
    """What has become its parent cannot be read or was never Python: both answers say so."""
    child = run_child(
        """
        import os
        from cpythonplus.prefork._blame.blaming import blame

        told, end = os.pipe(), os.pipe()
        if (parent := os.fork()) == 0:
            first_parent = os.getpid()
            if os.fork() == 0:
                os.close(end[1])
                while os.getppid() == first_parent:
                    os.sched_yield()
                os.write(told[1], str(os.getpid()).encode())
                os.read(end[0], 1)
            os._exit(0)
        os.waitpid(parent, 0)
        orphan = int(os.read(told[0], 20))
        try:
            print(blame(orphan).note)
        except PermissionError as error:
            print(error)
        assert blame(orphan, reference=os.getpid()).compared_pages > 0
        os.close(end[1])
        """
    )
    assert "was not forked from" in child.out or "name another reference" in child.out, child


@pytest.mark.any_version
def test_a_program_started_after_the_fork() -> None:
    """Even where it is the same one, at the same addresses, it shares nothing with its parent."""
    command = ["setarch", "--addr-no-randomize", sys.executable, "-c"]
    nested = """
        import subprocess, sys
        from cpythonplus.prefork._blame.blaming import blame

        program = [sys.executable, "-c", "print(flush=True); input()"]
        with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
            started.stdout.readline()
            report = blame(started.pid)
            started.communicate(b"\\n")
        assert "was not forked from" in report.note, report
        assert report.compared_pages == 0, report
    """
    if subprocess.run([*command, ""], check=False, capture_output=True).returncode:
        command = command[2:]  # no such tool, or not allowed here: random addresses then
    subprocess.run([*command, dedent(nested)], check=True)


@pytest.mark.any_version
def test_names_that_are_any_bytes(tmp_path: Path) -> None:
    """A process's name and a mapped file's, with what ends lines elsewhere and what is no text."""
    name = b"x\rPPid:\x0c\t7\xff"
    file = os.fsencode(tmp_path) + b"/" + name
    child = run_child(
        f"""
        import mmap, os
        from pathlib import Path
        from cpythonplus.prefork._blame.pages import mappings, parent_of

        Path("/proc/self/comm").write_bytes({name!r})
        with open({file!r}, "w+b") as file:
            file.truncate(4096)
            mapped = mmap.mmap(file.fileno(), 4096)
        assert parent_of(os.getpid()) == os.getppid()
        print([each.path for each in mappings(os.getpid()) if "PPid" in each.path])
        """
    )
    assert child.out.count("PPid:") == 1, child
    assert "\\xff" in child.out


@pytest.mark.any_version
def test_the_heap_of_a_forked_process_is_one() -> None:
    """A forked process's heap grows in another mapping; a chunk may lie in both."""
    run_child(
        """
        import os
        from pathlib import Path
        from cpythonplus.prefork._blame.pages import mappings

        def ends():
            lines = Path("/proc/self/maps").read_text().splitlines()
            found = [line.split()[0].split("-") for line in lines if line.endswith("[heap]")]
            return [(int(start, 16), int(end, 16)) for start, end in found]

        pid = os.fork()
        if pid == 0:
            before = ends()[-1][1]
            kept = [b"x" * (1000 + i % 7) for i in range(20_000)]
            found = ends()
            assert found[-1][1] > before
            heaps = [each for each in mappings(os.getpid()) if each.path == "[heap]"]
            assert [(each.start, each.end) for each in heaps] == [(found[0][0], found[-1][1])]
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        """
    )


@pytest.mark.any_version
def test_reserved_memory_is_passed_over() -> None:
    """256 GiB of addresses that nothing was ever written to, but for one page in the middle."""
    no_reserve = 0x4000  # mmap.MAP_NORESERVE from Python 3.13 on
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve
    with mmap.mmap(-1, 1 << 38, flags=flags) as reserved, Memory(os.getpid()) as memory:
        reserved[1 << 37] = 1
        base = ctypes.addressof(ctypes.c_char.from_buffer(reserved))
        own, of_files = memory.own_pages(base, base + (1 << 38))
        assert base + (1 << 37) in own
        assert max(own) - min(own) < 1 << 25  # where the kernel has huge pages, one of these
        assert of_files == 0


@pytest.mark.any_version
def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="cannot be compared with itself"):
        blame(reference=os.getpid())
    with pytest.raises(ValueError, match="top must not be negative, not -1"):
        blame(top=-1)


def test_another_users_process() -> None:
    """As root: give that up, and ask about the parent. As anybody else: ask about process 1."""
    child = run_child(
        """
        import os
        from cpythonplus.prefork._blame.blaming import blame

        other = 1
        if os.geteuid() == 0:
            other = os.getppid()
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
        try:
            blame(other, reference=os.getpid())
        except PermissionError as error:
            print(error)
        """
    )
    assert "it must belong to the same user" in child.out
    assert "ptrace_scope" in child.out


@pytest.mark.any_version
def test_a_program_that_is_not_python() -> None:
    """A shell and its subshell: forked from each other, so that pages can be compared."""
    command = ["sh", "-c", "x=$(:); (echo ready; read x; :); :"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        assert shell.stdout.readline() == "ready\n"
        pid = int(Path(f"/proc/{shell.pid}/task/{shell.pid}/children").read_text())
        forked = blame(pid)
        started = blame(shell.pid)
        shell.communicate("x\n")
    assert forked.note.startswith("only whole pages could be judged: ")
    assert forked.reference == shell.pid
    assert forked.compared_pages > 0
    assert forked.by_type == ()
    assert started.note.startswith(f"process {shell.pid} was not forked from process {os.getpid()}")
    assert started.compared_pages == 0
    assert started.share(Category.NEW_PAGES).bytes > 0
    assert "note: " in str(started)


# ---- blocks -------------------------------------------------------------------------------------

WORDS = POOL_BYTES // 8


def pool_words(size_class: int, free: int, next_offset: int, largest_offset: int) -> list[int]:
    head = [1, free, 0, 0, size_class << 32, largest_offset << 32 | next_offset]
    return head + [0] * (WORDS - len(head))


@pytest.mark.any_version
def test_a_pool_is_known_by_its_header() -> None:
    base = 1 << 40
    words = pool_words(2, base + 96, 48 + 5 * 48, POOL_BYTES - 48)
    pool = Pool.read(base, words)
    assert pool is not None
    assert pool.size == 48
    block = pool.block(base + 100)
    assert block.address == base + 96
    assert pool.is_free(block)
    assert not pool.is_free(pool.block(base + 48))
    assert pool.is_free(pool.block(base + 48 + 5 * 48))


@pytest.mark.any_version
@pytest.mark.parametrize(
    "words",
    [
        pool_words(2, 0, 96, POOL_BYTES - 64),  # the largest offset is of another class
        pool_words(40, 0, 96, POOL_BYTES - 41 * 16),  # no such class
        pool_words(2, 0, 0, POOL_BYTES - 48),
        pool_words(2, (1 << 40) + 97, 96, POOL_BYTES - 48),  # a free block where none begins
        pool_words(2, 1 << 41, 96, POOL_BYTES - 48),  # outside
        [0] * WORDS,
        [],
    ],
)
def test_what_is_not_a_pool(words: list[int]) -> None:
    assert Pool.read(1 << 40, words) is None


@pytest.mark.any_version
def test_free_blocks_in_a_circle_are_no_pool() -> None:
    base = 1 << 40
    words = pool_words(2, base + 48, 96, POOL_BYTES - 48)
    words[6] = base + 48
    assert Pool.read(base, words) is None


@pytest.mark.any_version
@pytest.mark.parametrize("head_in_size_bytes", [16, 0], ids=["until glibc 2.42", "from 2.43"])
def test_a_chunk_with_a_mapping_of_its_own(head_in_size_bytes: int) -> None:
    """Written by hand as malloc does, and so that another follows, and then what is none."""
    page_bytes = mmap.PAGESIZE
    with mmap.mmap(-1, 8 * page_bytes, flags=mmap.MAP_PRIVATE) as memory:
        for first, pages in ((1, 2), (3, 4)):
            size = pages * page_bytes - 16 + head_in_size_bytes
            struct.pack_into("=QQ", memory, first * page_bytes, 0, size | 2)
        struct.pack_into("=QQ", memory, 7 * page_bytes, 0, page_bytes - 32 | 2)
        base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        mapping = Mapping(base, base + 8 * page_bytes, "rw-p", 0, "00:00", 0, "")
        with Memory(os.getpid()) as own:
            chunks = Chunks(own, mapping)
        blocks = [chunks.block(base + i * page_bytes + 16) for i in range(8)]
    one, other = (
        Block(base + i * page_bytes + 16, pages * page_bytes - 16) for i, pages in ((1, 2), (3, 4))
    )
    assert blocks == [None, one, one, other, other, other, other, None]


@pytest.mark.any_version
@given(st.lists(st.integers(0, 2**64 - 1), min_size=4, max_size=4))
def test_any_words_can_be_asked_for_a_keys_table(words: list[int]) -> None:
    assert keys_table_bytes(words) >= 0


@pytest.mark.any_version
def test_a_keys_table_is_known_by_its_head() -> None:
    # 8 slots of one byte each, string keys, room for 5.
    assert keys_table_bytes([1, 3 | 3 << 8 | 1 << 16, 1, 4]) == 32 + 8 + 5 * 16
    assert keys_table_bytes([1, 3 | 3 << 8, 1, 4]) == 32 + 8 + 5 * 24
    assert keys_table_bytes([1, 3 | 4 << 8 | 1 << 16, 1, 4]) == 0
    assert keys_table_bytes([1, 3 | 3 << 8 | 1 << 16, 2, 4]) == 0
    assert keys_table_bytes([1, 9 | 10 << 8 | 1 << 16, 0, 300]) == 32 + 1024 + 341 * 16


@pytest.mark.any_version
def test_categories_have_distinct_names() -> None:
    assert len({each.value for each in Category}) == len(Category) == 15


def test_objects_that_cannot_be_found_are_not_guessed_at() -> None:
    """The debugging allocator puts words of its own in front of each block."""
    child = run_child(
        """
        import os
        from cpythonplus.prefork._blame.blaming import blame

        pid = os.fork()
        if pid == 0:
            report = blame()
            assert report.note.startswith("only whole pages could be judged: "), report
            assert report.compared_pages > 0
            assert not [each for each in report.by_type if "list" in each.name], report
            print("fine", flush=True)
            os._exit(0)
        os.waitpid(pid, 0)
        """,
        env={"PYTHONMALLOC": "debug"},
    )
    assert child.out == "fine\n", child


@pytest.mark.needs_gil
def test_objects_that_come_from_malloc_are_found() -> None:
    child = run_child(
        """
        import os
        from cpythonplus.prefork._blame.blaming import blame
        from cpythonplus.prefork._blame.reasons import Category

        class Item:
            __slots__ = ()

        items = [Item() for _ in range(20_000)]
        pid = os.fork()
        if pid == 0:
            held = items[:]
            report = blame(top=1000)
            (share,) = [each for each in report.by_type if each.name == "__main__.Item"]
            assert share.by_category[Category.REFERENCE_COUNTS] > 19_900, report
            print("fine", flush=True)
            os._exit(0)
        os.waitpid(pid, 0)
        """,
        env={"PYTHONMALLOC": "malloc"},
    )
    assert child.out == "fine\n", child


# ---- reading ------------------------------------------------------------------------------------


@pytest.mark.any_version
def test_memory_of_a_process_that_ends_meanwhile() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, text=True) as process:
        stack = next(each for each in mappings(process.pid) if each.path == "[stack]")
        with Memory(process.pid) as memory:
            own, _ = memory.own_pages(stack.start, stack.end)
            assert own
            assert len(memory.read(own[-1], 4096)) == 4096
            process.communicate("")
            assert memory.read(own[-1], 4096) == b""
            assert len(memory.words(own[-1], 2)) == 0
            assert memory.string(own[-1]) == ""
            assert memory.own_pages(stack.start, stack.end) == ([], 0)
            assert memory.present_pages(stack.start, stack.end) == []


@pytest.mark.any_version
@pytest.mark.parametrize("address", [0, 8, -8, 1 << 47, 1 << 56, 2**64 - 8])
def test_addresses_where_nothing_is(address: int) -> None:
    with Memory(os.getpid()) as memory:
        assert memory.read(address, 8) == b""
        assert len(memory.words(address, 1)) == 0


@pytest.mark.skipif(DEBUG, reason="the debugging allocator is in use: that is another test")
@pytest.mark.needs_gil
def test_own_objects_are_recognised() -> None:
    """The layout that is expected is the one that this interpreter has."""
    own = mappings(os.getpid())
    layout = Layout.of(own, own)
    assert layout is not None
    text = f"made for process {os.getpid()}"
    with Memory(os.getpid()) as memory:
        objects = Objects(memory, layout)
        assert objects.text(id(text)) == text
        assert objects.text(id(own)) == ""
        assert objects.type_at(id(Block)).name == "Block"
        assert objects.type_at(id(text)).address == 0
        assert objects.owner(objects.type_at(id(Block)), 0) == (
            f"{Block.__module__}.Block",
            Block.__module__,
        )
        code = test_own_objects_are_recognised.__code__
        assert objects.owner(objects.type_of(id(code)), id(code)) == ("code", code.co_filename)
        assert memory.string(id(text)) == ""
