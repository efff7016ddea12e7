"""Nothing stays behind, whatever of the room's C is called how often."""

import json

import pytest

from cpythonplus import _native
from tests.leaks import MEASURE
from tests.support import SANITIZED, run_child

pytestmark = pytest.mark.needs_gil

# Lines of a program for each function of the extension.
CALLS = {
    "memory_refuse_free_threaded": {"with a GIL": "_native.memory_refuse_free_threaded()"},
    "memory_sort_garbage": {
        "known": "sort(ring(), 0, KNOWN, True)",
        "unknown": "sort(ring(), 0, {}, True)",
        "kept": "sort(ring(), 0, KNOWN, False)",
        "held": "garbage = ring(); held = garbage[0]; sort(garbage, 0, KNOWN, True); unring(held)",
        "refused": (
            "refused(TypeError, sort, 5); refused(TypeError, sort, [], 0, [], True)\n"
            "refused(ValueError, sort, [], 1, {}, True); refused(ValueError, sort, [], -1, {}, 1)"
        ),
    },
    "memory_clear_garbage": {
        "cleared": "assert clear(ring(), 0)",
        "held": "garbage = ring(); held = garbage[0]; assert not clear(garbage, 0); unring(held)",
        "refused": "refused(TypeError, clear, ()); refused(ValueError, clear, [], 2)",
    },
    "memory_guarded": {
        "called": "_native.memory_guarded(list)(())",
        "raising": "refused(TypeError, later, _native.memory_guarded(list))",
    },
    "memory_exceptions_among": {
        "found": "_native.memory_exceptions_among([ERROR, 5, KeyError()])",
        "refused": "refused(TypeError, _native.memory_exceptions_among, 5)",
    },
    "memory_components": {
        "found": "_native.memory_components(TWO, ONE)",
        "refused": "refused(ValueError, _native.memory_components, TWO, b'')",
    },
    "memory_referrers_among": {
        "found": "_native.memory_referrers_among(OBJECTS, [ERROR, 5])",
        "refused": "refused(TypeError, _native.memory_referrers_among, OBJECTS, 5)",
    },
    "memory_traceback_holds": {
        "counted": "_native.memory_traceback_holds(ERROR)",
        "refused": "refused(TypeError, _native.memory_traceback_holds, 5)",
    },
    "memory_frame_variables": {
        "read": "_native.memory_frame_variables(ERROR.__traceback__.tb_frame)",
        "refused": "refused(TypeError, _native.memory_frame_variables, 5)",
    },
    "memory_object_bytes": {"told": "[_native.memory_object_bytes(each) for each in OBJECTS]"},
    "memory_agent_start": {
        "started": "assert _native.memory_agent_start(-1) == 0; _native.memory_agent_stop()",
        "refused": "refused(TypeError, _native.memory_agent_start, 'x')",
    },
    "memory_malloc_bytes": {"told": "_native.memory_malloc_bytes()"},
    "memory_agent_stop": {"nothing": "_native.memory_agent_stop()"},
    "memory_agent_before_fork": {
        "off": "_native.memory_agent_before_fork(); _native.memory_agent_after_fork_parent()",
    },
    "memory_agent_after_fork_parent": {"unasked": "_native.memory_agent_after_fork_parent()"},
    "memory_agent_after_fork_child": {"off": "_native.memory_agent_after_fork_child()"},
    "memory_agent_collects": {"on": "assert _native.memory_agent_collects() is gc.isenabled()"},
    "memory_agent_wait": {
        "short": "assert _native.memory_agent_wait(1) is False",
        "refused": "refused(TypeError, _native.memory_agent_wait, 'x')",
    },
    "memory_profilers": {
        "none": "assert _native.memory_profilers() == []",
        "one": (
            "sys.setprofile(lambda *_: None)\n"
            "found = _native.memory_profilers()\n"
            "sys.setprofile(None)\n"
            "assert len(found) == 1\n"
            "_native.memory_profilers_set(found)\n"
            "assert sys.getprofile() is found[0][2]\n"
            "sys.setprofile(None)"
        ),
    },
    "memory_profilers_set": {
        "gone": "_native.memory_profilers_set([(1 << 40, 1, None)])",
        "refused": (
            "refused(TypeError, _native.memory_profilers_set, None)\n"
            "refused(TypeError, _native.memory_profilers_set, [()])"
        ),
    },
    "memory_agent_path": {"none": "assert _native.memory_agent_path() == ''"},
    "memory_agent_parse": {
        "whole": "_native.memory_agent_parse(b'cpythonplus 1 path app.Node\\n')",
        "part": "_native.memory_agent_parse(b'cpythonplus 1')",
        "refused": (
            "refused(ValueError, _native.memory_agent_parse, b'GET /')\n"
            "refused(TypeError, _native.memory_agent_parse, 'GET /')"
        ),
    },
    "memory_bare_frame": {
        "detach": "assert exceptions.detach(caught(fail, 5)).__traceback__",
        "catch": "assert exceptions.catch(fail, args=(5,)).trace",
        "refused": (
            "refused(ValueError, _native.memory_bare_frame, nested().__code__, {})\n"
            "refused(TypeError, _native.memory_bare_frame, fail, {})"
        ),
    },
    "memory_frame_generator": {
        "drop": "exceptions.drop(caught(fail, 5))",
        "reraise": "refused(IndexError, reraises)",
        "refused": (
            "refused(TypeError, _native.memory_frame_generator, 5)\n"
            "refused(TypeError, exceptions.reraise, 5)"
        ),
    },
    "memory_close_cells": {
        "closing": "assert walks(3) == 3; refused(TypeError, walks, 'x')",
        "close": "assert closures.close(nested()) == 1",
        "refused": (
            "refused(ValueError, _native.memory_close_cells, (), 1, [])\n"
            "refused(TypeError, _native.memory_close_cells, (1,), 1, [])"
        ),
    },
    "memory_c_heap": {
        "main": "_native.memory_c_heap(*HEAP, True, True)",
        "none": "_native.memory_c_heap(4096, 8192, False, False)",
        "refused": "refused(ValueError, _native.memory_c_heap, 8192, 4096, True, True)",
    },
    "memory_mimalloc": {"none": "_native.memory_mimalloc(True)"},
    "memory_large_blocks": {"none": "_native.memory_large_blocks(*HEAP, 1 << 20, 3)"},
    "memory_resident_bytes": {"told": "_native.memory_resident_bytes(*HEAP)"},
    "memory_read_words": {
        "read": "_native.memory_read_words(id(NODE), 2)",
        "none": "_native.memory_read_words(8, 2)",
        "refused": "refused(ValueError, _native.memory_read_words, 8, 5000)",
    },
    "memory_malloc_totals": {"told": "_native.memory_malloc_totals()"},
    "memory_foreign_malloc": {"told": "_native.memory_foreign_malloc()"},
    "memory_segments": {"told": "_native.memory_segments()"},
    "memory_clear_weakrefs": {
        "called": "ref = weakref.ref(NODE, str); assert clear_weakrefs(NODE) == 1",
        "dropped": (
            "end = weakref.finalize(NODE, str); clear_weakrefs(NODE, call_callbacks=False)"
        ),
        "refused": "refused(TypeError, clear_weakrefs, int)",
    },
    "memory_exclusively_held": {
        "counted": "_native.memory_exclusively_held((OBJECTS,), (ERROR,))",
        "refused": "refused(TypeError, _native.memory_exclusively_held, 5, 5)",
    },
    "memory_instance_dict": {"read": "_native.memory_instance_dict(fail)"},
    "memory_attributes_of": {"told": "list(map(_native.memory_attributes_of, OBJECTS))"},
    "memory_object_parts": {"told": "[_native.memory_object_parts(each) for each in OBJECTS]"},
    "memory_reference_label": {
        "called": "[_native.memory_reference_label(each, 5) for each in OBJECTS]",
        "refused": "refused(TypeError, _native.memory_reference_label, 5)",
    },
    "memory_table_of": {"told": "list(map(_native.memory_table_of, OBJECTS))"},
    "memory_seal_record": {
        "made": "make_row()",
        "refused": "refused(ValueError, _native.memory_seal_record, Row, (), (), None)",
        "called": "Row(1, 'x'); Row(id=1); refused(TypeError, Row); Row(1).__init__(2)",
        "rows": (
            "Row.from_rows([{'id': 1}, (1, 2), [3, 4]])\n"
            "refused(TypeError, Row.from_rows, [(1, 2), {'x': 1}])"
        ),
        "compared": "assert Row(1) == Row(1) != Row(2); hash(Frozen(1)); repr(Row([Row(1)]))",
        "copied": "copy.deepcopy(Row([1])); pickle.loads(pickle.dumps(Row(1))); Row(1).asdict()",
        "replaced": "Row(1).__replace__(name=2); refused(TypeError, Row(1).__replace__, 1)",
        "frozen": "refused(AttributeError, setattr, Frozen(1), 'id', 2)",
        "chain": "chain(300)",
    },
}
# These look at the whole heap, and are called less often.
SLOW_CALLS = {
    "memory_owners": {
        "told": "_native.memory_owners(-1, 1 << 20, False, 60, 1 << 34)",
        "marked": "os.close(_native.memory_owners(-1, 1 << 20, True, 60, 1 << 34)[2])",
        "refused": "refused(TypeError, _native.memory_owners, 'x')",
    },
    "memory_census": {"counted": "memory.census()"},
    "memory_referrers_of": {
        "called": "TAKEN.referrers(Node); TAKEN.referrers('__main__.Node')",
        "refused": "refused(TypeError, _native.memory_referrers_of, 5)",
    },
    "memory_root_path": {
        "found": "assert str(TAKEN.path(Node).steps[0]) == 'module __main__'",
        "refused": (
            "refused(TypeError, _native.memory_root_path, 5)\n"
            "refused(LookupError, TAKEN.path, Nothing)"
        ),
    },
    "memory_root_paths": {
        "found": "_native.memory_root_paths((NODE, OBJECTS, []), '', 30)",
        "refused": (
            "refused(TypeError, _native.memory_root_paths, 5, '', 30)\n"
            "refused(ValueError, _native.memory_root_paths, (5,) * 17, '', 30)"
        ),
    },
    "memory_arenas": {
        "found": "_native.memory_arenas([], 8)",
        "resident": "resident()",
        "own": "_native.memory_arenas([], 8, {'json': vars(json)})",
        "blocks": "_native.memory_arenas([(id(NODE), id(NODE) + 16)], 0)",
        "refused": (
            "refused(ValueError, _native.memory_arenas, [(2, 1)], 1)\n"
            "refused(TypeError, _native.memory_arenas, [5], 1)"
        ),
    },
    "memory_heap_counts": {"counted": "_native.memory_heap_counts()"},
    "memory_free_lists_text": {"read": "_native.memory_free_lists_text()"},
    "memory_gc_objects_of": {
        "found": "assert _native.memory_gc_objects_of((type,))",
        "all": "assert _native.memory_gc_objects_of(None)",
        "exceptions": "assert _native.memory_gc_objects_of(BaseException)",
        "refused": "refused(TypeError, _native.memory_gc_objects_of, 5)",
    },
    "memory_fixed_costs": {"caches": "cleared = caches().clear('re')"},
    "memory_walk_dicts": {
        "key_sharing": "lost = [fresh() for _ in range(9)]; assert key_sharing(worth_bytes=1).lost",
        "refused": "refused(ValueError, _native.memory_walk_dicts, 0, -1)",
    },
    "memory_share_row": {
        "shared": "assert _native.memory_share_row({'x': [], 'y': 2}) == {'x': [], 'y': 2}",
        "pairs": "assert _native.shared_dict([('x', []), ('y', 2)]) == {'x': [], 'y': 2}",
        "new keys": (
            "for i in range(3): assert _native.memory_share_row({str(NEXT()): 1, 'y': []})\ndel i"
        ),
        "patterns": (
            "keys = {str(NEXT()): 1, 'y': []}\n"
            "for i in range(3): assert _native.memory_share_row(keys) == keys"
        ),
        "refused": (
            "refused(TypeError, _native.memory_share_row, 5)\n"
            "refused(TypeError, _native.shared_dict, [('x', 1), 5])\n"
            "refused(ValueError, _native.shared_dict, [('x', 1), (1, 2, 3)])"
        ),
    },
    "memory_sharing_refusal": {"asked": "assert _native.memory_sharing_refusal() is None"},
    "memory_trim_pools": {"trimmed": "assert len(_native.memory_trim_pools()) == 3"},
    "memory_trim_c_heap": {"trimmed": "assert len(_native.memory_trim_c_heap()) == 3"},
    "memory_trim_regularly": {
        # The thread is one, whatever is asked of it how often.
        "started": "_native.memory_trim_regularly(3_600_000, 1 << 40)",
        "refused": "refused(TypeError, _native.memory_trim_regularly, 5)",
    },
    "memory_trim_pause": {"ended": "_native.memory_trim_pause()"},
    "memory_trim_resume": {"not started": "_native.memory_trim_resume()"},
    "memory_trim_count": {"told": "assert _native.memory_trim_count() >= 0"},
}
PROGRAM = """
import array, copy, json, os, pickle, weakref
from cpythonplus import _native, memory
from cpythonplus.memory import caches, clear_weakrefs, closures, exceptions, key_sharing, resident

sort, clear = _native.memory_sort_garbage, _native.memory_clear_garbage


class Node:
    pass


def ring():
    first, second = Node(), Node()
    first.other, second.other = second, first
    return [first, second]


def unring(node):
    del node.other


def refused(kind, call, *args):
    try:
        call(*args)
    except kind:
        return
    raise AssertionError(f"{{call}} was not refused")


def later(call):
    call(5)
    for _ in range(3):  # where a pending call is made
        pass


def fail(depth):
    big = [depth] * 10
    return fail(depth - 1) if depth else big[1000]


def caught(call, *args):
    try:
        call(*args)
    except IndexError as error:
        return error


def reraises():
    last = caught(fail, 5)
    exceptions.reraise(last)


def nested():
    def inner():
        return inner
    return inner


@closures.closing
def walks(n):
    def walk(m):
        return 0 if m == 0 else 1 + walk(m - 1)
    return walk(n)


def fresh():
    node = Node()
    vars(node)["name"] = 1
    return node


class Row(memory.Record):
    id: int
    name: str = ""


class Frozen(memory.Record, frozen=True):
    id: int


def make_row():
    class Row(memory.Record):
        id: int = 5
        def __post_init__(self):
            self.id = 7
    class More(Row):
        more: int = 6
    return More(1)


def chain(count):
    row = None
    for _ in range(count):
        row = Row(row)


NODE = Node()
BIG = dict.fromkeys(range(1000))
for number in range(990):
    del BIG[number]
HEAP = next(
    tuple(int(part, 16) for part in line.split()[0].split("-"))
    for line in open("/proc/self/maps")
    if "[heap]" in line
)
try:
    fail(5)
except IndexError as error:
    ERROR = error
class Nothing:
    pass


NEXT = iter(range(1 << 30)).__next__
# So many key sets are remembered that there is no room for more.
for _ in range(5000):
    keys = {{str(NEXT()): 1, 'y': []}}
    for _ in range(3):
        _native.memory_share_row(keys)
TAKEN = memory.census()
resident()
TWO, ONE = array.array("L", [0, 1, 2]), array.array("I", [1, 0])
OBJECTS = [ERROR, ERROR.__traceback__, [ERROR], {{1: ERROR}}, Node, Node(), 5, "x", range(3)]
garbage = ring()
KNOWN = {{sort(garbage, 0, {{}}, False)[0][0][0]: 1}}
assert sort(garbage, 0, KNOWN, True)[1]
result = {{}}
for kind, lines in {{**{calls!r}, **{slow!r}}}.items():
    times = 8 if kind in {slow!r} else 200
    for name, line in lines.items():
        try:
            leak = leaks(line, {{**globals()}}, times, spare_bytes=2048 if times == 8 else 0)
        except BaseException as error:
            leak = repr(error)
        if leak:
            result[f"{{kind}} {{name}}"] = leak
print(json.dumps(result))
"""


@pytest.mark.slow
@pytest.mark.skipif(SANITIZED, reason="the sanitizer's allocator does not count like this")
def test_no_leak() -> None:
    child = run_child(MEASURE + PROGRAM.format(calls=CALLS, slow=SLOW_CALLS), timeout=60)
    assert json.loads(child.out) == {}, "calls, blocks, bytes of each"


def test_each_function_is_in_the_list() -> None:
    assert {name for name in dir(_native) if name.startswith("memory_")} == {
        *CALLS,
        *SLOW_CALLS,
    }
