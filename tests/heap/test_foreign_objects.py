"""The examinations of a heap that holds objects of other people's C extensions: none is harmed."""

import pytest

from tests.support import run_child

pytestmark = pytest.mark.needs_gil

PROGRAM = """
import gc, sys
from cpythonplus import memory

{setup}
kept = [make(i) for i in range(300)]
gc.collect()
before = [sys.getrefcount(each) for each in kept]
name = f"{{type(kept[0]).__module__}}.{{type(kept[0]).__qualname__}}"
for _ in range(3):
    census = memory.census()
    counted = {{row.name: row for row in census.by_type}}[name]
    assert counted.objects >= 300, counted
    assert memory.resident().rss_bytes > 0
    memory.caches(), memory.key_sharing()
    assert census.path(kept[7]) is not None
    assert census.referrers(name).rows
assert [sys.getrefcount(each) for each in kept] == before
assert all(works(each, i) for i, each in enumerate(kept))
del kept
gc.collect()
memory.census()
"""

HEAPS = {
    "numpy": """
import numpy
def make(i):
    return numpy.array([[i, "x", None], [make, i, 0.5]], dtype=object)
def works(array, i):
    return array[0, 0] == array[1, 1] == i
""",
    "lxml": """
from lxml import etree
def make(i):
    return etree.fromstring(f"<a n='{i}'><b/><c>text</c></a>")
def works(element, i):
    return element.get("n") == str(i) and len(element) == 2
""",
    "pydantic_core": """
from pydantic_core import SchemaValidator
def make(i):
    limited = {"type": "int", "ge": i}
    items = {"type": "nullable", "schema": limited}
    return SchemaValidator({"type": "list", "items_schema": items})
def works(validator, i):
    return validator.validate_python([i, None, str(i + 1)]) == [i, None, i + 1]
""",
    "google.protobuf": """
from google.protobuf import struct_pb2
def make(i):
    message = struct_pb2.Struct()
    message["number"] = i
    message["inner"] = {"list": [1, "two", None]}
    return message
def works(message, i):
    return message["number"] == i and list(message["inner"]["list"])[1] == "two"
""",
}


@pytest.mark.parametrize("module", sorted(HEAPS))
def test_heaps_of_others(module: str) -> None:
    pytest.importorskip(module, reason=f"{module} is not there for this Python")
    child = run_child(PROGRAM.format(setup=HEAPS[module]))
    assert child.err == "", child


ARRAYS = """
import sys
import numpy
from cpythonplus import memory

class Thing:
    pass

class Series(numpy.ndarray):
    pass

VIEWS = [numpy.zeros(100_000)[:2] for _ in range(30)]
SERIES = numpy.ones(500_000).view(Series)[:3]
THINGS = numpy.array([Thing() for _ in range(2000)], dtype=object).reshape(2, 1000)
STRUCTURED = numpy.zeros(3, dtype=[("thing", object), ("number", "i8")])
EMPTY, SCALAR = numpy.empty((0, 5), dtype=object), numpy.array(Thing(), dtype=object)
counts = [sys.getrefcount(each) for each in THINGS.flat]
looked = memory.owners()
found = {owner.name: owner for owner in looked.owners}
assert found["__main__.VIEWS"].kept_bytes > 30 * 800_000, found["__main__.VIEWS"]
assert found["__main__.SERIES -> Series"].kept_bytes > 4_000_000, list(found)
things = {row.type: row for row in looked.classes}["__main__.Thing"]
assert things.where[0].path.startswith("__main__.THINGS"), things
assert things.where[0].objects >= 2000, things
census = memory.census()
assert {row.name: row.objects for row in census.by_type}["__main__.Thing"] == 2001
assert [sys.getrefcount(each) for each in THINGS.flat] == counts
"""


def test_what_arrays_of_numpy_keep() -> None:
    pytest.importorskip("numpy", reason="numpy is not there for this Python")
    child = run_child(ARRAYS)
    assert child.err == "", child


def test_a_module_that_only_has_the_name_of_numpy() -> None:
    code = """
        import sys, types
        from cpythonplus import memory

        made_up = types.ModuleType("numpy")
        for ndarray in (5, int, bytearray, type("ndarray", (bytearray,), {}), memoryview):
            made_up.ndarray = ndarray
            sys.modules["numpy"] = made_up
            assert memory.census().by_type and memory.owners().owners
    """
    assert run_child(code).err == ""
