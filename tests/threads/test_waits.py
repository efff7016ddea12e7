"""Who waits for whom: all deadlocks are named with their lines, and no slow program is."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from cpythonplus import _native, threads
from cpythonplus.threads._waits import _holding
from cpythonplus.threads._waits_text import deadlock_lines
from tests.support import run_child
from tests.threads.stuck import SLOW, STUCK, Stuck

# `look` runs in a thread that `threading` does not know, as the doctor's does.
LOOKING = """\
from cpythonplus import threads
threads.patch()
import _thread, json, os, time
def look():
    {look}
threads.waits()  # it is imported now, not beside the program's imports
_thread.start_new_thread(look, ())
os.register_at_fork(after_in_child=lambda: _thread.start_new_thread(look, ()))
exec(compile({source!r}, "program", "exec"), {{"__name__": "program"}})
"""
# The same deadlock twice: the first one may be told before all of its threads wait.
FIND = """\
before = None
    while True:
        found = threads.waits().as_json()
        if found["deadlocks"] and found["deadlocks"] == before:
            print(json.dumps(found), flush=True)
            os._exit(0)
        before = found["deadlocks"]
        time.sleep(0.2)
"""
NONE = """\
while True:
        found = threads.waits().as_json()
        if found["deadlocks"]:
            print(json.dumps(found), flush=True)
            os._exit(1)
        time.sleep(0.002)
"""


def marks(source: str) -> dict[int, str]:
    """The names of lines."""
    lines = enumerate(source.splitlines(), 1)
    return {number: line.partition("#: ")[2] for number, line in lines if "#: " in line}


def mark(place: dict[str, Any] | None, names: dict[int, str]) -> str:
    return names.get(place["line"], "") if place and place["file"] == "program" else ""


pytestmark = pytest.mark.needs_gil
DEADLOCKS = [pytest.param(case, id=case.name) for case in STUCK]


@pytest.mark.parametrize("case", DEADLOCKS)
def test_a_deadlock_is_named_with_its_lines(case: Stuck) -> None:
    child = run_child(LOOKING.format(look=FIND, source=case.source))
    found = json.loads(child.out)
    names = marks(case.source)
    (deadlock,) = found["deadlocks"]
    members = [each for each in found["waits"] if each["ident"] in deadlock["threads"]]
    assert deadlock["kind"] == case.kind
    assert {
        (
            each["name"],
            mark(each["at"], names),
            mark(each["made_at"], names),
            mark(each["held_at"], names),
        )
        for each in members
    } == case.waits
    assert {each["inside"] for each in members} == {case.inside}
    text = "\n".join(deadlock_lines(found))
    assert all(name in text for name in found["names"].values() if name in str(case.waits))
    assert ("held by a thread that has ended" in text) == (case.kind == "ended")


@pytest.mark.parametrize("name", SLOW)
def test_a_slow_program_is_not_called_deadlocked(name: str) -> None:
    run_child(LOOKING.format(look=NONE, source=SLOW[name]))


# The import system has given it the lock; it is about to wait; nobody has the lock any more.
@pytest.mark.parametrize("owner", ["own", "own + 1", "None"])
def test_a_thread_on_its_way_to_an_import_does_not_wait(owner: str) -> None:
    run_child(
        f"""
        import _thread, sys
        from cpythonplus.threads import _waits
        own = _thread.get_ident()
        class _ModuleLock:  # as importlib's
            owner, name, lock = {owner}, "it", _thread.allocate_lock()
            def acquire(self, about_to_wait):
                if about_to_wait:
                    with self.lock:
                        return _waits._imported(own, [sys._getframe()])
                return _waits._imported(own, [sys._getframe()])
        assert _ModuleLock().acquire({owner!r} == "own + 1") is None
        _ModuleLock.owner = own + 1
        assert _ModuleLock().acquire(False).owners == (own + 1,)
        """
    )


CHILDREN = """\
import multiprocessing, subprocess, sys, threading, time
def waits_of_subprocess(child):
    child.wait()
def waits_of_multiprocessing(child):
    child.join()
def start(function, child):
    threading.Thread(target=function, args=(child,), name=str(child.pid), daemon=True).start()
lock = threading.Lock()
def behind():
    with lock:
        pass
with lock:
    first = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    start(waits_of_subprocess, first)
    second = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
    second.start()
    start(waits_of_multiprocessing, second)
    threading.Thread(target=behind, name="behind", daemon=True).start()
    third = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    third.wait()
"""
ALL_THREE = """\
while True:
        found = threads.waits()
        assert not found.deadlocks
        ends = {each.name: each for each in found.waits if each.kind.startswith("process ")}
        if len(ends) == 3:
            break
        time.sleep(0.01)
    main = ends.pop("MainThread")
    told = [(main.kind, main.at.function)] + sorted(
        (each.kind == f"process {name}", each.at.function) for name, each in ends.items()
    )
    print(json.dumps(told))
    from cpythonplus.threads._waits_text import wait_lines
    print(wait_lines(found.as_json(), 9))
    import multiprocessing, sys
    for each in multiprocessing.active_children():
        each.kill()
    sys.stdout.flush()
    os._exit(0)
"""


def test_the_end_of_a_child_process_is_awaited() -> None:
    """A thread that waits for one is in no deadlock: the child may end."""
    child = run_child(LOOKING.format(look=ALL_THREE, source=CHILDREN))
    first, *rest = child.out.splitlines()
    (kind, function), *others = json.loads(first)
    assert re.fullmatch(r"process \d+", kind)
    assert function == "<module>"
    assert others == [[True, "waits_of_multiprocessing"], [True, "waits_of_subprocess"]]
    assert f"for the end of {kind}" in "\n".join(rest)


def test_an_operand_is_not_read_from_a_frame_that_has_gone_on() -> None:
    def generate() -> Iterator[None]:
        with lock:
            yield
        yield

    lock = threads.Lock()
    generator: Any = generate()
    next(generator)
    frame = generator.gi_frame
    offset = frame.f_lasti
    assert _holding([frame], lock) is not None
    next(generator)
    assert all(_native.threads_operand(frame, index, offset) is None for index in range(3))
