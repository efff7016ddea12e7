"""RQ: ``rq worker --worker-class cpythonplus.prefork.rq.Worker``.

RQ forks a process for each job, its work horse, and ends it by `os._exit`.  This worker prepares
itself before the first one, and again only within the option prepare_again; a horse neither loads
nor copies modules that it finds loaded.
"""

from typing import TYPE_CHECKING

import rq

from cpythonplus._base.switch import skipped
from cpythonplus.prefork._engine import Engine
from cpythonplus.prefork._options import read

if TYPE_CHECKING:
    from collections.abc import Callable

    from rq.job import Job
    from rq.queue import Queue

__all__ = ["Worker"]


class Worker(rq.Worker):  # type: ignore[misc,unused-ignore]  # Any where RQ is not installed
    """A worker whose work horses share its memory.

    The options come from the environment, see `options.Options`, and are read when the first job
    comes.  The GIL is scheduled and the locks are patched in the worker itself: a horse inherits
    that, and lives for one job only.
    """

    warm_up: "Callable[[], object] | None" = None
    """Called once before the first fork; set it in a subclass, with ``staticmethod``."""

    _engine: Engine | None = None

    def fork_work_horse(self, job: "Job", queue: "Queue") -> None:
        """Prepare if that is worth it, then fork."""
        if not skipped(__name__):
            self._prepare()
        super().fork_work_horse(job, queue)

    def main_work_horse(self, job: "Job", queue: "Queue") -> None:
        """Be a work horse, without the connections of this worker's warm-up."""
        if self._engine is not None:
            self._engine.cut_connections()
        super().main_work_horse(job, queue)

    def _prepare(self) -> None:
        if self._engine is None:
            own = {} if self.warm_up is None else {"warm_up": self.warm_up}
            self._engine = Engine(read("RQ", own))
            self._engine.activate()
        self._engine.before_fork()
