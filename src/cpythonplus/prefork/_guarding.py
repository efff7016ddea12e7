"""Running what may fail in a process that must not end of it.

A master ends of an exception that reaches its loop, and its workers with it.  So what runs in it
beside that loop, ours or the user's, runs inside of a Guard.
"""

import os
import traceback
from contextlib import suppress
from types import TracebackType
from typing import Protocol

__all__ = ["Guard", "in_one_line", "passes_through", "tell"]


class Log(Protocol):
    """What a Guard writes to: gunicorn's Logger, or one of `logging`."""

    def error(self, msg: str, *args: object) -> None:
        """Write one line."""

    def debug(self, msg: str, *args: object, exc_info: BaseException | None = None) -> None:
        """Write a traceback, where somebody wants to see it."""


class Guard:
    """A `with` block whose exceptions are logged in one line, after which the program goes on.

    The traceback is logged at level debug.  What `passes_through` names is raised all the same.
    """

    def __init__(
        self,
        log: Log,
        what: str,
        *,
        catch: type[BaseException] = BaseException,
        passing: tuple[type[BaseException], ...] = (),
    ) -> None:
        """Guard `what`, which begins the line.

        catch: the class of what is caught; Exception in a worker, which ends by SystemExit.
        passing: what is raised although it is of that class.
        """
        self._log = log
        self._what = what
        self._catch = catch
        self._passing = passing
        self._pid = 0

    def __enter__(self) -> None:
        self._pid = os.getpid()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> bool:
        if error is None or not isinstance(error, self._catch):
            return False
        if isinstance(error, self._passing) or passes_through(error, self._pid):
            return False
        tell(self._log, f"{self._what} failed", error)
        return True


def tell(log: Log, what: str, error: BaseException) -> None:
    """Log `what` and the error in one line, and the traceback at level debug; raises nothing."""
    with suppress(Exception):  # somebody's class of loggers
        log.error("%s: %s", what, in_one_line(error))
        log.debug("%s; the traceback:", what, exc_info=error)


def passes_through(error: BaseException, pid: int) -> bool:
    """Whether an exception must be raised on, that came out of something begun in process `pid`.

    KeyboardInterrupt is the user who wants an end.  And in a child that was forked inside of the
    block any exception is on its way to the child's end: caught, there would be two masters.
    """
    return isinstance(error, KeyboardInterrupt) or os.getpid() != pid


def in_one_line(error: BaseException, *hidden: str) -> str:
    """Return what an exception says and where it comes from, in one line.

    hidden: beginnings of names of files that would tell nothing as a place.
    """
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  # somebody's __str__
        text = "(its message is unavailable)"
    told = f"{type(error).__name__}: {text}" if text else type(error).__name__
    last = traceback.extract_tb(error.__traceback__)[-1:]
    places = [frame for frame in last if not frame.filename.startswith(("<frozen", *hidden))]
    place = f" ({places[0].filename}, line {places[0].lineno})" if places else ""
    return " ".join((told + place).split())
