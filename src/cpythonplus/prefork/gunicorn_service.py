"""What gunicorn's master and workers do differently, as hooks that go beside the user's own.

    master   setup         our hooks beside those of the configuration, our gthread worker
             pre_exec      USR2: hand the port of the metrics on
             pre_fork      once: board, port of the metrics, warm-up; prepare, within the budget
    worker   post_fork     forget what is the master's, schedule the GIL
             post_worker_init   metrics, watch the private memory
             worker_exit   say why, fast exit
    master   child_exit    count why it ended

One Service for each process, made when this module is imported: a master has one gunicorn.
"""

# What the hooks are given differs from one version of gunicorn and class of worker to the next.
# ruff: noqa: ANN401

from __future__ import annotations

import functools
import importlib
import logging
import mmap
import os
import signal
import socket
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn

import gunicorn
from gunicorn.errors import HaltServer

import cpythonplus
from cpythonplus import prefork
from cpythonplus.base.sizes import format_size, parse_size
from cpythonplus.prefork import metrics, warming
from cpythonplus.prefork.activation import (
    gil_statistics,
    rehearse_gil,
    schedule_gil,
    use_native_locks,
)
from cpythonplus.prefork.board import Board, BoardError, MasterRow
from cpythonplus.prefork.early_signals import EarlySignals
from cpythonplus.prefork.exiting import is_awaited
from cpythonplus.prefork.guarding import Guard, in_one_line
from cpythonplus.prefork.gunicorn_rehearsal import rehearse_requests
from cpythonplus.prefork.importing import settle_imports
from cpythonplus.prefork.preparing import Budget, statistics
from cpythonplus.prefork.recycling import Recycler
from cpythonplus.prefork.sharing import process_memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from cpythonplus.prefork.board import Slot

__all__ = [
    "SERVICE",
    "Options",
    "Service",
    "memory_limit",
    "metrics_place",
    "prepare_again_size",
]

_LOOK_INTERVAL_S = 1.0
_DESCRIBE_INTERVAL_S = 5.0
_SPARE_SLOTS = 16
# HUP and TTIN can ask for more workers than there were at the start; a slot takes 230 bytes.
_LEAST_SLOTS = 128
_FAILED_STATUS = 1
_IMPORT_LIMIT_S = 1.0
# What their functions do when the SystemExit of a worker passes is nothing.
_SERVERS_FILES = tuple(
    os.path.dirname(package.__file__ or "") + os.sep  # noqa: PTH120
    for package in (gunicorn, cpythonplus)
)
_PORT_VARIABLE = "CPYTHONPLUS_METRICS_FD"
"""Tells the new master after USR2: descriptor, comma, what options.metrics was."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the user chose.

    max_private_memory: bytes of private memory from which on a worker is replaced, None: never.
    warm_up: paths and callables, see `warming.check`.  metrics: a path, or an address with a port.
    prepare_again: bytes that may be made immortal after the first time, see `preparing.Budget`.
    """

    max_private_memory: int | None = None
    warm_up: tuple[str | Callable[[], object], ...] = ()
    metrics: str | None = None
    prepare_again: int = 0
    immortal: bool = True
    fill_pools: bool = True
    fast_exit: bool = True
    gil: bool = True
    threads: bool = True


def memory_limit(value: object) -> int | None:
    """Return a size in bytes; ValueError for what is none, or is nothing."""
    if value is None:
        return None
    size = value if isinstance(value, int) else parse_size(str(value))
    if size <= 0:
        raise ValueError(f"a memory limit must be above zero, not {value!r}")
    return size


def prepare_again_size(value: object) -> int:
    """Return a size in bytes, 0 for nothing; ValueError for what is none."""
    size = value if isinstance(value, int) else parse_size(str(value))
    if size < 0:
        raise ValueError(f"a size cannot be negative, as {value!r} is")
    return size


def metrics_place(value: object) -> str | None:
    """Return a path, or an address with a port; ValueError for what is neither."""
    if value is None:
        return None
    text = str(value).strip()
    port = text.rpartition(":")[2]
    if not text.startswith("/") and not (port.isdecimal() and int(port) <= 65535):  # noqa: PLR2004
        raise ValueError(
            f"{text!r} is no place for metrics: give a path like /metrics,"
            " or a port like 9100 or 127.0.0.1:9100"
        )
    return text


