"""Dask: ``dask worker --preload cpythonplus.dask``, or ``client.register_plugin(Plugin())``.

A worker's event loop answers the scheduler and other workers in one thread while tasks compute in
others.  With its GIL scheduled the loop goes before tasks in Python code.
"""

import logging
from typing import Any

from distributed import WorkerPlugin

from cpythonplus import gil, threads
from cpythonplus._base.errors import UnsupportedPlatform
from cpythonplus._base.switch import skipped
from cpythonplus.gil._limits import SHARE, read_share
from cpythonplus.gil._stall_watch import watch_stalls
from cpythonplus.gil._stalls import Stall
from cpythonplus.memory import allocators

__all__ = ["Plugin", "dask_setup"]

_log = logging.getLogger("distributed.worker")


class Plugin(WorkerPlugin):  # type: ignore[misc,unused-ignore]  # Any where dask is not installed
    """Schedules a worker's GIL, with native locks, and tells stalls in the worker's log.

    job_share: the least share of the GIL for tasks that compute, as `25%`; default: 5 %.
    stalls_ms: tell lines that block others for that long, 0: none.  trim: give free memory of the C
    heap back to the kernel while tasks come and go.  growth: attribute the growth of memory to
    tasks, as `memory.attribute_dask` does.

    The scheduler gets the numbers with each heartbeat: `client.scheduler_info()` has them in the
    `metrics` of each worker, as `cpythonplus`.  A worker keeps all of it when the plugin is
    unregistered, but for these.
    """

    name = "cpythonplus"

    def __init__(
        self,
        *,
        job_share: str | None = None,
        stalls_ms: int = 100,
        trim: bool = True,
        growth: bool = False,
    ) -> None:
        """Raises ValueError for a share that is no percentage from 0 to 90."""
        self._policy = gil.Policy(**{} if job_share is None else {SHARE: read_share(job_share)})  # type: ignore[arg-type]
        self._stalls_ms, self._trim, self._growth = stalls_ms, trim, growth
        self._stalls = [0, 0]
        self._attribution: Any = None

    def setup(self, worker: Any) -> None:  # noqa: ANN401  # distributed.Worker
        """Begin in a worker."""
        if skipped(__name__):
            return
        try:
            gil.install(self._policy)
            threads.patch()
        except UnsupportedPlatform as error:
            _log.warning("cpythonplus: %s", error)
        if self._stalls_ms:
            watch_stalls(self._stalls_ms, _log.warning, self._count)
        if self._trim:
            allocators.trim_regularly()
        if self._growth:
            from cpythonplus.memory._attribution.dask_plugin import Attribution

            self._attribution = Attribution()
            self._attribution.setup(worker)
        worker.metrics["cpythonplus"] = self._metrics

    def teardown(self, worker: Any) -> None:  # noqa: ANN401
        """Leave the heartbeats alone, and attribute no more."""
        worker.metrics.pop("cpythonplus", None)
        if self._attribution is not None:
            self._attribution.teardown(worker)
            self._attribution = None

    def transition(self, key: Any, start: str, finish: str, **more: Any) -> None:  # noqa: ANN401
        """Attribute a task, if that is wanted."""
        if self._attribution is not None:
            self._attribution.transition(key, start, finish, **more)

    def _count(self, stall: Stall) -> None:
        self._stalls[0] += 1
        self._stalls[1] += stall.hold_ns

    def _metrics(self, _worker: object) -> dict[str, float]:
        found = gil.statistics()
        waits = (found.interactive.waits, found.batch.waits)
        return {
            "gil_waits": sum(each.count for each in waits),
            "gil_wait_seconds": sum(each.total_ns for each in waits) / 1e9,
            "interactive_gil_wait_p99_seconds": found.interactive.waits.p99_ns / 1e9,
            "stalls": self._stalls[0],
            "stall_seconds": self._stalls[1] / 1e9,
        }


def dask_setup(worker: Any) -> Any:  # noqa: ANN401  # distributed.Worker; an awaitable
    """Begin in a worker that was started with `--preload cpythonplus.dask`."""
    return worker.plugin_add(Plugin())
