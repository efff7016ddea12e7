"""Imports by tasklets while another thread imports the same module."""

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
