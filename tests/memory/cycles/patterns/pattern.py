"""What a pattern of a leak is, and where the table of all of them says its cause to be."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

MARK = "# <- here"


@dataclass(frozen=True)
class Pattern:
    """A function that leaves one cycle behind, and its twin that does the same and leaves none.

    kind, function, variable: what has to be reported.  The line is the one marked in the source of
    `leak`, or in `marked` where another function or class stores it; it is the pattern's own file.
    """

    name: str
    leak: Callable[[], object]
    twin: Callable[[], object]
    kind: str
    function: str
    variable: str
    marked: object = None

    @property
    def file(self) -> str:
        return self.leak.__code__.co_filename

    @cached_property
    def line(self) -> int:
        lines, first = inspect.getsourcelines(self.marked or self.leak)  # type: ignore[arg-type]
        (found,) = (i for i, text in enumerate(lines) if MARK in text)
        return first + found
