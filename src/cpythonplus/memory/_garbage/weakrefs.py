"""Weak references to objects that are recycled rather than destroyed."""

from cpythonplus import _native


def clear_weakrefs(obj: object, *, call_callbacks: bool = True) -> int:
    """Make all weak references to an object dead, as if it had died; it may get new ones.

    For an object that goes back to a pool: its weak references are meant for its earlier use.
    Entries of weak dictionaries and sets, proxies and subclasses of `weakref.ref` are weak
    references too.

    call_callbacks: whether the references' callbacks are called, as at an object's death: after all
        references are dead, the newest first; their exceptions go to `sys.unraisablehook`, and the
        others still run. Else they are dropped: weak dictionaries and sets keep their dead entries,
        and a `weakref.finalize` never runs, not at exit either.

    Returns how many there were; 0 for an object that cannot have any. Raises TypeError for a class,
    whose subclasses the interpreter itself finds by weak references.
    """
    return _native.memory_clear_weakrefs(obj, call_callbacks)
