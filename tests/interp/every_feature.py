"""Run in a child: what each feature gives, or that it refuses, as JSON."""

import ctypes
import gc
import itertools
import json
import os
import pickle
import threading
from collections.abc import Callable, Iterator
from unittest import mock

import cpythonplus
from cpythonplus import _interp, gil, memory, threads


class Session:
    def __init__(self, number: int) -> None:
        self.number = number
        self.names = {"name": str(number), "kind": "session"}


HELD = [Session(number) for number in range(100)]
NEW: list[Session] = []
GONE_ON: list[object] = []
SAID: dict[str, str] = {}


REFUSALS = (cpythonplus.UnsupportedPlatform, RuntimeError, OSError, pickle.PicklingError, TypeError)


def feature(function: Callable[[], object]) -> Callable[[], object]:
    name = function.__name__.removeprefix("use_")
    try:
        SAID[name] = f"{function()}"
    except REFUSALS as error:
        SAID[name] = f"refused: {error}"
    return function


@feature
def use_gil() -> object:
    gil.install()
    thread = threading.Thread(target=sum, args=(range(1000),))
    thread.start()
    thread.join()
    gil.uninstall()
    return "ran"


@feature
def use_threads() -> object:
    lock = threads.Lock()
    queue: threads.Queue[int] = threads.Queue()
    with lock:
        queue.put(1)
    return queue.get()


@feature
def use_patched_threads() -> object:
    """A class that somebody changes after an object was made."""
    threads.patch()
    event = threading.Event()
    said: list[object] = [event.is_set()]
    with mock.patch.object(threading.Event, "is_set", return_value=7):
        said.append(event.is_set())
    said.append(event.is_set())
    threads.unpatch()
    return said


@feature
def use_tasklets() -> object:
    from cpythonplus import tasklets

    gate = tasklets.channel()
    got: list[object] = []

    def work(name: str) -> None:
        try:
            got.append(gate.receive())
        finally:
            got.append(name)

    for name in "ab":
        tasklets.tasklet(work)(name)
    tasklets.run()
    gc.collect()
    for number in range(2):
        gate.send(number)
    tasklets.run()
    return got


@feature
def use_pickles() -> object:
    from cpythonplus import tasklets

    def numbers() -> Iterator[int]:
        yield int(tasklets.schedule_remove(1))

    def work() -> None:
        for number in numbers():
            pair = number, tasklets.schedule_remove(2)
            GONE_ON.append(pair)

    task = tasklets.tasklet(work)()
    tasklets.run()
    try:
        again = pickle.loads(pickle.dumps(task))
        while again.alive:
            again.insert()
            tasklets.run()
        return GONE_ON
    finally:
        task.kill()


@feature
def use_pickled_iterators() -> object:
    """Classes that pickle alone cannot write."""
    from cpythonplus import tasklets

    found: list[object] = []
    pairs = itertools.pairwise("abcd")
    product = itertools.product("ab", [1, 2])
    for each in (pairs, product):
        next(each)
        found.append(list(pickle.loads(tasklets.dumps(each))))
    return found


@feature
def use_census() -> object:
    census = memory.census()
    if census.left_out:
        raise RuntimeError(census.left_out)
    return [
        (row.name, row.objects, row.size_bytes)
        for row in census.by_type
        if row.name.endswith("Session")
    ]


@feature
def use_growth() -> object:
    """Objects with a name, and some that nothing refers to."""
    hold = ctypes.pythonapi.Py_IncRef
    hold.argtypes = [ctypes.py_object]
    with memory.growth() as found:
        NEW.extend(Session(number) for number in range(3000))
        for number in range(20_000):
            hold(f"no. {number}")
    result = found.result
    if result is None or result.lost or result.losses:
        raise RuntimeError(result)
    lost = [row for row in result.owners if row.name.endswith(" x str")]
    more = [(row.type, row.entries - row.entries_before > 19_900) for row in lost]
    return more, "__main__.NEW" in [row.name for row in result.owners]


@feature
def use_key_sharing() -> object:
    memory.key_sharing()
    return "ran"


@feature
def use_resident() -> object:
    arenas = memory.resident().arenas
    if arenas.unknown:
        raise RuntimeError(arenas.unknown)
    return arenas.count > 0


@feature
def use_trim() -> object:
    notes = [step.note for step in memory.trim().steps if "skipped" in step.note]
    if notes:
        raise RuntimeError("; ".join(notes))
    return "ran"


@feature
def use_caches() -> object:
    memory.caches()
    return "ran"


@feature
def use_helpers() -> object:
    def fail() -> None:
        kept: Exception = KeyError("y")
        try:
            dict[str, int]()["x"]
        except KeyError as error:
            kept = error
        memory.exceptions.reraise(kept)

    try:
        fail()
    except KeyError as error:
        return str(error)
    return "nothing was raised"


@feature
def use_prefork() -> object:
    from cpythonplus import prefork

    report = prefork.prepare()
    if not report.immortal:
        raise RuntimeError(str(report))
    pid = os.fork()
    if pid == 0:
        os._exit(0 if HELD[3].names["name"] == "3" else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


SAID["facts"] = json.dumps({fact.name: fact.state for fact in _interp.facts()})
print(json.dumps(SAID))
