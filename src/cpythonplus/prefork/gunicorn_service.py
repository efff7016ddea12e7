"""What gunicorn's master and workers do differently, as hooks that go beside the user's own.

    master   setup         our hooks beside those of the configuration, our gthread worker
             pre_exec      USR2: hand the port of the metrics on
             pre_fork      once: board, port of the metrics, warm-up; prepare, when it is worth it
    worker   post_fork     forget what is the master's, schedule the GIL
             post_worker_init   metrics, watch the private memory
             worker_exit   say why, fast exit
    master   child_exit    count why it ended

One Service for each process, made when this module is imported: a master has one gunicorn.

The way in is the Arbiter: gunicorn makes it after the configuration has been read, and `install`
puts ours in its place.  Rejected: offering the hooks as names for a configuration file.  A hook
that the file defines itself would take the place of ours, or lose its own to ours, without a word.
"""

# What the hooks are given differs from one version of gunicorn and class of worker to the next.
# ruff: noqa: ANN401

from __future__ import annotations

import functools
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

from gunicorn.app import base
from gunicorn.arbiter import Arbiter
from gunicorn.errors import HaltServer

from cpythonplus import prefork
from cpythonplus.base.sizes import format_size, parse_size
from cpythonplus.prefork import metrics, warming
from cpythonplus.prefork.activation import (
    gil_statistics,
    rehearse_gil,
    schedule_gil,
    use_native_locks,
)
from cpythonplus.prefork.board import Board, BoardError
from cpythonplus.prefork.gunicorn_rehearsal import rehearse_requests
from cpythonplus.prefork.recycling import Recycler

if TYPE_CHECKING:
    from collections.abc import Callable

    from gunicorn.app.base import BaseApplication
    from gunicorn.config import Config

    from cpythonplus.prefork.board import Slot

__all__ = [
    "HOOKS",
    "SERVICE",
    "Options",
    "Service",
    "compose",
    "install",
    "memory_limit",
    "metrics_place",
]

HOOKS = (
    "on_starting",
    "on_reload",
    "pre_exec",
    "pre_fork",
    "post_fork",
    "post_worker_init",
    "worker_abort",
    "worker_exit",
    "child_exit",
)
"""The hooks that we need; the user's come first where something of ours has to be the last."""

_THEIRS_FIRST = frozenset({"pre_fork", "post_worker_init", "worker_exit"})
_OURS = "_cpythonplus_hook"

_LOOK_INTERVAL_S = 1.0
_SPARE_SLOTS = 16
# HUP and TTIN can ask for more workers than there were at the start; a slot takes 230 bytes.
_LEAST_SLOTS = 128
_STOPPING = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGQUIT})
_FAILED_STATUS = 1
_PORT_VARIABLE = "CPYTHONPLUS_METRICS_FD"
"""Tells the new master after USR2: descriptor, comma, what options.metrics was."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the user chose.

    max_private_memory: bytes of private memory from which on a worker is replaced, None: never.
    warm_up: paths and callables, see `warming.check`.  metrics: a path, or an address with a port.
    """

    max_private_memory: int | None = None
    warm_up: tuple[str | Callable[[], object], ...] = ()
    metrics: str | None = None
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


class Overseer(Arbiter):
    """An Arbiter with our hooks, which sees how its workers end, and that some are leaving."""

    # Behind the property num_workers, whose setter calls the user's nworkers_changed.
    _num_workers: int
    _halting = False

    def setup(self, app: BaseApplication) -> None:
        """Take over a configuration, at the start and after HUP."""
        if app.cfg.reload:
            # The reloader has workers load new code: nothing may be loaded before.
            app.cfg.set("preload_app", False)  # noqa: FBT003  # gunicorn's
        super().setup(app)
        compose(self.cfg)
        gthread = sys.modules.get("gunicorn.workers.gthread")
        if gthread is not None and self.worker_class is gthread.ThreadWorker:
            from cpythonplus.prefork.gunicorn_workers import ThreadWorker

            self.worker_class = ThreadWorker

    def spawn_worker(self) -> Any:
        """Fork a worker that is not deaf while it starts.

        A worker has the master's signal handlers until it has its own.  What it was sent meanwhile
        would be lost, and stopping the server take graceful_timeout.
        """
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        SERVICE.signals_before = before
        try:
            return super().spawn_worker()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def reap_workers(self) -> None:
        """Note the exit status of the dead, which gunicorn's hook is not told, then reap them."""
        SERVICE.look_at_the_dead(self)
        while True:
            try:
                super().reap_workers()
            except HaltServer:
                # A second worker that could not boot would end the stopping, with a traceback.
                if not self._halting:
                    self._halting = True
                    raise
            else:
                return

    def manage_workers(self) -> None:
        """Start what is missing.  A worker that only serves old connections counts as missing."""
        leaving = SERVICE.leaving(self)
        self._num_workers += leaving
        try:
            super().manage_workers()
        finally:
            self._num_workers -= leaving


