"""The suite `records`."""

from benchmarks.common.catalogue import Suite
from benchmarks.common.engine import Settings

SUITE = Suite(
    "records",
    "rows as dicts with shared keys and as records, compact dicts: bytes, speed, JSON",
    full=Settings(3, 0.5),
    quick=Settings(1, 0.02, rows=20_000),
    counts={"rows": "rows in one process where very many are made; no case makes more"},
)
