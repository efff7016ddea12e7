"""What keeps memory, by name: cycles, the heap, resident memory, caches; and what frees it."""

from cpythonplus import _on_demand

TYPE_CHECKING = False  # as in typing, whose import costs more than all the rest
if TYPE_CHECKING:
    from cpythonplus.memory import allocators, closures, cycles, exceptions, report
    from cpythonplus.memory._heap_census import (
        Census,
        CensusRow,
        Difference,
        ReferencePath,
        Referrer,
        Referrers,
        census,
    )
    from cpythonplus.memory._hidden_caches import Cache, Caches, FixedCost, caches
    from cpythonplus.memory._key_sharing import KeySharing, LostSharing, Oversized, key_sharing
    from cpythonplus.memory._resident_memory import (
        Advice,
        Arenas,
        Pin,
        Resident,
        ResidentPart,
        resident,
    )
    from cpythonplus.memory._subprocesses import ChildEndedError, in_subprocess
    from cpythonplus.memory._trimming import Trimmed, TrimStep, trim
    from cpythonplus.memory._weakrefs import clear_weakrefs

__all__ = [
    "Advice",
    "Arenas",
    "Cache",
    "Caches",
    "Census",
    "CensusRow",
    "ChildEndedError",
    "Difference",
    "FixedCost",
    "KeySharing",
    "LostSharing",
    "Oversized",
    "Pin",
    "ReferencePath",
    "Referrer",
    "Referrers",
    "Resident",
    "ResidentPart",
    "TrimStep",
    "Trimmed",
    "allocators",
    "caches",
    "census",
    "clear_weakrefs",
    "closures",
    "cycles",
    "exceptions",
    "in_subprocess",
    "key_sharing",
    "report",
    "resident",
    "trim",
]

_HOMES = {
    "Advice": "._resident_memory",
    "Arenas": "._resident_memory",
    "Cache": "._hidden_caches",
    "Caches": "._hidden_caches",
    "Census": "._heap_census",
    "CensusRow": "._heap_census",
    "ChildEndedError": "._subprocesses",
    "Difference": "._heap_census",
    "FixedCost": "._hidden_caches",
    "KeySharing": "._key_sharing",
    "LostSharing": "._key_sharing",
    "Oversized": "._key_sharing",
    "Pin": "._resident_memory",
    "ReferencePath": "._heap_census",
    "Referrer": "._heap_census",
    "Referrers": "._heap_census",
    "Resident": "._resident_memory",
    "ResidentPart": "._resident_memory",
    "TrimStep": "._trimming",
    "Trimmed": "._trimming",
    "allocators": ".allocators",
    "caches": "._hidden_caches",
    "census": "._heap_census",
    "clear_weakrefs": "._weakrefs",
    "closures": ".closures",
    "cycles": ".cycles",
    "exceptions": ".exceptions",
    "in_subprocess": "._subprocesses",
    "key_sharing": "._key_sharing",
    "report": ".report",
    "resident": "._resident_memory",
    "trim": "._trimming",
}
if not TYPE_CHECKING:  # names that are not listed are errors
    __getattr__, __dir__ = _on_demand(globals(), _HOMES)
