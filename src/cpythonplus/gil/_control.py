"""Switching the scheduling of the GIL on and off."""

import sys
from time import monotonic, sleep

from cpythonplus._base.errors import UnsupportedPlatform
from cpythonplus._base.switch import skipped
from cpythonplus.gil._limits import LIMITS, checked

try:
    from cpythonplus import _native
except ImportError as error:  # built without it: not Linux
    _native = None  # type: ignore[assignment]
    _why_not = f"the extension module is missing ({error})"
else:
    _why_not = ""

TYPE_CHECKING = False  # as in typing, whose import costs more than all the rest
if TYPE_CHECKING:
    from cpythonplus.gil._policy import Policy
    from cpythonplus.gil._stats import Statistics

# A thread that asks for the GIL gets it within one bytecode; the limit is for machines that stall.
_PROOF_LIMIT_S = 20.0


def free_threaded() -> bool:
    """Return whether this interpreter is built to run without a GIL.

    This does not tell whether its GIL is on: the GIL may be on for the time of an import, or by
    PYTHON_GIL=1, but it works differently then.
    """
    return "t" in getattr(sys, "abiflags", "")


def install(policy: "Policy | None" = None) -> bool:
    """Schedule the GIL by ``policy`` (default: ``Policy()``) from now on.

    May be called again at any time, by any thread, also to change the policy.

    Returns True if the GIL is scheduled now.  Returns False, and does nothing, on a free-threaded
    build, whether its GIL is on or not, and with CPYTHONPLUS_DISABLE set.  Raises
    UnsupportedPlatform with the reason if the interpreter or the system is not as expected (checked
    with a probe); then nothing has been changed.
    """
    if policy is None:
        return install_numbers({})
    return install_numbers({limit.name: getattr(policy, limit.name) for limit in LIMITS})


def install_numbers(values: dict[str, object]) -> bool:
    """Do what ``install`` does, with the policy's fields as a mapping; saves start-up time."""
    numbers = checked(values)
    if free_threaded() or skipped("gil.install()"):
        return False
    if _native is None:
        raise UnsupportedPlatform(f"the GIL cannot be scheduled here: {_why_not}")
    if _native.gil_active():
        _native.gil_start(*numbers, 0)
        return True
    if not _native.gil_rehearse(_start_and_prove):
        try:
            _start_and_prove()
        except BaseException:
            _native.gil_stop()
            raise
    _native.gil_start(*numbers, 0)
    return True


def _start_and_prove() -> None:
    _native.gil_start(*checked({}), 1)  # every waiter asks at once, so the proof's thread does
    _prove()


def _prove() -> None:
    """Hand the GIL to a thread that asks for it, through the interpreter's own code.

    Inside an atomic section no request is made, so this thread gives the GIL up by itself.
    """
    atomic = _native.atomic.inside()
    _native.gil_prove()
    limit = monotonic() + _PROOF_LIMIT_S
    while not _native.gil_proven():
        if not _native.gil_active():  # another thread has uninstalled it meanwhile
            _native.gil_start(*checked({}), 1)
            _native.gil_prove()
        if monotonic() > limit:
            raise UnsupportedPlatform(
                f"a request for the GIL was not answered within {_PROOF_LIMIT_S:g} s"
            )
        if atomic:
            sleep(0)


def uninstall() -> None:
    """Give the GIL back to the interpreter's own scheduling; waiting threads simply continue.

    Does nothing when it is not installed.  Atomic sections stay in force.
    """
    if _native is not None:
        _native.gil_stop()


def active() -> bool:
    """Return whether the GIL is scheduled by this package now."""
    return _native is not None and _native.gil_active()


def statistics() -> "Statistics":
    """Return the counts since the installation, the last reset or the fork."""
    from cpythonplus.gil._stats import collect

    raw = _native.gil_statistics() if _native is not None else None
    return collect(raw, active=active())


def reset_statistics() -> None:
    """Count from zero again, except the times kept by each thread."""
    if _native is not None:
        _native.gil_reset_statistics()
