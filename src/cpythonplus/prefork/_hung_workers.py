"""Saying what a worker hangs in, before its master kills it for having been silent too long.

A worker that hangs inside of C runs no Python, not even the handler of the signal that is sent to
it, so that nothing says why.  Another one takes its place and hangs likewise, for ever.  The master
may read its children's memory, and looks at their stacks.
"""

from __future__ import annotations

from typing import Any

from cpythonplus.prefork import _native_threads as native_threads

__all__ = ["HungWorkers"]


class HungWorkers:
    """The workers of a master that hung in their first request, one after another."""

    def __init__(self) -> None:
        self.in_a_row = 0
        """How many, since a worker has last served a request."""

    def look(self, log: Any, pid: int, *, served: bool, first: bool, enough: int) -> None:  # noqa: ANN401
        """Log the library that worker `pid` is in.

        served: whether another worker has answered a request.  first: whether this one has not.
        enough: after so many in a row one more line says so.
        """
        threads = native_threads.threads_of(pid)
        # The main thread serves requests, or waits for those that do.
        threads.sort(key=lambda each: each.tid != pid)
        library = next((each.path for each in threads if each.library), "")
        where = f"in {library}" if library else "in Python or the C library"
        what = "hangs in its first request" if first else "hangs"
        log.warning("worker %d %s, %s", pid, what, where)
        self.in_a_row = 0 if served or not first else self.in_a_row + 1
        if self.in_a_row and self.in_a_row % enough == 0:
            log.error(
                "the last %d workers have hung in their first request, %s, and new ones will:"
                " threads or locks from before the fork are missing in them. Set OMP_NUM_THREADS=1"
                " if that is OpenMP; else do without the warm-up, or load the library in a"
                " post_fork hook.",
                self.in_a_row,
                where,
            )
