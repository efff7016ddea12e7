"""The recipe of 2017: no garbage collection in the workers at all.

Instagram's engineers turned the collector off, for it wrote to every object's header and so made
shared pages private; `gc.disable()` was not enough, since a library turned it on again (C. Wu and
M. Ni, "Dismissing Python Garbage Collection at Instagram", 2017).  `gc.freeze` and immortal
objects are the better answer if they exist: cycles are then still found.
"""

import gc
import warnings

_originals: dict[str, object] = {}
_NAMES = ("enable", "set_threshold")


def keep_gc_off() -> None:
    """Turn the garbage collector off so that nothing in this process and its children turns it on.

    `gc.enable` and `gc.set_threshold` do nothing from now on but warn once (RuntimeWarning);
    `gc.collect` still collects.  Cyclic garbage stays for as long as the process lives.
    """
    if _originals:
        return
    _originals.update((name, getattr(gc, name)) for name in _NAMES)
    _originals["thresholds"] = gc.get_threshold()
    _originals["enabled"] = gc.isenabled()
    gc.disable()
    # A library may have saved `enable` before: calling it then turns the collector on, to no
    # effect.
    gc.set_threshold(0)
    for name in _NAMES:
        setattr(gc, name, _refuse)


def let_gc_run() -> None:
    """Undo `keep_gc_off`."""
    if not _originals:
        return
    for name in _NAMES:
        setattr(gc, name, _originals[name])
    gc.set_threshold(*_originals["thresholds"])  # type: ignore[misc]
    if _originals["enabled"]:
        gc.enable()  # noqa: CYC401  # as the application had it
    _originals.clear()


def _refuse(*_: object) -> None:
    warnings.warn(
        "the garbage collector is kept off (cpythonplus.prefork.keep_gc_off)",
        RuntimeWarning,
        stacklevel=2,
    )
