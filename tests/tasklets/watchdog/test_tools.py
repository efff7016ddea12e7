"""Debuggers, profilers and observers see the tasklet that runs, no other, and do not crash."""

import asyncio
import faulthandler
import inspect
import logging
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
import traceback
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from cpythonplus.tasklets import run, schedule, schedule_remove, tasklet
from tests.support import LOAD, SANITIZED, child_environment, run_child

Log = list[Any]

IMPORTS = """
import os, sys
from cpythonplus import tasklets
from cpythonplus.tasklets import channel, getcurrent, run, schedule, schedule_remove, tasklet
"""


def from_inside(look: Callable[[], Any]) -> Any:  # noqa: ANN401
    """Return what `look` says in a tasklet three calls deep, beside parked ones and a deep main."""
    log: Log = []

    def parked_function(levels: int) -> None:
        if levels:
            parked_function(levels - 1)
        else:
            schedule_remove(None)

    def inner() -> None:
        log.append(look())

    def outer() -> None:
        schedule()
        inner()

    def deep_main(levels: int) -> None:
        if levels:
            deep_main(levels - 1)
        else:
            run()

    parked = tasklet(parked_function)(5)
    schedule()
    tasklet(outer)()
    deep_main(5)
    parked.kill()
    return log[0]


def written(dump: Callable[[Any], object]) -> str:
    with tempfile.TemporaryFile("w+") as file:
        dump(file)
        file.seek(0)
        return file.read()


class TestLooking:
    """All of these show the functions outer and inner, and neither main's nor parked ones."""

    def test_traceback(self) -> None:
        stack = from_inside(traceback.extract_stack)
        assert [entry.name for entry in stack] == ["outer", "inner"]

    def test_inspect(self) -> None:
        names = from_inside(lambda: [entry.function for entry in inspect.stack()])
        assert names == ["<lambda>", "inner", "outer"]

    def test_current_frames(self) -> None:
        def names() -> list[str]:
            frame = sys._current_frames()[threading.get_ident()]
            return [entry.f_code.co_name for entry, _ in traceback.walk_stack(frame)]

        assert from_inside(names) == ["names", "inner", "outer"]

    def test_faulthandler(self) -> None:
        text = from_inside(
            lambda: written(lambda file: faulthandler.dump_traceback(file, all_threads=True))
        )
        assert " in inner" in text
        assert " in outer" in text
        assert "deep_main" not in text
        assert "parked_function" not in text

    def test_faulthandler_later(self) -> None:
        """From another thread, while this one waits in a system call."""
        child = run_child(
            IMPORTS
            + """
import faulthandler

def parked_function():
    schedule_remove()

def inner():
    reading, writing = os.pipe()
    faulthandler.dump_traceback_later(0.001, file=writing)
    text = b""
    while b" in outer" not in text:
        text += os.read(reading, 100_000)
    print(text.decode())

def outer():
    schedule()
    inner()

tasklet(parked_function)()
tasklet(outer)()
run()
"""
        )
        assert "Timeout" in child.out
        assert " in inner" in child.out
        assert "parked_function" not in child.out
        assert "module" not in child.out

    def test_warnings(self) -> None:
        def warn() -> int:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                warnings.warn("that", stacklevel=2)
                warnings.warn("beyond the outermost", stacklevel=50)
            return caught[0].lineno

        first_line = inspect.getsourcelines(from_inside)[1]
        assert first_line < from_inside(warn) < first_line + 20

    def test_logging(self) -> None:
        logger = logging.getLogger("cpythonplus.tests.tasklets")
        found: list[logging.LogRecord] = []
        handler = logging.Handler()
        handler.emit = found.append  # type: ignore[method-assign, assignment]
        logger.addHandler(handler)
        logger.propagate = False
        from_inside(lambda: logger.warning("that", stack_info=True))
        logger.removeHandler(handler)
        assert found[0].funcName == "<lambda>"
        assert "in inner" in str(found[0].stack_info)
        assert "deep_main" not in str(found[0].stack_info)

    def test_tracemalloc(self) -> None:
        def look() -> list[str]:
            tracemalloc.start(20)
            other = tasklet(lambda: [bytearray(100) for _ in range(100)])()
            schedule()
            made = bytearray(5000)
            tracemalloc.take_snapshot()
            found = tracemalloc.get_object_traceback(made)
            tracemalloc.stop()
            assert not other.alive
            assert found is not None
            return [str(frame.lineno) for frame in found]

        assert len(from_inside(look)) == 3

    def test_an_event_loop_s_own_tools(self) -> None:
        async def whole() -> list[str]:
            task = asyncio.current_task()
            assert task is not None
            return [frame.f_code.co_name for frame in task.get_stack()]

        names = from_inside(lambda: asyncio.run(whole()))
        assert names[-1] == "whole"
        assert not {"deep_main", "parked_function"} & set(names)


