"""The statistics of the waits at one primitive."""

from dataclasses import dataclass

from cpythonplus._base.data import Data


@dataclass(frozen=True, slots=True)
class WaitStatistics(Data):
    """The waits of threads at one lock, condition or queue since it was made.

    An acquisition that finds the lock free and a ``get`` that finds an item do not wait and are not
    counted, so counting costs them nothing.  Counters go on from zero after 2**32 - 1.

    waits: how often a thread began to wait.  contended: of these, for a lock that was held; the
    others waited for a notification, a release or an item.  timeouts: waits ended by their
    time-out.  spins: how often a waiter polled before it slept; spins_paid: how often that was
    enough.  hand_overs: how often a waiter was served before all others because it had waited for
    long.  total_wait_ns: how long all waits together lasted so far.  longest_wait_ns: the longest
    of them.
    """

    waits: int = 0
    contended: int = 0
    timeouts: int = 0
    spins: int = 0
    spins_paid: int = 0
    hand_overs: int = 0
    total_wait_ns: int = 0
    longest_wait_ns: int = 0
