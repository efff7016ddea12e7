"""Naming the threads that no worker will have, and starting some of them again.

A fork copies one thread.  The work of the others is not done in a worker, and a lock that one of
them held stays locked.  Before each fork OpenMP's threads are ended (`openmp`), and the remaining
ones are named in the log, each kind once.

Some come back in a worker by themselves, since their library has a fork handler, or looks at
its pid: OpenBLAS, OpenTelemetry, datadog, trytond.  Some are started again here, when the worker
next needs them:

    ThreadPoolExecutor  it would count on its lost threads, and never run its jobs
    ProcessPoolExecutor, multiprocessing's pools
                        their threads hand the jobs out; a server's worker gets processes of its
                        own.  Not a child of any other program: that may be a process of the pool
    QueueListener       no thread would take records out of its queue; not if that is one of
                        multiprocessing, whose records the parent's thread takes
    sentry_sdk          its next thread would miss the wake-up: a lost one still waits

The parent does their pending work, so it is dropped in the worker.

APScheduler is not started again: its jobs run in the parent, and would run once more for each
worker.
"""

import queue
import re
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from cpythonplus.prefork._fork import native_threads, openmp, pools
from cpythonplus.prefork._fork.native_threads import Thread
from cpythonplus.prefork._guarding import Guard

_COME_BACK = re.compile(
    r"lib(scipy_)?openblas.*|libomp\b.*|libiomp5\b.*|OtelBatch.*|OtelPeriodic.*|DogStatsd_.*"
)
"""Libraries of C and names of Python's threads that have fork handlers."""
_STARTED_AGAIN = {("trytond.status", "dumper")}
"""Functions of threads, with their modules, that are started again if the pid is a new one."""


def comes_back(thread: Thread) -> bool:
    """Whether a thread's library handles forks, so that a child has the threads that it needs."""
    name = thread.name if thread.is_python else thread.library
    return is_ours(thread) or _COME_BACK.fullmatch(name) is not None


def is_ours(thread: Thread) -> bool:
    """Whether it is one of this package's own threads: a child has those that it needs."""
    return thread.name.startswith("cpythonplus")


def lost() -> list[Thread]:
    """Return the threads of this process that no child has, neither by themselves nor renewed."""
    restarted = _restarted(processes=True)
    return [
        each
        for each in native_threads.threads_of()
        if not comes_back(each) and each.tid not in restarted
    ]


class LostThreads:
    """The threads of this process that were named already; made and used in the parent.

    processes: whether workers get new processes for the parent's pools of processes.
    """

    def __init__(self) -> None:
        self.processes = False
        self._told: set[str] = set()

    def end(self, log: Any, advice: str | None) -> None:  # noqa: ANN401  # what a Guard has
        """End OpenMP's threads, then name the remaining ones, each kind once; raises nothing.

        advice: the remedy for a thread that no worker will have; None: no thread is named.
        """
        unable: list[str] = []
        with Guard(log, "ending the threads of OpenMP before the fork"):
            unable = openmp.pause()
        with Guard(log, "looking for threads that no worker will have"):
            if advice is None:
                return
            self._tell(log, advice, native_threads.threads_of(), unable)

    def _tell(self, log: Any, advice: str, threads: list[Thread], unable: list[str]) -> None:  # noqa: ANN401
        for path in unable:
            if path not in self._told and any(each.path == path for each in threads):
                self._told.add(path)
                log.warning(
                    "the threads of OpenMP cannot be ended before the fork, and a worker that"
                    " computes with it waits for ever: %s is older than OpenMP 5.0. Set"
                    " OMP_NUM_THREADS=1, or do not warm up what computes.",
                    path,
                )
        restarted = _restarted(processes=self.processes)
        kinds: Counter[str] = Counter()
        back: Counter[str] = Counter()
        for each in threads:
            if is_ours(each):
                continue
            text = each.name if each.is_python else f"{each.name} ({each.library or 'native'})"
            (back if each.tid in restarted or comes_back(each) else kinds)[text] += 1
        lost, harmless = self._new(kinds), self._new(back)
        if lost:
            log.warning(
                "threads of the master: %s. No worker will have them, and a lock that such a"
                " thread holds when a worker is forked stays locked in that worker. %s",
                lost,
                advice,
            )
        if harmless:
            log.info("threads of the master that each worker starts again: %s", harmless)

    def _new(self, kinds: Counter[str]) -> str:
        """Return the kinds that were not named yet; a pool's threads differ in their numbers."""
        groups: dict[str, list[str]] = {}
        counts: Counter[str] = Counter()
        for text, count in kinds.items():
            kind = re.sub(r"\d+", "0", text)
            groups.setdefault(kind, []).append(text)
            counts[kind] += count
        new = [kind for kind in groups if kind not in self._told]
        self._told.update(new)
        told = [(groups[kind][0], counts[kind]) for kind in new]
        return ", ".join(text if count == 1 else f"{count} like {text}" for text, count in told)


# ---- libraries: the threads of their objects, and how to renew these ----------------------------


def _executors_threads(executor: Any) -> list[Any]:  # noqa: ANN401
    return [] if executor._shutdown else list(executor._threads)  # noqa: SLF001


def _renew_executor(executor: Any) -> None:  # noqa: ANN401
    executor._shutdown_lock = threading.Lock()  # noqa: SLF001
    executor._work_queue = queue.SimpleQueue()  # noqa: SLF001
    executor._idle_semaphore = threading.Semaphore(0)  # noqa: SLF001
    executor._threads = set()  # noqa: SLF001


