"""The steps before a fork and in the workers, the same for every server.

A server's module knows *when* its server forks and how a worker leaves; this module has the steps.

    parent   before_fork   once: rehearse the GIL, open the port of the metrics, warm up
                           always: the functions given to `prefork.before_fork`, end OpenMP's
                           threads, prepare within the budget, describe the parent, let imports end
    worker   start_worker  cut the parent's connections, the GIL, the locks, a place on the board,
                           the metrics
             is_due        after a request or task: write the numbers; tell whether to leave
"""

# An application can be any object.
# ruff: noqa: ANN401

from __future__ import annotations

import atexit
import gc
import importlib
import os
import sys
import threading
import time
from contextlib import suppress
from pkgutil import resolve_name
from time import monotonic
from typing import TYPE_CHECKING, Any

from cpythonplus._base.text.sizes import format_size
from cpythonplus._interp import LOSSES, losses
from cpythonplus.prefork._activation import (
    count_stalls,
    gil_statistics,
    rehearse_gil,
    schedule_gil,
    thread_use,
    use_native_locks,
)
from cpythonplus.prefork._blame.sharing import process_memory
from cpythonplus.prefork._board.board import Board, BoardBusy, BoardError, MasterRow
from cpythonplus.prefork._board.counts import MOST_LABELS, OTHER
from cpythonplus.prefork._fork import pools
from cpythonplus.prefork._fork.connections import Connections
from cpythonplus.prefork._fork.importing import settle_imports
from cpythonplus.prefork._fork.lost_threads import LostThreads, restart
from cpythonplus.prefork._fork.preparing import Budget, statistics
from cpythonplus.prefork._fork.temporaries import disown
from cpythonplus.prefork._guarding import Guard
from cpythonplus.prefork._limits.recycling import Recycler
from cpythonplus.prefork._options import OPENTELEMETRY, Options, log
from cpythonplus.prefork._warming import warming
from cpythonplus.prefork._warming.kept import Kept

if TYPE_CHECKING:
    import socket

    from cpythonplus._interp import Loss
    from cpythonplus.prefork._board.board import Slot
    from cpythonplus.prefork._fork.preparing import PrepareReport
    from cpythonplus.prefork._routes.counting import Routes

_SLOTS = 256
"""More workers at a time than this many are served all the same, but not counted or replaced."""

_LOOK_INTERVAL_S = 1.0
_DESCRIBE_INTERVAL_S = 5.0
_IMPORT_LIMIT_S = 1.0
_MEMORY = ("resident_bytes", "private_bytes", "shared_bytes", "proportional_bytes")


