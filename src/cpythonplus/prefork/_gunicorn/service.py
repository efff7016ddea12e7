"""The hooks of gunicorn's master and workers, called beside the user's own.

    master   setup         our hooks beside those of the configuration, our gthread worker
             on_starting   with reforking: have a loader load and warm up
             pre_exec      USR2: hand the port of the metrics on
             pre_fork      without it, once: board, port of the metrics, warm-up; close known pools;
                           end OpenMP's threads; prepare, within the budget
    worker   (fork)        its line to the master; cut the master's connections, before all else
             post_fork     forget the master's state, schedule the GIL
             post_worker_init   metrics, watch the private memory and the hard limits
             notify        tell news, obey the master
             worker_exit   note the reason, fast exit
    master   kill_worker   log the place where a worker hangs
             manage_workers     kill a worker that cannot check its hard limits
             child_exit    count the reason

There is one Service for each process, made when this module is imported: a master has one gunicorn.
"""

# The arguments of the hooks differ between versions of gunicorn and classes of workers.
# ruff: noqa: ANN401

from __future__ import annotations

import asyncio
import functools
import importlib
import inspect
import os
import signal
import socket
import sys
import threading
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn

import gunicorn
from gunicorn import sock
from gunicorn.errors import HaltServer

import cpythonplus
from cpythonplus import prefork
from cpythonplus.prefork._activation import (
    schedule_gil,
    use_native_locks,
    watch_stalls,
)
from cpythonplus.prefork._applications import (
    comes_from,
    is_aiohttp,
    is_aiohttp_application,
    is_asgi,
)
from cpythonplus.prefork._board import metrics
from cpythonplus.prefork._board.channel import Channel
from cpythonplus.prefork._engine import Engine
from cpythonplus.prefork._fork import pools
from cpythonplus.prefork._fork.early_signals import EarlySignals
from cpythonplus.prefork._fork.exiting import is_awaited
from cpythonplus.prefork._guarding import Guard, in_one_line
from cpythonplus.prefork._gunicorn import mold as molding
from cpythonplus.prefork._gunicorn.lingering import LINGERING, Lingering
from cpythonplus.prefork._gunicorn.reforking import OWN_ASGI, Reforking, is_known, refusal
from cpythonplus.prefork._limits.hard_limits import HardLimits
from cpythonplus.prefork._limits.hung_workers import HungWorkers
from cpythonplus.prefork._options import OPENTELEMETRY, is_path, log, read
from cpythonplus.prefork._warming import warming
from cpythonplus.prefork._warming.again import Again

if TYPE_CHECKING:
    from collections.abc import Callable

    from cpythonplus.prefork._routes.counting import Routes

_LOOK_INTERVAL_S = 1.0
_AGAIN_S = 0.01
_SPARE_SLOTS = 16
# HUP and TTIN can ask for more workers than there were at the start; a slot takes 250 bytes.
_LEAST_SLOTS = 128
_FAILED_STATUS = 1
_OF_GREENLETS = ("gunicorn.workers.ggevent", "gunicorn.workers.geventlet")
# These files' functions have no cleanup for the SystemExit of a worker.
_SERVERS_FILES = tuple(
    os.path.dirname(package.__file__ or "") + os.sep  # noqa: PTH120
    for package in (gunicorn, cpythonplus)
)
_PORT_VARIABLE = "CPYTHONPLUS_METRICS_FD"
"""For the new master after USR2: descriptor, comma, the value of options.metrics."""
_REQUEST = (
    b"GET /?a=b HTTP/1.1\r\nHost: localhost\r\nUser-Agent: rehearsal\r\nAccept: */*\r\n"
    b"Accept-Encoding: gzip\r\nConnection: close\r\n\r\n"
)


