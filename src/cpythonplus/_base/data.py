"""The results of examinations and statistics: frozen data with units, in one form as JSON."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum

if "typing" in sys.modules:
    # @dataclass looks there for it, and fails while another thread imports it: this one waits.
    import typing  # noqa: F401
TYPE_CHECKING = False  # as in typing, whose import would add to the examined memory
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any


class Data:
    """The base of dataclasses that become JSON; a field outside of `repr` is left out."""

    __slots__ = ()

    def as_json(self) -> dict[str, Any]:
        """Return all of it by name, in dicts, lists, strings and numbers."""
        found: dict[str, Any] = plain(self)
        return found


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a program.

    file: as the code object names it, "" if unknown.
    line: 0 if unknown.
    function: its qualified name, "" if unknown.
    """

    file: str = ""
    line: int = 0
    function: str = ""

    def __str__(self) -> str:
        """Return `file:line`, or the known part of it."""
        if not self.file:
            return "?"
        return f"{self.file}:{self.line}" if self.line else self.file


def place_of(frame: FrameType) -> Place:
    """Return the line that a frame executes."""
    code = frame.f_code
    return Place(code.co_filename, frame.f_lineno or 0, code.co_qualname)


def plain(value: Any) -> Any:  # noqa: ANN401  # any field
    """Return data in the form of JSON: dataclasses and mappings as dicts, tuples as lists."""
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value) if each.repr}
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value.value if isinstance(value, Enum) else value
