"""Tells the resident memory of this process, its causes, and the remedies.

Imports next to nothing: modules that are imported after a burst of allocations would lie in the
arenas that the burst left behind, and would be found there.
"""

import sys

from cpythonplus import _on_demand

TYPE_CHECKING = False  # as in typing, whose import costs more than all the rest
if TYPE_CHECKING:
    from cpythonplus.memory._resident.model import Advice, Arenas, Pin, Resident, ResidentPart

__all__ = ["Advice", "Arenas", "Pin", "Resident", "ResidentPart", "resident"]


def resident(*, pins: bool = True) -> "Resident":
    """Return the resident memory of this process, its causes, and the remedies.

    pins: find out which objects keep free memory. The program is paused about as long as for a
    census, and for a fork(): a copy of the process looks for the holder of each object that keeps 1
    MiB or more. If false, it is paused once, while the arenas are read: about 10 ms for a GiB.

    Reads `/proc/self/smaps`, pymalloc's arenas and the C library's heaps from outside; changes
    nothing and runs none of the program's code. If the layout of a part is unknown, the part is
    left out, and `notes` say so. Linux with the C library glibc.
    """
    from cpythonplus.memory._resident.snapshot import take

    snapshot = take(pins=pins)  # before anything else is imported or made
    before = len(sys.modules)
    from cpythonplus.memory._resident.examining import examine
    from cpythonplus.memory._resident.own import note

    found = examine(snapshot)
    note(before)
    return found


_HOMES = {".model": "Advice Arenas Pin Resident ResidentPart"}
if not TYPE_CHECKING:  # names that are not listed are errors
    __getattr__, __dir__ = _on_demand(globals(), _HOMES)
