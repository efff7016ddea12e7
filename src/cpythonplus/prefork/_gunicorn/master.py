"""gunicorn's master with ours beside it: its hooks, its workers' ends, and no end by mistake.

gunicorn makes its Arbiter after it has read the configuration; `install` replaces the class by
ours.  Rejected: offering the hooks as names for a configuration file.  A hook that the file defines
itself would replace ours, or be replaced by ours, without a message.
"""

# The arguments of the hooks differ between versions of gunicorn and classes of workers.
# ruff: noqa: ANN401

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from gunicorn.app import base
from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.errors import HaltServer

from cpythonplus.prefork._guarding import Guard, in_one_line, passes_through, tell
from cpythonplus.prefork._gunicorn.hooks import compose
from cpythonplus.prefork._gunicorn.loader import load
from cpythonplus.prefork._gunicorn.mold import Molding, become, deliver, prepare_worker
from cpythonplus.prefork._gunicorn.service import SERVICE, Service
from cpythonplus.prefork._gunicorn.versions import require
from cpythonplus.prefork._limits.children import is_child

_FAILED_STATUS = 1
_ENDING = {signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGKILL}
_OTHERS = ("HUP", "USR1", "USR2", "TTIN", "TTOU", "WINCH")


class Overseer(Arbiter):
    """An Arbiter with our hooks, which knows how its workers end and which of them are leaving."""

    log: Any  # set from setup on
    # The field of the property num_workers, whose setter calls the user's nworkers_changed.
    _num_workers: int
    _halting = False
    _signals_all = False
    _stopping = False
    _taken_over = False

    def setup(self, app: BaseApplication) -> None:
        """Take over a configuration, at the start and after HUP."""
        if app.cfg.reload:
            # The reloader has workers load new code: the master must not load any before.
            app.cfg.set("preload_app", False)  # noqa: FBT003  # gunicorn's
        compose(app.cfg)
        if self.log is None:
            SERVICE.begin_reforking(app.cfg)
        preload = app.cfg.settings["preload_app"]
        wanted = preload.value
        preload.value = wanted and SERVICE.reforking is None  # else the loader imports it
        try:
            super().setup(app)
        finally:
            preload.value = wanted
        with Guard(self.log, "choosing the worker"):
            gthread = sys.modules.get("gunicorn.workers.gthread")
            if gthread is not None and self.worker_class is gthread.ThreadWorker:
                from cpythonplus.prefork._gunicorn import workers as gunicorn_workers

                self.worker_class = getattr(gunicorn_workers, require().worker)
        self._taken_over = True

    def start(self) -> None:
        """Begin; if the application cannot be loaded, the start has ended before, with one line."""
        with Guard(self.log, "proving the facts about this interpreter"):
            SERVICE.tell_losses(self.log, self.cfg)
        changed = [f"{name} is on" for name in getattr(self.cfg, "changed", ())]
        if self.worker_class.__module__.startswith("cpythonplus."):
            changed.append("worker_class gthread is a subclass")
        if changed:
            self.log.info("other settings than gunicorn's: %s", ", ".join(changed))
        try:
            super().start()
        except HaltServer as error:
            if SERVICE.reforking is not None:
                SERVICE.reforking.drop_loader()
            if self.pidfile is not None:
                self.pidfile.unlink()
            if error.reason:
                self.log.error("%s", error.reason)  # noqa: TRY400  # the reason says it all
            sys.exit(error.exit_status)

    def load_application(self) -> None:
        """Have another process load the application, at the start; HaltServer if it cannot."""
        reforking = SERVICE.reforking
        if reforking is None:
            return
        _end_on_signals()
        SERVICE.open_for(self)
        if reforking.load(self):
            self._be_mold(load)
        pid = os.getpid()
        try:
            reforking.wait_for_load(self)
        except Exception as error:
            if os.getpid() != pid:
                raise
            raise HaltServer(in_one_line(error), _FAILED_STATUS) from None

    def reload(self) -> None:
        """HUP: take over a new configuration, and new code if another process loads it."""
        reforking = SERVICE.reforking
        if reforking is None:
            self._take_over()
        elif reforking.load(self, rereads=True):
            self._be_mold(partial(load, rereads=True))

    def _take_over(self) -> None:
        """Take over a new configuration; an unusable one changes nothing.

        gunicorn itself would end the master, and with it the workers that still serve.
        """
        before, pid = _Before(self), os.getpid()
        self._taken_over = False
        try:
            super().reload()
        except BaseException as error:
            # If reload() forked, this may be the worker, and the exception the one that ends it.
            wanted = isinstance(error, HaltServer) or passes_through(error, pid)
            if self._taken_over or wanted:
                raise
            before.restore(self)
            tell(self.log, "HUP failed, the workers continue unchanged", error)

    def reexec(self) -> None:
        """USR2: start another master.  If that fails, this one and its workers go on.

        With gunicorn alone the loop would go on in the copy, and stop the original's workers.
        """
        pid = os.getpid()
        try:
            super().reexec()
        except BaseException as error:
            if os.getpid() == pid and not isinstance(error, Exception):
                raise
            tell(self.log, "USR2: no new master", error)
            if os.getpid() != pid:
                os._exit(_FAILED_STATUS)

    def spawn_worker(self) -> Any:
        """Fork a worker that loses no signals while it starts; see `early_signals`."""
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        try:
            return self._spawn()
        finally:
            SERVICE.forked()
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def _spawn(self) -> Any:
        """Let the mold fork, or fork here."""
        reforking = SERVICE.reforking
        if reforking is None:
            return super().spawn_worker()
        if not reforking.spawn(self) and reforking.load(self):
            self._be_mold(load)
        return None

    def _be_mold(self, prepare: Callable[[Service, Any], None]) -> NoReturn:
        """Be a mold, a helper or a worker to its end; see `mold` for these roles.

        The loop is for a worker that becomes the mold, and for its helpers: the stack does not grow
        with the generations.
        """
        while True:
            become(SERVICE, self, prepare)
            prepare = prepare_worker
            try:
                super().spawn_worker()
                deliver(SERVICE, self)
            except Molding:
                pass
            except BaseException as error:
                if SERVICE.helper_pid != os.getpid():
                    raise
                deliver(SERVICE, self, error)

    def kill_workers(self, sig: int) -> None:
        """Send a signal to all workers, and to the molds and loaders."""
        self._signals_all = True
        try:
            super().kill_workers(sig)
        finally:
            self._signals_all = False
        if SERVICE.reforking is not None and (self._stopping or sig not in _ENDING):
            SERVICE.reforking.signal(sig)  # after WINCH new workers may be wanted

    def stop(self, graceful: bool = True) -> None:  # noqa: FBT001, FBT002  # gunicorn's
        """Stop the workers, and the molds with them."""
        self._stopping = True
        super().stop(graceful)

    def kill_worker(self, pid: int, sig: int) -> None:
        """Send a signal to a worker; before SIGABRT log the place where it hangs.

        A worker that HUP replaces is asked to leave instead if the signal would cut connections.
        """
        if sig == signal.SIGTERM and not self._signals_all:
            with Guard(self.log, "asking a worker to leave"):
                if SERVICE.lets_leave(self, pid):
                    return
        if sig == signal.SIGABRT:
            with Guard(self.log, "looking at a worker that hangs"):
                SERVICE.look_at_hung(self, pid)
        super().kill_worker(pid, sig)

    def reap_workers(self) -> None:
        """Note the exit statuses, which gunicorn's hook does not get, then reap the workers."""
        while True:
            try:
                with Guard(self.log, "looking at workers that have ended", passing=(HaltServer,)):
                    SERVICE.look_at_the_dead(self)
                super().reap_workers()
            except HaltServer:
                # gunicorn before 27 leaves the worker in its list, and would wait for it when it
                # stops.
                for pid in [each for each in self.WORKERS if not is_child(each)]:
                    self.WORKERS.pop(pid).tmp.close()
                # A second worker that could not boot would end the stopping, with a traceback.
                if not self._halting:
                    self._halting = True
                    raise
            else:
                return

    def manage_workers(self) -> None:
        """Start missing workers.  A worker that only serves old connections counts as missing."""
        leaving = 0
        reforking = SERVICE.reforking
        with Guard(self.log, "looking at workers that are leaving", passing=(HaltServer,)):
            SERVICE.hear()
            if reforking is not None:
                reforking.look(self)
            leaving = SERVICE.leaving(self)
        if reforking is not None and reforking.has_reloaded:
            self._take_over()
            reforking.drop_loader()
            return
        with Guard(self.log, "looking at workers that are silent"):
            SERVICE.end_silent(self)
        with Guard(self.log, "describing the master"):
            if reforking is None:  # otherwise a mold describes itself
                SERVICE.describe()
        self._num_workers += leaving
        try:
            super().manage_workers()
        finally:
            self._num_workers -= leaving


