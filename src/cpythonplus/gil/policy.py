"""How the GIL is scheduled, as a value."""

from dataclasses import astuple, dataclass

from cpythonplus.gil.limits import LIMITS, checked

__all__ = ["Policy"]

_DEFAULT = {limit.name: limit.default for limit in LIMITS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The numbers that the scheduler goes by.

    Threads are of two classes.  A thread that recently held the GIL for longer than ``grace_us``
    without giving it up by itself is a *batch* thread, every other one *interactive*.  An
    interactive thread asks a batch thread for the GIL at once, and interactive threads are served
    first, first come first served.

    grace_us: microseconds of holding that make a thread a batch thread (10 to 1,000,000).
    batch_slice_us: one batch thread's turn among batch threads, in microseconds (100 to
        10,000,000); at least ``sys.getswitchinterval()`` whatever it says.
    batch_share: the least part (0 to 0.9) of the GIL's time that the batch threads together get
        while at least one of them waits; they share it equally, in turns.
    starvation_us: the longest time in microseconds (100 to 10,000,000) that interactive threads
        keep the batch threads waiting; after it one batch thread runs, unasked, for as long as
        ``batch_share`` needs.
    spin_us: microseconds (0 to 1,000) that a waiter polls before it sleeps; only when the process
        may run on more than one CPU.

    Raises ValueError, naming the field, for a value that is not a number or out of its bounds.
    """

    grace_us: int = int(_DEFAULT["grace_us"])
    batch_slice_us: int = int(_DEFAULT["batch_slice_us"])
    batch_share: float = float(_DEFAULT["batch_share"])
    starvation_us: int = int(_DEFAULT["starvation_us"])
    spin_us: int = int(_DEFAULT["spin_us"])

    def __post_init__(self) -> None:
        checked(dict(zip(_DEFAULT, astuple(self), strict=True)))
