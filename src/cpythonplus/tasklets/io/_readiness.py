"""The waits of select(), poll() and epoll: only of the tasklet, for any number of descriptors.

The standard call is made with time-out 0.  If it finds nothing, the tasklet waits until *one*
descriptor is readable, an epoll that watches all of them; then the standard call is made again.
So the result, its order and its errors are always those of the standard call.
"""

import errno
from collections.abc import Callable, Mapping
from select import EPOLLET, EPOLLIN, EPOLLOUT, epoll
from typing import TypeVar

from cpythonplus import _native
from cpythonplus.tasklets.io import _running as running
from cpythonplus.tasklets.io._descriptors import Limit

running.switch()

__all__ = ["Limit", "pause", "until_found", "wait", "wait_for_epoll"]

Found = TypeVar("Found")

# The other bits of poll(2) have no meaning in epoll, or another one.
_EVENTS = 0x27DF

_LOOK_EVERY_S = 0.005  # if nothing can notify us


def wait(fd: int, events: int, limit: Limit) -> bool:
    """Block the tasklet until the descriptor may be ready; False: the time is over.

    OSError as of epoll_ctl(2); also raises what is thrown into the tasklet, even a TimeoutError.
    """
    try:
        _native.io_wait(fd, events, limit.left(), False)  # noqa: FBT003
    except TimeoutError:
        if not limit.is_over():
            raise  # not of this wait
        return False
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    else:
        return True
    return _look_again_soon(limit)


def _look_again_soon(limit: Limit) -> bool:
    """Wait a little; False: the time is over.

    Used if the kernel refuses to watch (EINVAL): a descriptor may have a hundred ways through
    epolls to the event loop's, and each tasklet that waits for several descriptors takes one.
    """
    left = limit.left()
    pause(_LOOK_EVERY_S if left is None else min(left, _LOOK_EVERY_S))
    return not limit.is_over()


def pause(seconds: float) -> None:
    """Let the other tasklets run for so many seconds, at least once."""
    _native.io_sleep(seconds)


def until_found(
    look: Callable[[], Found],
    block: Callable[[float | None], Found],
    watched: Mapping[int, int],
    seconds: float | None,
) -> Found:
    """Return what `look` finds, or its empty result when `seconds` are over.

    look: the standard call with time-out 0, which has found nothing just now.  block: the same
    call with a time-out in seconds; it blocks the whole thread.  watched: descriptor -> EPOLL*.
    """
    limit = Limit(seconds)
    if len(watched) == 1:
        ((fd, events),) = watched.items()
        if events & ~(EPOLLIN | EPOLLOUT) == 0 and events:
            over = not wait(fd, events, limit)
            found = look()
            if found or over:
                return found
            # The descriptor had another event than those asked for, or other code was faster.
    try:
        waiting = epoll()
    except OSError as error:
        if error.errno not in {errno.EMFILE, errno.ENFILE}:
            raise
        return _look_now_and_then(look, limit)
    with waiting as together:
        for fd, events in watched.items():
            try:
                # Edges, so that readiness that nobody asked for is not reported for ever.
                together.register(fd, (events & _EVENTS) | EPOLLET)
            except PermissionError:
                pass  # a regular file: `look` would have found it if it was ready
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                return _look_now_and_then(look, limit)
        return wait_for_epoll(together, look, block, limit, edges=True)


def _look_now_and_then(look: Callable[[], Found], limit: Limit) -> Found:
    found = look()
    while not found and _look_again_soon(limit):
        found = look()
    return found


def wait_for_epoll(
    which: epoll,
    look: Callable[[], Found],
    block: Callable[[float | None], Found],
    limit: Limit,
    *,
    edges: bool = False,
) -> Found:
    """Return what `look` finds after `which` became readable.  edges: take them from it."""
    try:
        while wait(which.fileno(), EPOLLIN, limit):
            if edges:
                which.poll(0)
            found = look()
            if found:
                return found
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
            # The poller of this thread is among the descriptors: its event loop, which gives the
            # tasklets their turns, sleeps here when none of them can run.
        return block(limit.left())
    return look()
