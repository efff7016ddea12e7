"""Running code that may fail in a process that must not end.

An exception that reaches a master's loop ends the master, and its workers with it.  So all code
beside that loop, ours or the user's, runs inside a Guard.
"""

import os
import traceback
from contextlib import suppress
from types import TracebackType
from typing import Protocol


class Log(Protocol):
    """The log of a Guard: gunicorn's Logger, or one of `logging`."""

    def error(self, msg: str, *args: object) -> None:
        """Write one line."""

    def debug(self, msg: str, *args: object, exc_info: BaseException | None = None) -> None:
        """Write a traceback, if that level is wanted."""


class Guard:
    """A `with` block whose exceptions are logged in one line, after which the program goes on.

    The traceback is logged at level debug.  An exception for which `passes_through` is true is
    raised all the same.
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

        catch: the class of caught exceptions; Exception in a worker, which ends by SystemExit.
        passing: classes that are raised all the same.
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
    with suppress(Exception):  # a failing logger of the program
        log.error("%s: %s", what, in_one_line(error))
        log.debug("%s; the traceback:", what, exc_info=error)


def passes_through(error: BaseException, pid: int) -> bool:
    """Whether an exception from code that was begun in process `pid` must be raised further.

    KeyboardInterrupt is the user's wish to end.  And in a child that was forked inside of the block
    any exception leads to the child's end: if it were caught, there would be two masters.
    """
    return isinstance(error, KeyboardInterrupt) or os.getpid() != pid


def in_one_line(error: BaseException, *hidden: str) -> str:
    """Return an exception's message and place in one line.

    hidden: beginnings of file names that are useless as a place.
    """
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  # a failing __str__
        text = "(its message is unavailable)"
    told = f"{type(error).__name__}: {text}" if text else type(error).__name__
    last = traceback.extract_tb(error.__traceback__)[-1:]
    places = [frame for frame in last if not frame.filename.startswith(("<frozen", *hidden))]
    place = f" ({places[0].filename}, line {places[0].lineno})" if places else ""
    return " ".join((told + place).split())