class Service:
    """The hooks, each a method of its name, and what they know.

    The master writes everything but what `post_fork` and later hooks write in the worker's copy.
    """

    def __init__(self) -> None:
        self.options = Options()
        self.board: Board | None = None
        self.threads_problem = ""
        self.signals_before: set[int] = set()
        """The signals that the master has blocked in general."""
        self.min_age_s = 10.0
        """For how long, in seconds, a worker is not replaced, whatever it has of memory."""
        self._opened = False
        self._user = os.geteuid()  # the master's
        self._prepared = False
        self._reloaded_age = 0
        self._statuses: dict[int, int] = {}
        self._flags: dict[int, mmap.mmap] = {}  # by worker age; byte 0: it is leaving
        self._port: socket.socket | None = None
        self._listens_at: str | None = None  # what options.metrics was then
        # In a worker:
        self._slot: Slot | None = None
        self._recycler: Recycler | None = None
        self._asgi_requests = 0
        self._waits_at = 0.0
        self._noted = ""

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
        self._prepared = False
        for step in (self._listen, self._warm_up) if self._opened else ():
            try:
                step(server)
            except HaltServer as error:
                # What runs is better than nothing.
                server.log.error("%s", error.reason)  # noqa: TRY400  # the reason says it all

    def pre_fork(self, server: Any, worker: Any) -> None:
        """Make the master ready to be forked."""
        if not self._opened:
            self._open(server)
            self._opened = True
        flag = self._flags[worker.age] = mmap.mmap(-1, mmap.PAGESIZE)
        flag[0] = 0
        self._hear(worker)
        self._prepare(server)
        # Not before: what the user's hook or the warm-up starts would be deaf for ever.
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)

    def _hear(self, worker: Any) -> None:
        """Let a worker have the signals that it was sent as soon as it has its own handlers."""
        init_signals = worker.init_signals

        def hearing() -> None:
            init_signals()
            signal.pthread_sigmask(signal.SIG_SETMASK, self.signals_before)

        worker.init_signals = hearing

    def _open(self, server: Any) -> None:
        """Do what comes once, before the first fork; HaltServer where it cannot be done."""
        options = self.options
        if self.threads_problem:
            server.log.warning("native locks are not used: %s", self.threads_problem)
        self.board = Board(max(2 * server.num_workers + _SPARE_SLOTS, _LEAST_SLOTS))
        self._listen(server)
        if options.gil:
            rehearse_gil()
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
            raise HaltServer(str(error), _FAILED_STATUS) from None
        rehearse_requests(server.cfg)
        for answer in answers:
            (server.log.info if answer.good else server.log.warning)("%s", answer)
        names = [each.name for each in threading.enumerate() if each is not threading.main_thread()]
        if names:
            server.log.warning(
                "threads of the master, which no worker will have, as it is forked: %s",
                ", ".join(names),
            )

    def _prepare(self, server: Any) -> None:
        # Not at every fork: it walks through the whole heap.
        if not server.cfg.preload_app or (self._prepared and not prefork.has_grown()):
            return
        options = self.options
        report = prefork.prepare(immortal=options.immortal, fill_pools=options.fill_pools)
        server.log.info("%s", report)
        self._prepared = True

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
            self._look(worker)

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
        """End this worker fast, with the status that it was going to end with."""
        del server
        # gunicorn calls it in the master too, for a worker that has vanished.
        if worker.pid != os.getpid():
            return
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
        if self.options.fast_exit:
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


def install() -> None:
    """Have gunicorn make our Arbiter, in this process, when it comes to that."""
    base.Arbiter = Overseer  # type: ignore[attr-defined]  # a name that it imports


def compose(cfg: Config) -> None:
    """Put our hooks beside the user's in a configuration; harmless when done already."""
    for name in HOOKS:
        setting = cfg.settings[name]
        theirs = setting.get()
        if not hasattr(theirs, _OURS):
            # Not through set(), which counts the arguments.
            setting.value = _composed(name, theirs)


def _composed(name: str, theirs: Callable[..., object]) -> Callable[..., object]:
    ours: Callable[..., object] = getattr(SERVICE, name)
    if name == "worker_exit":
        first, second = _guarded(theirs), ours
    else:
        first, second = (theirs, ours) if name in _THEIRS_FIRST else (ours, theirs)

    @functools.wraps(theirs)
    def hook(*arguments: object) -> None:
        first(*arguments)
        second(*arguments)

    setattr(hook, _OURS, True)
    return hook


def _guarded(theirs: Callable[..., object]) -> Callable[..., object]:
    """Have an exception in the user's hook logged, as gunicorn does, and the exit still fast."""

    def guarded(server: Any, worker: Any) -> None:
        try:
            theirs(server, worker)
        except Exception:  # whatever the user's hook raises
            worker.log.warning("Exception during worker exit", exc_info=True)

    return guarded


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
    raise SystemExit(0)


def _is_asgi_worker(worker: Any) -> bool:
    homes = {kind.__module__ for kind in type(worker).__mro__}
    return any(home.startswith(("uvicorn", "gunicorn.workers.gasgi")) for home in homes)
