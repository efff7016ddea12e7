"""Requests to a mold for a worker: the master follows each in steps, and never waits long.

A mold may be stopped by SIGSTOP, and the user's pre_fork may take its time.  The master goes on
hearing its signals meanwhile.
"""

from __future__ import annotations

import errno
import os
import signal
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any

from cpythonplus.prefork._limits.children import terminate

if TYPE_CHECKING:
    from cpythonplus.prefork._board.channel import Channel

_SOON_S = 1.0
_ANSWER_S = 30.0
_HOOK_S = 300.0  # of the user's: pre_fork
_DESCRIPTORS = 2  # of a worker: its file and its line


class ForkError(Exception):
    """A mold could not make a worker, and is given up.  The message is the reason."""


@dataclass(slots=True)
class Fork:
    """A request to a mold for a worker.

    found: its number, and the descriptors of its file and its line, as soon as the mold tells them.
    limit_s: how long the mold may take before it is given up.
    """

    worker: Any
    asked_at: float
    limit_s: float = _ANSWER_S
    found: list[tuple[int, list[int]]] = field(default_factory=list)

    def hear(self, line: Channel) -> bool:
        """Take the mold's messages; return whether it is done with this worker.

        Waits in the first second only: later the master looks again when it has done other things.
        Raises ForkError or TimeoutError if the mold is to blame, and OSError if the system has too
        little for another worker now.
        """
        soon, age = self.asked_at + _SOON_S, str(self.worker.age)
        while (message := line.receive(max(soon - monotonic(), 0.001))) is not None:
            words, descriptors = message
            if words[0] == "worker":
                self.found.append((int(words[1]), descriptors))
                if len(descriptors) != _DESCRIPTORS:
                    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            elif words[0] == "failed":
                raise ForkError(" ".join(words[1:]))
            elif words[:2] == ["later", age]:
                raise OSError(" ".join(words[2:]))
            elif words[:2] == ["begun", age]:
                self.limit_s = _HOOK_S
            elif words[:2] == ["forked", age]:
                return True
        if monotonic() > self.asked_at + self.limit_s:
            raise TimeoutError(f"no worker came within {self.limit_s:.0f} s")
        return False

    def drop(self) -> None:
        """Kill a worker that would serve without being managed."""
        while self.found:
            pid, descriptors = self.found.pop()
            for each in descriptors:
                os.close(each)
            terminate(pid, signal.SIGKILL)
