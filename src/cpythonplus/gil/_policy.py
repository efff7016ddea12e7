"""How the GIL is scheduled, as a value."""

from dataclasses import astuple, dataclass

from cpythonplus.gil._limits import LIMITS, checked

_DEFAULT = {limit.name: limit.default for limit in LIMITS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The numbers that the scheduler goes by.

    A thread that has used less of the GIL lately goes before one that has used more, and interrupts
    it at once; threads that use it alike take turns.  Past use fades while a thread stays away from
    the GIL, as fast as it grew.  So a thread that answers requests counts as *interactive*, even if
    each request computes for 50 ms, and a thread that never rests counts as *batch*.

    slice_us: one turn among threads that use the GIL alike, in microseconds (100 to 10,000,000); at
        least ``sys.getswitchinterval()`` whatever it says.
    batch_share: the least part (0 to 0.9) of the GIL's time that the batch threads together get
        while at least one of them waits; they share it equally, in turns.
    spin_us: microseconds (0 to 1,000) that a waiter polls before it sleeps; only when the process
        may run on more than one CPU.

    Raises ValueError, naming the field, for a value that is not a number or out of its bounds.
    """

    slice_us: int = int(_DEFAULT["slice_us"])
    batch_share: float = float(_DEFAULT["batch_share"])
    spin_us: int = int(_DEFAULT["spin_us"])

    def __post_init__(self) -> None:
        checked(dict(zip(_DEFAULT, astuple(self), strict=True)))
