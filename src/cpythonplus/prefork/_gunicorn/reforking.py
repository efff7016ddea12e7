"""Reforking, in gunicorn's master: choosing the mold, and forking workers from it.

    loader      loads the application, and is the first mold: see `loader`
    chosen      the worker with the most requests, when it has served enough
    mold        it serves no more, and forks: see `mold`
    renewed     the workers of the generation before leave one after another, each as when it is
                recycled: no request is refused, and the next one leaves when the last is replaced

A mold counts as good when a worker that it forked has served its first turn.  Until then the mold
before stays, and is used again if this one fails; the loader is next in line.  If there is none at
all the application is loaded again.

Generation 0 are the workers that the first loader forks.
"""

# gunicorn's classes differ from version to version.
# ruff: noqa: ANN401

from __future__ import annotations

import ctypes
import math
import os
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from gunicorn.errors import HaltServer

from cpythonplus._base.text.sizes import format_size
from cpythonplus.prefork._applications import comes_from
from cpythonplus.prefork._blame.sharing import private_bytes, process_memory
from cpythonplus.prefork._board.channel import Channel
from cpythonplus.prefork._guarding import tell
from cpythonplus.prefork._gunicorn.forks import Fork, ForkError
from cpythonplus.prefork._gunicorn.lingering import LINGERING
from cpythonplus.prefork._limits.children import exited, reap, reap_strangers, terminate

if TYPE_CHECKING:
    from cpythonplus.prefork._gunicorn.service import Service

_PR_SET_CHILD_SUBREAPER = 36
_LONG_S = 60.0
_PREPARE_S = 120.0
_MEASURE_S = 30.0
_END_S = 2.0
_LOOK_S = 0.01
_TURN_S = 0.2
_LEAVE_S = 12.0
_AGAIN_S = 10.0  # at most, between two attempts to load the application
_FAILED_STATUS = 1
_UNKNOWN_STATUS = -1
_GROWN_BYTES = 32 << 20
OWN_ASGI = "gunicorn.workers.gasgi"
"""The module of gunicorn's own ASGI worker."""
_MODULES = ("gunicorn.workers.sync", "gunicorn.workers.gthread", *LINGERING, OWN_ASGI)


def is_known(worker_class: type) -> bool:
    """Whether a worker of this class is known to serve requests in threads, or with asyncio."""
    homes = [kind.__module__ for kind in worker_class.__mro__]
    others = ("gevent", "eventlet", "tornado")
    return comes_from(worker_class, *_MODULES) and not any(
        word in home for home in homes for word in others
    )


def refusal(cfg: Any) -> str:
    """Return why a server with this configuration cannot refork, or ""."""
    worker_class = cfg.worker_class
    if not is_known(worker_class) or comes_from(worker_class, OWN_ASGI):
        return f"workers of class {cfg.worker_class_str} cannot be reforked"
    if not cfg.preload_app:
        return "the application is loaded in each worker (preload_app is off)"
    if cfg.initgroups and cfg.uid != os.geteuid():
        return "initgroups needs root, and a worker that has served is another user"
    if not hasattr(ctypes.CDLL(None), "prctl"):
        return "prctl is missing"
    return ""


@dataclass(slots=True)
class _Mold:
    """A process that forks workers.

    good: a worker that it forked has served. listens: it has the master's listening sockets.
    """

    pid: int
    line: Channel
    generation: int
    good: bool = False
    listens: bool = True
    fork: Fork | None = None


@dataclass(slots=True)
class _Loader:
    """A process that loads the application.

    rereads: it was started by HUP, and the master takes over the configuration when it is ready.
    tell_at: the monotonic time at which the log mentions the long loading.
    """

    pid: int
    line: Channel
    rereads: bool
    tell_at: float
    ready: bool = False


@dataclass(slots=True)
class _Chosen:
    """A worker that is to become the mold.

    serving: it has not said yet that it stopped serving. until: the monotonic time at which it is
    given up.
    """

    pid: int
    age: int
    until: float
    serving: bool = True


