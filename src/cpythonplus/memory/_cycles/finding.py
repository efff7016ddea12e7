"""The result of naming a cycle."""

from collections.abc import Sequence
from typing import NamedTuple

from cpythonplus.memory._cycles.component import Cut
from cpythonplus.memory._cycles.report import Cause


class Finding(NamedTuple):
    """A cause, and the references that are gone once it has been fixed."""

    cause: Cause
    cuts: Sequence[Cut]