class Engine:
    """A process that forks workers; made in it, used by it and by its children.

    Only the thread that forks may call the parent's methods.  No error in `before_fork` or
    `start_worker` ends the program: it is logged in one line, and the step is left out.
    """

    interval_s = _LOOK_INTERVAL_S
    """The shortest time between two readings of a worker's memory, in seconds."""
    min_age_s = 10.0
    """The age, in seconds, below which a worker is not replaced: a limit can be too low."""

    thread_advice = (
        "Start them in the worker, or when they are first needed; or stop them in a function given"
        " to cpythonplus.prefork.before_fork."
    )

    def __init__(self, options: Options) -> None:
        self.pid = os.getpid()
        self.options = options
        self.log: Any = log
        """A logger, or an object like one."""
        self.board: Board | None = None
        self.opened = False
        """Whether `before_fork` was called: the steps of the first call are done."""
        self.connections = Connections()
        self.threads = LostThreads()
        self.kept = Kept()
        """Objects of the application that the warm-up has left open."""
        self._budget: Budget | None = None
        self._told_spent = False
        self._describes_at = 0.0
        self._endless_imports: set[str] = set()
        self._port: socket.socket | None = None
        # In a worker:
        self._slot: Slot | None = None
        self._recycler: Recycler | None = None
        self._asking = threading.Lock()
        self._waits_at = 0.0
        self.routes: Routes | None = None
        """The use by each route or task; made in the parent where the server needs it there."""
        self._stalls: dict[tuple[str, str], list[int]] = {}
        """The number and ns of this worker's, by kind and line; for OpenTelemetry."""

    # ---- in the parent --------------------------------------------------------------------------

    def before_fork(self, application: Any = None) -> PrepareReport | None:
        """Do the steps before a fork; returns the report if it prepared, or None.

        application: WSGI or ASGI; it answers the paths among the warm-ups.
        """
        first = not self.opened
        if first:
            self.opened = True
            self._open(application)
        report = None
        with Guard(self.log, "preparing the fork"):
            if self.board is not None:
                with suppress(BoardError):
                    self.board.sweep()
            # Known pools are closed by the first call only: later the program itself may use them.
            self.close_connections(known=first)
            # Threads are named by the first call only: later there may be threads of the program,
            # or those of a pool that replaces a child.
            self.end_threads(tell=first)
            report = self.prepare()
            self.describe()
            self._settle_imports()
        return report

    def _open(self, application: Any) -> None:
        with Guard(self.log, "proving the facts about this interpreter"):
            for each in self.losses():
                if each.facts:  # no warning for a loss that is due to the Python version
                    self.log.warning("%s", each)
        if self.options.max_private_memory or self.options.metrics:
            self.make_board(_SLOTS)
        self.rehearse()
        with Guard(self.log, "opening the port of the metrics"):
            if self.options.metrics and self.options.metrics != OPENTELEMETRY:
                from cpythonplus.prefork._board import metrics

                self._port = metrics.listen(self.options.metrics)
        self.warm_up(application)

    def losses(self) -> tuple[Loss, ...]:
        """Return the workers' losses from facts that do not hold in this interpreter."""
        options = self.options
        unasked = {
            *(() if options.immortal else ("frames", "immortal", "inline-values")),
            *(() if options.fill_pools else ("pools",)),
            *(() if options.threads else ("dict-version",)),
        }
        return losses("serve", [name for name in LOSSES if name not in unasked])

    def make_board(self, slots: int) -> None:
        """Make the board for the workers."""
        with Guard(self.log, "making the workers' board"):
            self.board = Board(slots)

    def rehearse(self) -> None:
        """Do once the work that each worker, or its first connection, would have to do."""
        with Guard(self.log, "importing what names of hosts need"):
            # Else a thread may import it at its first connection, and be interrupted by the fork.
            importlib.import_module("encodings.idna")
        with Guard(self.log, "rehearsing the GIL's scheduling"):
            if self.options.gil:
                rehearse_gil()

    def warm_up(self, application: Any, *, may_stop: bool = False) -> None:
        """Run the warm-ups of the options; failures are logged.

        may_stop: warming.Failed is raised, unless the options say to continue.  The connections
        that it opens are noted, so that a worker cuts them.
        """
        options = self.options
        pools.reopen(self.log)
        if self._is_warmed:
            self.note_open()
        stops = may_stop and options.warm_up_failure != "continue"
        plan = warming.WarmUp(
            targets=options.warm_up,
            file=options.warm_up_requests,
            repeats=options.warm_up_repeats,
            limit_s=options.warm_up_timeout,
            lifespan=options.warm_up_lifespan,
        )
        answers = warming.warm_up(
            plan,
            application,
            after=self.note_opened,
            tell=lambda line: self.log.warning("%s", line),
            failed=None if stops else self._go_on,
            renew=self._renew_pools,
            kept=self.kept,
        )
        for answer in answers:
            (self.log.info if answer.good else self.log.warning)("%s", answer)

    def _renew_pools(self) -> None:
        pools.call_before_fork(self.log)
        pools.close_known(self.log, warmed=True, whole=False)

    @property
    def _is_warmed(self) -> bool:
        return bool(self.options.warm_up) or self.options.warm_up_requests is not None

    def _go_on(self, error: warming.Failed) -> None:
        self.log.warning("%s; the start goes on", error)
        self.log.debug("the warm-up failed here:", exc_info=error.__cause__ or error)

    def note_open(self) -> None:
        """Remember the present descriptors, so that they are not cut: the program opened them."""
        with self._looking():
            self.connections.begin()

    def note_opened(self, origin: str) -> None:
        """Note the descriptors that were opened since the last time, by `origin`."""
        with self._looking():
            self.connections.look(origin)

    def _looking(self) -> Guard:
        return Guard(self.log, "looking for connections that workers would share", catch=Exception)

    def close_connections(self, *, known: bool) -> None:
        """Call the functions given to `before_fork`, and log the remaining connections, to be cut.

        known: close those of known pools in between; only Django's if no warm-up ran.
        """
        pools.call_before_fork(self.log)
        whole = self.connections.whole
        if known:
            closed = pools.close_known(self.log, warmed=whole or self._is_warmed, whole=whole)
            if closed:
                self.log.info("closed before the fork: %s", closed)
                gc.collect()  # sockets in cycles close with it
        with self._looking():
            self.connections.tell(self.log)

    def end_threads(self, *, tell: bool) -> None:
        """End OpenMP's threads; tell: name those that no worker will have."""
        self.threads.end(self.log, self.thread_advice if tell else None)

    def prepare(self) -> PrepareReport | None:
        """Prepare, within the budget: not at every fork, for immortal objects are never freed."""
        options, refused = self.options, statistics().refused
        if self._budget is None:
            self._budget = Budget(options.prepare_again)
        keep = options.keep_mortal
        report = self._budget.prepare(
            immortal=options.immortal,
            fill_pools=options.fill_pools,
            keep_mortal=resolve_name(keep) if isinstance(keep, str) else keep,
        )
        if report is not None:
            self.log.info("%s", report)
        elif statistics().refused > refused and not self._told_spent:
            self._told_spent = True
            self.log.info(
                "the heap has grown since it was prepared, and is not prepared again: new objects"
                " are shared only as without cpythonplus (see prepare_again)"
            )
        return report

    def prepare_anew(self) -> None:
        """Have the next fork prepare as the first one does."""
        self._budget = None

    def describe(self) -> None:
        """Put the parent's numbers on the board, now and then, if they can be read there."""
        now = monotonic()
        if self.board is None or self.options.metrics is None or now < self._describes_at:
            return
        done, read = statistics(), {}
        with suppress(OSError, RuntimeError):  # otherwise there are no numbers
            memory = process_memory(os.getpid())
            read = {name: getattr(memory, name) for name in _MEMORY}
        # A reading takes 1 ms for each 100 MB; it may take a hundredth of the time.
        self._describes_at = now + max(_DESCRIBE_INTERVAL_S, 100 * (monotonic() - now))
        self.board.describe_master(
            MasterRow(
                prepares=done.prepares,
                refused=done.refused,
                prepare_ns=int(done.seconds * 1e9),
                immortal_bytes=done.immortal_bytes,
                **read,
            )
        )

    def _settle_imports(self) -> None:
        # This comes last: a message about the worker that ended may have set a thread to work.
        for name in settle_imports(_IMPORT_LIMIT_S, endless=self._endless_imports):
            self._endless_imports.add(name)
            self.log.warning("workers are forked while a thread imports %s", name)

    # ---- in a worker ----------------------------------------------------------------------------

    def start_worker(self) -> None:
        """Start a worker, in the worker; `forking.child` sets up its end."""
        self.cut_connections()
        with Guard(self.log, "starting a worker", catch=Exception):
            self.reopen()
            self.activate()
            self.claim()
            self.watch()
            if self._slot is not None:
                self._slot.ready()
            self.serve_metrics()
            self._count_use()
            self.is_due()

    def cut_connections(self) -> None:
        """Cut the connections that this worker must not share with its parent, before all else."""
        with Guard(self.log, "cutting the parent's connections", catch=Exception):
            self.connections.cut()

    def reopen(self) -> None:
        """Open pools, connect logs and start threads that do not do so by themselves."""
        disown()
        pools.reopen(self.log)
        restart(self.log)
        pools.reconnect_logs(self.log)

    def activate(self) -> None:
        """Schedule the GIL and patch the locks of this process, as far as that is wanted."""
        if self.options.gil:
            self._tell(
                "the GIL is not scheduled",
                schedule_gil(self.options.policy, self.options.job_share),
            )
        if self.options.threads:
            self._tell("native locks are not used", use_native_locks())

    def _tell(self, what: str, why: str) -> None:
        if why:
            self.log.warning("%s: %s", what, why)

    def claim(self) -> None:
        """Take a place on the board."""
        self._asking = threading.Lock()
        self._slot = self._recycler = None
        if self.board is not None:
            try:
                self._slot = self.board.claim(os.getpid())
            except BoardError as error:
                self.log.warning("this worker is not counted: %s", error)

    def watch(self, *, always: bool = False) -> None:
        """Begin to measure the memory; always: even if there is no limit."""
        options = self.options
        limit = options.max_private_memory or (sys.maxsize if always else 0)
        limited = limit or options.max_worker_lifetime
        if limited and self.board is not None and self._slot is not None:
            self._recycler = Recycler(
                limit,
                self.board,
                lifetime_s=options.max_worker_lifetime,
                jitter_s=options.max_worker_lifetime_jitter,
                interval_s=self.interval_s,
                min_age_s=self.min_age_s,
            )

    def serve_metrics(self) -> None:
        """Answer at the port of the metrics, if there is one."""
        if self._port is not None and self.board is not None:
            from cpythonplus.prefork._board import metrics

            metrics.serve_in_thread(self._port, self.render)

    def begin_routes(self, *, tasks: bool = False) -> Routes:
        """Begin to count the use by the routes, or by the tasks, of this process.

        The workers inherit it from a parent that has served nothing.
        """
        from cpythonplus.prefork._routes.counting import Routes

        self.routes = Routes(thread_use(), 0, tasks=tasks)
        return self.routes

    def _count_use(self) -> None:
        """Count this worker's stalls for the metrics, and write its counters while it lives."""
        if self.options.metrics is None:
            return
        routes = self.routes or self.begin_routes()
        routes.limit_ns = int(count_stalls(self._count_stall) * 1e6)
        self.make_instruments(routes)
        # A worker that has nothing to do for a while has its last requests on the board, too.
        threading.Thread(
            target=self._keep_writing, name="cpythonplus counters", daemon=True
        ).start()
        atexit.register(self.write_last)

    def _keep_writing(self) -> None:
        while True:
            time.sleep(_LOOK_INTERVAL_S)
            self.write_last()

    def write_last(self) -> None:
        """Put the counters on the board now."""
        with self._asking:
            self.write_waits(now=True)

    def make_instruments(self, routes: Routes) -> None:
        """Make OpenTelemetry's instruments, if the metrics are to be these."""
        if self.options.metrics == OPENTELEMETRY:
            from cpythonplus.prefork._routes.instruments import make_instruments

            with Guard(self.log, "making OpenTelemetry's instruments", catch=Exception):
                make_instruments(routes, gil_statistics, self._own_stalls)

    def _own_stalls(self) -> list[tuple[str, str, int, int]]:
        stalls = list(self._stalls.items())
        return [(kind, at, times, total_ns) for (kind, at), (times, total_ns) in stalls]

    def _count_stall(self, kind: str, at: str, length_ns: int) -> None:
        if self.options.metrics == OPENTELEMETRY:
            place = (kind, at)
            if place not in self._stalls and len(self._stalls) >= MOST_LABELS:
                place = (OTHER, OTHER)
            times, total_ns = self._stalls.get(place, (0, 0))
            self._stalls[place] = [times + 1, total_ns + length_ns]
        if self.board is not None:
            with suppress(BoardBusy):
                self.board.count_stall(kind, at, length_ns)

    def render(self) -> str:
        """Return the metrics as text."""
        from cpythonplus.prefork._board import metrics

        return metrics.render(self.board, master_pid=self.pid) if self.board is not None else ""

    def count_request(self) -> None:
        """Count a request or task of this worker."""
        if self._slot is not None:
            self._slot.count_request()

    def write_waits(self, *, now: bool = False) -> bool:
        """Put the waits for the GIL and the use by route on the board, once a second, or now.

        Returns whether it was done.
        """
        if self._slot is None or not (now or monotonic() >= self._waits_at):
            return False
        self._waits_at = monotonic() + _LOOK_INTERVAL_S
        waits, wait_ns = gil_statistics()
        self._slot.write(gil_waits=waits, gil_wait_ns=wait_ns)
        if self.routes is not None and self.board is not None:
            with suppress(BoardBusy):  # it gets them the next time
                self.routes.give(self.board.count_routes)
        return True

    def is_due(self) -> str:
        """Return the reason for replacing this worker if it is its turn; one of REASONS, or "".

        Asked between two requests or tasks, by any thread; a reason is returned only once, so the
        worker has to end then.
        """
        if self._slot is None or not self._asking.acquire(blocking=False):
            return ""  # another thread of this worker is asking
        try:
            self.write_waits()
            if self._recycler is None or not self._recycler.poll():
                return ""
        finally:
            self._asking.release()
        reason = self._recycler.reason
        if reason == "lifetime":
            self.log.info("worker %d has lived for long enough and is recycled", os.getpid())
            return reason
        limit = format_size(self.options.max_private_memory)
        self.log.warning(
            "worker %d has more than %s of private memory and is recycled", os.getpid(), limit
        )
        return reason
