"""Putting our hooks beside the user's, so that neither takes the other's place or ends the master.

Neither our hooks nor the user's end a running master.  While it starts, a failing wish of the user
ends it: HaltServer.
"""

# The arguments of the hooks differ between versions of gunicorn and classes of workers.
# ruff: noqa: ANN401

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

from gunicorn.errors import HaltServer

from cpythonplus.prefork._guarding import Guard
from cpythonplus.prefork._gunicorn.service import SERVICE

if TYPE_CHECKING:
    from collections.abc import Callable

    from gunicorn.config import Config

HOOKS = (
    "on_starting",
    "on_reload",
    "nworkers_changed",
    "pre_exec",
    "pre_fork",
    "post_fork",
    "post_worker_init",
    "worker_abort",
    "worker_exit",
    "child_exit",
)
"""The hooks that we need or guard.  The user's come first if ours has to be the last."""

_THEIRS_FIRST = frozenset({"on_starting", "pre_fork", "post_worker_init", "worker_exit"})
_IN_WORKER = frozenset({"post_fork", "post_worker_init", "worker_abort", "worker_exit"})
_OURS = "_cpythonplus_hook"


def compose(cfg: Config) -> None:
    """Put our hooks beside the user's in a configuration; harmless when done already."""
    for name in HOOKS:
        setting = cfg.settings[name]
        theirs = setting.get()
        if not hasattr(theirs, _OURS):
            # setting.set() would refuse the composed hook, because it counts the arguments.
            setting.value = _composed(name, theirs)


def _composed(name: str, theirs: Callable[..., object]) -> Callable[..., object]:
    """Return a hook that calls ours and theirs, in the order that the hook needs.

    Our hook never ends the process, except by HaltServer while the master starts.  The user's hook
    ends a starting master, as with gunicorn; it ends a running one only by HaltServer: else an
    error at the thousandth worker would end them all.  In a worker the user's hook is called as by
    gunicorn.
    """
    hook = _of_worker(name, theirs) if name in _IN_WORKER else _of_master(name, theirs)
    hook = functools.wraps(theirs)(hook)
    setattr(hook, _OURS, True)
    return hook


def _of_master(name: str, theirs: Callable[..., object]) -> Callable[..., object]:
    ours: Callable[..., object] = getattr(SERVICE, name)

    def call_ours(server: Any, arguments: tuple[object, ...]) -> None:
        with Guard(server.log, f"cpythonplus' part of {name}", passing=(HaltServer,)):
            ours(server, *arguments)

    def call_theirs(server: Any, arguments: tuple[object, ...]) -> None:
        if not SERVICE.opened or name == "pre_exec":  # in the copy: see Overseer.reexec
            theirs(server, *arguments)
            return
        with Guard(server.log, f"the hook {name}", passing=(HaltServer,)):
            theirs(server, *arguments)

    steps = (call_ours, call_theirs)

    def hook(server: Any, *arguments: object) -> None:
        for step in reversed(steps) if name in _THEIRS_FIRST else steps:
            step(server, arguments)

    return hook


def _of_worker(name: str, theirs: Callable[..., object]) -> Callable[..., object]:
    ours: Callable[..., object] = getattr(SERVICE, name)
    if name == "worker_exit":
        theirs = _guarded(theirs)

    def hook(*arguments: Any) -> None:
        worker = arguments[-1]  # each of these hooks has the worker last
        if name in _THEIRS_FIRST:
            theirs(*arguments)
        # A signal handler may end the worker at any time: by SystemExit, which is not caught.
        with Guard(worker.log, f"cpythonplus' part of {name}", catch=Exception):
            ours(*arguments)
        if name not in _THEIRS_FIRST:
            theirs(*arguments)

    return hook


def _guarded(theirs: Callable[..., object]) -> Callable[..., object]:
    """Log an exception in the user's worker_exit, as gunicorn does, before our hook runs."""

    def guarded(server: Any, worker: Any) -> None:
        try:
            # gunicorn calls it in the master too, for a worker that has vanished.
            if worker.pid == os.getpid():
                theirs(server, worker)
                return
            with Guard(server.log, "the hook worker_exit", passing=(HaltServer,)):
                theirs(server, worker)
        except Exception:  # any error of the user's hook
            worker.log.warning("Exception during worker exit", exc_info=True)

    return guarded
