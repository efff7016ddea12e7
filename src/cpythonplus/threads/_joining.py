"""Waiting for the end of a thread, with an answer."""

TYPE_CHECKING = False  # as in typing, whose import costs more than all the rest
if TYPE_CHECKING:
    from threading import Thread


def join(thread: "Thread", timeout: float | None = None) -> bool:
    """Wait until ``thread`` has ended, at most ``timeout`` seconds; return whether it has.

    ``Thread.join`` returns None in both cases.  None waits as long as it takes; 0 or less only
    looks.  Raises what ``Thread.join`` raises: RuntimeError for a thread that has not been started
    and for the calling thread itself, OverflowError for a time-out that is too large.
    """
    thread.join(timeout)
    return not thread.is_alive()
