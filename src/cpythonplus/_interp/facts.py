"""The facts about CPython's private structures that features build on."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from cpythonplus._base.data import Data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal


@dataclass(frozen=True, slots=True)
class Fact(Data):
    """One assumption about a private structure.

    name: one word.
    since, until: the first and the last minor version of Python that has it: (3, 11), (3, 15).
    what: the structure.
    proof: how it is proven on objects that are made for the proof.
    features: the features that are refused, or reduced, if it does not hold.
    state: "proven", "refused", "not asked", or "absent": this version does not have it.
    refusal: the reason why it is refused, else "".
    """

    name: str
    since: tuple[int, int]
    until: tuple[int, int]
    what: str
    proof: str
    features: str
    state: Literal["proven", "refused", "not asked", "absent"]
    refusal: str


def facts(*, ask: bool | tuple[str, ...] = True) -> list[Fact]:
    """Return each fact; `ask`: prove all, or those of these names, that were not asked yet."""
    if sys.platform != "linux":
        return []
    from cpythonplus import _native

    return [Fact(*row) for row in _native.interp_facts(ask)]