class Service(Engine):
    """The engine, and the hooks of gunicorn, each a method of its name.

    The master writes all fields; `post_fork` and later hooks write those of the worker's copy.
    """

    thread_advice = (
        "Start them in a post_fork hook, or when they are first needed; or stop them in a pre_fork"
        " hook."
    )

    def __init__(self) -> None:
        self.defaults = read("gunicorn")
        """The environment's options, which all others override."""
        super().__init__(self.defaults)
        self.threads_problem = ""
        self._user = os.geteuid()  # the master's
        self._reloaded_age = 0
        self.signals = EarlySignals()
        self.reforking: Reforking | None = None
        self._no_reforking = ""  # the reason, if it is wanted
        self.lines: dict[int, Channel] = {}
        """The master's ends of the lines to its workers, by their age."""
        self._said: dict[int, dict[str, list[str]]] = {}  # by age and first word
        self._other_end: Channel | None = None  # of the worker that is forked now
        self._forking = 0  # the thread that forks a worker now
        # All connections that this process opens from now on are cut in its workers.
        self.connections.whole = self.threads.processes = True
        super().note_open()
        os.register_at_fork(after_in_child=self._after_fork)
        self._hung = HungWorkers()
        self._workers: dict[int, Any] = {}  # gunicorn's own, by pid
        self._killed: dict[int, str] = {}  # by the master, with the reason
        self._asked_until: dict[int, float] = {}  # to leave; monotonic time limit, by age
        self._statuses: dict[int, int] = {}
        self._listens_at: str | None = None  # the value of options.metrics then
        # In a worker:
        self.channel: Channel | None = None
        """The worker's end of the line to the master."""
        self.generation = 0
        """The generation that this process is the mold of, or was forked from."""
        self._is_chosen = False
        self._lingering = Lingering()
        self._again = Again()
        self._limits = HardLimits()
        self.helper_pid = 0
        """The pid of a mold's helper, which only forks a worker."""
        self._reopen_listeners: Callable[[], object] = int
        self._asgi_requests = 0
        self._noted = ""
        self._is_ready = False
        self._unraisable_hook = sys.unraisablehook
        self._look_failed = False  # then not again: each failure would be a line in the log

    def patch_threads(self) -> None:
        """Use or undo the native locks, before the application is imported."""
        self.threads_problem = use_native_locks(wanted=self.options.threads)

    def tell_losses(self, log: Any, cfg: Any) -> None:
        """Log what the workers will not share, before all other lines."""
        if cfg.preload_app:  # otherwise another line says that no memory is shared
            for each in self.losses():
                log.warning("%s", each)

    def on_starting(self, server: Any) -> None:
        """Do the setup for the whole life of the master."""
        if not log.logger.hasHandlers():
            log.logger.handlers = server.log.error_log.handlers
        self.log = server.log
        self._workers = server.WORKERS
        if "-m" in sys.orig_argv[:-1] and sys.argv[0].endswith("__main__.py"):
            # USR2 would start the file, whose folder would come first on sys.path.
            server.START_CTX["args"] = [sys.executable, *sys.orig_argv[1:]]
        server.load_application()

    def on_reload(self, server: Any) -> None:
        """Use a new configuration after HUP; all workers will be replaced."""
        self._reloaded_age = server.worker_age
        warm_up = self._warm_up
        if self.reforking is not None:
            warm_up = self.reforking.begin_again  # with a warm one
        for step in (self._listen, warm_up, self._check_limits) if self.opened else ():
            try:
                # A server with the old state is better than none.
                with Guard(server.log, "HUP", passing=(HaltServer,)):
                    step(server)
            except HaltServer as error:
                server.log.error("%s", error.reason)  # noqa: TRY400  # the reason says it all

    def nworkers_changed(self, server: Any, new: int, old: int | None) -> None:
        """Do nothing.  The method exists so that the user's hook of this name runs in a Guard."""

    def pre_fork(self, server: Any, worker: Any) -> None:
        """Make the master ready to be forked."""
        if not self.opened:
            self.note_opened("the application while it was loaded")
            self.open_for(server)
            with Guard(server.log, "the warm-up", passing=(HaltServer,)):
                self._warm_up(server)
        with Guard(server.log, "preparing the fork"):
            self.lines[worker.age] = self._open_line()
            self.note_opened("the master")
            self.close_connections(known=True)
            if self.helper_pid != os.getpid():  # a helper's mold has ended them
                self.end_threads(tell=True)
            if server.cfg.preload_app:
                self.prepare()
            if self.reforking is None:
                self.describe()
            self._settle_imports()
        worker.init_signals = functools.partial(self.signals.hand_over, worker.init_signals)
        # Block signals last: processes started by the user's hook or the warm-up inherit the mask.
        self.signals.block()
        self._forking = threading.get_ident()

    def _open_line(self) -> Channel:
        """Return the master's end of a line to the process that is forked next."""
        here, self._other_end = Channel.pair()
        self.connections.mine = self._other_end.fileno()
        return here

    def forked(self) -> None:
        """Note that the worker exists, or its fork has failed: other forks are not gunicorn's."""
        self._forking = 0
        if self._other_end is not None:
            self._other_end.close()
            self._other_end = None

    def _after_fork(self) -> None:
        """Cut the connections in a worker; other children of the master keep them."""
        if self._forking == threading.get_ident():
            self._forking = 0
            for each in (*self.lines.values(), self.channel):
                if each is not None:
                    each.close()
            self.lines.clear()
            self.channel, self._other_end = self._other_end, None
            self.cut_connections()

    def note_open(self) -> None:
        """Do nothing: all descriptors are noted since the start."""

    def open_for(self, server: Any) -> None:
        """Do the steps before the first fork; HaltServer if one is impossible."""
        self.opened = True
        self.pid = os.getpid()
        self._tell("native locks are not used", self.threads_problem)
        self.make_board(max(2 * server.num_workers + _SPARE_SLOTS, _LEAST_SLOTS))
        with Guard(server.log, "opening the port of the metrics", passing=(HaltServer,)):
            self._listen(server)
        self.rehearse()
        if self._no_reforking:
            server.log.warning("no reforking: %s", self._no_reforking)
        if self.reforking is not None and _is_users(server.cfg.pre_fork):
            server.log.info(
                "pre_fork runs in a process that ends when its worker is there: what it keeps in"
                " variables is lost. worker.age is a number that no other worker has"
            )
        with Guard(server.log, "checking the limits of a request"):
            self._check_limits(server)

    def _check_limits(self, server: Any) -> None:
        options, cfg = self.options, server.cfg
        if not self._has_hard_limits():
            return
        if not is_known(server.worker_class):
            server.log.warning(
                "no request_timeout, no hard_private_memory: workers of class %s cannot be watched",
                cfg.worker_class_str,
            )
        elif cfg.worker_class_str == "sync" and 0 < cfg.timeout <= options.request_timeout:
            server.log.warning(
                "a sync worker is aborted after %d s (--timeout), before request_timeout (%g s)",
                cfg.timeout,
                options.request_timeout,
            )

    def _has_hard_limits(self) -> bool:
        return bool(self.options.request_timeout or self.options.hard_private_memory)

    def begin_reforking(self, cfg: Any) -> None:
        """Choose the process that loads the application: the master, or with reforking a loader."""
        if not self.options.refork:
            return
        self._no_reforking = refusal(cfg)
        if not self._no_reforking:
            self.reforking = Reforking(self)
            self.reforking.begin()

    # ---- the loader -----------------------------------------------------------------------------

    def fork_loader(self, server: Any) -> tuple[int, Channel]:
        """Fork; returns the number of the new process, 0 in it, and the master's line to it."""
        with Guard(server.log, "preparing the fork"):
            self.note_opened("the configuration")
            if not self.options.keep_mortal:  # it names code that is not imported here
                self.prepare()
        master, line = os.getpid(), self._open_line()
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        try:
            self.signals.block()
            self._forking = threading.get_ident()
            pid = os.fork()
        except OSError:
            line.close()
            raise
        finally:
            if os.getpid() == master:
                self.forked()
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if pid:
            return pid, line
        server.pid = master
        for worker in server.WORKERS.values():
            worker.tmp.close()
        server.WORKERS.clear()
        with self._looking():
            self.connections.begin_again(self.channel.fileno() if self.channel else -1)
        return 0, line

    def load(self, server: Any) -> None:
        """Load the application, warm it up, and prepare; HaltServer if the warm-up failed."""
        importlib.invalidate_caches()
        server.app.wsgi()
        self.note_opened("the application while it was loaded")
        with Guard(server.log, "the warm-up", passing=(HaltServer,)):
            self._warm_up(server)
        self.close_connections(known=True)
        self.end_threads(tell=True)
        self.prepare_anew()
        self.prepare()

    def sockets(self, server: Any) -> tuple[list[int], str]:
        """Return, in the master, the listening descriptors that a loader does not have yet.

        The last one is the port of the metrics if the word is `port`.
        """
        descriptors = [each.sock.fileno() for each in server.LISTENERS]
        if self._port is None:
            return descriptors, "no port"
        return [*descriptors, self._port.fileno()], "port"

    def take_sockets(self, server: Any, descriptors: list[int], *, has_port: bool) -> None:
        """Listen, in a loader, at the master's sockets."""
        if has_port:
            self._port = socket.socket(fileno=descriptors.pop())
        molding.close_listeners(server.LISTENERS)
        server.LISTENERS = [_listener(server, each) for each in descriptors]

    def _listen(self, server: Any) -> None:
        """Open the port of the metrics, if one was chosen; HaltServer if it cannot be opened."""
        where = self.options.metrics
        if where == self._listens_at:
            return
        port = None
        if where is not None and where != OPENTELEMETRY and not is_path(where):
            try:
                port = _inherited(server, where) or metrics.listen(where)
            except (OSError, ValueError) as error:
                raise HaltServer(f"metrics: {error}", _FAILED_STATUS) from None
        if self._port is not None:
            self._port.close()  # the old workers still have it
        self._port, self._listens_at = port, where

    def pre_exec(self, server: Any) -> None:
        """USR2: pass the port of the metrics on to the new master, as it cannot be opened twice.

        Called in the process that becomes the new master.
        """
        if self._port is not None:
            self._port.set_inheritable(True)
            server.cfg.env_orig[_PORT_VARIABLE] = f"{self._port.fileno()},{self._listens_at}"

    def _warm_up(self, server: Any) -> None:
        if not server.cfg.preload_app:
            server.log.warning("the workers share no memory: preload_app is off")
            return
        application = server.app.wsgi()
        if is_aiohttp_application(application):
            self._count_aiohttp(application)
        try:
            self.warm_up(application, may_stop=True)
        except warming.Failed as error:
            server.log.debug("the warm-up failed here:", exc_info=error.__cause__ or error)
            raise HaltServer(str(error), _FAILED_STATUS) from None
        with Guard(server.log, "rehearsing requests"):
            rehearse_requests(server.cfg)

    def look_at_the_dead(self, server: Any) -> None:
        """Note the statuses of workers that have ended, and leave them to be reaped."""
        if self.reforking is not None:
            self.reforking.look_at_the_dead(server)
        for pid in list(server.WORKERS):
            with suppress(ChildProcessError):
                how = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if how is not None:
                    exited = how.si_code == os.CLD_EXITED
                    self._statuses[pid] = how.si_status << 8 if exited else how.si_status

    def hear(self) -> None:
        """Take the messages of workers since the last time."""
        for age, line in self.lines.items():
            with suppress(OSError, EOFError):  # the worker has ended, and will be reaped
                while (message := line.receive()) is not None:
                    self._said.setdefault(age, {})[message[0][0]] = message[0][1:]

    def said(self, age: int) -> dict[str, list[str]]:
        """Return all messages of a worker: first words, and the words after them."""
        return self._said.get(age, {})

    def lets_leave(self, server: Any, pid: int) -> bool:
        """Ask a worker that HUP replaces to leave; False if it needs the signal or had its time."""
        worker = server.WORKERS.get(pid)
        if (
            worker is None
            or worker.age > self._reloaded_age
            or not comes_from(type(worker), *LINGERING)
        ):
            return False
        if worker.age in self._asked_until:
            return monotonic() < self._asked_until[worker.age]
        self._asked_until[worker.age] = monotonic() + server.cfg.graceful_timeout
        return self.ask(worker.age, "leave", "reload")

    def is_leaving(self, worker: Any) -> bool:
        """Whether a worker serves old connections only."""
        return "leaving" in self.said(worker.age) or worker.age <= self._reloaded_age

    def generations(self) -> list[tuple[int, int]]:
        """Return, in the master, the pid and generation of each worker, the oldest first."""
        of = self.reforking.generation_of if self.reforking is not None else lambda _age: 0
        workers = sorted(self._workers.items(), key=lambda item: item[1].age)
        return [(pid, of(worker.age)) for pid, worker in workers]

    def molds(self) -> dict[int, int]:
        """Return, in the master, the molds that it can fork workers from, by their generation."""
        return self.reforking.molds() if self.reforking is not None else {}

    def ask(self, age: int, *words: object) -> bool:
        """Send a worker a message; return whether that was possible."""
        with suppress(OSError, KeyError):
            self.lines[age].send(*words)
            return True
        return False

    def forget(self, age: int) -> None:
        """End the line to a worker."""
        self._said.pop(age, None)
        self._asked_until.pop(age, None)
        line = self.lines.pop(age, None)
        if line is not None:
            line.close()

    def look_at_hung(self, server: Any, pid: int) -> None:
        """Log the place where a worker hangs before it is killed."""
        rows = self.board.snapshot().workers if self.board is not None else ()
        requests = {row.pid: row.requests for row in rows}
        worker = server.WORKERS.get(pid)
        what = "hangs in its first request" if requests.get(pid) == 0 else "hangs"
        if worker is not None and "ready" not in self.said(worker.age):
            what = "hangs as it starts"
        self._hung.look(
            server.log, pid, what=what, served=any(requests.values()), enough=2 * server.num_workers
        )

    def end_silent(self, server: Any) -> None:
        """Kill workers that cannot check their hard limits, since C code keeps the GIL."""
        if self.board is None or not self._has_hard_limits():
            return
        for row in self.board.snapshot().workers:
            if row.pid not in server.WORKERS or row.pid in self._killed:
                continue
            why = self._hung.passed(row.pid, row.looked_ns, self.options)
            if why:
                self._killed[row.pid] = why
                self.look_at_hung(server, row.pid)
                server.log.error(
                    "worker %d is killed: no Python code can run in it, and it has passed %s",
                    row.pid,
                    why,
                )
                server.kill_worker(row.pid, signal.SIGKILL)

    def leaving(self, server: Any) -> int:
        """Return the number of workers that only serve old connections and need replacement.

        The result is at most the configured number of workers; older ones beyond it get SIGTERM.
        """
        workers = sorted(server.WORKERS.items(), key=lambda item: item[1].age)
        # After HUP there is a full set of new workers: an old one needs no replacement.
        leaving = [
            pid
            for pid, worker in workers
            if worker.age > self._reloaded_age and self.is_leaving(worker)
        ]
        beyond: int = max(len(leaving) - server.num_workers, 0)
        for pid in leaving[:beyond]:
            server.kill_worker(pid, signal.SIGTERM)
        return len(leaving) - beyond

    def child_exit(self, _server: Any, worker: Any) -> None:
        """Count the reason why a worker ended, or that it stopped serving to be the mold."""
        is_mold = self.reforking is not None and self.reforking.is_mold(worker.age)
        if not is_mold:
            self.forget(worker.age)
        # A worker may end after the look, while others are reaped: if it left in good order it has
        # noted a reason, which wins over the status.
        how: int | str = self._statuses.pop(worker.pid, signal.SIGKILL)
        how = self._killed.pop(worker.pid, how)
        if is_mold:
            how = "refork"
        elif worker.aborted:
            how = "timeout"
        elif worker.age <= self._reloaded_age:
            how = "reload"
        if self.board is not None:
            self.board.ended(worker.pid, how)

    # ---- in a worker ----------------------------------------------------------------------------

    def post_fork(self, _server: Any, worker: Any) -> None:
        """Begin as a worker."""
        self.signals.keep()
        molding.wait_for_parent(worker)
        pools.call_after_fork(self.log)
        self.reopen()
        if self.options.fast_exit:
            prefork.child()
        self.claim()
        if self.options.gil:
            why = schedule_gil(self.options.policy, self.options.job_share)
            self._tell("the GIL is not scheduled", why)
        if self.options.gil or self.options.threads:
            watch_stalls(self.options.stalls, worker.log.warning, self._count_stall)

    def post_worker_init(self, worker: Any) -> None:
        """Watch a worker whose application is loaded, and serve the metrics."""
        self._add_metrics(worker)
        # After --user the master may not read the memory of its workers: each reports its own.
        self.watch(always=self.options.metrics is not None and os.geteuid() != self._user)
        if hasattr(worker, "on_draining"):
            worker.on_draining = functools.partial(self.say, worker.ppid, "leaving")
        if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            # This worker is uvicorn's: it catches the signal, serves to the end, restores the
            # handler from before, and raises the signal again.  So the worker would die of it,
            # without its hooks and exit functions.
            signal.signal(signal.SIGTERM, _end_well)
        if is_known(type(worker)) and self._limits.start(self.options, self._slot, worker.log):
            self._limit_requests(worker)
        self._lingering.watch(worker, functools.partial(self.say, worker.ppid, "leaving"))
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
            except Exception as error:  # noqa: BLE001  # it must not end because of the watching
                self._look_failed = True
                worker.log.warning("this worker is no longer watched: %s", in_one_line(error))

        worker.notify = notify
        self._unraisable_hook = sys.unraisablehook
        worker.run = functools.partial(molding.serve_then_mold, worker.run, self.is_chosen)
        if self._slot is not None:
            self._slot.ready()

    def _limit_requests(self, worker: Any) -> None:
        """Make a worker of WSGI note the requests that it serves; see `_counted` for ASGI."""
        for name in ("handle_request", "handle_http2_request"):
            handle = getattr(worker, name, None)
            if handle is not None:  # the request comes first, or after the listener
                place = 1 if next(iter(inspect.signature(handle).parameters)) == "listener" else 0
                setattr(worker, name, self._limits.around(handle, place))

    def _add_metrics(self, worker: Any) -> None:
        """Put a layer for the metrics and for counting ASGI requests around the application."""
        # gunicorn's own ASGI worker has the application in `asgi`, other workers in `wsgi`.
        place = "asgi" if hasattr(worker, "asgi") else "wsgi"
        application = getattr(worker, place)
        if is_aiohttp(application):
            self.serve_metrics()
            if self.options.metrics is not None:
                self._count_routes()
            setattr(worker, place, self._count_aiohttp(application))
            return
        asgi = comes_from(type(worker), "uvicorn", OWN_ASGI) or is_asgi(application)
        where = self.options.metrics
        if where is not None:
            application = self._by_route(worker, application, asgi=asgi)
        if where is not None and is_path(where) and self.board is not None:
            wrap: Any = metrics.asgi_middleware if asgi else metrics.wsgi_middleware
            application = wrap(application, where, self.render)
        self.serve_metrics()
        if asgi:
            from cpythonplus.prefork._warming.asgi import rehearsed

            application = self._counted(rehearsed(application, self.kept, worker.log))
        setattr(worker, place, application)

    def _by_route(self, worker: Any, application: Any, *, asgi: bool) -> Any:
        """Return an application whose requests are counted by route, if this worker's can be."""
        if is_known(type(worker)):
            return self._count_routes().around(application, asgi=asgi)
        if not asgi and comes_from(type(worker), *_OF_GREENLETS):
            from cpythonplus.prefork._routes.greenlets import Greenlets

            greenlets = Greenlets(self._count_routes())
            greenlets.watch()
            return greenlets.around(application)
        self.log.warning(
            "no metrics by route: it is not known how requests take turns in workers of class %s",
            type(worker).__qualname__,
        )
        return application

    def _count_routes(self) -> Routes:
        """Begin to count the use of each route by this worker."""
        from cpythonplus.prefork._routes.pools import count_in_pools

        routes = self.begin_routes()
        routes.limit_ns = self.options.stalls * 1_000_000
        count_in_pools()
        self.make_instruments(routes)
        return routes

    def _count_aiohttp(self, application: Any) -> Any:
        """Make an aiohttp application count its worker's requests, and serve the metrics."""
        if self.options.metrics is None and not self._has_hard_limits():
            return application

        async def answer(request: Any, handler: Callable[[Any], Any]) -> Any:
            key = self._count_request(request.method, request.path)
            try:
                if self.routes is None:
                    return await handler(request)
                return await self.routes.aiohttp(request, handler)
            finally:
                self._limits.end(key)

        try:
            return metrics.add_to_aiohttp(
                application, lambda: self.options.metrics, self.render, answer
            )
        except RuntimeError as error:  # started already
            self.log.warning(
                "no metrics and no limits of aiohttp's requests: %s", in_one_line(error)
            )
            return application

    def _counted(self, application: Callable[..., Any]) -> Callable[..., Any]:
        """Count an ASGI application's requests: its worker does not."""

        async def counted(scope: dict[str, Any], receive: object, send: Any) -> None:
            if scope["type"] != "http":
                await application(scope, receive, send)
                return
            key = self._count_request(scope["method"], scope["path"])
            if self.reforking is not None:
                send = self._again.noting(scope, send)
            try:
                await application(scope, receive, send)
            finally:
                self._limits.end(key)

        return counted

    def _count_request(self, method: str, path: str) -> asyncio.Task[Any] | int:
        """Count a request that an event loop serves; return its key for the limits."""
        self._asgi_requests += 1
        key = asyncio.current_task() or threading.get_ident()
        self._limits.begin(key, method, path)
        return key

    def _look(self, worker: Any) -> None:
        """Put this worker's numbers on the board, and leave if it is its turn."""
        self._write(worker)
        if not self._is_ready:
            self._is_ready = True
            self.say(worker.ppid, "ready")
        if worker.alive and os.getppid() != worker.ppid:
            self._leave(worker)  # a busy sync worker does not check its parent
        elif worker.alive and (reason := self.is_due()):
            self._note(reason)
            self._leave(worker)
        message = None
        with suppress(EOFError):  # the master is gone, which the worker notices itself
            message = self.channel.receive() if self.channel is not None else None
        if message is not None and worker.alive:
            self._obey(worker, *message[0])

    def _obey(self, worker: Any, what: str, *words: str) -> None:
        """Leave, at the master's request; what: `mold` or `leave`, then the reason."""
        self._note(words[0] if what == "leave" else "refork")
        if what == "mold":
            self._is_chosen, self.generation = True, int(words[0])
            listeners = worker.sockets
            self._reopen_listeners = (
                functools.partial(molding.close_listeners, listeners)
                if worker.cfg.reuse_port
                else molding.keep_listeners(listeners)
            )
        self._leave(worker)

    def _leave(self, worker: Any) -> None:
        self._lingering.begin()
        _leave(worker)

    def is_chosen(self) -> bool:
        """Whether this worker is to become the mold."""
        return self._is_chosen

    def say(self, master: int, *words: object) -> None:
        """Send the master a message, and wake it."""
        with suppress(OSError):
            if self.channel is not None:
                self.channel.send(*words)
                # On SIGCHLD the master checks its workers and reads messages, even if no worker has
                # ended.
                os.kill(master, signal.SIGCHLD)

    def problem_again(self, server: Any) -> str:
        """Return why the next workers cannot start an ASGI application again, or ""."""
        return self._again.problem(server.app.wsgi())

    def forget_worker(self) -> None:
        """Reset the worker's state in a mold, so that workers forked from it start anew."""
        self._reopen_listeners()
        self._lingering.end()
        self._noted, self._asgi_requests = "", 0
        self._slot = self._recycler = self.routes = None
        self._stalls = {}
        self._is_chosen = self._is_ready = self._look_failed = False
        self.signals = EarlySignals()
        sys.unraisablehook = self._unraisable_hook
        if self.channel is not None:
            self.connections.begin_again(self.channel.fileno())

    def _write(self, worker: Any, *, now: bool = False) -> None:
        requests = self._requests(worker)
        if self._slot is not None and requests != self._slot.requests:
            self._slot.write(requests=requests)
        self.write_waits(now=now)

    def _requests(self, worker: Any) -> int:
        return max(int(worker.nr), self._asgi_requests, self._lingering.requests())

    def _note(self, reason: str) -> None:
        """Note why this worker leaves; the first reason counts."""
        if not self._noted and self._slot is not None:
            self._noted = reason
            self._slot.leaves(reason)

    def worker_abort(self, _worker: Any) -> None:
        """Note that the master has not heard of this worker for too long (SIGABRT)."""
        self._note("timeout")

    def worker_exit(self, _server: Any, worker: Any) -> None:
        """Note why this worker ends, and end it fast, unless a caller handles the exception.

        If a `finally` or `with` is around the server, as coverage's is, the SystemExit is raised to
        it.  Then `prefork.child` makes the end light.
        """
        # gunicorn calls it in the master too, for a worker that has vanished.
        if worker.pid != os.getpid():
            return
        _ignore_further()
        error = sys.exc_info()[1]
        if isinstance(error, molding.Molding):
            self._limits.stop()
        if not isinstance(error, SystemExit) or isinstance(error, molding.Molding):
            return
        self._write(worker, now=True)
        if self._requests(worker) >= worker.max_requests:
            self._note("max_requests")
        elif error.code in (None, 0):
            self._note("exit")
        if self.options.fast_exit and not is_awaited(sys._getframe(), harmless=_SERVERS_FILES):  # noqa: SLF001
            prefork.fast_exit(error.code)


