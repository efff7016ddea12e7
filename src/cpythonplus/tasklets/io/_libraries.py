"""Libraries that wait in C, where nothing is patched, unless they are told to wait in Python.

psycopg's C implementation waits by a function of its own, the one in Python by select.poll. An
environment variable says which of these functions it takes, once, when it is imported
(https://www.psycopg.org/psycopg3/docs/api/waiting.html).
"""

import os
import sys
from typing import Any

__all__ = ["wait_in_python"]

_VARIABLE, _FUNCTION = "PSYCOPG_WAIT_FUNC", "wait_poll"
_HOME = "psycopg.waiting"

# What has been changed, to be put back.
_variable_set = False
_waiting: Any = None  # the module


def wait_in_python(*, on: bool) -> None:
    """Have psycopg wait by select.poll, also one that is imported later or loaded already; or not.

    A choice that somebody else has made stays. Interpreters that are started get it as well: there
    psycopg waits by the standard select.poll, for the whole thread as ever.
    """
    if on:
        _switch_on()
    else:
        _switch_off()


def _switch_on() -> None:
    global _variable_set, _waiting  # noqa: PLW0603
    if _VARIABLE in os.environ:
        return
    os.environ[_VARIABLE] = _FUNCTION
    _variable_set = True
    waiting: Any = sys.modules.get(_HOME)
    in_c = getattr(waiting, "wait_c", None)
    if in_c is not None and getattr(waiting, "wait", None) is in_c:
        waiting.wait = getattr(waiting, _FUNCTION)
        _waiting = waiting


def _switch_off() -> None:
    global _variable_set, _waiting  # noqa: PLW0603
    if _variable_set and os.environ.get(_VARIABLE) == _FUNCTION:
        del os.environ[_VARIABLE]
    _variable_set = False
    waiting, _waiting = _waiting, None
    if waiting is not None and waiting.wait is getattr(waiting, _FUNCTION):
        waiting.wait = waiting.wait_c
