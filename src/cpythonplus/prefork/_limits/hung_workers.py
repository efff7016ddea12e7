"""Logging the place where a worker hangs, before its master kills it for its silence.

A worker that hangs inside of C runs no Python code, not even the handler of the signal that is sent
to it, so that the log has no reason.  Its replacement hangs likewise, for ever.  The master may
read its children's memory, and reads their stacks.

A worker with hard limits notes each check of them on the board, once a second.  The master ends a
worker that does not.
"""

from contextlib import suppress
from time import monotonic_ns
from typing import Any

from cpythonplus.prefork._blame.sharing import private_bytes
from cpythonplus.prefork._fork import native_threads
from cpythonplus.prefork._options import Options

_SILENT_NS = 3 * 10**9
_TURN_NS = 10**9


class HungWorkers:
    """The workers of a master that hung before their first answer, one after another."""

    def __init__(self) -> None:
        self._in_a_row = 0
        """The number that hung at one place since a worker last answered."""
        self._place = ""
        self._seen: dict[int, tuple[int, int]] = {}  # last check, and when it was seen

    def look(self, log: Any, pid: int, *, what: str, served: bool, enough: int) -> None:  # noqa: ANN401
        """Log the library that worker `pid` is in.

        what: "hangs", or before its first answer "hangs as it starts", for example.  served:
        whether any worker has answered.  enough: the number in a row that is worth another line.
        """
        threads = native_threads.threads_of(pid)
        # The main thread serves requests, or waits for those that do.
        threads.sort(key=lambda each: each.tid != pid)
        library = next((each.path for each in threads if each.library), "")
        where = f"in {library}" if library else "in Python or the C library"
        log.warning("worker %d %s, %s", pid, what, where)
        # A worker that is only slow to start, on a busy machine, is in no library.
        before, self._place = self._place, "" if served or what == "hangs" else f"{what}, {where}"
        self._in_a_row = self._in_a_row + 1 if self._place == before else 1
        if self._place and self._in_a_row % enough == 0:
            log.error(
                "each of the last %d workers %s, and new ones will:"
                " threads or locks from before the fork are missing in them. Set OMP_NUM_THREADS=1"
                " if that is OpenMP; else do without the warm-up, or load the library in a"
                " post_fork hook.",
                self._in_a_row,
                self._place,
            )

    def passed(self, pid: int, looked_ns: int, options: Options) -> str:
        """Return the hard limit that a worker has exceeded without checking it, or "".

        looked_ns: the time of its last check, 0 if it need not check.
        """
        silent_ns = monotonic_ns() - looked_ns
        if not looked_ns or silent_ns < _SILENT_NS:
            self._seen.pop(pid, None)
            return ""
        # All workers, and perhaps this process, may have been stopped: then they need a moment to
        # check.
        seen_ns, at_ns = self._seen.setdefault(pid, (looked_ns, monotonic_ns()))
        if seen_ns != looked_ns:
            del self._seen[pid]
        elif monotonic_ns() - at_ns >= _TURN_NS:
            if 0 < options.request_timeout < (silent_ns - _SILENT_NS) / 1e9:
                return "request_timeout"
            with suppress(OSError, RuntimeError):
                if 0 < options.hard_private_memory < private_bytes(pid):
                    return "hard_private_memory"
        return ""
