"""celery's prefork pool: ``import cpythonplus.prefork.celery`` in the module of the app.

Signals do it: `worker_before_create_process` in the parent, `worker_process_init` in the child.
The children need nothing for their end: billiard ends them by `os._exit`.

Recycling by memory.  After each task celery compares the *highest resident* memory that a child
ever had, including shared pages, with `worker_max_memory_per_child`.  A child that was forked from
a large parent is above the limit from the start, and is replaced after each task.  So that setting
counts private memory here, as `prefork_max_private_memory` does; the lower one holds.

That comparison is the only point in billiard's loop where a child may end without losing a task.
So the function that it calls, `billiard.pool.mem_rss`, is replaced by one for private memory.  It
is billiard's private function, so its use is verified first.
"""

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from billiard import pool as billiard_pool
from celery import signals
from celery.concurrency import get_implementation
from celery.concurrency.prefork import TaskPool

from cpythonplus._base.switch import skipped
from cpythonplus._base.text.sizes import format_size
from cpythonplus.prefork._blame.sharing import private_bytes
from cpythonplus.prefork._engine import Engine
from cpythonplus.prefork._options import OPTIONS, log, read

if TYPE_CHECKING:
    from celery.worker import WorkController

    from cpythonplus.prefork._routes.counting import Request

__all__: list[str] = []

# billiard's unit.
_KIB = 1024
_LIMIT, _METRICS = (
    next(each for each in OPTIONS if each.name == name)
    for name in ("max_private_memory", "metrics")
)


def _asks_for_memory() -> bool:
    """Whether billiard's loop calls `mem_rss` after a task, as far as its code shows."""
    loop = getattr(getattr(billiard_pool, "Worker", None), "workloop", None)
    names = getattr(getattr(loop, "__code__", None), "co_names", ())
    return callable(getattr(billiard_pool, "mem_rss", None)) and "mem_rss" in names


def _limit_memory(worker: "WorkController", engine: Engine) -> None:
    """Have the pool that `worker` is about to make recycle by private memory, if a limit is set."""
    own = int(worker.max_memory_per_child or 0) * _KIB
    limit = min(filter(None, (own, engine.options.max_private_memory)), default=0)
    if not limit:
        return
    if not _asks_for_memory():
        log.warning(
            "this version of billiard measures memory differently: max_private_memory has no effect"
        )
        return
    if own:
        log.warning(  # celery's log is set up later, and would not have a line at level info
            "worker_max_memory_per_child (%s) counts private memory, without what children share;"
            " prefork_max_private_memory = 0 has it count resident memory",
            format_size(own),
        )
    engine.options = replace(engine.options, max_private_memory=limit)
    limit_kib = max(1, limit // _KIB)

    def used_kib() -> int:
        """Return the number that billiard compares with its limit after each task, in the child."""
        # Never 0, which would mean unknown.
        return max(private_bytes() // _KIB, limit_kib + 1) if engine.is_due() else 1

    billiard_pool.mem_rss = used_kib
    worker.max_memory_per_child = limit_kib


# ---- signals ------------------------------------------------------------------------------------
# celery calls receivers with keyword arguments, more of them in each version, and keeps only weak
# references to them: so they are functions of this module.

_engine: Engine | None = None  # in a worker with a prefork pool, and in its children
_running: "dict[object, Request]" = {}  # the runs of tasks in this child, by their ids


def _on_worker_init(sender: "WorkController", **_: object) -> None:
    """Read the settings: the configuration and the tasks are complete, no pool exists yet."""
    global _engine  # noqa: PLW0603
    configured = {each.name: sender.app.conf.get(each.setting) for each in OPTIONS}
    given = {name: value for name, value in configured.items() if value is not None}
    if not _has_prefork_pool(sender):
        if given.get("metrics", os.environ.get(_METRICS.variable)):
            log.warning("no metrics: they are those of the prefork pool's children")
        return
    _engine = Engine(read("celery", given))
    if _engine.options.metrics is not None:
        _engine.begin_routes(tasks=True)
    if _is_limited(given):
        _limit_memory(sender, _engine)
    if not sender.use_eventloop:
        # The pool for transports that are not asynchronous sends no signal before it forks.
        _engine.before_fork()


def _is_limited(given: dict[str, object]) -> bool:
    """Whether private memory counts: not if the limit was set to 0."""
    asked = given.get(_LIMIT.name, os.environ.get(_LIMIT.variable))
    if asked is None:
        return True
    try:
        return bool(_LIMIT.read(asked))
    except ValueError:  # logged already, and ignored
        return True


def _has_prefork_pool(worker: "WorkController") -> bool:
    pool = get_implementation(worker.pool_cls)
    return isinstance(pool, type) and issubclass(pool, TaskPool)


def _on_before_create_process(**_: object) -> None:
    if _engine is not None:
        _engine.before_fork()


def _on_worker_process_init(**_: object) -> None:
    if _engine is not None and os.getpid() != _engine.pid:
        _engine.start_worker()


def _on_worker_process_shutdown(**_: object) -> None:
    if _engine is not None and os.getpid() != _engine.pid:
        _engine.write_last()  # billiard ends a child without its exit functions


def _on_task_prerun(task_id: object = None, sender: object = None, **_: object) -> None:
    if _engine is not None and _engine.routes is not None:
        _running[task_id] = _engine.routes.begin_task(str(getattr(sender, "name", "?")))


def _on_task_postrun(task_id: object = None, **_: object) -> None:
    if _engine is None:
        return
    run = _running.pop(task_id, None)
    if run is not None:
        run.end()
    _engine.count_request()


if not skipped(__name__):
    signals.worker_init.connect(_on_worker_init)
    signals.worker_before_create_process.connect(_on_before_create_process)
    signals.worker_process_init.connect(_on_worker_process_init)
    signals.worker_process_shutdown.connect(_on_worker_process_shutdown)
    signals.task_prerun.connect(_on_task_prerun)
    signals.task_postrun.connect(_on_task_postrun)