@dataclass(slots=True)
class Reforking:
    """The molds of a master; other processes do not use this."""

    service: Service
    generation: int = 0
    """The generation of the workers that are forked now."""
    _generations: dict[int, int] = field(default_factory=dict)  # of each worker, by age
    _mold: _Mold | None = None
    _before: _Mold | None = None
    _root: _Mold | None = None  # the loader that has imported the current code
    _loader: _Loader | None = None  # not yet used
    _load_at: float = 0.0  # no loading before that time
    _load_failures: int = 0  # in a row
    _chosen: _Chosen | None = None
    _reforks: int = 0  # since the configuration was read
    _failures: int = 0
    _served: bool = False  # by any worker, since the start
    _given_up: set[int] = field(default_factory=set)  # generations
    _leaving: dict[int, float] = field(default_factory=dict)  # time limit, by pid
    _asked: int = 0  # the age of the worker that has to leave now
    _asked_until: float = 0.0
    _is_ending: bool = False  # all workers and molds were asked to end
    _count: int = 0  # of all generations so far
    _measured_at: float = 0.0
    _private_bytes: int = 0  # of a worker, when its generation began
    _before_bytes: int = 0  # of the whole server before it reforked, until the gain is told
    _before_requests: int = 0  # of the worker with the most, at that time

    def begin(self) -> None:
        """Make the kernel give orphaned descendants to the master; OSError."""
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")

    def look(self, server: Any) -> None:
        """Take one step; called at least once a second."""
        for age in self._generations.keys() - {each.age for each in server.WORKERS.values()}:
            del self._generations[age]
        for pid, until in list(self._leaving.items()):
            if reap(pid) is not None:
                del self._leaving[pid]
            elif monotonic() > until:
                terminate(pid, signal.SIGKILL)
        for each in self._all_molds():
            if each.fork is not None:
                self._advance(server, each)
        self._follow_loader(server)
        self._follow(server)
        if self._chosen is None and not self._renew(server):
            self._tell_gain(server)
            if self._is_time(server):
                self._choose(server)

    def generation_of(self, age: int) -> int:
        """Return the generation of a worker."""
        return self._generations.get(age, 0)

    def is_mold(self, age: int) -> bool:
        """Whether that worker serves no more, because it will fork the next ones."""
        chosen = self._chosen
        return chosen is not None and chosen.age == age and not chosen.serving

    def molds(self) -> dict[int, int]:
        """Return the present molds by their generation: the current one and the one before."""
        return {each.generation: each.pid for each in reversed(self._all_molds())}

    # ---- loading --------------------------------------------------------------------------------

    def load(self, server: Any, *, rereads: bool = False) -> bool:
        """Fork a loader; True in the loader. rereads: after HUP, replace one that still loads."""
        if not rereads and (self._loader is not None or monotonic() < self._load_at):
            return False
        if self._loader is not None:
            self.drop_loader()
        self._is_ending = False
        try:
            pid, line = self.service.fork_loader(server)
        except OSError as error:
            self._load_failed(server, str(error), rereads=rereads)
            return False
        if pid == 0:
            for each in (line, *(mold.line for mold in self._all_molds())):
                each.close()
            return True
        self._loader = _Loader(pid, line, rereads, monotonic() + _LONG_S)
        return False

    def wait_for_load(self, server: Any) -> None:
        """Wait for the loader, at the start; HaltServer with its status if it fails."""
        while (loader := self._loader) is not None:
            words, status = ["refused"], None
            with suppress(EOFError):
                message = loader.line.receive(_TURN_S)
                status = reap(loader.pid) if message is None else None
                if message is None and status is None:
                    continue  # a child of the loader may still have the line open
                words = message[0] if message is not None else words
            if words[0] == "mold":
                self._use_loader(server, loader, *map(int, words[1:3]))
                continue
            end = monotonic() + _LEAVE_S
            while status is None and (status := reap(loader.pid)) is None:
                if monotonic() > end:
                    terminate(loader.pid, signal.SIGKILL)
                sleep(_LOOK_S)
            why = "" if words[0] == "told" else " ".join(words[1:])
            if status < 0:
                why = why or f"loading the application was ended by signal {-status}"
            elif words == ["refused"]:
                why = f"the application has ended the process that loads it (status {status})"
            raise HaltServer(why, max(status, _FAILED_STATUS))

    @property
    def has_reloaded(self) -> bool:
        """Whether a loader is ready with the configuration that the master has to take over."""
        return self._loader is not None and self._loader.ready

    def begin_again(self, server: Any) -> None:
        """Use the new loader, after HUP; the earlier molds have old code."""
        loader, chosen = self._loader, self._chosen
        if loader is None:
            return
        if chosen is not None and not chosen.serving:
            self._let_end(chosen.pid)
        self._chosen = None
        before = self._mold if self._mold is not None and self._mold.good else self._before
        molds, self._root = self._all_molds(), None
        for each in molds:
            each.listens = False  # if the address is another one
            if each is not before:
                self._end(each)
        self._count += 1
        self._reforks = self._failures = 0
        self._use_root(loader)
        self._before = before
        server.log.info("workers of generation %d have the new code", self._count)

    def drop_loader(self) -> None:
        """Forget a loader that will not be used."""
        loader, self._loader = self._loader, None
        if loader is not None:
            loader.line.close()
            self._let_end(loader.pid)

    def _let_end(self, pid: int) -> None:
        """Terminate a process that only forks or loads; it is killed later if it does not end."""
        terminate(pid)
        self._leaving[pid] = monotonic() + _LEAVE_S

    def _follow_loader(self, server: Any) -> None:
        loader = self._loader
        if loader is None or loader.ready:
            return
        words = ["refused", "it has ended"]
        with suppress(EOFError, OSError):
            message = loader.line.receive()
            if message is None:
                self._tell_of_loader(server, loader)
                return
            words = message[0]
        if words[0] == "mold":
            self._use_loader(server, loader, *map(int, words[1:3]))
            return
        self._load_failed(server, " ".join(words[1:]), rereads=loader.rereads)

    @staticmethod
    def _tell_of_loader(server: Any, loader: _Loader) -> None:
        """Log that a loader takes long.  It has no limit: an application may need that time."""
        if monotonic() > loader.tell_at:
            loader.tell_at = math.inf
            server.log.warning(
                "process %d has been loading the application for %.0f s. HUP ends it, and starts"
                " another",
                loader.pid,
                _LONG_S,
            )

    def _load_failed(self, server: Any, why: str, *, rereads: bool) -> None:
        self.drop_loader()
        wait_s = min(2.0**self._load_failures, _AGAIN_S)
        self._load_failures = min(self._load_failures + 1, 10)
        self._load_at = monotonic() + wait_s
        if rereads:
            server.log.error("HUP failed, the workers continue unchanged: %s", why)
        else:
            server.log.error(
                "no worker can be forked: %s. The application is loaded again in %.0f s",
                why,
                wait_s,
            )

    def _use_loader(self, server: Any, loader: _Loader, resident: int, private: int) -> None:
        self._load_failures = 0
        server.log.info(
            "process %d has loaded the application (%s, %s of it its own)",
            loader.pid,
            format_size(resident),
            format_size(private),
        )
        if loader.rereads:
            loader.ready = True
        else:
            self._use_root(loader)

    def _use_root(self, loader: _Loader) -> None:
        self._loader = None
        self._root = _Mold(loader.pid, loader.line, self._count, listens=False)
        self._use_mold(self._root)

    def _use_mold(self, mold: _Mold) -> None:
        """Fork the next workers from a mold, which begins a generation."""
        self._mold, self.generation = mold, mold.generation
        self._measured_at, self._private_bytes = monotonic(), 0

    # ---- molds ----------------------------------------------------------------------------------

    def _is_time(self, server: Any) -> bool:
        workers = list(server.WORKERS.values())
        if len(workers) < server.num_workers or not all(self._is_current(each) for each in workers):
            return False
        wanted = self.service.options.refork_after << min(self._reforks + self._failures, 32)
        if server.cfg.max_requests:
            wanted = min(wanted, server.cfg.max_requests * 3 // 4)  # no worker lives longer
        return max(self._requests(server).values(), default=0) >= wanted or self._have_grown(server)

    def _is_current(self, worker: Any) -> bool:
        is_ready = "ready" in self.service.said(worker.age)
        return is_ready and self.generation_of(worker.age) == self.generation

    def _requests(self, server: Any) -> dict[int, int]:
        board = self.service.board
        rows = board.snapshot().workers if board is not None else ()
        return {row.pid: row.requests for row in rows if row.pid in server.WORKERS}

    def _have_grown(self, server: Any) -> bool:
        """Whether the workers' own memory has grown much since their generation began."""
        if monotonic() < self._measured_at + _MEASURE_S or self._failures:
            return False
        self._measured_at = monotonic()
        sizes = []
        for pid in server.WORKERS:
            with suppress(OSError, RuntimeError):
                sizes.append(private_bytes(pid))
        mean = sum(sizes) // max(len(sizes), 1)
        if not self._private_bytes:
            self._private_bytes = mean
        return mean > self._private_bytes + _GROWN_BYTES

    def _tell_gain(self, server: Any) -> None:
        """Log once what reforking has gained, after as many requests of a worker as before it.

        A small application may not gain what the mold and the loader take.
        """
        served = max(self._requests(server).values(), default=0)
        if not self._reforks or not self._before_bytes or served < self._before_requests:
            return
        before, self._before_bytes = self._before_bytes, 0
        now = self._total_bytes(server)
        if now:
            server.log.info(
                "the server takes %s with reforking, and took %s before%s",
                format_size(now),
                format_size(before),
                "" if now < before else ": --refork does not pay here",
            )

    def _total_bytes(self, server: Any) -> int:
        """Return the memory of all processes, shared pages counted once; 0 if it is unknown."""
        with suppress(OSError, RuntimeError):
            pids = [os.getpid(), *server.WORKERS, *self.molds().values()]
            return sum(process_memory(each).proportional_bytes for each in pids)
        return 0

    def _choose(self, server: Any) -> None:
        requests = self._requests(server)
        if not self._reforks:
            self._before_bytes = self._total_bytes(server)
            self._before_requests = max(requests.values(), default=0)
        pid = max(server.WORKERS, key=lambda each: requests.get(each, 0))
        age = server.WORKERS[pid].age
        if not self.service.ask(age, "mold", self._reforks + 1):
            return
        limit = server.cfg.graceful_timeout + _PREPARE_S
        self._chosen = _Chosen(pid, age, monotonic() + limit)
        server.log.info(
            "worker %d has served %d requests and becomes the mold of the next workers",
            pid,
            requests.get(pid, 0),
        )

    def _follow(self, server: Any) -> None:
        """Take the chosen worker's messages, and give it up when it takes too long."""
        chosen = self._chosen
        if chosen is None:
            return
        said = self.service.said(chosen.age)
        if chosen.serving and "molding" in said:
            chosen.serving = False
            self._take_off(server, chosen)
        if "mold" in said:
            self._chosen = None
            self._use(server, chosen, *map(int, said["mold"][:2]))
        elif "refused" in said:
            self._give_up(server, " ".join(said["refused"]))
        elif chosen.serving and chosen.pid not in server.WORKERS:
            self._failures -= 1  # no failure: it reached max_requests, for example
            self._give_up(server, "it has ended")
        elif monotonic() > chosen.until:
            terminate(chosen.pid, signal.SIGKILL)
            self._give_up(server, "it took too long")

    def _take_off(self, server: Any, chosen: _Chosen) -> None:
        """Do not count a worker that stopped serving; its place is filled at once."""
        worker = server.WORKERS.pop(chosen.pid, None)
        if worker is not None:
            worker.tmp.close()
            server.cfg.child_exit(server, worker)

    def _use(self, server: Any, chosen: _Chosen, resident: int, private: int) -> None:
        self._count += 1
        self._reforks += 1
        if self._mold is not None and self._mold.good:
            self._end(self._before)
            self._before = self._mold
        else:
            self._end(self._mold)
        self._use_mold(_Mold(chosen.pid, self.service.lines.pop(chosen.age), self._count))
        server.log.info(
            "workers of generation %d are forked from process %d (%s, %s of it its own)",
            self.generation,
            chosen.pid,
            format_size(resident),
            format_size(private),
        )

    def _give_up(self, server: Any, why: str) -> None:
        chosen, self._chosen = self._chosen, None
        self._failures += 1
        if chosen is not None:
            self.service.forget(chosen.age)
            server.log.warning(
                "worker %d does not become the mold: %s. Workers are forked as before",
                chosen.pid,
                why,
            )

    def _fail(self, server: Any, why: str) -> None:
        """Use the mold before the current one, or else the loader, or else a new one."""
        mold = self._mold
        if mold is None:
            return
        if mold is self._root:
            self._root = None
        self._mold, self._before = self._before or self._root, None
        self._failures += 1
        self._end(mold)
        source = "a process that loads the application again"
        if self._mold is None and not self._has_served(server):
            raise HaltServer(f"no worker can be forked: {why}", _FAILED_STATUS)
        if self._mold is not None:
            self.generation = self._mold.generation
            source = f"process {self._mold.pid}"
        server.log.warning(
            "the mold, process %d, is given up: %s. Workers are forked from %s",
            mold.pid,
            why,
            source,
        )

    def _has_served(self, server: Any) -> bool:
        """Whether any worker has served its first turn since the start."""
        self.service.hear()
        said = (self.service.said(each.age) for each in server.WORKERS.values())
        self._served = self._served or any("ready" in each for each in said)
        return self._served

    def _end(self, mold: _Mold | None) -> None:
        if mold is None or mold is self._root:
            return
        if mold.fork is not None:
            with suppress(Exception):  # the worker may be in an unread message
                mold.fork.hear(mold.line)
            mold.fork.drop()
        mold.line.close()
        self._let_end(mold.pid)

    def _all_molds(self) -> list[_Mold]:
        found = {each.pid: each for each in (self._mold, self._before, self._root) if each}
        return list(found.values())

    # ---- workers --------------------------------------------------------------------------------

    def spawn(self, server: Any) -> bool:
        """Have the mold fork a worker; False if there is none, or it cannot.

        `look` waits for a slow worker, so that the master handles its signals meanwhile: while the
        user's pre_fork runs, or the mold is stopped by SIGSTOP.
        """
        while (mold := self._mold) is not None:
            if self._advance(server, mold):
                return True
        return False

    def _advance(self, server: Any, mold: _Mold) -> bool:
        """Ask a mold for a worker, or follow the request; False: the mold is given up."""
        try:
            if mold.fork is None:
                mold.fork = self._ask(server, mold)
            if mold.fork.hear(mold.line):
                self._manage(server, mold, mold.fork)
                mold.fork = None
        except (EOFError, ConnectionError, TimeoutError, ForkError) as error:
            self._drop_fork(mold)
            if mold is self._mold:
                self._fail(server, str(error))
            else:
                terminate(mold.pid)
            return False
        except Exception as error:  # noqa: BLE001  # a want of descriptors or memory
            self._drop_fork(mold)
            tell(server.log, "no worker can be forked now", error)
        return True

    @staticmethod
    def _drop_fork(mold: _Mold) -> None:
        fork, mold.fork = mold.fork, None
        if fork is not None:
            fork.drop()

    def _ask(self, server: Any, mold: _Mold) -> Fork:
        if not mold.listens:
            descriptors, port = self.service.sockets(server)
            mold.line.send("sockets", port, descriptors=tuple(descriptors))
            mold.listens = True
        age = server.worker_age + 1
        worker = server.worker_class(
            age,
            server.pid,
            server.LISTENERS,
            server.app,
            server.timeout / 2.0,
            server.cfg,
            server.log,
        )
        try:
            os.close(os.dup(worker.tmp.fileno()))  # it comes back as two descriptors
        finally:
            worker.tmp.close()
        server.worker_age = age  # later messages about a failed fork are not about the next one
        mold.line.send("fork", age)
        return Fork(worker, monotonic())

    def _manage(self, server: Any, mold: _Mold, fork: Fork) -> None:
        """Take over a worker that a mold has forked."""
        if not fork.found:
            raise ForkError("its helper ended without a worker")
        worker, (pid, (file, line)) = fork.worker, fork.found.pop()
        worker.tmp._tmp = os.fdopen(file, "w+b", 0)  # noqa: SLF001  # gunicorn's name for its file
        worker.pid = pid
        self.service.lines[worker.age] = Channel.of(line)
        self._generations[worker.age] = mold.generation
        server.WORKERS[pid] = worker
        if hasattr(server, "_stats"):
            server._stats["workers_spawned"] += 1  # noqa: SLF001  # gunicorn 25 on
        with suppress(ProcessLookupError):
            os.kill(pid, 0)
            return
        # A signal handler has reaped it already, as an unknown child.
        del server.WORKERS[pid]
        worker.tmp.close()
        raise ForkError("its worker has ended at once")

    def _renew(self, server: Any) -> bool:
        """Make workers older than the mold leave one after another; False: none is left."""
        workers = sorted(server.WORKERS.values(), key=lambda each: each.age)
        mold = self._mold
        if mold is not None and not mold.good:
            of_it = [each for each in workers if self._is_current(each)]
            if of_it:
                mold.good = self._served = True
                self._failures = 0
                self._end(self._before)
                self._before = None
        old = [each for each in workers if self.generation_of(each.age) != self.generation]
        waited = [each for each in old if each.age == self._asked]
        if waited and not self.service.is_leaving(waited[0]):
            if monotonic() > self._asked_until:
                self._asked_until = monotonic() + server.cfg.graceful_timeout
                server.kill_worker(waited[0].pid, signal.SIGTERM)
            return True
        staying = [each for each in old if not self.service.is_leaving(each)]
        serving = [each for each in workers if not self.service.is_leaving(each)]
        if (
            staying
            and len(serving) >= server.num_workers
            and all("ready" in self.service.said(each.age) for each in serving)
        ):
            self._asked = staying[0].age
            self._asked_until = monotonic() + server.cfg.graceful_timeout
            self.service.ask(self._asked, "leave", "refork")
        return bool(staying)

    # ---- ends -----------------------------------------------------------------------------------

    def look_at_the_dead(self, server: Any) -> None:
        """Reap the children that gunicorn would take for workers.

        These are molds, workers that a mold has forked in vain, and orphans that the kernel has
        given to this process.
        """
        reap_strangers(
            {
                *self._pids(),
                *server.WORKERS,
                server.reexec_pid,
                getattr(server, "dirty_arbiter_pid", 0),
            }
        )
        if self._is_ending:
            return
        self._look_at_molds(server)
        self._look_at_new_workers(server)

    def _look_at_molds(self, server: Any) -> None:
        for each in self._all_molds():
            status = reap(each.pid)
            if status is None:
                continue
            how = f"has ended by signal {-status}" if status < _UNKNOWN_STATUS else "has ended"
            if each is self._mold:
                self._fail(server, f"it {how}")
            self._before = None if each is self._before else self._before
            if each is self._root:
                self._root = None
                text = "process %d, which loaded the application, has ended%s"
                server.log.warning(text, each.pid, how.removeprefix("has ended"))
        loader = self._loader
        if loader is not None and reap(loader.pid) is not None:
            loader.ready = False
            self._follow_loader(server)
            if self._loader is not None:  # the loader had said that it is ready
                self._load_failed(server, "it has ended", rereads=True)
        chosen = self._chosen
        if chosen is not None and not chosen.serving and reap(chosen.pid) is not None:
            self.service.hear()
            self._follow(server)
            if self._chosen is not None:
                self._give_up(server, "it has ended")

    def _look_at_new_workers(self, server: Any) -> None:
        """Give up a mold whose worker cannot boot, if there is another one to go back to."""
        mold, doomed = self._mold, set(self._given_up)
        if mold is not None and not mold.good and (self._before or self._root is not mold):
            doomed.add(mold.generation)
        for pid, worker in list(server.WORKERS.items()):
            generation = self.generation_of(worker.age)
            if generation not in doomed or "ready" in self.service.said(worker.age):
                continue
            status = exited(pid)
            if not status:
                continue
            reap(pid)
            del server.WORKERS[pid]
            worker.tmp.close()
            server.cfg.child_exit(server, worker)
            if self._mold is mold is not None and generation == mold.generation:
                self._given_up.add(generation)
                self._fail(server, f"its worker {pid} ended before it served (status {status})")

    def signal(self, number: int) -> None:
        """Send the molds the signals that gunicorn sends to all workers; SIGKILL after a time."""
        self._is_ending |= number in {signal.SIGTERM, signal.SIGINT, signal.SIGQUIT}
        end = monotonic() + _END_S
        for pid in self._pids():
            while number == signal.SIGKILL and reap(pid) is None and monotonic() < end:
                sleep(_LOOK_S)
            terminate(pid, number)

    def _pids(self) -> list[int]:
        """Return the PIDs of the molds, of the loader, and of those that are leaving."""
        pids = [each.pid for each in self._all_molds()]
        if self._loader is not None:
            pids.append(self._loader.pid)
        pids += self._leaving.keys() - set(pids)
        if self._chosen is not None and not self._chosen.serving:
            pids.append(self._chosen.pid)
        return pids
