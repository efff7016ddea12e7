"""Preparing before every fork, and what a child does first."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType

from cpythonplus.prefork.exiting import end_lightly
from cpythonplus.prefork.preparing import Budget, has_grown

__all__ = ["child", "disable", "enable"]


@dataclass(slots=True)
class _Options:
    warm_up: Callable[[], object] | None = None
    immortal: bool = True
    fill_pools: bool = True
    keep_mortal: Callable[[type], bool] | None = None
    fast_exit: bool = True
    budget: Budget = field(default_factory=Budget)


_options: _Options | None = None  # None: not enabled
_registered = False
_child_of = 0  # the process that this one was forked from, once child() was called here


def enable(
    *,
    warm_up: Callable[[], object] | None = None,
    immortal: bool = True,
    fill_pools: bool = True,
    keep_mortal: Callable[[type], bool] | None = None,
    fast_exit: bool = True,
    again_bytes: int | None = 0,
) -> None:
    """Have the first `os.fork` of this process preceded by `prepare`, and each followed by `child`.

    Call it when what the children are to share is there.  Later forks prepare again when the heap
    has grown noticeably, and only as far as `again_bytes` allows.  `warm_up` is called before the
    first fork.  May be called again, with other options: then the next fork is a first one.

    What is no fork of a worker is left alone: `subprocess` with a `preexec_fn`, and `os.forkpty`,
    also through `pty.fork`.

    Args:
        warm_up: as for `prepare`.
        immortal: as for `prepare`.
        fill_pools: as for `prepare`.
        keep_mortal: as for `prepare`.
        fast_exit: let children end without taking their heap apart.  Their exit functions are
            called, files and streams are written out, and the status is what it would be.
        again_bytes: how much all forks after the first one may make immortal; see `Budget`.
    """
    global _options, _registered  # noqa: PLW0603
    budget = Budget(again_bytes)
    _options = _Options(warm_up, immortal, fill_pools, keep_mortal, fast_exit, budget)
    if not _registered:
        # There is no way to take these back: they ask whether they are wanted.
        os.register_at_fork(before=_before, after_in_child=_after)
        _registered = True


def disable() -> None:
    """Undo `enable`; what was made immortal stays so."""
    global _options  # noqa: PLW0603
    _options = None


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
    options = _options
    if options is None or not (has_grown() or options.warm_up):
        return
    if not _forks_worker(sys._getframe(1)):  # noqa: SLF001  # the interpreter calls this, for it
        return
    # One that raises is told of by os.fork, and called again before the next one.
    if options.warm_up is not None:
        options.warm_up()
    options.warm_up = None
    options.budget.prepare(
        immortal=options.immortal,
        fill_pools=options.fill_pools,
        keep_mortal=options.keep_mortal,
    )


def _forks_worker(caller: FrameType) -> bool:
    """Whether the function that `caller` is calling makes a child that goes on with this heap.

    The interpreter calls what `os.register_at_fork` knows also for `subprocess` with a
    `preexec_fn`, whose child becomes another program at once, and for `os.forkpty`, which is there
    to run a program or a shell at a terminal.  It does not say for which.  So the frame is looked
    at: the module `subprocess`; and for `forkpty`, since `pty.fork` may call either of the two,
    the last name that was loaded before the call.  Where that does not tell (called from C, or by
    another name) it is a fork: it prepares too early, but once.

    Rejected: an audit hook, which is told the name but cannot be taken back and makes a tuple for
    each of the interpreter's events from then on; replacing `os.forkpty` and `subprocess.Popen`,
    which others have taken out of their modules by then.
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
    if _options is not None and _options.fast_exit:
        child()
