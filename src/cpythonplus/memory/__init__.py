"""What keeps memory, by name: cycles, the heap, resident memory, caches; and what frees it."""

TYPE_CHECKING = False  # as in typing, whose import costs more than all the rest
if TYPE_CHECKING:
    from cpythonplus.memory import allocators, closures, cycles, exceptions
    from cpythonplus.memory.heap_census import census
    from cpythonplus.memory.hidden_caches import caches
    from cpythonplus.memory.key_sharing import dicts
    from cpythonplus.memory.resident_memory import resident
    from cpythonplus.memory.subprocesses import in_subprocess
    from cpythonplus.memory.trimming import trim
    from cpythonplus.memory.weakrefs import clear_weakrefs

__all__ = [
    "allocators",
    "caches",
    "census",
    "clear_weakrefs",
    "closures",
    "cycles",
    "dicts",
    "exceptions",
    "in_subprocess",
    "resident",
    "trim",
]

_HOMES = {
    "allocators": "cpythonplus.memory.allocators",
    "caches": "cpythonplus.memory.hidden_caches",
    "census": "cpythonplus.memory.heap_census",
    "clear_weakrefs": "cpythonplus.memory.weakrefs",
    "closures": "cpythonplus.memory.closures",
    "cycles": "cpythonplus.memory.cycles",
    "dicts": "cpythonplus.memory.key_sharing",
    "exceptions": "cpythonplus.memory.exceptions",
    "in_subprocess": "cpythonplus.memory.subprocesses",
    "resident": "cpythonplus.memory.resident_memory",
    "trim": "cpythonplus.memory.trimming",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(_HOMES[name])
    value: object = module if module.__name__.endswith(f".{name}") else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
