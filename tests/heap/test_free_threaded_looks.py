"""Looks at a free-threaded process: its other threads stand still, and go on afterwards."""

import pytest

from tests.support import FREE_THREADED, run_child

pytestmark = pytest.mark.skipif(not FREE_THREADED, reason="needs a free-threaded build")

BUSY = """
import gc, sys, threading, time
from cpythonplus import _native, memory

rounds = [0] * 3
stop = False


def busy(number):
    mine = {}
    while not stop:
        for i in range(100):
            mine[i] = [i] * 3
        mine.clear()
        rounds[number] += 1
        time.sleep(0.0005)  # else they would take all processors from what looks


class Thing:
    def __init__(self, number):
        self.number = number


def all_got_on():
    before = list(rounds)
    while not all(now > was for now, was in zip(rounds, before)):
        time.sleep(0.001)


threads = [threading.Thread(target=busy, args=(i,)) for i in range(3)]
for thread in threads:
    thread.start()
all_got_on()
try:
"""
END = """
    all_got_on()
finally:
    stop = True
    for thread in threads:
        thread.join()
"""


def _beside_threads(lines: str) -> None:
    body = "".join(f"    {line}\n" for line in lines.strip().splitlines())
    run_child(BUSY + body + END)


def test_growth_names_what_grew() -> None:
    _beside_threads("""
with memory.growth() as grown:
    more = [{"a": [i]} for i in range(20_000)]
owner = grown.result.owners[0]
assert owner.name == "__main__.more", owner
assert owner.entries == 20_000 and owner.kept_before_bytes == 0, owner
assert any("gc.get_objects()" in each for each in grown.result.losses)
""")


def test_a_census_counts_instances_and_their_attributes() -> None:
    _beside_threads("""
things = [Thing(i) for i in range(5_000)]
found = memory.census()
(row,) = [each for each in found.by_type if each.name.endswith("Thing")]
assert row.objects == 5_000, row
assert row.size_bytes >= 5_000 * (object.__sizeof__(things[0]) + 8), row
""")


def test_the_path_to_an_object() -> None:
    _beside_threads("""
holder = {"one": [Thing(1)]}
root, name, objects = _native.memory_root_path(Thing, True, None, None)
assert root.__name__ == "__main__", root
assert type(objects[-1]) is Thing
(told,), pause_ns = _native.memory_root_paths((holder["one"][0],), "", 30)
assert told[2][-1] is holder["one"][0], told
""")


def test_cycles_are_found_and_freed() -> None:
    _beside_threads("""
with memory.cycles.watch() as watch:
    for _ in range(50):
        one = Thing(1)
        one.me = one
    del one
(cycle,) = [each for each in watch.report.cycles if "Thing" in each.cause.what]
assert cycle.count == 50, watch.report
assert not [each for each in gc.get_objects() if type(each) is Thing]
""")


def test_two_threads_look_at_once() -> None:
    _beside_threads("""
failed = []
def look():
    try:
        for _ in range(3):
            memory.owners()
            memory.census()
    except BaseException as error:
        failed.append(error)
looking = [threading.Thread(target=look) for _ in range(2)]
for each in looking:
    each.start()
for each in looking:
    each.join()
assert not failed, failed
""")


def test_resident_memory_has_the_objects() -> None:
    _beside_threads("""
kept = [str(i) * 10 for i in range(100_000)]
parts = {each.name: each for each in memory.resident().parts}
assert parts["mimalloc_used"].resident_bytes > 100_000 * sys.getsizeof("12345" * 10), parts
assert parts["mimalloc_used"].count > 100_000, parts
assert "live_objects" not in parts
""")


def test_a_child_of_a_fork_looks_too() -> None:
    _beside_threads("""
import os, warnings
warnings.simplefilter("ignore")
memory.owners()
pid = os.fork()
if pid == 0:
    memory.owners()
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
""")