class Service:
    """The hooks, each a method of its name, and what they know.

    The master writes everything but what `post_fork` and later hooks write in the worker's copy.
    """

    def __init__(self) -> None:
        self.options = Options()
        self.board: Board | None = None
        self.threads_problem = ""
        self.min_age_s = 10.0
        """For how long, in seconds, a worker is not replaced, whatever it has of memory."""
        self._opened = False
        self._user = os.geteuid()  # the master's
        self._budget = Budget()
        self._told_spent = False
        self._describes_at = 0.0
        self._reloaded_age = 0
        self._signals = EarlySignals()
        self._statuses: dict[int, int] = {}
        self._flags: dict[int, mmap.mmap] = {}  # by worker age; byte 0: it is leaving
        self._endless_imports: set[str] = set()
        self._port: socket.socket | None = None
        self._listens_at: str | None = None  # what options.metrics was then
        # In a worker:
        self._slot: Slot | None = None
        self._recycler: Recycler | None = None
        self._asgi_requests = 0
        self._waits_at = 0.0
        self._noted = ""
        self._look_failed = False  # then not again: each time would be a line in the log

    def patch_threads(self) -> None:
        """Use the native locks, or not: before the application is imported."""
        self.threads_problem = use_native_locks(wanted=self.options.threads)

    def on_starting(self, server: Any) -> None:
        """Settle what the whole life of the master needs."""
        log = logging.getLogger("cpythonplus.prefork")
        if not log.hasHandlers():
            log.handlers = server.log.error_log.handlers
        if "-m" in sys.orig_argv[:-1] and sys.argv[0].endswith("__main__.py"):
            # USR2 would start the file, whose folder would come first on sys.path.
            server.START_CTX["args"] = [sys.executable, *sys.orig_argv[1:]]

    def on_reload(self, server: Any) -> None:
        """After HUP: a new configuration, and workers that are all going to be replaced."""
        self._reloaded_age = server.worker_age
        for step in (self._listen, self._warm_up) if self._opened else ():
            try:
                # What runs is better than nothing.
                with Guard(server.log, "HUP", passing=(HaltServer,)):
                    step(server)
            except HaltServer as error:
                server.log.error("%s", error.reason)  # noqa: TRY400  # the reason says it all

    def nworkers_changed(self, server: Any, new: int, old: int | None) -> None:
        """Nothing: the user's hook is guarded."""

    @property
    def runs(self) -> bool:
        """Whether workers have been forked: from then on nothing but the user ends the master."""
        return self._opened

    def pre_fork(self, server: Any, worker: Any) -> None:
        """Make the master ready to be forked."""
        if not self._opened:
            self._open(server)
            self._opened = True
        with Guard(server.log, "preparing the fork"):
            flag = self._flags[worker.age] = mmap.mmap(-1, mmap.PAGESIZE)
            flag[0] = 0
            self._prepare(server)
            self.describe()
            # The last of all: a message about the worker that ended may have set a thread to work.
            for name in settle_imports(_IMPORT_LIMIT_S, endless=self._endless_imports):
                self._endless_imports.add(name)
                server.log.warning("workers are forked while a thread imports %s", name)
        worker.init_signals = functools.partial(self._signals.hand_over, worker.init_signals)
        # Not before: what the user's hook or the warm-up starts would be deaf for ever.
        self._signals.block()

    def _open(self, server: Any) -> None:
        """Do what comes once, before the first fork; HaltServer where it cannot be done."""
        if self.threads_problem:
            server.log.warning("native locks are not used: %s", self.threads_problem)
        with Guard(server.log, "making the workers' board"):
            self.board = Board(max(2 * server.num_workers + _SPARE_SLOTS, _LEAST_SLOTS))
        self._budget = Budget(self.options.prepare_again)
        with Guard(server.log, "importing what names of hosts need"):
            # Else a thread that connects for the first time would, and be forked in between.
            importlib.import_module("encodings.idna")
        with Guard(server.log, "opening the port of the metrics", passing=(HaltServer,)):
            self._listen(server)
        with Guard(server.log, "rehearsing the GIL's scheduling"):
            if self.options.gil:
                rehearse_gil()
        with Guard(server.log, "the warm-up", passing=(HaltServer,)):
            self._warm_up(server)

    def _listen(self, server: Any) -> None:
        """Open the port of the metrics, if one was chosen; HaltServer where it cannot be had."""
        where = self.options.metrics
        if where == self._listens_at:
            return
        port = None
        if where is not None and not where.startswith("/"):
            try:
                port = _inherited(server, where) or metrics.listen(where)
            except (OSError, ValueError) as error:
                raise HaltServer(f"metrics: {error}", _FAILED_STATUS) from None
        if self._port is not None:
            self._port.close()  # the old workers have it still
        self._port, self._listens_at = port, where

    def pre_exec(self, server: Any) -> None:
        """USR2: let the new master have the port of the metrics, which cannot be opened twice.

        Called in the process that is going to be the new master.
        """
        if self._port is not None:
            self._port.set_inheritable(True)
            server.cfg.env_orig[_PORT_VARIABLE] = f"{self._port.fileno()},{self._listens_at}"

    def _warm_up(self, server: Any) -> None:
        if not server.cfg.preload_app:
            server.log.warning("the workers share no memory: preload_app is off")
            return
        try:
            answers = warming.warm_up(self.options.warm_up, server.app.wsgi())
        except warming.Failed as error:
            server.log.debug("the warm-up failed here:", exc_info=error.__cause__ or error)
            raise HaltServer(str(error), _FAILED_STATUS) from None
        with Guard(server.log, "rehearsing requests"):
            rehearse_requests(server.cfg)
        for answer in answers:
            (server.log.info if answer.good else server.log.warning)("%s", answer)
        names = [each.name for each in threading.enumerate() if each is not threading.main_thread()]
        if names:
            server.log.warning(
                "threads of the master: %s. No worker will have them, and what such a thread has"
                " locked when a worker is forked stays locked in that worker. Start them in a"
                " post_fork hook, or when they are first needed; or stop them in a pre_fork hook.",
                ", ".join(names),
            )

    def _prepare(self, server: Any) -> None:
        # Not at every fork: it walks through the whole heap, and what is immortal is never freed.
        if not server.cfg.preload_app:
            return
        options, refused = self.options, statistics().refused
        report = self._budget.prepare(immortal=options.immortal, fill_pools=options.fill_pools)
        if report is not None:
            server.log.info("%s", report)
        elif statistics().refused > refused and not self._told_spent:
            self._told_spent = True
            server.log.info(
                "the master has grown since it was prepared, and is not prepared again: what is new"
                " is shared as without cpythonplus (--prepare-again)"
            )

    def describe(self) -> None:
        """Put the master's numbers on the board, now and then, if somebody can see them."""
        now = monotonic()
        if self.board is None or self.options.metrics is None or now < self._describes_at:
            return
        memory, done = None, statistics()
        with suppress(OSError, RuntimeError):  # not to be had here
            memory = process_memory(os.getpid())
        # A reading takes 1 ms for each 100 MB: a hundredth of the time at most.
        self._describes_at = now + max(_DESCRIBE_INTERVAL_S, 100 * (monotonic() - now))
        self.board.describe_master(
            MasterRow(
                prepares=done.prepares,
                refused=done.refused,
                prepare_ns=int(done.seconds * 1e9),
                immortal_bytes=done.immortal_bytes,
                resident_bytes=memory.resident_bytes if memory else 0,
                private_bytes=memory.private_bytes if memory else 0,
                shared_bytes=memory.shared_bytes if memory else 0,
                proportional_bytes=memory.proportional_bytes if memory else 0,
            )
        )

    def look_at_the_dead(self, server: Any) -> None:
        """Note the statuses of workers that have ended, and leave them to be reaped."""
        for pid in list(server.WORKERS):
            with suppress(ChildProcessError):
                how = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if how is not None:
                    exited = how.si_code == os.CLD_EXITED
                    self._statuses[pid] = how.si_status << 8 if exited else how.si_status

    def leaving(self, server: Any) -> int:
        """Return how many workers serve old connections only, and are to be replaced already.

        At most as many as there should be workers.  Those beyond, the oldest, are told to hurry.
        """
        workers = sorted(server.WORKERS.items(), key=lambda item: item[1].age)
        # After HUP there is a full set of new workers: for an old one none is missing.
        leaving = [
            pid
            for pid, worker in workers
            if worker.age > self._reloaded_age and self._is_leaving(worker)
        ]
        beyond: int = max(len(leaving) - server.num_workers, 0)
        for pid in leaving[:beyond]:
            server.kill_worker(pid, signal.SIGTERM)
        return len(leaving) - beyond

    def _is_leaving(self, worker: Any) -> bool:
        flag = self._flags.get(worker.age)
        return flag is not None and flag[0] != 0

    def child_exit(self, server: Any, worker: Any) -> None:
        """Count why a worker ended."""
        del server
        flag = self._flags.pop(worker.age, None)
        if flag is not None:
            flag.close()
        # One that ended after the look, while others were reaped: if it left in good order it has
        # noted so, which wins over the status.
        status = self._statuses.pop(worker.pid, signal.SIGKILL)
        if self.board is None:
            return
        if worker.aborted:
            self.board.ended(worker.pid, "timeout")
        elif worker.age <= self._reloaded_age:
            self.board.ended(worker.pid, "reload")
        else:
            self.board.ended(worker.pid, status)

    # ---- in a worker ----------------------------------------------------------------------------

    def post_fork(self, server: Any, worker: Any) -> None:
        """Begin as a worker."""
        del server
        self._signals.keep()
        if self.options.fast_exit:
            prefork.child()
        if self.board is not None:
            try:
                self._slot = self.board.claim(os.getpid())
            except BoardError as error:
                worker.log.warning("this worker is not counted: %s", error)
        if self.options.gil:
            problem = schedule_gil()
            if problem:
                worker.log.warning("the GIL is not scheduled: %s", problem)

    def post_worker_init(self, worker: Any) -> None:
        """Watch over a worker whose application is there, and answer for the metrics."""
        self._add_metrics(worker)
        limit = self.options.max_private_memory
        if limit is None and self.options.metrics is not None and os.geteuid() != self._user:
            # After --user none may look at another one: each says itself what it has.
            limit = sys.maxsize
        if limit is not None and self.board is not None and self._slot is not None:
            self._recycler = Recycler(limit, self.board, min_age_s=self.min_age_s)
        if hasattr(worker, "on_draining"):
            worker.on_draining = functools.partial(self._announce, worker)
        if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            # uvicorn's: it catches the signal, serves to the end, restores what was there, and
            # raises it again. So the worker would die of it, without its hooks and atexit handlers.
            signal.signal(signal.SIGTERM, _end_well)
        config: Any = getattr(worker, "config", None)
        if getattr(config, "timeout_notify", 0) > _LOOK_INTERVAL_S:
            config.timeout_notify = _LOOK_INTERVAL_S
        beat = worker.notify

        def notify() -> None:
            beat()
            if self._look_failed:
                return
            try:
                self._look(worker)
            except Exception as error:  # noqa: BLE001  # it must not end for being watched
                self._look_failed = True
                worker.log.warning("this worker is no longer watched: %s", in_one_line(error))

        worker.notify = notify
        if self._slot is not None:
            self._slot.ready()

    def _add_metrics(self, worker: Any) -> None:
        """Put what answers for the metrics, and counts ASGI requests, around the application."""
        # gunicorn's own ASGI worker has it under this name.
        place = "asgi" if hasattr(worker, "asgi") else "wsgi"
        application = getattr(worker, place)
        asgi = _is_asgi_worker(worker) or warming.is_asgi(application)
        where, board = self.options.metrics, self.board
        if where is not None and board is not None:
            render = functools.partial(metrics.render, board, master_pid=worker.ppid)
            if not where.startswith("/"):
                if self._port is not None:
                    metrics.serve_in_thread(self._port, render)
            else:
                wrap: Any = metrics.asgi_middleware if asgi else metrics.wsgi_middleware
                application = wrap(application, where, render)
        setattr(worker, place, self._counted(application) if asgi else application)

    def _counted(self, application: Callable[..., Any]) -> Callable[..., Any]:
        """Count an ASGI application's requests: its worker does not."""

        async def counted(scope: dict[str, Any], receive: object, send: object) -> None:
            self._asgi_requests += scope["type"] == "http"
            await application(scope, receive, send)

        return counted

    def _look(self, worker: Any) -> None:
        """Put this worker's numbers on the board, and leave when there is too much memory."""
        if self._slot is not None:
            self._write(worker, self._slot)
        if self._recycler is not None and worker.alive and self._recycler.poll():
            limit = format_size(self.options.max_private_memory or 0)
            worker.log.info("Replacing this worker: more than %s of private memory", limit)
            self._note("private_memory")
            _leave(worker)

    def _write(self, worker: Any, slot: Slot) -> None:
        requests = self._requests(worker)
        if requests != slot.requests:
            slot.write(requests=requests)
        now = monotonic()
        if now >= self._waits_at:
            self._waits_at = now + _LOOK_INTERVAL_S
            waits, wait_ns = gil_statistics()
            slot.write(gil_waits=waits, gil_wait_ns=wait_ns)

    def _requests(self, worker: Any) -> int:
        return max(int(worker.nr), self._asgi_requests)

    def _note(self, reason: str) -> None:
        """Say why this worker leaves; the first reason counts."""
        if not self._noted and self._slot is not None:
            self._noted = reason
            self._slot.leaves(reason)

    def _announce(self, worker: Any) -> None:
        """Have this worker replaced while it serves its last connections."""
        flag = self._flags.get(worker.age)
        if flag is not None:
            flag[0] = 1
            with suppress(ProcessLookupError, PermissionError):
                # Wakes the master, which finds nobody dead and looks at its workers.
                os.kill(worker.ppid, signal.SIGCHLD)

    def worker_abort(self, worker: Any) -> None:
        """SIGABRT: the master has not heard of this worker for too long."""
        del worker
        self._note("timeout")

    def worker_exit(self, server: Any, worker: Any) -> None:
        """Say why this worker ends, and end it fast, if nobody up the stack waits for that.

        If somebody does, whose `finally` or `with` stands around the server, as coverage's does,
        the SystemExit goes its way.  `prefork.child` makes the end at its end light.
        """
        del server
        # gunicorn calls it in the master too, for a worker that has vanished.
        if worker.pid != os.getpid():
            return
        _ignore_further()
        error = sys.exc_info()[1]
        if not isinstance(error, SystemExit):
            return
        if self._slot is not None:
            self._waits_at = 0.0
            self._write(worker, self._slot)
        if self._requests(worker) >= worker.max_requests:
            self._note("max_requests")
        elif error.code in (None, 0):
            self._note("exit")
        if self.options.fast_exit and not is_awaited(sys._getframe(), harmless=_SERVERS_FILES):  # noqa: SLF001
            prefork.fast_exit(error.code)


