"""What keeps memory, by name: cycles, the heap, resident memory, caches; and what frees it."""

from cpythonplus import _on_demand

TYPE_CHECKING = False  # as in typing, whose import costs more than all the rest
if TYPE_CHECKING:
    from cpythonplus.memory import allocators, closures, cycles, exceptions, report
    from cpythonplus.memory._attribution.asgi import attribute_asgi
    from cpythonplus.memory._attribution.asking import attributed
    from cpythonplus.memory._attribution.celery import attribute_celery
    from cpythonplus.memory._attribution.dask import attribute_dask
    from cpythonplus.memory._attribution.model import Attributed, AttributedRow
    from cpythonplus.memory._attribution.spans import attribute
    from cpythonplus.memory._attribution.wsgi import attribute_wsgi
    from cpythonplus.memory._compact_dict import CompactDict
    from cpythonplus.memory._heap_census import (
        Census,
        CensusRow,
        Difference,
        PathStep,
        ReferencePath,
        Referrer,
        Referrers,
        census,
    )
    from cpythonplus.memory._hidden_caches import Cache, Caches, FixedCost, caches
    from cpythonplus.memory._key_sharing import (
        Gain,
        KeySharing,
        LostSharing,
        Oversized,
        key_sharing,
    )
    from cpythonplus.memory._owners.looking import growth, owners
    from cpythonplus.memory._owners.model import (
        ClassKept,
        Counted,
        Growth,
        Owner,
        Owners,
        PartGrown,
        Where,
    )
    from cpythonplus.memory._record import Record
    from cpythonplus.memory._resident_memory import (
        Advice,
        Arenas,
        Pin,
        Resident,
        ResidentPart,
        resident,
    )
    from cpythonplus.memory._shared_keys import share_keys, shared_dict
    from cpythonplus.memory._subprocesses import ChildEndedError, in_subprocess
    from cpythonplus.memory._trimming import Trimmed, TrimStep, trim
    from cpythonplus.memory._weakrefs import clear_weakrefs

__all__ = [
    "Advice",
    "Arenas",
    "Attributed",
    "AttributedRow",
    "Cache",
    "Caches",
    "Census",
    "CensusRow",
    "ChildEndedError",
    "ClassKept",
    "CompactDict",
    "Counted",
    "Difference",
    "FixedCost",
    "Gain",
    "Growth",
    "KeySharing",
    "LostSharing",
    "Oversized",
    "Owner",
    "Owners",
    "PartGrown",
    "PathStep",
    "Pin",
    "Record",
    "ReferencePath",
    "Referrer",
    "Referrers",
    "Resident",
    "ResidentPart",
    "TrimStep",
    "Trimmed",
    "Where",
    "allocators",
    "attribute",
    "attribute_asgi",
    "attribute_celery",
    "attribute_dask",
    "attribute_wsgi",
    "attributed",
    "caches",
    "census",
    "clear_weakrefs",
    "closures",
    "cycles",
    "exceptions",
    "growth",
    "in_subprocess",
    "key_sharing",
    "owners",
    "report",
    "resident",
    "share_keys",
    "shared_dict",
    "trim",
]

_HOMES = {
    "Advice": "._resident_memory",
    "Arenas": "._resident_memory",
    "Attributed": "._attribution.model",
    "AttributedRow": "._attribution.model",
    "Cache": "._hidden_caches",
    "Caches": "._hidden_caches",
    "Census": "._heap_census",
    "CensusRow": "._heap_census",
    "ChildEndedError": "._subprocesses",
    "ClassKept": "._owners.model",
    "Counted": "._owners.model",
    "CompactDict": "._compact_dict",
    "Difference": "._heap_census",
    "FixedCost": "._hidden_caches",
    "Gain": "._key_sharing",
    "Growth": "._owners.model",
    "KeySharing": "._key_sharing",
    "LostSharing": "._key_sharing",
    "Oversized": "._key_sharing",
    "Owner": "._owners.model",
    "Owners": "._owners.model",
    "PartGrown": "._owners.model",
    "Pin": "._resident_memory",
    "PathStep": "._heap_census",
    "Record": "._record",
    "ReferencePath": "._heap_census",
    "Referrer": "._heap_census",
    "Referrers": "._heap_census",
    "Resident": "._resident_memory",
    "ResidentPart": "._resident_memory",
    "TrimStep": "._trimming",
    "Trimmed": "._trimming",
    "Where": "._owners.model",
    "allocators": ".allocators",
    "attribute": "._attribution.spans",
    "attribute_asgi": "._attribution.asgi",
    "attribute_celery": "._attribution.celery",
    "attribute_dask": "._attribution.dask",
    "attribute_wsgi": "._attribution.wsgi",
    "attributed": "._attribution.asking",
    "caches": "._hidden_caches",
    "census": "._heap_census",
    "clear_weakrefs": "._weakrefs",
    "closures": ".closures",
    "cycles": ".cycles",
    "exceptions": ".exceptions",
    "growth": "._owners.looking",
    "in_subprocess": "._subprocesses",
    "key_sharing": "._key_sharing",
    "owners": "._owners.looking",
    "report": ".report",
    "resident": "._resident_memory",
    "share_keys": "._shared_keys",
    "shared_dict": "._shared_keys",
    "trim": "._trimming",
}
if not TYPE_CHECKING:  # names that are not listed are errors
    __getattr__, __dir__ = _on_demand(globals(), _HOMES)
