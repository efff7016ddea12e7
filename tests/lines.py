"""The lines of all rooms' leak tests in one table: each public callable is in one of them."""

from tests.gil import test_memleaks as of_gil
from tests.gil.load import PRELUDE as GIL_PRELUDE
from tests.memory import test_memleaks as of_memory
from tests.prefork import test_memleaks as of_prefork
from tests.tasklets import test_memleaks as of_tasklets
from tests.tasklets.io import test_io_memleaks as of_io
from tests.tasklets.locks import test_locks_memleaks as of_locks
from tests.tasklets.pickling import test_pickle_memleaks as of_pickles
from tests.threads import test_memleaks as of_threads
from tests.threads.programs import PRELUDE as THREADS_PRELUDE

Lines = dict[str, str]


def _tasklet_lines() -> Lines:
    return {
        f"{kind} {name}": f"it = channel()\n{line}"
        for kind, lines in of_tasklets.CALLS.items()
        for name, line in lines.items()
        if not {"aio", "asyncio"} & set(name.replace(".", " ").split())
    }


# What put() and get() say is so, whichever of them had no memory.
KEPT = """
it = {kind}({size})
done, got = [], []
def put(item):
    it.put(item)
    done.append(item)
def check():
    rest = it.drain()
    assert sorted(got + rest) == sorted(done), (done, got, rest)
{line}
"""
KEPT_LINES = {
    "drained": (8, "put(1); put(2); put(3); got += it.drain()"),
    "put for one that waits": (
        1,
        "put(1); t = start(put, 2); t.join(0); got.append(it.get()); t.join()",
    ),
}


def _thread_lines() -> Lines:
    lines = {
        f"{kind} {name}": f"it = {make}\narguments = ({'1,' if '1' in make else ''})\n{line}"
        for kind, (make, lines) in of_threads.CALLS.items()
        for name, line in lines.items()
    }
    for name, (size, line) in KEPT_LINES.items():
        for kind in ("Queue", "LifoQueue", "PriorityQueue"):
            lines[f"{kind} {name}"] = KEPT.format(kind=kind, size=size, line=line)
    lines["SimpleQueue drained"] = KEPT.format(
        kind="SimpleQueue", size="", line=KEPT_LINES["drained"][1]
    )
    return lines


# A file in memory is closed by whoever has got its number.
MARKED = """
before = os.listdir("/proc/self/fd")
def check():
    assert len(os.listdir("/proc/self/fd")) == len(before)
os.close(_native.memory_owners(-1, 1 << 20, True, 60, 1 << 34)[2])
"""


def _memory_lines() -> Lines:
    lines = {
        f"{kind} {name}": line
        for kind, lines in {**of_memory.CALLS, **of_memory.SLOW_CALLS}.items()
        for name, line in lines.items()
    }
    return {**lines, "memory_owners marked": MARKED}


def _pickle_lines() -> Lines:
    return {
        f"{kept} one {way}": f"WAYS[{way}](*pickle.loads(pickle.dumps(originals()[{which}])))"
        for way in range(5)
        for which, kept in enumerate(("blocked", "paused"))
    }


def _names(program: str, end: str = "\nresult = {", **empty: object) -> str:
    """Return what stands in front of the measuring in a leak test's program."""
    return program.format(**empty).partition(end)[0]


ROOMS: dict[str, tuple[str, Lines]] = {
    "gil": (GIL_PRELUDE + _names(of_gil.PROGRAM, calls={}), of_gil.CALLS),
    "io": (_names(of_io.PROGRAM, calls={}), of_io.CALLS),
    "locks": (_names(of_locks.PROGRAM, calls={}), of_locks.CALLS),
    "memory": (_names(of_memory.PROGRAM, calls={}, slow={}), _memory_lines()),
    "tasklets": (_names(of_tasklets.PROGRAM, calls={}), _tasklet_lines()),
    "threads": (THREADS_PRELUDE + _names(of_threads.PROGRAM, calls={}), _thread_lines()),
}
"""Of each room the names that the lines use, as a program, and the lines."""

MORE_ROOMS: dict[str, tuple[str, Lines]] = {
    "pickles": (_names(of_pickles.PROGRAM, "\nround_trips(", times=0, warm_up=0), _pickle_lines()),
    "prefork": (_names(of_prefork.PROGRAM, calls={}), of_prefork.CALLS),
}
"""Rooms that work through Python code or processes of their own."""
