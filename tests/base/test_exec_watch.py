"""Being told of an exec: what is told, and that nothing can be seen of it."""

import subprocess
import sys

import pytest

from tests.leaks import MEASURE

FACTS = """
import inspect, os, posix, traceback

def facts():
    found = []
    for name in "execv", "execve":
        function = getattr(os, name)
        found += [function, type(function), hash(function),
                  function.__doc__, str(inspect.signature(function)),
                  function.__self__, function.__module__, function.__qualname__,
                  function is getattr(posix, name), function in os.supports_fd]
    for call in (
        lambda: os.execv("/does/not/exist", ["x"]),
        lambda: os.execve("/does/not/exist", ["x"], {}),
        lambda: os.execve(path="/does/not/exist", argv=["x"], env={}),
        lambda: os.execvp("does-not-exist", ["x"]),
        lambda: os.execle("/does/not/exist", "x", {}),
        lambda: os.execv("x"),
        lambda: os.execv("x", []),
        lambda: os.execv("x", ["\\0"]),
        lambda: os.execve("x", ["x"], 3),
        lambda: os.execve("x", ["x"], {}, y=1),
    ):
        try:
            call()
        except BaseException as error:
            found.append("".join(traceback.format_exception(error)))
    return found
"""


def child(code: str, *, status: int = 0) -> str:
    """Return what a program printed."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from cpythonplus._base.process.exec_watch import watch\n" + FACTS + code,
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (status, "")
    return done.stdout


def test_nothing_can_be_seen() -> None:
    code = """
before = facts()
assert watch(lambda *args, **names: None)
assert facts() == before
assert watch(None)
assert facts() == before
print(len(before))
"""
    assert int(child(code)) > 20


def test_what_is_told() -> None:
    code = """
calls = []
watch(lambda *args, **names: calls.append((args, names)))
facts()
watch(None)
facts()
for call in calls:
    print(*call)
"""
    told = child(code).splitlines()
    assert told[:3] == [
        "('/does/not/exist', ['x']) {}",
        "('/does/not/exist', ['x'], {}) {}",
        "() {'path': '/does/not/exist', 'argv': ['x'], 'env': {}}",
    ]
    assert told[-1] == "('x', ['x'], {}) {'y': 1}"
    assert sum("does-not-exist" in call for call in told) >= 1  # once for each folder of PATH


@pytest.mark.parametrize("what", ["1 / 0", "watch(None)", "int()"])
def test_the_program_goes_on(what: str) -> None:
    """Whatever the function does; it may take itself off."""
    code = f"watch(lambda *args: {what})\nos.execv('/bin/echo', ['echo', 'there'])"
    assert child(code) == "there\n"


def test_interrupted() -> None:
    """Ctrl-C while the function runs is Ctrl-C in the program."""
    code = """
def interrupt(*args):
    raise KeyboardInterrupt
watch(interrupt)
try:
    os.execv("/bin/echo", ["echo", "there"])
except KeyboardInterrupt:
    print("interrupted")
"""
    assert child(code) == "interrupted\n"


def test_an_import_that_watches_too() -> None:
    """What `import` runs may be the program's, and come here as well."""
    code = """
import builtins
from cpythonplus import _native
real = builtins.__import__
def imports(*args, **names):
    builtins.__import__ = real
    _native.exec_watch(tell)
    return real(*args, **names)
def tell(path, arguments):
    print(arguments, flush=True)
builtins.__import__ = imports
_native.exec_watch(tell)
os.execv("/bin/echo", ["echo", "there"])
"""
    assert child(code).splitlines() == ["['echo', 'there']", "there"]


def test_no_leak() -> None:
    code = (
        MEASURE
        + """
def fails(*args):
    raise ValueError(args)
def call(function):
    watch(function)
    for call in (lambda: os.execv("/dev/null", ["x"]), lambda: os.execve("/", ["x"], {})):
        try:
            call()
        except OSError:
            pass
    watch(None)
print(leaks("call(lambda *args: args)", globals(), 200), leaks("call(fails)", globals(), 200))
"""
    )
    assert child(code) == "None None\n"
