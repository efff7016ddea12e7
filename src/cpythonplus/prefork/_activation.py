"""Activating the scheduled GIL and the native locks in a server's workers.

No other file of prefork imports `gil` or `threads`.
"""

from collections.abc import Callable

from cpythonplus import _native
from cpythonplus._base.errors import UnsupportedPlatform
from cpythonplus.gil import _limits


def checked_policy(text: str) -> str:
    """Return a policy like `slice_us=5000,spin_us=0` in its normal form; raises ValueError."""
    return _limits.written(_limits.read(text))


def checked_share(text: str) -> str:
    """Return a share of the GIL like `25%` in its normal form; raises ValueError."""
    return f"{_limits.read_share(text):.0%}"


def schedule_gil(policy: str | None = None, job_share: str | None = None) -> str:
    """Schedule this process's GIL; return the reason why that is impossible, or an empty text.

    policy, job_share: texts as `checked_policy` and `checked_share` return them.  Without them, a
    GIL that is scheduled already keeps its own policy.
    """
    from cpythonplus import gil

    numbers = {} if policy is None else _limits.read(policy)
    if job_share is not None:
        numbers[_limits.SHARE] = _limits.read_share(job_share)
    if not numbers:
        return "" if gil.active() else _tried(gil.install)
    chosen = gil.Policy(**numbers)  # type: ignore[arg-type]
    return _tried(lambda: gil.install(chosen))


def rehearse_gil() -> None:
    """Do once in the parent the work that each worker would have to do for scheduling its GIL.

    That is importing, and a trial in a process of its own, whose result the workers inherit.  A GIL
    that is scheduled already stays so.
    """
    from cpythonplus import gil

    if not gil.active() and not schedule_gil():
        gil.statistics()
        gil.uninstall()


def watch_stalls(
    limit_ms: int, tell: Callable[[str], object], count: Callable[[str, str, int], object]
) -> None:
    """Tell which lines keep the GIL, a lock or an event loop for so long from others; 0: never.

    count: called for each of them with its kind, its line and its length in nanoseconds. Without a
    scheduled GIL those of locks and loops are left.
    """
    if limit_ms:
        from cpythonplus.gil import _stall_watch

        _stall_watch.watch_stalls(
            limit_ms, tell, lambda stall: count(stall.kind, str(stall.at), stall.hold_ns)
        )


def count_stalls(count: Callable[[str, str, int], object]) -> float:
    """Have stalls counted, whether they are told or not; return their limit in milliseconds.

    count: as for `watch_stalls`. The limit is 0 if stalls cannot be recorded.
    """
    from cpythonplus.gil import _stall_watch

    return _stall_watch.count_stalls(lambda stall: count(stall.kind, str(stall.at), stall.hold_ns))


def use_native_locks(*, wanted: bool = True) -> str:
    """Put the native or the standard locks in place; return why that is impossible, or ""."""
    from cpythonplus import threads

    return _tried(threads.patch if wanted else threads.unpatch)


def gil_statistics() -> tuple[int, int]:
    """Return the number of waits of this process for the GIL, and their sum in nanoseconds."""
    from cpythonplus import gil

    found = gil.statistics()
    waits = (found.interactive.waits, found.batch.waits)
    return sum(each.count for each in waits), sum(each.total_ns for each in waits)


def thread_use() -> Callable[[], tuple[int, int, int, int, int]]:
    """Return a function that tells what the calling thread has used so far.

    That is, in nanoseconds: its time with the GIL, its waits for it, and its processor time; the
    number of its stalls; and the bytes of the pages that the kernel gave it, since it touched them
    for the first time or wrote to one that was shared (minor page faults, getrusage(2)). The time
    with the GIL, the waits and the stalls are 0 where the GIL is not scheduled.
    """
    return _native.gil_thread_use


def _tried(activate: Callable[[], object]) -> str:
    try:
        activate()
    except UnsupportedPlatform as error:
        return str(error)
    return ""