class TestPdb:
    def debug(self, program: str, commands: str) -> str:
        """Run a program with these commands for pdb; return what it prints."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "program.py")
            path.write_text(IMPORTS + "import pdb\n" + dedent(program))
            done = subprocess.run(
                [sys.executable, str(path)],
                input="\n".join(commands.split(", ")) + "\n",
                capture_output=True,
                text=True,
                timeout=LOAD * 60,
                check=False,
                env=child_environment({"NO_COLOR": "1", "PYTHON_COLORS": "0", "HOME": folder}),
            )
        assert done.returncode == 0, (done.stdout, done.stderr)
        return done.stdout

    def test_stepping_over_a_receive(self) -> None:
        to_the_line = (
            "n, " if sys.version_info >= (3, 13) else ""
        )  # it stops at the call, not after
        out = self.debug(
            """
            it = channel()

            def other():
                schedule()
                it.send("soup")
                schedule()

            def helper(dish):
                return dish.upper()

            def body():
                name = "body's"
                pdb.set_trace()
                dish = it.receive()
                dish = helper(dish)
                print("served")

            tasklet(other)()
            tasklet(body)()
            run()
            print("end")
            """,
            f"b helper, {to_the_line}n, p 'now ' + dish, c, p 'in helper ' + dish, "
            "up, p name, where, c",
        )
        assert "now soup" in out
        assert "in helper soup" in out
        assert "body's" in out
        assert "other()" not in out
        assert out.endswith("served\nend\n")

    def test_breakpoints_in_tasklets_that_inherit(self) -> None:
        out = self.debug(
            """
            def body(number):
                schedule()
                print("body", number)

            def start():
                for number in range(2):
                    tasklet(body)(number)
                run()

            pdb.set_trace()
            start()
            print("end")
            """,
            "b body, c, p 'stopped', number, n, n, c, p 'stopped', number, cl 1, c",
        )
        assert out.count("-> schedule()") >= 2
        assert "body 0\n" in out
        assert "body 1\n" in out
        assert out.endswith("end\n")

    def test_post_mortem(self) -> None:
        out = self.debug(
            """
            def inner(divisor):
                return 1 / divisor

            def body():
                mine = "body's own"
                schedule()
                inner(0)

            tasklet(body)()
            try:
                run()
            except ZeroDivisionError as error:
                pdb.post_mortem(error.__traceback__)
            print("end")
            """,
            "p 'divisor', divisor, up, p mine, q",
        )
        assert "body's own" in out
        assert out.endswith("end\n")


class TestProfilers:
    def test_cprofile_in_a_tasklet_and_in_main(self) -> None:
        """From 3.12 on it listens to the whole interpreter: numbers mix, nothing crashes."""
        child = run_child(
            IMPORTS
            + """
import cProfile, io, pstats

def work(rounds):
    for _ in range(rounds):
        schedule()
        len("")

def profiled(rounds):
    with cProfile.Profile() as profile:
        work(rounds)
        schedule()
    print(any(key[2] == "work" for key in pstats.Stats(profile, stream=io.StringIO()).stats))

tasklet(profiled)(3)
tasklet(work)(5)
run()
profile = cProfile.Profile()
profile.enable()
tasklet(work)(3)
tasklet(work)(5)
run()
profile.disable()
print("cpythonplus" in str(list(pstats.Stats(profile, stream=io.StringIO()).stats)))
left = tasklet(profiled)(3)
schedule()
"""
        )
        assert child.out == "True\nTrue\n"

    def test_threading_settrace_while_tasklets_run(self) -> None:
        child = run_child(
            IMPORTS
            + """
