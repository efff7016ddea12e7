"""Worker: one kernel of single-threaded work, repeated. Parameters: kernel, seconds."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator

from benchmarks.common import worker

Kernel = Callable[[], object]


@contextlib.contextmanager
def json_kernel() -> Iterator[Kernel]:
    """Write and read back a nested document."""
    document = {
        f"key-{i}": {"id": i, "name": f"name {i}", "tags": ["a", "b", None, True], "value": i / 7}
        for i in range(60)
    }
    yield lambda: json.loads(json.dumps(document))


def _orbit() -> float:
    x, y, vx, vy, dt = 1.0, 0.0, 0.0, 1.0, 0.001
    for _ in range(1500):
        pull = dt / (math.sqrt(x * x + y * y) ** 3)
        vx -= x * pull
        vy -= y * pull
        x += vx * dt
        y += vy * dt
    return x + y


@contextlib.contextmanager
def floats_kernel() -> Iterator[Kernel]:
    """Integrate an orbit: float arithmetic in a tight loop."""
    yield _orbit


@contextlib.contextmanager
def regex_kernel() -> Iterator[Kernel]:
    """Find addresses and numbers in a text."""
    pattern = re.compile(r"(?P<user>[\w.]+)@(?P<host>[\w-]+(?:\.\w+)+)|\b\d{3,}\b")
    text = " ".join(
        f"word{i} user.{i}@host-{i}.example.org {i * 37} lorem (ipsum)" for i in range(60)
    )
    yield lambda: sum(1 for _ in pattern.finditer(text))


def _build_text() -> int:
    lines = []
    for i in range(400):
        line = f"{i:05d}|{'x' * (i % 17)}|{i * 0.5:.2f}"
        lines.append(line.upper().replace("|", ", ").strip())
    return len("\n".join(lines))


@contextlib.contextmanager
def strings_kernel() -> Iterator[Kernel]:
    """Build a text from formatted pieces."""
    yield _build_text


def _count_and_sort() -> int:
    counts: dict[str, int] = {}
    for i in range(1200):
        key = str(i * 7919 % 331)
        counts[key] = counts.get(key, 0) + i
    return len(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


@contextlib.contextmanager
def dicts_kernel() -> Iterator[Kernel]:
    """Count into a dict and sort it with a key function."""
    yield _count_and_sort


@contextlib.contextmanager
def files_kernel() -> Iterator[Kernel]:
    """Write, stat, open and read a small file: each call gives the GIL up and takes it back.

    By plain functions: pathlib's own work would be measured with them.
    """
    with tempfile.TemporaryDirectory(prefix="cpythonplus-bench-") as folder:
        path = os.path.join(folder, "file")  # noqa: PTH118
        data = b"x" * 512

        def work() -> None:
            for _ in range(8):
                with open(path, "wb", buffering=0) as file:  # noqa: PTH123
                    file.write(data)
                os.stat(path)  # noqa: PTH116
                with open(path, "rb", buffering=0) as file:  # noqa: PTH123
                    file.read()

        yield work


@contextlib.contextmanager
def sqlite_kernel() -> Iterator[Kernel]:
    """Insert and query rows of a database in memory; sqlite3 gives the GIL up in each step."""
    import sqlite3

    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("create table t (id integer primary key, name text, value real)")
        rows = [(f"name {i}", i * 0.5) for i in range(50)]

        def work() -> None:
            connection.executemany("insert into t (name, value) values (?, ?)", rows)
            connection.execute("select name, sum(value) from t group by name").fetchall()
            connection.execute("delete from t")
            connection.commit()

        yield work


KERNELS = {
    "json": json_kernel,
    "floats": floats_kernel,
    "regex": regex_kernel,
    "strings": strings_kernel,
    "dicts": dicts_kernel,
    "files": files_kernel,
    "sqlite": sqlite_kernel,
}


def measure(kernel: Kernel, seconds: float) -> array[int]:
    """Call `kernel` for `seconds` and return how long one call took, in ns, sample by sample.

    A sample is a loop of about a millisecond or more, so that reading the clock does not count.
    """
    now = time.perf_counter_ns
    kernel()
    start = now()
    kernel()
    once = max(now() - start, 1)
    loops = max(1, 1_000_000 // once)
    samples_ns = array("q")
    deadline = now() + int(seconds * 1e9)
    while True:
        start = now()
        for _ in range(loops):
            kernel()
        end = now()
        samples_ns.append((end - start) // loops)
        if end >= deadline:
            return samples_ns


def main() -> None:
    """Measure one kernel; its rate is that of its fastest sample."""
    parameters = worker.begin()
    with KERNELS[parameters["kernel"]]() as kernel:
        samples_ns = measure(kernel, parameters["seconds"])
    worker.finish(
        parameters,
        {"rate": 1e9 / max(1, min(samples_ns)), "latencies_ns": samples_ns.tolist()},
    )


if __name__ == "__main__":
    main()
