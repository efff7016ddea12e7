"""The statistics of the waits for one lock."""

from dataclasses import dataclass

from cpythonplus._base.data import Data


@dataclass(frozen=True, slots=True)
class LockStatistics(Data):
    """The waits of tasklets and threads at one Lock or RLock since it was made.

    An acquisition that finds the lock free does not wait and is not counted, so counting costs it
    nothing.  Counters go on from zero after 2**32 - 1.

    waits: number of waits that began.  timeouts: waits ended by their time-out.  hand_overs: how
    often the lock went straight to the first waiter, instead of becoming free.  in_vain: how often
    a woken waiter found that another one had been faster.  waiting: how many wait now.
    """

    waits: int = 0
    timeouts: int = 0
    hand_overs: int = 0
    in_vain: int = 0
    waiting: int = 0
