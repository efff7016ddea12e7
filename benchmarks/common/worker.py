"""The frame of a worker: a script that a benchmark runs as a child, stock or plus.

Imports as little as possible: what a worker imports is part of what is measured.
"""

import gc
import json
import signal
import sys
from math import ceil
from pathlib import Path
from typing import Any


def begin() -> dict[str, Any]:
    """Return the parameters of this worker and bound its life.

    `signal.alarm` with the default action ends the process without any Python code, at no cost
    until then. The garbage collector is off: its pauses are not what is measured.
    """
    parameters: dict[str, Any] = json.loads(sys.argv[1])
    signal.alarm(max(1, ceil(parameters["limit_s"])))
    gc.disable()
    return parameters


def scheduled() -> bool | None:
    """Return whether cpythonplus schedules the GIL of this process; None: it has none."""
    if "t" in sys.abiflags:
        return None
    # Looked up, not imported: on the stock side the package's code must not even be loaded.
    gil = sys.modules.get("cpythonplus.gil")
    return bool(gil is not None and gil.active())


def patched() -> bool:
    """Return whether cpythonplus replaced this process's `threading` and `queue`."""
    threads = sys.modules.get("cpythonplus.threads")
    return bool(threads is not None and threads.patched())


def finish(parameters: dict[str, Any], result: dict[str, Any]) -> None:
    """Leave `result` where the benchmark looks for it."""
    result["scheduled"] = scheduled()
    result["patched"] = patched()
    Path(parameters["result"]).write_text(json.dumps(result), encoding="utf-8")


def field(path: str, name: str) -> int:
    """Return a field of a file in /proc that the kernel tells in KiB, in bytes."""
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    return next(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith(name))
