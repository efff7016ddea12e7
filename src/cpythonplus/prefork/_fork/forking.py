"""Preparing before every fork, and a child's first step."""

import os
import sys
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any

from cpythonplus._base.switch import skipped
from cpythonplus.prefork._fork.exiting import end_lightly
from cpythonplus.prefork._options import read, refuse

if TYPE_CHECKING:
    from cpythonplus.prefork._engine import Engine

_engines: "dict[str, Engine]" = {}  # by the package whose forks they serve; empty: all others
_forks: "Engine | None" = None  # for the worker that is being forked
_registered = False
_child_of = 0  # the parent of this process, once child() was called here


def install(**options: Any) -> None:  # noqa: ANN401  # each of its field's type
    """Have the first `os.fork` of this process preceded by `prepare`, and each followed by `child`.

    Call it when the objects that the children share exist.  Later forks prepare again when the heap
    has grown noticeably, and only as far as `prepare_again` allows.  May be called again, with
    other options: then the next fork is a first one.

    Forks that make no worker are left alone: `subprocess` with a `preexec_fn`, and `os.forkpty`,
    also through `pty.fork`.  With CPYTHONPLUS_DISABLE set it does nothing.

    Args:
        options: fields of `Options`; a field that is not given is what the environment says.
            `gil` and `threads` are off unless asked for.

    Raises ValueError for a wrong value or for an option that a plain fork cannot have, TypeError
    for an unknown option.
    """
    from cpythonplus.prefork._engine import Engine  # large, and only needed by processes that fork

    chosen = refuse(replace(read("os.fork"), **options), "os.fork")
    if not skipped("prefork.install()"):
        watch(Engine(chosen))


def uninstall() -> None:
    """Undo `install`; immortal objects stay immortal."""
    forget()


def watch(engine: "Engine", package: str = "") -> None:
    """Use `engine` for the forks that modules of `package` make; empty: for all other forks."""
    global _registered  # noqa: PLW0603
    _engines[package] = engine
    if not _registered:
        # The hooks cannot be removed: they check whether they are wanted.
        os.register_at_fork(before=_before, after_in_child=_after)
        _registered = True


def forget(package: str = "") -> None:
    """Undo `watch`."""
    _engines.pop(package, None)


def child() -> None:
    """Make this process, just forked from a prepared one, a worker: its end will be fast.

    Does nothing when called again in the same process.  A program that ends its children with
    `fast_exit` or `os._exit` does not need it.
    """
    global _child_of  # noqa: PLW0603
    if _child_of == os.getpid():
        return
    _child_of = os.getpid()
    end_lightly()


def _before() -> None:
    global _forks  # noqa: PLW0603
    _forks = None
    if not _engines:
        return
    caller = sys._getframe(1)  # noqa: SLF001  # the interpreter calls the hook for it
    package = caller.f_globals.get("__name__", "").partition(".")[0]
    engine = _engines.get(package, _engines.get(""))
    if engine is not None and _forks_worker(caller):
        _forks = engine
        engine.before_fork()


def _forks_worker(caller: FrameType) -> bool:
    """Whether the function that `caller` is calling makes a child that goes on with this heap.

    The interpreter calls the hooks of `os.register_at_fork` also for `subprocess` with a
    `preexec_fn`, whose child becomes another program at once, and for `os.forkpty`, which runs a
    program or a shell at a terminal.  The hook is not told which.  So the caller's frame is
    examined: its module, for `subprocess`; and the last name loaded before the call, for `forkpty`,
    since `pty.fork` may call either of the two.  In doubt (called from C, or by another name) it
    counts as a fork: it prepares too early, but once.

    Rejected: an audit hook, which is told the name but cannot be taken back and makes a tuple for
    each of the interpreter's events from then on; replacing `os.forkpty` and `subprocess.Popen`,
    which other modules have imported by then.
    """
    if caller.f_globals.get("__name__") == "subprocess":
        return False
    code = caller.f_code
    if "forkpty" not in (*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars):
        return True
    import dis  # large, and seldom needed

    called = ""
    for each in dis.get_instructions(code):
        if each.offset >= caller.f_lasti:
            break
        if isinstance(each.argval, str):
            called = each.argval
    return called != "forkpty"


def _after() -> None:
    if _forks is None:
        return
    if _forks.options.fast_exit:
        child()
    _forks.start_worker()
