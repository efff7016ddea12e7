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
    from cpythonplus.memory._dicts import (
        Gain,
        KeySharing,
        LostSharing,
        Oversized,
        key_sharing,
    )
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
    from cpythonplus.memory._resident import (
        Advice,
        Arenas,
        Pin,
        Resident,
        ResidentPart,
        resident,
    )
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
    "Advice": "._resident",
    "Arenas": "._resident",
    "Attributed": "._attribution.model",
    "AttributedRow": "._attribution.model",
    "Cache": "._caches",
    "Caches": "._caches",
    "Census": "._census",
    "CensusRow": "._census",
    "ChildEndedError": "._subprocesses",
    "ClassKept": "._owners.model",
    "Counted": "._owners.model",
    "CompactDict": "cpythonplus._compact.dict",
    "Difference": "._census",
    "FixedCost": "._caches",
    "Gain": "._dicts",
    "Growth": "._owners.model",
    "KeySharing": "._dicts",
    "LostSharing": "._dicts",
    "Oversized": "._dicts",
    "Owner": "._owners.model",
    "Owners": "._owners.model",
    "PartGrown": "._owners.model",
    "Pin": "._resident",
    "PathStep": "._census",
    "Record": "cpythonplus._compact.record",
    "ReferencePath": "._census",
    "Referrer": "._census",
    "Referrers": "._census",
    "Resident": "._resident",
    "ResidentPart": "._resident",
    "TrimStep": "._trim",
    "Trimmed": "._trim",
    "Where": "._owners.model",
    "allocators": ".allocators",
    "attribute": "._attribution.spans",
    "attribute_asgi": "._attribution.asgi",
    "attribute_celery": "._attribution.celery",
    "attribute_dask": "._attribution.dask",
    "attribute_wsgi": "._attribution.wsgi",
    "attributed": "._attribution.asking",
    "caches": "._caches",
    "census": "._census",
    "clear_weakrefs": "._garbage.weakrefs",
    "closures": ".closures",
    "cycles": ".cycles",
    "exceptions": ".exceptions",
    "growth": "._owners.looking",
    "in_subprocess": "._subprocesses",
    "key_sharing": "._dicts",
    "owners": "._owners.looking",
    "report": ".report",
    "resident": "._resident",
    "share_keys": "cpythonplus._compact.shared_keys",
    "shared_dict": "cpythonplus._compact.shared_keys",
    "trim": "._trim",
}
if not TYPE_CHECKING:  # unknown names are errors
    __getattr__, __dir__ = _on_demand(globals(), _HOMES)