def _process_executors_threads(executor: Any) -> list[Any]:  # noqa: ANN401
    manager = executor._executor_manager_thread  # noqa: SLF001
    if manager is None or executor._shutdown_thread:  # noqa: SLF001
        return []
    feeder = executor._call_queue._thread  # noqa: SLF001
    return [manager] if feeder is None else [manager, feeder]


def _renew_process_executor(executor: Any) -> None:  # noqa: ANN401
    options: dict[str, Any] = {}
    if getattr(executor, "_max_tasks_per_child", None) is not None:
        options["max_tasks_per_child"] = executor._max_tasks_per_child  # noqa: SLF001
    sys.modules["concurrent.futures.process"].ProcessPoolExecutor.__init__(
        executor,
        executor._max_workers,  # noqa: SLF001
        executor._mp_context,  # noqa: SLF001
        executor._initializer,  # noqa: SLF001
        executor._initargs,  # noqa: SLF001
        **options,
    )


def _pools_threads(pool: Any) -> list[Any]:  # noqa: ANN401
    handlers = [pool._worker_handler, pool._task_handler, pool._result_handler]  # noqa: SLF001
    threads = [*handlers, *(each for each in pool._pool if hasattr(each, "native_id"))]  # noqa: SLF001
    return [each for each in threads if each.native_id is not None]


def _renew_pool(pool: Any) -> None:  # noqa: ANN401
    module: Any = sys.modules["multiprocessing.pool"]
    common = (pool._processes, pool._initializer, pool._initargs)  # noqa: SLF001
    if isinstance(pool, module.ThreadPool):
        module.ThreadPool.__init__(pool, *common)
    else:
        module.Pool.__init__(pool, *common, pool._maxtasksperchild, pool._ctx)  # noqa: SLF001


def _listeners_threads(listener: Any) -> list[Any]:  # noqa: ANN401
    thread = listener._thread  # noqa: SLF001
    return [thread] if thread is not None and _is_local(listener.queue) else []


def _is_local(it: object) -> bool:
    return type(it).__module__ in {"queue", "_queue"} or type(it).__module__.startswith(
        "cpythonplus."
    )


def _renew_listener(listener: Any) -> None:  # noqa: ANN401
    it = listener.queue
    if hasattr(it, "all_tasks_done"):
        # A lost thread may hold its lock or wait in it.
        it.mutex = threading.Lock()
        for name in ("not_empty", "not_full", "all_tasks_done"):
            setattr(it, name, threading.Condition(it.mutex))
        it.unfinished_tasks = 0
    with suppress(queue.Empty):
        while True:
            it.get_nowait()
    listener._thread = None  # noqa: SLF001  # from 3.14 on start() refuses else
    listener.start()


def _sentrys_threads(worker: Any) -> list[Any]:  # noqa: ANN401
    thread = worker._thread  # noqa: SLF001
    return [] if thread is None else [thread]


def _renew_sentry(worker: Any) -> None:  # noqa: ANN401
    type(worker).__init__(worker, worker._queue.maxsize)  # noqa: SLF001


_LIBRARIES: dict[str, tuple[str, str, Callable[[Any], list[Any]], Callable[[Any], object]]] = {
    "executors": (
        "concurrent.futures.thread",
        "ThreadPoolExecutor",
        _executors_threads,
        _renew_executor,
    ),
    "process executors": (
        "concurrent.futures.process",
        "ProcessPoolExecutor",
        _process_executors_threads,
        _renew_process_executor,
    ),
    "pools of multiprocessing": ("multiprocessing.pool", "Pool", _pools_threads, _renew_pool),
    "QueueListener": ("logging.handlers", "QueueListener", _listeners_threads, _renew_listener),
    "Sentry": ("sentry_sdk.worker", "BackgroundWorker", _sentrys_threads, _renew_sentry),
}
_OF_PROCESSES = {"process executors", "pools of multiprocessing"}
_renewing: list[tuple[str, weakref.ref[Any]]] = []
"""Objects with threads in the parent, by library: a worker renews them."""


def _restarted(*, processes: bool) -> set[int | None]:
    """Note the objects that a worker has to renew; return the numbers of their threads."""
    targets = {each.native_id: getattr(each, "_target", None) for each in threading.enumerate()}
    tids = {
        tid
        for tid, target in targets.items()
        if (getattr(target, "__module__", ""), getattr(target, "__name__", "")) in _STARTED_AGAIN
    }
    _renewing.clear()
    for name, (module, class_name, threads, _) in _LIBRARIES.items():
        if name in _OF_PROCESSES and not processes:
            continue
        for each in pools.instances(name, getattr(sys.modules.get(module), class_name, None)):
            with suppress(AttributeError):  # not initialised, or an unknown version of the library
                found = [thread.native_id for thread in threads(each) if thread.is_alive()]
                tids.update(found)
                if found:
                    _renewing.append((name, weakref.ref(each)))
    return tids


def restart(log: Any) -> None:  # noqa: ANN401  # what a Guard has
    """In a worker, renew the objects that had threads in the parent; raises nothing."""
    while _renewing:
        name, reference = _renewing.pop()
        each = reference()
        with Guard(log, f"starting the threads of {name} again", catch=Exception):
            if each is not None:
                _LIBRARIES[name][3](each)
