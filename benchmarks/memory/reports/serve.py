"""Runs one program of the catalogue as a service with other work; alone, or with a tool in it.

    python serve.py NAME [TOOL]
    python serve.py --read FILE

Started in an environment of its own, which has neither this project's tests nor its benchmarks.
With a tool, the first line of what that says of the growth is printed; with a file of memray, the
first of what that says.
"""

import gc
import importlib
import json
import sys
import threading
import time
from collections import OrderedDict
from functools import lru_cache
from pathlib import Path

WARM_S, TRACED_S = 2.0, 5.0


class Shop:
    """Work beside the leak, with caches that are full after a while."""

    def __init__(self) -> None:
        """Begin with an empty cart for nobody."""
        self.carts: OrderedDict[int, dict[str, object]] = OrderedDict()
        self.number = 0

    def serve(self) -> None:
        """Serve for ever."""
        while True:
            for _ in range(20):
                self.request()
            time.sleep(0.02)

    def request(self) -> None:
        """Render a page, and keep the cart of one of the last 500 customers."""
        self.number += 1
        body = json.loads(json.dumps({"lines": list(range(20)), "number": self.number}))
        self.carts[self.number % 500] = {"body": body, "page": page(self.number % 300)}


@lru_cache(maxsize=256)
def page(number: int) -> str:
    """Return a page."""
    return f"<p>{number}</p>" * 20


def work(tick, per_second: int, seconds: float) -> None:
    """Call tick(number) so often."""
    began, done = time.monotonic(), 0
    while (now := time.monotonic()) < began + seconds:
        while done < (now - began) * per_second:
            tick(done)
            done += 1
        time.sleep(0.005)


def with_tracemalloc(more) -> str:
    """Return the line that has allocated most of what there is more of."""
    import tracemalloc

    tracemalloc.start(1)
    before = tracemalloc.take_snapshot()
    more()
    gc.collect()
    rows = tracemalloc.take_snapshot().compare_to(before, "lineno")
    return str(rows[0])


def with_objgraph(more) -> str:
    """Return the class that there are most more objects of."""
    import objgraph

    objgraph.growth()
    more()
    gc.collect()
    return str(next(iter(objgraph.growth(limit=1)), "no class has grown"))


def with_guppy3(more) -> str:
    """Return the largest kind of what is new."""
    import guppy

    heap = guppy.hpy()
    heap.setrelheap()
    more()
    gc.collect()
    return str(heap.heap()).splitlines()[2].strip()


def with_memray(more) -> str:
    """Return the line and the function behind most of what was not freed."""
    import memray

    file = Path(sys.prefix) / f"records-{time.time_ns()}"
    with memray.Tracker(file, native_traces=True):
        more()
        gc.collect()
    told = read(file)
    file.unlink()
    return told


def read(file: Path) -> str:
    """Return the same of a file that memray has written."""
    import memray

    with memray.FileReader(file) as reader:
        records = reader.get_leaked_allocation_records(merge_threads=True)
        most = max(records, key=lambda each: each.size)
        frames = [*most.stack_trace(1), *most.native_stack_trace(2)]
    return f"{most.size} B: " + "; ".join(f"{name} {place}:{line}" for name, place, line in frames)


def main() -> None:
    """Serve until somebody ends it, or measure."""
    name, *tool = sys.argv[1:]
    if name == "--read":
        print(json.dumps(read(Path(tool[0]))))
        return
    program = importlib.import_module(f"programs.{name}")
    threading.Thread(target=Shop().serve, daemon=True).start()
    work(program.tick, program.PER_SECOND, WARM_S)
    print("ready", flush=True)
    if not tool:
        work(program.tick, program.PER_SECOND, 3600.0)
        return
    told = globals()[f"with_{tool[0]}"](lambda: work(program.tick, program.PER_SECOND, TRACED_S))
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
