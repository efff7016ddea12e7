"""Memory and its causes by name: cycles, the heap, resident memory, caches; and ways to free it."""

from cpythonplus import _on_demand

TYPE_CHECKING = False  # as in typing, whose import costs more than all the rest
if TYPE_CHECKING:
    from cpythonplus._compact.dict import CompactDict
    from cpythonplus._compact.record import Record
    from cpythonplus._compact.shared_keys import share_keys, shared_dict
    from cpythonplus.memory import allocators, closures, cycles, exceptions, report
    from cpythonplus.memory._attribution.asgi import attribute_asgi
    from cpythonplus.memory._attribution.asking import attributed
    from cpythonplus.memory._attribution.celery import attribute_celery
    from cpythonplus.memory._attribution.dask import attribute_dask
    from cpythonplus.memory._attribution.model import Attributed, AttributedRow
    from cpythonplus.memory._attribution.spans import attribute
    from cpythonplus.memory._attribution.wsgi import attribute_wsgi
    from cpythonplus.memory._caches import Cache, Caches, FixedCost, caches
    from cpythonplus.memory._census import (
        Census,
        CensusRow,
        Difference,
        PathStep,
        ReferencePath,
        Referrer,
        Referrers,
        census,
    )
    from cpythonplus.memory._dicts import Gain, KeySharing, LostSharing, Oversized, key_sharing
    from cpythonplus.memory._garbage.weakrefs import clear_weakrefs
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
    from cpythonplus.memory._resident import Advice, Arenas, Pin, Resident, ResidentPart, resident
    from cpythonplus.memory._subprocesses import ChildEndedError, in_subprocess
    from cpythonplus.memory._trim import Trimmed, TrimStep, trim

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
    "._attribution.asgi": "attribute_asgi",
    "._attribution.asking": "attributed",
    "._attribution.celery": "attribute_celery",
    "._attribution.dask": "attribute_dask",
    "._attribution.model": "Attributed AttributedRow",
    "._attribution.spans": "attribute",
    "._attribution.wsgi": "attribute_wsgi",
    "._caches": "Cache Caches FixedCost caches",
    "._census": "Census CensusRow Difference PathStep ReferencePath Referrer Referrers census",
    "._dicts": "Gain KeySharing LostSharing Oversized key_sharing",
    "._garbage.weakrefs": "clear_weakrefs",
    "._owners.looking": "growth owners",
    "._owners.model": "ClassKept Counted Growth Owner Owners PartGrown Where",
    "._resident": "Advice Arenas Pin Resident ResidentPart resident",
    "._subprocesses": "ChildEndedError in_subprocess",
    "._trim": "TrimStep Trimmed trim",
    ".allocators": "allocators",
    ".closures": "closures",
    ".cycles": "cycles",
    ".exceptions": "exceptions",
    ".report": "report",
    "cpythonplus._compact.dict": "CompactDict",
    "cpythonplus._compact.record": "Record",
    "cpythonplus._compact.shared_keys": "share_keys shared_dict",
}
if not TYPE_CHECKING:  # unknown names are errors
    __getattr__, __dir__ = _on_demand(globals(), _HOMES)
