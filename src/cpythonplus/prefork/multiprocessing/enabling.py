"""Preparing before `multiprocessing` forks: in this process, and in its fork server.

The children need nothing for their end: `multiprocessing` ends them by `os._exit`.
"""

import os
from collections.abc import Callable
from multiprocessing import forkserver, popen_fork
from multiprocessing.util import register_after_fork
from typing import Any

from cpythonplus.prefork.servers import PREFIX, Parent, Settings, tell

__all__ = ["PRELOAD", "disable", "enable"]

PRELOAD = "cpythonplus.prefork.multiprocessing.preload"
"""The module to name last in a call of `set_forkserver_preload` of one's own."""

# What is private there is asked for by name, and looked at before it is used.
_Popen: Any = popen_fork.Popen


class _Forking:
    """The launching of processes, as it is while enabled; also in children, which may fork too."""

    def __init__(self, parent: Parent) -> None:
        self.parent = parent
        self.stock_launch = _Popen._launch  # noqa: SLF001

    def install(self) -> None:
        """Prepare before each fork of `multiprocessing`, and no other one."""
        stock_launch = self.stock_launch

        def _launch(popen: object, process_obj: object) -> None:
            self.parent.before_fork()
            stock_launch(popen, process_obj)

        _Popen._launch = _launch  # noqa: SLF001
        register_after_fork(self, _Forking.start_worker)

    def remove(self) -> None:
        """Put the stock method back."""
        _Popen._launch = self.stock_launch  # noqa: SLF001

    def start_worker(self) -> None:
        """Run in the child, by `multiprocessing`'s own list of what is to be done there."""
        if _forking is self:
            self.parent.start_worker()


_forking: _Forking | None = None


def enable(
    warm_up: Callable[[], object] | None = None,
    *,
    gil: bool = False,
    locks: bool = False,
    again_bytes: int | None = 0,
) -> None:
    """Have `multiprocessing` fork from a prepared parent, also under `ProcessPoolExecutor`.

    With the start method *fork* this process is prepared right before its first fork, so call this
    when what the children are to share is there; and again, when its heap has grown by some MB,
    only as far as `again_bytes` allows.  With *forkserver* the fork server is, after the
    modules that it preloads; so this has to be called before the first process is started, and
    after `set_forkserver_preload`.  Processes that are *spawned* share nothing:
    nothing is done there.

    warm_up: called once in this process, before it is prepared for the first time.  For the fork
    server the environment variable CPYTHONPLUS_PREFORK_WARM_UP names it.
    gil, locks: whether the children schedule their GIL and use the native locks, where this
    process does not do so already; worth it for children with threads.

    Calling it again changes the options.  Raises nothing where it cannot work: a line is logged.
    """
    global _forking  # noqa: PLW0603
    disable()
    for name, wanted in (("GIL", gil), ("LOCKS", locks)):
        # The fork server is a new interpreter, and the environment is what reaches it.
        os.environ[PREFIX + name] = "on" if wanted else "off"
    if _is_known_launch():
        settings = Settings(
            gil=gil, locks=locks, warm_up=Settings.read().warm_up, again_bytes=again_bytes
        )
        _forking = _Forking(Parent(settings, warm_up))
        _forking.install()
    else:
        tell("this interpreter's multiprocessing forks in another way; nothing is prepared for it")
    _extend_preload()


def disable() -> None:
    """Have processes started from now on as in stock Python.

    What is prepared stays so, and a fork server that runs goes on.
    """
    global _forking  # noqa: PLW0603
    if _forking is not None:
        _forking.remove()
        _forking = None
    names = _preload_names()
    if names is not None and PRELOAD in names:
        forkserver.set_forkserver_preload([name for name in names if name != PRELOAD])


def _is_known_launch() -> bool:
    """Whether `Popen._launch`, which is private, is what forks, with the arguments expected."""
    code = getattr(getattr(_Popen, "_launch", None), "__code__", None)
    return (
        code is not None
        and code.co_varnames[: code.co_argcount] == ("self", "process_obj")
        and "fork" in code.co_names
    )


def _preload_names() -> list[str] | None:
    """Return what the fork server preloads; None where that cannot be told: it is private."""
    names = getattr(getattr(forkserver, "_forkserver", None), "_preload_modules", None)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return None
    return names


def _extend_preload() -> None:
    names = _preload_names()
    if names is None:
        tell(f"name {PRELOAD} in set_forkserver_preload to have the fork server prepared")
        return
    server = getattr(forkserver, "_forkserver", None)
    if getattr(server, "_forkserver_pid", None) is not None:
        tell("the fork server runs already, unprepared; call enable() before the first process")
    forkserver.set_forkserver_preload([*names, PRELOAD])
