"""Examinations for the tests of the report: one with everything, and odd ones made of it."""

# ruff: noqa: ANN401 (JSON)
import copy
from collections.abc import Callable
from typing import Any

MIB = 1 << 20

HOSTILE = (
    "</script><script>globalThis.hit = 1</script>",
    "</style></title></svg><img src=http://127.0.0.1:9/x onerror=globalThis.hit=1>",
    "\"' onmouseover='globalThis.hit=1' x=\"",
    "&lt;b&gt; &amp; &#60;",
    "<!-- ]]> -->",
    "\x1b[2J\x1b]0;title\x07\r\n\t\x00\x7f\x9b",
    "a\u202egnp.exe\u2066\u200f\ufeff\u2028\u2029\u00ad",
    "\ud800 lone \udfff",
    "\U0001f40d \u4e2d\u6587\u540d\u524d e\u0301",
    "`code` javascript:hit() {{x}} ${x} %s",
)


def _rows(*rows: tuple[str, int, int]) -> list[dict[str, Any]]:
    return [{"name": name, "objects": count, "size_bytes": size} for name, count, size in rows]


def _cycle(kind: str, variable: str, what: str, size_bytes: int, **more: Any) -> dict[str, Any]:
    cause = {
        "kind": kind,
        "place": {"file": "/srv/shop/orders.py", "line": 20, "function": "Order.parse"},
        "variable": variable,
        "what": what,
        "advice": f"do something about {variable}",
        "edges": [
            {"source": "frame of Order.parse()", "name": variable, "closing": True},
            {"source": what, "name": "", "closing": False},
            {"source": "traceback", "name": "tb_frame", "closing": False},
        ][: 3 if kind == "exception" else 2],
    }
    counts = {"count": 3, "objects": 15, "kept_objects": 0, "kept_bytes": 0}
    return {"cause": {**cause, **more}, "size_bytes": size_bytes, **counts}


def _resident() -> dict[str, Any]:
    parts = {"live_objects": 620, "arena_free": 190, "c_heap_top": 60, "code": 24, "odd_part": 6}
    return {
        "rss_bytes": 900 * MIB,
        "pause_ns": 31_000_000,
        "notes": ["the heaps of threads were busy"],
        "parts": [
            {
                "name": name,
                "resident_bytes": size * MIB,
                "count": 12,
                "files": [{"name": "libc.so", "size_bytes": MIB}] if name == "code" else [],
            }
            for name, size in parts.items()
        ],
        "arenas": {
            "count": 40,
            "mostly_free": 17,
            "fullness": [9, 0, 3, 1, 2, 5, 0, 0, 8, 12],
            "unknown": "",
        },
        "pins": [
            {
                "type": "weakref.ReferenceType",
                "objects": 3811,
                "size_bytes": 300_000,
                "held_bytes": 160 * MIB,
                "place": "arenas",
                "holder": "module shop.signals -> RECEIVERS (dict)",
            }
        ],
        "verdict": [
            {
                "kind": "arenas",
                "size_bytes": 190 * MIB,
                "remedy": "run it under another allocator",
                "command": "cpythonplus run --malloc jemalloc app.py",
                "frees_bytes": 190 * MIB,
            }
        ],
    }


def _census() -> dict[str, Any]:
    packages = ("shop.models", "django.db", "json", "redis.client", "asyncio")
    owners = [
        (f"dict of {packages[n % 5]}.Class{n}", 1000 * (80 - n), (80 - n) * 200_000)
        for n in range(80)
    ]
    return {
        "objects": sum(count for _, count, _ in owners),
        "size_bytes": sum(size for _, _, size in owners),
        "frozen_objects": 120_345,
        "immortal_objects": 8_123,
        "pause_ns": 412_000_000,
        "extra_bytes": 5 * MIB,
        "by_owner": _rows(*owners),
        "by_type": _rows(("dict", 5000, 90 * MIB), ("str", 4000, 60 * MIB), ("shop.A", 9, 512)),
        "by_module": _rows(("builtins", 9000, 150 * MIB), ("shop", 9, 512)),
        "by_size_class": _rows(("16", 10, 160), ("32", 1000, 32_000)),
    }


