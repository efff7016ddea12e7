"""Imports by tasklets while another thread or tasklet imports the same module."""

from pathlib import Path

from tests.support import run_child

SLOW_IMPORT = """
import socket, sys, threading, time
from cpythonplus._native import io_delivery
from cpythonplus.tasklets import run, tasklet
from cpythonplus.tasklets.io import socket as plus

begun = threading.Event()

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            begun.set()
            time.sleep(0.5)
        return None

assert {name!r} not in sys.modules
sys.meta_path.insert(0, Slow())
importer = threading.Thread(target=__import__, args=({imported!r},))
importer.start()
begun.wait()
"""
HUB = "cpythonplus.tasklets.io._hub"


def test_the_hub_is_imported_while_a_thread_imports_it_and_tasklets_wait() -> None:
    child = run_child(
        SLOW_IMPORT.format(name="asyncio", imported=HUB)
        + """
ends = plus.socketpair()
end = io_delivery()
told = []
def receive():
    told.append(ends[0].recv(10))
    end.deliver()
tasklet(receive)()
tasklet(ends[1].send)(b"hello")
end.wait()
importer.join()
assert told == [b"hello"], told
run()
""",
        timeout=30,
    )
    assert child.err == ""


def test_a_tasklet_waits_for_a_threads_import_of_asyncio_while_others_wait() -> None:
    child = run_child(
        SLOW_IMPORT.format(name="logging", imported="logging")
        + """
end = io_delivery()
told = []
def load():
    import asyncio
    told.append(asyncio.run.__name__)
    end.deliver()
tasklet(load)()
end.wait()
importer.join()
assert told == ["run"], told
run()
""",
        timeout=30,
    )
    assert child.err == ""


GATE = """
import sys, threading
sys.path.insert(0, sys.argv[1])
from types import ModuleType
from cpythonplus.tasklets import channel, run, tasklet

gate = sys.modules["gate"] = ModuleType("gate")
gate.begun, gate.go, gate.channel = threading.Event(), threading.Event(), channel()
told = []
def load():
    import slow
    told.append(slow.VALUE)
"""


def test_run_waits_for_a_module_that_another_thread_imports(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import gate\ngate.begun.set()\ngate.go.wait()\nVALUE = 'whole'\n"
    )
    child = run_child(
        GATE
        + """
importer = threading.Thread(target=__import__, args=("slow",))
importer.start()
gate.begun.wait()
tasklet(load)()
threading.Timer(0.2, gate.go.set).start()
run()
assert told == ["whole"], told
importer.join()
""",
        args=[str(tmp_path)],
        timeout=30,
    )
    assert child.err == ""


def test_run_returns_if_a_tasklet_of_its_thread_imports_the_module(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import gate\nVALUE = gate.channel.receive()\n")
    child = run_child(
        GATE
        + """
tasklet(load)()
tasklet(load)()
run()
assert told == [], told
gate.channel.send("whole")
run()
assert told == ["whole", "whole"], told
""",
        args=[str(tmp_path)],
        timeout=30,
    )
    assert child.err == ""


def test_tasklets_of_four_threads_import_each_others_modules(tmp_path: Path) -> None:
    for number in range(12):
        following = f"import m{number + 1}\n" if number < 11 else ""
        (tmp_path / f"m{number}.py").write_text(
            f"import time\ntime.sleep(0.002)\n{following}VALUE = 'whole'\n"
        )
    child = run_child(
        """
import sys, threading
sys.path.insert(0, sys.argv[1])
from cpythonplus.tasklets import io, locks, run, tasklet

io.patch()
locks.patch()
told = []
def load(number):
    try:
        told.append(__import__(f"m{number}").VALUE)
    except BaseException as error:
        told.append(repr(error))
def work(first):
    for number in range(first, first + 3):
        tasklet(load)(number)
    run()
threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
for thread in threads:
    thread.start()
for number in range(11, -1, -1):
    tasklet(load)(number)
run()
for thread in threads:
    thread.join()
assert told == ["whole"] * 24, told
""",
        args=[str(tmp_path)],
        timeout=60,
    )
    assert child.err == ""