class _Stopped(HaltServer, KeyboardInterrupt):
    """A signal ends the start; as Ctrl-C does, it gets through a Guard."""


def _end_on_signals() -> None:
    """Make ending signals end the server in good order while it loads the application at the start.

    gunicorn has no handlers yet, and the pid file exists already.  The other signals are ignored,
    as there is nothing yet that they could change.
    """

    def end(*_: object) -> NoReturn:
        raise _Stopped("", 0)

    for number in _ENDING - {signal.SIGKILL}:
        signal.signal(number, end)
    for name in _OTHERS:
        signal.signal(getattr(signal, f"SIG{name}"), lambda *_: None)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


class _Before:
    """The state of a master before HUP, restored if the new configuration fails."""

    NAMES = ("cfg", "worker_class", "address", "_num_workers", "timeout", "proc_name")

    def __init__(self, master: Overseer) -> None:
        self._master = {name: getattr(master, name) for name in self.NAMES}
        self._application = dict(vars(master.app))
        self._environment = dict(os.environ)
        self._folder: Path | None = None
        with suppress(OSError):  # deleted
            self._folder = Path.cwd()
        self._options = SERVICE.options

    def restore(self, master: Overseer) -> None:
        """Put everything back."""
        for name, value in self._master.items():
            setattr(master, name, value)
        vars(master.app).clear()
        vars(master.app).update(self._application)
        for name in set(os.environ) - set(self._environment):
            del os.environ[name]
        for name, value in self._environment.items():
            if os.environ.get(name) != value:
                os.environ[name] = value
        SERVICE.options = self._options
        with Guard(master.log, "going back to the folder before HUP"):
            if self._folder is not None:
                os.chdir(self._folder)
        with Guard(master.log, "going back to the options before HUP"):
            SERVICE.patch_threads()
        with Guard(master.log, "going back to the log before HUP"):
            master.log.setup(master.cfg)


def install() -> None:
    """Make gunicorn use our Arbiter in this process."""
    base.Arbiter = Overseer  # type: ignore[attr-defined]  # a name that it imports
