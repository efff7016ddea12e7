"""Signals that reach a worker before it has handlers of its own.

From the fork on a worker has its master's handlers, which note a signal for a loop that does not
run here: a worker that is told to stop in its first moments would go on, and the server would stop
only after its time limit.

    master   block       the mask of the forked process holds the signals back
    worker   keep        handlers of ours, which remember; the mask as it was
             hand_over   the worker's own handlers, which get what was remembered

Rejected: blocking them all the way.  Processes that the user's code starts meanwhile, side-cars of
monitoring agents for example, inherit the mask, through exec too, and could not be stopped.
"""

import os
import signal
from collections.abc import Callable
from types import FrameType
from typing import Any

_STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)


class EarlySignals:
    """The signal handling of one master for its workers, with a copy in each of them.

    Only for the main thread.
    """

    def __init__(self) -> None:
        self._mask: set[int] = set()  # before block
        self._seen: list[int] = []
        self._handlers: dict[int, Any] = {}  # replaced by keep

    def block(self) -> None:
        """Hold the signals back, right before the fork; the master puts its mask back after it."""
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)

    def keep(self) -> None:
        """Remember signals, in the worker, and unblock them for processes that start later."""
        self._handlers = {number: signal.signal(number, self._remember) for number in _STOPPING}
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def hand_over(self, init_signals: Callable[[], object]) -> None:
        """Have the worker set up its handlers, and send it the signals that came before."""
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
        try:
            init_signals()
            for number, handler in self._handlers.items():
                if signal.getsignal(number) == self._remember:
                    signal.signal(number, handler)
            for number in self._seen:
                os.kill(os.getpid(), number)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def _remember(self, number: int, _: FrameType | None) -> None:
        self._seen.append(number)
