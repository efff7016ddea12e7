"""Worker: one mapping, a dict or a CompactDict.

Parameters: kind (bytes, look_up, iterate, change, shrink), side, keys (str, int, dense), entries,
most (entries of all mappings of a `bytes` measurement), seconds.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.common import worker
from benchmarks.records.kinds import ours
from benchmarks.records.measuring import TURNS, fastest_ns, private_bytes, soaked_up, taken_ns

SEED = 2027
BITS = 40
"""Of the numbers that are keys: more than there are, so that they are spread."""
LOOKED_UP = 200_000
"""Look-ups in one loop at most."""
LOOP = 10_000
"""Look-ups in one loop at least: small mappings are gone through again and again."""
KEPT = 0.01
"""What stays where 99 % are deleted."""
MOST_MAPPINGS = 200_000

Make = Callable[..., Any]


def mapping(side: str) -> Make:
    """Return the type."""
    if side == "dict":
        return dict
    found: Make = ours("CompactDict")
    return found


def some_keys(kind: str, count: int) -> list[Any]:
    """Return as many different keys, the same in each run."""
    if kind == "dense":
        return list(range(count))
    numbers = random.Random(SEED).sample(range(2**BITS), count)  # noqa: S311 - no secret
    return [f"key{number}" for number in numbers] if kind == "str" else numbers


def filled(make: Make, keys: Sequence[Any]) -> Any:  # noqa: ANN401 - a mapping
    """Return a mapping that has grown by single insertions."""
    found = make()
    for key in keys:
        found[key] = None
    return found


# ---- bytes --------------------------------------------------------------------------------------


def sizes(make: Make, parameters: dict[str, Any]) -> dict[str, Any]:
    """Measure a mapping that was built at once, one that has grown, and the process."""
    entries = parameters["entries"]
    keys = some_keys(parameters["keys"], 2 * max(entries, 1))
    source = dict.fromkeys(keys[:entries])
    figures = {"rss_bytes": resident(make, source, parameters["most"])}
    figures["grown_bytes"], figures["grown_worst"] = growing(make, keys, entries)
    return {"rate": sys.getsizeof(make(source)), "figures": figures}


def growing(make: Make, keys: Sequence[Any], entries: int) -> tuple[float, float]:
    """Return the bytes of one that has grown to its size, and the most bytes an entry from there.

    keys: twice as many as entries; it grows on until it has them all.
    """
    table = filled(make, keys[:entries])
    grown = sys.getsizeof(table)
    most = grown / entries if entries else 0.0
    for size, key in enumerate(keys[entries:], entries + 1):
        table[key] = None
        most = max(most, sys.getsizeof(table) / size)
    return grown, most


def resident(make: Make, source: dict[Any, None], most: int) -> float:
    """Return how much the process grows with each that is built at once, of many."""
    count = max(1, min(MOST_MAPPINGS, most // max(len(source), 1)))
    kept: list[Any] = [None] * count
    soaked = soaked_up()
    before = private_bytes()
    for place in range(count):
        kept[place] = make(source)
    grown = private_bytes() - before
    del soaked
    return grown / count


# ---- speed --------------------------------------------------------------------------------------


def look_ups(make: Make, parameters: dict[str, Any]) -> dict[str, Any]:
    """Measure hits and misses; what the loop itself takes is not counted."""
    entries = parameters["entries"]
    both = some_keys(parameters["keys"], 2 * entries)
    keys, absent = both[:entries], both[entries:]
    table = filled(make, keys)
    rng = random.Random(SEED)  # noqa: S311 - no secret
    orders = {
        "": (rng.sample(keys, len(keys)), True),
        "hit_sequential_ns": (keys, True),
        "miss_ns": (rng.sample(absent, len(absent)), False),
        "miss_sequential_ns": (absent, False),
    }
    if parameters["keys"] == "str":
        # As keys that come from a file: equal, and not the same objects.
        orders["equal_ns"] = ([key[:3] + key[3:] for key in orders[""][0]], True)
    calls: list[Callable[[], object]] = []
    counts = []
    for order, hits in orders.values():
        asked = repeated(order)
        counts.append(len(asked))
        calls += [bare(asked), hit(table, asked) if hits else miss(table, asked)]
    taken = fastest_ns(calls, parameters["seconds"])
    each = [(taken[2 * place + 1] - taken[2 * place]) / count for place, count in enumerate(counts)]
    figures = dict(zip(orders, each, strict=True))
    return {"rate": figures.pop(""), "figures": figures}


def repeated(order: list[Any]) -> list[Any]:
    """Return keys for one loop, neither too few nor too many."""
    return (order * (LOOP // len(order) + 1))[: max(LOOP, min(len(order), LOOKED_UP))]


def bare(asked: list[Any]) -> Callable[[], object]:
    """Return the loop without a look-up."""

    def loop() -> None:
        for _key in asked:
            pass

    return loop


def hit(table: Any, asked: list[Any]) -> Callable[[], object]:  # noqa: ANN401 - a mapping
    """Return the loop with look-ups that find something."""

    def loop() -> None:
        for key in asked:
            table[key]

    return loop


def miss(table: Any, asked: list[Any]) -> Callable[[], object]:  # noqa: ANN401 - a mapping
    """Return the loop with look-ups that find nothing."""

    def loop() -> None:
        for key in asked:
            key in table  # noqa: B015 - that is what is measured

    return loop


def iterations(make: Make, parameters: dict[str, Any]) -> dict[str, Any]:
    """Measure going through keys, values and items."""
    keys = some_keys(parameters["keys"], parameters["entries"])
    table = filled(make, keys)
    times = LOOP // len(keys) + 1

    def over_keys() -> None:
        for _ in range(times):
            for _key in table:
                pass

    def over_values() -> None:
        for _ in range(times):
            for _value in table.values():
                pass

    def over_items() -> None:
        for _ in range(times):
            for _key, _value in table.items():
                pass

    taken = fastest_ns([over_keys, over_values, over_items], parameters["seconds"])
    each = [ns / times / len(keys) for ns in taken]
    return {"rate": each[0], "figures": {"values_ns": each[1], "items_ns": each[2]}}


def changes(make: Make, parameters: dict[str, Any]) -> dict[str, Any]:
    """Measure growing by single insertions, building at once, and deleting in another order."""
    keys = some_keys(parameters["keys"], parameters["entries"])
    source = dict.fromkeys(keys)
    times = LOOP // len(keys) + 1
    shuffled = random.Random(SEED).sample(keys, len(keys))  # noqa: S311 - no secret

    def insert() -> object:
        return [filled(make, keys) for _ in range(times)]

    def build() -> object:
        return [make(source) for _ in range(times)]

    def delete_from(tables: list[Any]) -> Callable[[], object]:
        def loop() -> None:
            for table in tables:
                for key in shuffled:
                    del table[key]

        return loop

    inserted, built = fastest_ns([insert, build], parameters["seconds"])
    # Each loop empties its own.
    deleted = min(taken_ns(delete_from([make(source) for _ in range(times)])) for _ in range(TURNS))
    count = times * len(keys)
    figures = {"built_ns": built / count, "deleted_ns": deleted / count}
    return {"rate": inserted / count, "figures": figures}


def shrinking(make: Make, parameters: dict[str, Any]) -> dict[str, Any]:
    """Measure what is left of a mapping from which 99 % are deleted, in percent of its peak."""
    keys = some_keys(parameters["keys"], parameters["entries"])
    deleted = random.Random(SEED).sample(keys, len(keys) - int(KEPT * len(keys)))  # noqa: S311
    soaked = soaked_up()
    before = private_bytes()
    table = filled(make, keys)
    peak, resident_peak = sys.getsizeof(table), private_bytes() - before
    for key in deleted:
        del table[key]
    left = max(0, private_bytes() - before)
    del soaked
    figures = {"rss_percent": 100 * left / resident_peak}
    return {"rate": 100 * sys.getsizeof(table) / peak, "figures": figures}


MEASURED: dict[str, Callable[[Make, dict[str, Any]], dict[str, Any]]] = {
    "bytes": sizes,
    "look_up": look_ups,
    "iterate": iterations,
    "change": changes,
    "shrink": shrinking,
}


def main() -> None:
    """Measure one side."""
    parameters = worker.begin()
    make = mapping(parameters["side"])
    worker.finish(parameters, MEASURED[parameters["kind"]](make, parameters))


if __name__ == "__main__":
    main()
