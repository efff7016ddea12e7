"""Objects of C code that tell the collector nothing: nobody frees a cycle with one."""

import sys

import pytest

from tests.memory.grown import of_rss
from tests.support import PYMALLOC, child_environment, run_child

READER = """
import ctypes
import gc
from cpythonplus import memory

class Slot(ctypes.Structure):
    _fields_ = [("slot", ctypes.c_int), ("value", ctypes.c_void_p)]

class Member(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]

class Spec(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(Slot)),
    ]

def address(of):
    return ctypes.cast(of, ctypes.c_void_p).value

# A class as C code makes them: one word for an object, no tp_traverse. No instance is ever freed.
TP_DEALLOC, TP_MEMBERS, OBJECT = 52, 72, 16
members = (Member * 2)(Member(b"given", OBJECT, object.__basicsize__, 0, None))
slots = (Slot * 3)(
    Slot(TP_DEALLOC, address(ctypes.pythonapi.PyObject_Free)), Slot(TP_MEMBERS, address(members))
)
made = ctypes.pythonapi.PyType_FromSpec
made.restype, made.argtypes = ctypes.py_object, [ctypes.POINTER(Spec)]
Reader = made(ctypes.byref(Spec(b"wire.Reader", object.__basicsize__ + 8, 0, 0, slots)))
"""


@of_rss
@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("self.failed", "method Connection.failed()"),
        ("self", "__main__.Connection"),
        ("lambda: self", "function Connection.__init__.<locals>.<lambda>()"),
        ("functools.partial(print, self)", "functools.partial with builtin_function_or_method"),
        ("[self]", "list"),
        ("(self, None)", "tuple with __main__.Connection"),
    ],
)
def test_a_cycle_that_nobody_can_free(given: str, name: str) -> None:
    """It is no garbage that waits for the collector, which has looked."""
    out = run_child(
        READER
        + f"""
import functools

class Connection:
    def __init__(self):
        self.reader = Reader()
        self.reader.given = {given}
        self.buffer = bytearray(500)

    def failed(self):
        pass

with memory.growth() as found:
    for number in range(5000):
        Connection()
    gc.collect()
first = found.result.owners[0]
print(first.name.partition(" x ")[2], first.type, first.entries - first.entries_before, sep="; ")
""",
        env=child_environment(PYMALLOC),
    ).out
    assert out == f"{name}; held by C code; 5000\n"


@of_rss
@pytest.mark.skipif(sys.version_info >= (3, 14), reason="the collector knows every dict")
def test_a_dict_that_the_collector_does_not_know() -> None:
    """The object of C code says more than the dict that it is in a cycle with."""
    out = run_child(
        READER
        + """
with memory.growth() as found:
    for number in range(5000):
        reader = Reader()
        reader.given = {"reader": reader, "data": bytes(300)}
    del reader
print([(row.name, row.type) for row in found.result.owners])
""",
        env=child_environment(PYMALLOC),
    ).out
    assert out == "[('5,000 x wire.Reader', 'nothing on the heap refers to them')]\n"


@of_rss
def test_a_cycle_that_the_collector_would_free() -> None:
    """All that is in it has a tp_traverse."""
    out = run_child(
        """
        import functools
        import gc
        from cpythonplus import memory

        class Connection:
            def __init__(self):
                self.reader = functools.partial(self.failed)
                self.buffer = bytearray(500)

            def failed(self):
                pass

        gc.disable()
        with memory.growth() as found:
            for number in range(5000):
                Connection()
        first = found.result.owners[0]
        print(first.name.partition(":")[0], first.type)
        """,
        env=child_environment(PYMALLOC),
    ).out
    assert out == "garbage garbage\n"