SERVICE = Service()


def _is_users(hook: Callable[..., object]) -> bool:
    """Whether a hook, with ours beside it, is the configuration's and not gunicorn's own."""
    return getattr(hook, "__wrapped__", hook).__module__ != "gunicorn.config"


def _listener(server: Any, descriptor: int) -> Any:
    """Return gunicorn's object for a socket that listens."""
    with socket.socket(fileno=os.dup(descriptor)) as seen:
        family, address = seen.family, seen.getsockname()
    kinds = {socket.AF_INET: sock.TCPSocket, socket.AF_INET6: sock.TCP6Socket}
    return kinds.get(family, sock.UnixSocket)(address, server.cfg, server.log, fd=descriptor)


def _inherited(server: Any, where: str) -> socket.socket | None:
    """Return the port that the old master had open before USR2, if its address was `where`."""
    number, _, place = os.environ.pop(_PORT_VARIABLE, "").partition(",")
    if not server.master_pid or place != where:
        return None
    port = socket.socket(fileno=int(number))
    port.set_inheritable(False)
    return port


def rehearse_requests(config: Any) -> bool:
    """Parse some requests and write some answers, over a pair of sockets; False if that failed.

    The application's warm-up does not run gunicorn's own code, and the first requests of each
    worker would specialise its bytecode in pages that would then be private to that worker.  No
    hook of the configuration is called, and nothing is logged.
    """
    from gunicorn.http import wsgi
    from gunicorn.http.parser import RequestParser

    # If another version of gunicorn differs, the workers will specialise the code themselves.
    with suppress(Exception):
        for _ in range(warming.REPEATS):
            here, there = socket.socketpair()
            with here, there:
                there.sendall(_REQUEST)
                request = next(RequestParser(config, here, ("127.0.0.1", 1)))
                answer, _environ = wsgi.create(
                    request, here, ("127.0.0.1", 1), ("127.0.0.1", 2), config
                )
                answer.start_response("200 OK", [("Content-Type", "text/plain")])
                answer.write(b"rehearsed")
                answer.close()
        return True
    return False


