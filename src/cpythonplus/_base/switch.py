"""CPYTHONPLUS_DISABLE: one variable that leaves programs on stock Python, without an edit.

Read by everything that starts a program or changes how one runs: `cpythonplus run` and `serve`, the
start-up of their children, the modules for servers, `gil.install`, `threads.patch`. Features that
a program is written with (tasklets, channels, native classes that it names) stay, and so do
examinations.

It is read with -I and -E too: a switch for emergencies must work with each command line, and
setting it only leads to stock Python.

On the start-up path: it imports nothing that is not loaded.
"""

import os

VARIABLE = "CPYTHONPLUS_DISABLE"
_YES = frozenset({"1", "true", "yes", "on"})
_NO = frozenset({"0", "false", "no", "off", ""})

_told: set[str] = set()


def is_on(text: str) -> bool | None:
    """Return the setting of a switch with the value `text`; None: it is neither on nor off."""
    word = text.strip().lower()
    return word in _YES if word in _YES | _NO else None


def disabled() -> bool:
    """Return whether the package is switched off; ValueError, in one line, for another value."""
    text = os.environ.get(VARIABLE, "")
    off = is_on(text)
    if off is None:
        raise ValueError(
            f"{VARIABLE} must be 1 or 0 (or true, yes, on, false, no, off), not {text!r}"
        )
    return off


def skipped(what: str) -> bool:
    """Return whether `what` must do nothing; if so, say it on standard error, once.

    An invalid value of the variable is reported there too, and counts as switched off: the user has
    tried to switch `what` off, and a service must not go down over it.
    """
    why = f"{VARIABLE} is set"
    try:
        if not disabled():
            return False
    except ValueError as error:
        why = str(error)
    if what not in _told:
        _told.add(what)
        tell(f"{what} does nothing: {why}")
    return True


def tell(message: str, command: str = "cpythonplus") -> None:
    """Write one line on standard error, past sys.stderr: it can be missing, or hold data."""
    try:
        os.write(2, f"{command}: {' '.join(message.split())}\n".encode("utf-8", "backslashreplace"))
    except OSError:
        return
