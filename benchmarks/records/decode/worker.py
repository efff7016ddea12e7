"""Worker: an array of objects from JSON, by one side. Parameters: side, rows, seconds."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.common import worker
from benchmarks.records.kinds import ours, peer, record_class
from benchmarks.records.measuring import (
    fastest_ns,
    forget_peak,
    peak_bytes,
    private_bytes,
    resident_bytes,
    soaked_up,
)

MIB = 2**20

FIELDS = {
    "id": "int",
    "customer": "str",
    "email": "str",
    "city": "str",
    "amount": "float",
    "quantity": "int",
    "paid": "bool",
    "note": "str | None",
}
"""Of each object, and their types."""

Decode = Callable[[str], Sequence[Any]]


def document(rows: int) -> str:
    """Return the text: orders, as a service would answer with them."""
    cities = ("Berlin", "Lagos", "Lima", "Osaka", "Pune")
    return json.dumps(
        [
            {
                "id": 100_000 + number,
                "customer": f"Customer {number}",
                "email": f"customer{number}@example.org",
                "city": cities[number % len(cities)],
                "amount": number * 7 % 10_000 / 100,
                "quantity": number % 9 + 1,
                "paid": number % 3 > 0,
                "note": None if number % 4 else f"ring twice, floor {number % 11}",
            }
            for number in range(rows)
        ]
    )


def decoder(side: str) -> Decode:
    """Return what a side decodes with, everything imported."""
    if side == "shared dict":
        hook = ours("shared_dict")
        return lambda text: json.loads(text, object_pairs_hook=hook)
    if side == "Record":
        from_rows: Callable[[Any], list[Any]] = record_class(FIELDS).from_rows
        return lambda text: from_rows(json.loads(text))
    if side == "Record hook":
        hook = record_class(FIELDS).from_row
        return lambda text: json.loads(text, object_hook=hook)
    if side == "msgspec":
        msgspec = peer("msgspec")
        types = {"int": int, "str": str, "float": float, "bool": bool, "str | None": str | None}
        fields = [(name, types[annotation]) for name, annotation in FIELDS.items()]
        decode: Decode = msgspec.json.Decoder(
            list[msgspec.defstruct("Row", fields, gc=False)]  # type: ignore[misc]
        ).decode
        return decode
    if side == "msgspec dict":
        made: Decode = peer("msgspec").json.Decoder(list[dict[str, Any]]).decode
        return made
    return json.loads


def main() -> None:
    """Measure one side: memory with the first decoding of the process, then time."""
    parameters = worker.begin()
    text = document(parameters["rows"])
    decode = decoder(parameters["side"])
    decode(document(1))
    soaked = soaked_up()
    before, resident = private_bytes(), resident_bytes()
    forget_peak()
    kept = decode(text)
    figures = {
        "json_mib": (private_bytes() - before) / MIB,
        "json_peak_mib": (peak_bytes() - resident) / MIB,
    }
    if len(kept) != parameters["rows"]:
        raise SystemExit(f"{len(kept)} of {parameters['rows']} objects came back")
    del kept, soaked
    (taken,) = fastest_ns([lambda: decode(text)], parameters["seconds"])
    worker.finish(parameters, {"rate": taken / 1e9, "figures": figures})


if __name__ == "__main__":
    main()