def _leave(worker: Any) -> None:
    """Have a worker finish its requests, and end."""
    from gunicorn.workers.sync import SyncWorker

    if isinstance(worker, SyncWorker):
        worker.alive = False
        # Wake the worker: it may be about to wait for a connection.
        with suppress(BlockingIOError):
            os.write(worker.PIPE[1], b"1")
    elif hasattr(worker, "on_draining"):
        worker.alive = False
    else:
        # All other workers handle this signal.
        os.kill(os.getpid(), signal.SIGTERM)


def _end_well(_signal: int, _frame: object) -> NoReturn:
    """End now or soon: a destructor or a callback of a weak reference may be running.

    An exception that is raised in those only reaches sys.unraisablehook.
    """
    _ignore_further()
    hook = sys.unraisablehook

    def raise_again(lost: sys.UnraisableHookArgs) -> None:
        if not isinstance(lost.exc_value, SystemExit):
            hook(lost)
            return
        sys.unraisablehook = hook
        signal.signal(signal.SIGTERM, _end_well)
        threading.Timer(_AGAIN_S, os.kill, (os.getpid(), signal.SIGTERM)).start()

    sys.unraisablehook = raise_again
    raise SystemExit(0)


def _ignore_further() -> None:
    """Keep SIGTERM from interrupting the last steps of a worker that ends already.

    Not by SIG_IGN: programs that its exit functions start would inherit that.
    """
    if signal.getsignal(signal.SIGTERM) is _end_well:
        signal.signal(signal.SIGTERM, lambda *_: None)
