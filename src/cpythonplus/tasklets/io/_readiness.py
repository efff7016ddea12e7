"""How select(), poll() and epoll wait: only the tasklet, for any number of descriptors.

The standard call is made with time-out 0.  Where it finds nothing, the tasklet waits until *one*
descriptor is readable: an epoll that watches all of them; then the standard call is made again.  So
what is found, in which order and with which errors, is always what the standard call says.
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

# The rest of poll(2)'s bits mean nothing to epoll, or something else.
_EVENTS = 0x27DF

_LOOK_EVERY_S = 0.005  # where nobody can tell us


def wait(fd: int, events: int, limit: Limit) -> bool:
    """Block the tasklet until the descriptor may be ready; False: the time is over.

    OSError of epoll_ctl(2); what is thrown into the tasklet, a TimeoutError too.
    """
    try:
        _native.io_wait(fd, events, limit.left(), False)  # noqa: FBT003
    except TimeoutError:
        if not limit.is_over():
            raise  # somebody else's
        return False
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    else:
        return True
    return _look_again_soon(limit)


def _look_again_soon(limit: Limit) -> bool:
    """Wait a little; False: the time is over.

    For where the kernel refuses to watch (EINVAL): it allows a descriptor a hundred ways through
    epolls to the event loop's, and each tasklet that waits for several descriptors takes one.
    """
    left = limit.left()
    pause(_LOOK_EVERY_S if left is None else min(left, _LOOK_EVERY_S))
    return not limit.is_over()


def pause(seconds: float) -> None:
    """Let the other tasklets run for so long, once at least."""
    _native.io_sleep(seconds)


def until_found(
    look: Callable[[], Found],
    block: Callable[[float | None], Found],
    watched: Mapping[int, int],
    seconds: float | None,
) -> Found:
    """Return what `look` finds, or its empty result when so many seconds are over.

    look: the standard call with time-out 0; it has found nothing just now.  block: the same with a
    time-out in seconds, which has the whole thread wait.  watched: events (EPOLL*) by descriptor.
    """
    limit = Limit(seconds)
    if len(watched) == 1:
        ((fd, events),) = watched.items()
        if events & ~(EPOLLIN | EPOLLOUT) == 0 and events:
            over = not wait(fd, events, limit)
            found = look()
            if found or over:
                return found
            # Ready in another way than was asked for, or somebody else was faster.
    try:
        waiting = epoll()
    except OSError as error:
        if error.errno not in {errno.EMFILE, errno.ENFILE}:
            raise
        return _look_now_and_then(look, limit)
    with waiting as together:
        for fd, events in watched.items():
            try:
                # Edges: what is ready in a way that nobody asked for must not be told for ever.
                together.register(fd, (events & _EVENTS) | EPOLLET)
            except PermissionError:
                pass  # a regular file: it would have been found if it could be
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
    """Return what `look` finds after `which` became readable.  edges: they are to be taken."""
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
        # What this thread's tasklets wait for is among the descriptors: it is the event loop that
        # gives them their turns which sleeps here, when none of them can run.
        return block(limit.left())
    return look()
