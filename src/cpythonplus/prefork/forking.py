"""Preparing before every fork, and what a child does first."""

import os
from collections.abc import Callable
from dataclasses import dataclass

from cpythonplus.prefork.exiting import end_lightly
from cpythonplus.prefork.preparing import has_grown, prepare

__all__ = ["child", "disable", "enable"]


@dataclass(slots=True)
class _Options:
    warm_up: Callable[[], object] | None = None
    immortal: bool = True
    fill_pools: bool = True
    keep_mortal: Callable[[type], bool] | None = None
    fast_exit: bool = True


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
) -> None:
    """Have every `os.fork` of this process preceded by `prepare` and followed by `child`.

    Later forks prepare again only when the heap has grown noticeably.  `warm_up` is called before
    the first fork.  May be called again, with other options.

    Args:
        warm_up: as for `prepare`.
        immortal: as for `prepare`.
        fill_pools: as for `prepare`.
        keep_mortal: as for `prepare`.
        fast_exit: let children end without taking their heap apart.  Their exit functions are
        called,
            files and streams are written out, and the status is what it would be.
    """
    global _options, _registered  # noqa: PLW0603
    _options = _Options(warm_up, immortal, fill_pools, keep_mortal, fast_exit)
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
    # One that raises is told of by os.fork, and called again before the next one.
    prepare(
        options.warm_up,
        immortal=options.immortal,
        fill_pools=options.fill_pools,
        keep_mortal=options.keep_mortal,
    )
    options.warm_up = None


def _after() -> None:
    if _options is not None and _options.fast_exit:
        child()