import threading

def leaf():
    pass

def body(rounds):
    for _ in range(rounds):
        leaf()
        schedule()

seen = set()

def tracer(frame, event, arg):
    if event == "call" and frame.f_code is leaf.__code__:
        seen.add((threading.current_thread().name, getcurrent().is_main))
    return tracer

def thread():
    tasklet(body)(3)
    leaf()
    run()

threading.settrace(tracer)
for _ in range(3):
    tasklet(body)(3)
other = threading.Thread(target=thread, name="other")
other.start()
run()
other.join()
if sys.version_info >= (3, 12):
    parked = tasklet(body)(2)
    schedule()
    threading.settrace_all_threads(tracer)
    run()
    threading.settrace_all_threads(None)
print(sorted(seen))
"""
        )
        assert child.out == "[('other', False), ('other', True)]\n"

    def test_a_tracer_that_counts_lines(self) -> None:
        """As coverage tools do: one for each, given by threading.settrace()."""
        child = run_child(
            IMPORTS
            + """
import threading

lines = {}

class Tracer:
    def __init__(self):
        self.stack = []
    def trace(self, frame, event, arg):
        if event == "call":
            self.stack.append(frame)
        assert self.stack[-1] is frame, (self.stack, frame)
        if event == "line" and frame.f_code.co_filename == __file__:
            lines.setdefault(frame.f_code.co_name, set()).add(
                frame.f_lineno - frame.f_code.co_firstlineno)
        if event == "return":
            self.stack.pop()
        return self.trace

def install(frame, event, arg):
    it = Tracer()
    sys.settrace(it.trace)
    return it.trace(frame, event, arg)

def inner(value):
    schedule()
    return value

def body(value):
    schedule()
    if inner(value):
        schedule()
    else:
        leave = value

tasklets.set_trace_inheritance(True)
threading.settrace(install)
for value in (True, True, False, True):
    tasklet(body)(value)
run()
threading.settrace(None)
print({name: sorted(found) for name, found in lines.items()})
"""
        )
        assert child.out == "{'body': [1, 2, 3, 5], 'inner': [1, 2]}\n"


@pytest.mark.skipif(SANITIZED, reason="py-spy reads the memory of the sanitizer as well")
def test_py_spy() -> None:
    beside = Path(sysconfig.get_path("scripts"), "py-spy")
    command = str(beside) if beside.exists() else shutil.which("py-spy")
    if command is None:
        pytest.skip("py-spy is not installed")
    child = run_child(
        IMPORTS
        + """
import subprocess

def dump():
    command = [sys.argv[1], "dump", "--pid", str(os.getpid())]
    done = subprocess.run(command, capture_output=True, text=True)
    print(done.returncode, done.stdout, done.stderr, sep="\\n")

def stock_function():
    dump()

stock_function()
print("=====")

def parked_function(levels):
    parked_function(levels - 1) if levels else schedule_remove()

def outer_function():
    schedule()
    dump()

for _ in range(10):
    tasklet(parked_function)(5)
tasklet(outer_function)()
run()
""",
        args=[command],
    )
    stock, inside = child.out.split("=====\n")
    if "stock_function" not in stock:
        pytest.skip(f"py-spy refuses without tasklets as well: {stock[:200]}")
    assert inside.startswith("0\n")
    assert "outer_function" in inside
    assert "parked_function" not in inside


class TestSuspended:
    def test_a_debugger_s_tracer_goes_with_its_tasklet(self) -> None:
        """What is traced when a tasklet is parked within a trace function is not lost."""
        child = run_child(
            IMPORTS
            + """
it = channel()
log = []

def tracer(frame, event, arg):
    if event == "call" and frame.f_code.co_name == "leaf":
        log.append(it.receive())
    return tracer

def leaf():
    pass

def body():
    sys.settrace(tracer)
    leaf()
    leaf()
    sys.settrace(None)

tasklet(body)()
run()
for value in range(2):
    leaf()
    it.send(value)
run()
left = tasklet(body)()
run()
print(log, it.balance)
"""
        )
        assert child.out == "[0, 1] -1\n"
