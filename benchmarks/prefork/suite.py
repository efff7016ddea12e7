"""The suite `prefork`: it goes by requests, not by seconds."""

from benchmarks.common.catalogue import Suite
from benchmarks.common.engine import Settings

SUITE = Suite(
    "prefork",
    "what preforked workers share: a Django service under gunicorn, its memory, its end",
    full=Settings(3, 1.0),
    quick=Settings(1, 1.0, items=2000, requests=60),
    size="{0.items} items, {0.requests} requests a worker",
    counts={
        "items": "items in the catalogue",
        "requests": "requests for each worker in one measurement",
    },
    has_workers=True,
    unless_named=frozenset({"gc-off"}),
    plus="serve",
)
