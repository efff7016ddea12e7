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
