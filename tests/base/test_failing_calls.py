"""No memory: each call of the extension that could fail does so once, whatever is being done.

Only the extension's own calls fail (failing_calls.c says how), so a crash is its own.  What is done
are the lines of the rooms' leak tests: each public callable is in one of them.
"""

import json
import platform
import sysconfig
from pathlib import Path

import pytest

from tests.lines import ROOMS
from tests.support import SANITIZED, c_file, compile_c, run_child

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(SANITIZED, reason="the sanitizer's own calls go through the same words"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="failing_calls.c has stubs for it"),
]

PROGRAM = """
import ctypes, os, signal, sys, threading, time, gc

{names}

import json
from cpythonplus import _native

LINES = {lines!r}
# Of each line's calls so many fail, evenly spread; 200 take minutes for each room.
MOST = int(os.environ.get("CPYTHONPLUS_FAILING_CALLS", "2"))
LIMIT_S = 30

lib = ctypes.CDLL({library!r})
lib.failing_first.restype = ctypes.c_char_p
lib.failing_install.argtypes = [ctypes.c_void_p]
inside = ctypes.cast(ctypes.PyDLL(_native.__file__).PyInit__native, ctypes.c_void_p)
assert lib.failing_install(inside) > 50


def own_types(base):
    for kind in type.__subclasses__(base):
        if kind.__module__.startswith("cpythonplus") and not kind.__flags__ & 1 << 9:
            yield kind
        yield from own_types(kind)


for kind in own_types(object):
    lib.failing_type(ctypes.py_object(kind))


def attempt(code, number, every):
    names = {{**globals()}}
    lib.failing_begin(number, every)
    try:
        exec(code, names)
    except SystemError as error:  # no exception was set, or one too many
        return repr(error)
    except BaseException as error:
        if number < 0:
            return repr(error)
    finally:
        global calls
        calls = lib.failing_end()
    try:  # what could not be raised there may be raised soon
        for _ in range(1000):
            pass
    except BaseException:
        pass
    try:
        names.get("check", int)()
    except BaseException as error:
        return repr(error)
    names.clear()
    gc.collect()
    return ""


def child(code, number, every, told):
    sys.unraisablehook = lambda info: None
    threading.excepthook = lambda info: None
    signal.alarm(LIMIT_S)
    try:
        said = attempt(code, number, every)
    except MemoryError:  # raised later still
        said = ""
    first = (lib.failing_first() or b"").decode()
    os.write(told, json.dumps([calls, first, said]).encode())


def one(code, number, every):
    '''Return how many calls there were, and what went wrong.'''
    sys.stdout.flush()
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            child(code, number, every, theirs)
        finally:
            os._exit(0)
    os.close(theirs)
    with open(ours) as pipe:
        told = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    count, first, said = json.loads(told or '[0, "?", "nothing was told"]')
    return count, f"{{first}}: status {{status}} {{said}}" if status or said or not told else ""


# All of them first: what fails later may leave something in a socket that the children share.
result = {{}}
counts = {{}}
for name, line in LINES.items():
    counts[name], wrong = one(compile(line, line, "exec"), -1, False)
    if wrong:
        result[name] = wrong
total = 0
for name, line in LINES.items():
    code, count = compile(line, line, "exec"), counts[name]
    step = count // MOST + 1
    for every in (False, True):
        for number in range(0, count, step):
            total += 1
            wrong = one(code, number, every)[1]
            if wrong:
                result[f"{{name}} {{number}} {{'on' if every else 'once'}}"] = wrong
print(json.dumps([total, result]), flush=True)
os._exit(0)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("failing") / "failing_calls.so"
    sources = [Path(__file__).with_name("failing_calls.c"), c_file("slots.c")]
    include = f"-I{sysconfig.get_path('include')}"
    return compile_c(output, sources, include, "-shared", "-fPIC", "-fvisibility=hidden")


@pytest.mark.parametrize("room", ROOMS)
def test_each_call_fails_once(room: str, library: Path) -> None:
    names, lines = ROOMS[room]
    program = PROGRAM.format(names=names, lines=lines, library=str(library))
    child = run_child(program, timeout=600, env={"PYTHONFAULTHANDLER": ""})
    total, wrong = json.loads(child.out.splitlines()[-1])
    assert total > len(lines) // 4  # some call nothing that can fail
    assert wrong == {}