def _key_sharing() -> dict[str, Any]:
    lost = {"type": "shop.Order", "instances": 400_000, "size_bytes": 70 * MIB}
    lost |= {
        "inline": 1,
        "split": 2,
        "combined": 399_997,
        "cost_bytes": 31 * MIB,
        "cause": "vars() was read",
        "remedy": "do not call vars()",
    }
    large = {"kind": "dict", "holder": "module shop.SEEN", "entries": 12, "capacity": 1_398_101}
    large |= {"size_bytes": 42 * MIB, "could_be_bytes": 464}
    counts = {"oversized_count": 1, "oversized_bytes": 42 * MIB}
    gain = {"what": "dict with id, price", "count": 90_000, "holder": "shop.rows[]"}
    gain |= {"made_at": "/srv/shop.py:12", "size_bytes": 23 * MIB, "saves_bytes": 11 * MIB}
    gain |= {"shared_bytes": 12 * MIB, "record_bytes": 8 * MIB, "compact_bytes": None}
    gain |= {"change": "rows = list(memory.share_keys(rows))"}
    return {"lost": [lost], "oversized": [large], "gains": [gain], **counts}


def _caches() -> dict[str, Any]:
    row = {"name": "lru_cache of shop.price", "entries": 128, "size_bytes": 20 * MIB}
    row |= {"clear": "shop.price.cache_clear()", "worth_it": True, "note": "of the last 128"}
    fixed = {"name": "docstrings", "objects": 15_000, "size_bytes": 8 * MIB, "note": "-OO"}
    return {"rows": [row, row | {"name": "re", "worth_it": False}], "fixed": [fixed]}


def _samples() -> list[dict[str, Any]]:
    return [
        {
            "t_s": 2.0 * n,
            "rss_bytes": (400 + 6 * n) * MIB,
            "parts": [
                {"name": "live_objects", "resident_bytes": (250 + 5 * n) * MIB},
                {"name": "arena_free", "resident_bytes": 60 * MIB},
            ],
            "gil": {"wait_ns": 10_000_000 * n * n},
            "growth": _rows(("dict of shop.models.Order", 1000 * n, 5 * MIB * n)),
        }
        for n in range(30)
    ]


def everything() -> dict[str, Any]:
    """Return an examination that has all parts."""
    hoard: dict[str, Any] = {"exception": "TimeoutError"}
    hoard["place"] = {"file": "api.py", "line": 88, "function": "fetch"}
    hoard |= {"holder": "shop.FAILED[]", "count": 310, "frames": 2480, "objects": 90_000}
    hoard |= {"size_bytes": 44 * MIB}
    return {
        "target": {
            "pid": 4711,
            "command_line": "gunicorn: worker [shop.wsgi]",
            "python": "3.13.0",
            "when": "2026-11-21 22:40:05",
            "rss_bytes": 900 * MIB,
        },
        "resident": _resident(),
        "census": _census(),
        "cycles": {
            "seconds": 12.5,
            "collections": 41,
            "cycles": [
                _cycle("exception", "last", "OSError", 70 * MIB),
                _cycle("exception", "self.errors[]", "ValueError", 19_000),
                _cycle("closure", "walk", "function walk", 2 * MIB),
                _cycle("class", "Form", "class Form", 120_000),
                _cycle("other", "Child.parent", "Parent.children[] -> Child.parent", 30_000),
            ],
            "hoards": [hoard],
        },
        "exceptions": {"hoards": [hoard]},
        "caches": _caches(),
        "key_sharing": _key_sharing(),
        "gil": {"scheduled": True, "switches": 5, "batch": {"waits": {"p99_ns": 52_000}}},
        "threads": {"error": "the feature is off"},
        "workers": {"workers": [{"pid": 7, "rss_bytes": 300 * MIB, "state": "idle"}]},
        "samples": _samples(),
    }


def changed(value: Any, change: Callable[[str], str]) -> Any:
    """Return a copy with all texts in it changed, but for the names of fields."""
    if isinstance(value, dict):
        return {name: changed(each, change) for name, each in value.items()}
    if isinstance(value, list):
        return [changed(each, change) for each in value]
    return change(value) if isinstance(value, str) else copy.copy(value)


def hostile() -> dict[str, Any]:
    """Return one whose names are made to get out of where they are written."""
    counter = iter(range(1_000_000))

    def change(text: str) -> str:
        return f"{text[:3]}{HOSTILE[next(counter) % len(HOSTILE)]}"

    found: dict[str, Any] = changed(everything(), change)
    found["workers"] = {f"{text}_bytes": 5 for text in HOSTILE}
    for row, kind in zip(
        found["cycles"]["cycles"], ("exception", "closure", "other"), strict=False
    ):
        row["cause"]["kind"] = kind
    return found
