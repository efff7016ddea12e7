"""Preparing before `multiprocessing` forks: in this process, and in its fork server.

The children need nothing for their end: `multiprocessing` ends them by `os._exit`.
"""

import json
import os
from dataclasses import replace
from multiprocessing import forkserver
from typing import Any

from cpythonplus._base.switch import skipped
from cpythonplus.prefork._engine import Engine
from cpythonplus.prefork._fork.forking import forget, watch
from cpythonplus.prefork._options import log, read, refuse

HANDED = "CPYTHONPLUS_PREFORK_HANDED"
"""The variable that passes the options of `install` to the fork server, a new interpreter, as JSON.
"""

PRELOAD = "cpythonplus.prefork.multiprocessing.preload"
"""The module to name last in a call of `set_forkserver_preload` of one's own."""


def install(**options: Any) -> None:  # noqa: ANN401  # each of its field's type
    """Have `multiprocessing` fork from a prepared parent, also under `ProcessPoolExecutor`.

    With the start method *fork* this process is prepared right before its first fork, so call this
    when the objects that the children share exist; and again, when its heap has grown by some MB,
    only as far as `prepare_again` allows.  With *forkserver* the fork server is, after the modules
    that it preloads; so this has to be called before the first process is started, and after
    `set_forkserver_preload`.  Processes that are *spawned* share nothing: nothing is done there.

    options: fields of `prefork.Options`; a field that is not given is what the environment says.
    `gil` and `threads` are off unless asked for, which is worth it for children with threads.
    Callables do not reach the fork server: give their names, as in "package.module:callable".

    Calling it again changes the options.  Raises ValueError for a wrong value or for an option that
    `multiprocessing` cannot have, TypeError for an unknown option.  If it cannot work a line is
    logged.  With CPYTHONPLUS_DISABLE set it does nothing.
    """
    chosen = refuse(replace(read("multiprocessing"), **options), "multiprocessing")
    uninstall()
    if skipped("prefork.multiprocessing.install()"):
        return
    values = {name: getattr(chosen, name) for name in options}
    os.environ[HANDED] = json.dumps({name: each for name, each in values.items() if _is_text(each)})
    watch(Engine(chosen), "multiprocessing")
    _extend_preload()


def uninstall() -> None:
    """Have processes started from now on as in stock Python.

    A prepared process stays so, and a running fork server goes on.
    """
    forget("multiprocessing")
    names = _preload_names()
    os.environ.pop(HANDED, None)
    if names is not None and PRELOAD in names:
        forkserver.set_forkserver_preload([name for name in names if name != PRELOAD])


def _is_text(value: object) -> bool:
    return not callable(value) and not (isinstance(value, tuple) and any(map(callable, value)))


def _preload_names() -> list[str] | None:
    """Return the modules that the fork server preloads; None if unknown, as that is private."""
    names = getattr(getattr(forkserver, "_forkserver", None), "_preload_modules", None)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return None
    return names


def _extend_preload() -> None:
    names = _preload_names()
    if names is None:
        log.warning("name %s in set_forkserver_preload to have the fork server prepared", PRELOAD)
        return
    server = getattr(forkserver, "_forkserver", None)
    if getattr(server, "_forkserver_pid", None) is not None:
        log.warning(
            "the fork server is already running, unprepared; call install()"
            " before the first process"
        )
    forkserver.set_forkserver_preload([*names, PRELOAD])
