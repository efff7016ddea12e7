"""The results of attributing growth to names."""

from dataclasses import dataclass
from typing import Literal

from cpythonplus._base.data import Data
from cpythonplus.memory._examined import Examined

Finding = Literal["grows", "steady", "warms up", "levels off", "offset", "unclear", "too few"]
Evidence = Literal["alone", "together", ""]


@dataclass(frozen=True, slots=True)
class AttributedRow(Data):
    """The growth by the calls of one task or route.

    calls: all of them; alone: those that were measured while no other was open. busy_ns: the time
    of all. bytes_per_call: the average growth by one, over the last half of the calls, small
    objects at the process's average size; of one that grows, only the part that grows: malloc's
    bytes, small objects or both. error_bytes: the error is smaller in 19 of 20 cases. grown_bytes:
    the growth by all calls of the last half. first_bytes: the growth by the first few calls, that
    is, the warm-up; 0 if they overlapped.

    finding: `grows`: each call adds, and it is not freed elsewhere. `steady`: the growth cannot be
    told from 0. `warms up`: steady, after the first calls. `levels off`: the last calls add far
    less, as with a cache that fills. `offset`: as much may be freed outside of its calls, by
    another name that takes over, or by the collector. `unclear`: it always runs together with
    others. `too few`: calls. evidence: `alone` if it was measured so; `together` if it follows from
    the growth while several were open; "" for none. beside: the one that it cannot be told from, ""
    if there is none.
    """

    name: str
    calls: int
    alone: int
    busy_ns: int
    bytes_per_call: float
    error_bytes: float
    grown_bytes: int
    first_bytes: int
    finding: Finding
    evidence: Evidence
    beside: str = ""


@dataclass(frozen=True, slots=True)
class Attributed(Examined):
    """The growth of this process by task or route, those that grow first.

    seconds: since the first was attributed; calls: of all. private_bytes: the process's memory that
    nothing else shares, now and before. grown_bytes: the growth of the process in the last half of
    the calls, measured as the rows are; of that, unattributed_bytes is in no row that grows.
    block_bytes: the average size of a small object's block. collected: whether the collector was
    run first; else garbage counts as growth. malloc: whether bytes are malloc's; else they are
    private memory. measured_share: of the time, spent on measuring.
    """

    examination = "attributed"

    seconds: float
    calls: int
    private_bytes: int
    private_before_bytes: int
    grown_bytes: int
    unattributed_bytes: int
    block_bytes: float
    collected: bool
    malloc: bool
    measured_share: float
    rows: tuple[AttributedRow, ...]
