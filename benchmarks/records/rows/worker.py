"""Worker: rows of one side. Parameters: kind (bytes, speed, many), side, fields, rows, seconds."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from itertools import repeat
from typing import Any

from benchmarks.common import worker
from benchmarks.records.kinds import Loops, field_names, peer
from benchmarks.records.measuring import (
    fastest_ns,
    private_bytes,
    resident_bytes,
    soaked_up,
    taken_ns,
)

BATCH = 1000
"""How many rows a loop of `speed` goes through; they stay in the cache."""

GIB = 2**30


def values(fields: int) -> tuple[int, ...]:
    """Return what a row holds: numbers that the interpreter has anyway, so that none is counted."""
    return tuple(range(1, fields + 1))


# ---- bytes --------------------------------------------------------------------------------------


def row_bytes(parameters: dict[str, Any]) -> dict[str, Any]:
    """Measure how much the process grows with each row, and what getsizeof says of one."""
    count, fields = parameters["rows"], parameters["fields"]
    if parameters["side"] == "polars":
        return frame_bytes(count, fields)
    fill = Loops(parameters["side"], fields).fill()
    kept: list[Any] = [None] * count
    fill(kept, repeat(values(fields), 1))  # what the first row brings along
    soaked = soaked_up()
    before = private_bytes()
    fill(kept, repeat(values(fields), count))
    grown = private_bytes() - before
    del soaked
    return {"rate": grown / count, "figures": {"sizeof_bytes": sys.getsizeof(kept[-1])}}


def frame(count: int, fields: int) -> Any:  # noqa: ANN401 - a DataFrame
    """Return a DataFrame of as many rows, of the same numbers."""
    polars = peer("polars")
    columns = zip(field_names(fields), values(fields), strict=True)
    return polars.DataFrame([polars.Series(name, [value] * count) for name, value in columns])


def frame_bytes(count: int, fields: int) -> dict[str, Any]:
    """Measure the same for a DataFrame, whose own estimate stands in for getsizeof."""
    frame(1, fields)
    soaked = soaked_up()
    before = private_bytes()
    kept = frame(count, fields)
    grown = private_bytes() - before
    del soaked
    return {"rate": grown / count, "figures": {"sizeof_bytes": kept.estimated_size() / count}}


# ---- speed --------------------------------------------------------------------------------------


def speed(parameters: dict[str, Any]) -> dict[str, Any]:
    """Measure one loop, in ns for each row made, each field read, each pair of name and value."""
    what, fields, seconds = parameters["what"], parameters["fields"], parameters["seconds"]
    given = [values(fields)] * BATCH
    if parameters["side"] == "polars":
        call, each = frame_loop(what, given, fields)
        return {"rate": fastest_ns([call], seconds)[0] / BATCH / each}
    loops = Loops(parameters["side"], fields)
    build = loops.build()
    if what == "build":
        # Of a dict also as the other mappings are made, who have no display of their own.
        zipped = loops.build("dict(zip(names, v))")
        own, other = fastest_ns([lambda: build(given), lambda: zipped(given)], seconds)
        figures = {"zip_ns": other / BATCH} if parameters["side"] == "dict" else {}
        return {"rate": own / BATCH, "figures": figures}
    rows = build(given)
    loop = {"field": loops.fields, "miss": loops.misses, "items": loops.items}[what]()
    (taken,) = fastest_ns([lambda: loop(rows)], seconds)
    return {"rate": taken / BATCH / fields}


def frame_loop(
    what: str, given: list[tuple[int, ...]], fields: int
) -> tuple[Callable[[], object], int]:
    """Return the loop of a DataFrame, and through how many things of a row it goes."""
    polars = peer("polars")
    schema = dict.fromkeys(field_names(fields), polars.Int64)

    def build() -> object:
        return polars.DataFrame(given, schema=schema, orient="row")

    made: Any = build()

    def items() -> None:
        for row in made.iter_rows(named=True):
            for _name, _value in row.items():
                pass

    return (build, 1) if what == "build" else (items, fields)


# ---- very many ----------------------------------------------------------------------------------


def many(parameters: dict[str, Any]) -> dict[str, Any]:
    """Make very many rows with the collector on, as programs do; measure the whole process."""
    count, fields = parameters["rows"], parameters["fields"]
    fill = Loops(parameters["side"], fields).fill()
    gc.enable()
    began = time.perf_counter()
    kept: list[Any] = [None] * count
    fill(kept, repeat(values(fields), count))
    build_s = time.perf_counter() - began
    rate = resident_bytes() / GIB
    figures = {"build_s": build_s, "full_collection_ms": taken_ns(gc.collect) / 1e6}
    return {"rate": rate, "figures": figures}


MEASURED: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "bytes": row_bytes,
    "speed": speed,
    "many": many,
}


def main() -> None:
    """Measure one side."""
    parameters = worker.begin()
    worker.finish(parameters, MEASURED[parameters["kind"]](parameters))


if __name__ == "__main__":
    main()
