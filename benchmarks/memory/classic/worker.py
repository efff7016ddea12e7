"""Worker: takes memory, frees it but for a little. Parameters: what, mib, idle_s, trim, kind."""

import time
from typing import Any

from benchmarks.common import worker
from benchmarks.common.worker import field

MIB = 1024 * 1024
STRING_BYTES = {"strings": 600, "survivors": 100}
"""Above and below what Python's own allocator takes for itself."""
ONE_IN = 20_000


def resident_mib() -> float:
    """Return the resident memory of this process, exactly."""
    return field("/proc/self/smaps_rollup", "Rss:") / MIB


def make(what: str, mib: float) -> tuple[list[str], list[str]]:
    """Return a list of strings, and what is going to be left of it."""
    length = STRING_BYTES[what]
    big = [str(i).ljust(length) for i in range(int(mib * MIB) // (length + 49))]
    return big, ["y" * length] if what == "strings" else big[::ONE_IN]


def trim() -> None:
    """Give memory back; imported by the side that does, only."""
    from cpythonplus import memory

    memory.trim()


def main() -> None:
    """Measure one side; all figures are MiB, `returned` is percent of what was taken."""
    parameters: dict[str, Any] = worker.begin()
    if parameters["kind"] == "glibc-tuned":
        from cpythonplus.memory import allocators

        allocators.trim_regularly()
    elif parameters["trim"]:
        trim()  # what it needs itself is not what is measured
    before = resident_mib()
    big, left = make(parameters["what"], parameters["mib"])
    full = resident_mib()
    del big
    after = resident_mib()
    if parameters["trim"]:
        trim()
    else:
        time.sleep(parameters["idle_s"])
    later = resident_mib()
    del left
    figures = {
        "full_mib": full,
        "after_mib": after,
        "returned": 100 * (full - later) / (full - before),
    }
    worker.finish(parameters, {"rate": later, "figures": figures})


if __name__ == "__main__":
    main()
