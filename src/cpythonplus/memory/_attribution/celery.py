"""Celery: a task is a span between two signals, in the process that executes it."""

from typing import Any

from cpythonplus.memory._attribution.recording import Span, refuse

_open: dict[object, Span] = {}
"""By the identifier of a task that is being executed."""


def attribute_celery(app: object = None) -> None:  # noqa: ARG001
    """Attribute the growth of workers to the names of Celery's tasks; once is enough.

    Call it in the module of the app, so that each worker does, whatever its pool. Each child of a
    prefork pool has figures of its own. app: tells readers the app; signals are those of all apps
    in a process. Raises ImportError without celery, UnsupportedPlatform without a GIL.
    """
    refuse()
    from celery import signals

    signals.task_prerun.connect(_begin, weak=False, dispatch_uid=__name__)
    signals.task_postrun.connect(_end, weak=False, dispatch_uid=__name__)
    signals.worker_process_init.connect(_forget, weak=False, dispatch_uid=__name__)


def _begin(*, task_id: object = None, task: Any = None, **_: object) -> None:  # noqa: ANN401
    _end(task_id=task_id)  # a broker may deliver a task again that is still being executed
    _open[task_id] = Span(str(getattr(task, "name", None) or "?"))


def _end(*, task_id: object = None, **_: object) -> None:
    span = _open.pop(task_id, None)
    if span is not None:
        span.end()


def _forget(**_: object) -> None:
    """Forget the parent's open spans, in a child of the pool."""
    _open.clear()
