"""Libraries that wait in C, where patches have no effect, unless they are told to wait in Python.

psycopg's C implementation waits by a function of its own, the Python one by select.poll. psycopg
reads an environment variable, once, at its import, that says which of these functions to use
(https://www.psycopg.org/psycopg3/docs/api/waiting.html).
"""

import os
import sys
from typing import Any

_VARIABLE, _FUNCTION = "PSYCOPG_WAIT_FUNC", "wait_poll"
_HOME = "psycopg.waiting"

# The state of the changes, for undoing them.
_variable_set = False
_waiting: Any = None  # the module


def wait_in_python(*, on: bool) -> None:
    """Switch psycopg to waiting by select.poll, or back, whether it is loaded already or later.

    An earlier choice of the program stays. Interpreters that the program starts inherit the
    variable: there psycopg waits by the standard select.poll, for the whole thread as usual.
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
