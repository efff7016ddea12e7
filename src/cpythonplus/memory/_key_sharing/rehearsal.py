"""Whether instances and dicts are laid out as this version of the interpreter is known to do it."""

import sys
from typing import Final

from cpythonplus import _native

__all__ = ["refusal"]

_ENTRIES: Final = 100


class _State:
    checked = False
    reason = ""


def refusal() -> str:
    """Return "" if classes and dicts of known state are read as what they are, else why not."""
    if not _State.checked:
        _State.reason = _find_reason()
        _State.checked = True
    return _State.reason


def _find_reason() -> str:
    if not _instances_fit():
        return "instances do not keep their attributes as this interpreter is known to do it"
    if not _tables_fit():
        return "dicts and sets are not laid out as in the interpreter that is known"
    return ""


def _instances_fit() -> bool:
    class Probe:
        def __init__(self) -> None:
            self.one = 1
            self.two = 2

    plain, read, assigned = Probe(), Probe(), Probe()
    vars(read)
    assigned.__dict__ = {"one": 1, "two": 2, "three": 3}
    found = [_native.memory_attributes_of(each) for each in (plain, read, assigned)]
    states = [each[:2] if each is not None else None for each in found]
    return states == [("inline", 2), ("split", 2), ("combined", 3)]


def _tables_fit() -> bool:
    names = {str(i): i for i in range(_ENTRIES)}
    numbers = {i: i for i in range(_ENTRIES)}
    for table in (names, numbers, set(numbers)):
        found = _native.memory_table_of(table)
        # Of what the collector puts in front, sys.getsizeof() counts as much as we.
        if found is None or found[0] != _ENTRIES or found[2] != sys.getsizeof(table):
            return False
    return True