SERVICE = Service()


def _inherited(server: Any, where: str) -> socket.socket | None:
    """Return the port that the old master had open before USR2, if that was `where`."""
    number, _, place = os.environ.pop(_PORT_VARIABLE, "").partition(",")
    if not server.master_pid or place != where:
        return None
    port = socket.socket(fileno=int(number))
    port.set_inheritable(False)
    return port


def _leave(worker: Any) -> None:
    """Have a worker finish what it has begun, and end."""
    from gunicorn.workers.sync import SyncWorker

    if isinstance(worker, SyncWorker):
        worker.alive = False
        # It may be about to wait for a connection.
        with suppress(BlockingIOError):
            os.write(worker.PIPE[1], b"1")
    elif hasattr(worker, "on_draining"):
        worker.alive = False
    else:
        # All others know what to do on it.
        os.kill(os.getpid(), signal.SIGTERM)


def _end_well(_signal: int, _frame: object) -> NoReturn:
    _ignore_further()
    raise SystemExit(0)


def _ignore_further() -> None:
    """Have SIGTERM not cut short what a worker that ends already still does.

    Not SIG_IGN: what its exit functions start would inherit that over an exec.
    """
    if signal.getsignal(signal.SIGTERM) is _end_well:
        signal.signal(signal.SIGTERM, lambda *_: None)


def _is_asgi_worker(worker: Any) -> bool:
    homes = {kind.__module__ for kind in type(worker).__mro__}
    return any(home.startswith(("uvicorn", "gunicorn.workers.gasgi")) for home in homes)
