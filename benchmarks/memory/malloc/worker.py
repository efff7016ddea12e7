"""Worker: any script, whose memory is looked at when it ends, and some seconds later.

Called with its parameters as JSON, then the script and its arguments. Parameters: kind (an
allocator, "" for stock), idle_s, limit_s, result (a file).
"""

# On the way of the script: what is imported here is part of its memory.
# ruff: noqa: PTH100, PTH120, PTH123

import atexit
import json
import os
import signal
import sys
import time
from math import ceil
from types import ModuleType
from typing import Any


def main() -> None:
    """Run the script as `__main__`; its memory is read by a function that is called at exit."""
    parameters: dict[str, Any] = json.loads(sys.argv[1])
    signal.alarm(ceil(parameters["limit_s"]))
    del sys.argv[:2]
    if parameters["kind"] == "glibc-tuned":
        from cpythonplus.memory import allocators

        allocators.trim_regularly()
    script = sys.argv[0]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    with open(script, "rb") as file:
        code = compile(file.read(), script, "exec")
    # The script's own: what stands in this module must not be in its way, nor go with it.
    sys.modules["__main__"] = module = ModuleType("__main__")
    module.__file__ = script
    # First, so it is called last, with all that the script's globals still hold.
    atexit.register(look, parameters, os.getpid(), time.perf_counter())
    exec(code, vars(module))  # noqa: S102  # the user's own script


def look(parameters: dict[str, Any], pid: int, began: float) -> None:
    """Read the memory now and some seconds later, and leave the result."""
    seconds = time.perf_counter() - began
    if os.getpid() != pid:  # the end of a child that the script has forked
        return
    peak = field("/proc/self/status", "VmHWM:")
    end = field("/proc/self/smaps_rollup", "Rss:")
    time.sleep(parameters["idle_s"])
    later = field("/proc/self/smaps_rollup", "Rss:")
    found = {"seconds": seconds, "peak_bytes": peak, "end_bytes": end, "later_bytes": later}
    with open(parameters["result"], "w", encoding="utf-8") as file:
        json.dump(found, file)


def field(path: str, name: str) -> int:
    """Return a field that the kernel tells in KiB, in bytes."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))


if __name__ == "__main__":
    main()
