"""The costs of a fact that does not hold, in words: every command takes its sentences from here."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from cpythonplus._base.data import Data
from cpythonplus._interp.facts import facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final, Literal

    Face = Literal["doctor", "serve", "run"]

FACES: Final[tuple[Face, ...]] = ("doctor", "serve", "run")

_WALK: Final = ("gc-header", "gc-rings", "dict-keys", "inline-values", "object-sizes")
"""The facts that a walk over the heap goes on without."""

_NO_TASKLETS: Final = "tasklets, and with them `import stackless`"
_NO_SHARING: Final = (
    "workers do NOT share their heap: the kernel copies a page when a worker uses an object on it"
)
_SLOW_LOCKS: Final = (
    "each call of a native lock or queue looks at its class anew, which takes longer"
)
_LISTING: Final = (
    "census, owners and growth take the objects from gc.get_objects(), which takes longer;"
    " frozen objects count only if others lead to them"
)
_ARENAS: Final = (
    "what is free in pymalloc's arenas, and what pins it; in growth, small objects that nothing on"
    " the heap refers to"
)
_LEFT_BLOCKS: Final = (
    "free blocks between shared objects are not taken, so new objects of a worker lie there,"
    " and the worker copies these pages"
)

# For doctor, serve and run, in this order.  True: the command goes on, slower or with less.  None:
# the command does not need the fact.
LOSSES: Final[dict[str, tuple[tuple[bool, str] | None, ...]]] = {
    "gc-header": (
        (True, "each object is looked at through the public API, which takes longer"),
        None,
        None,
    ),
    "gc-rings": ((True, _LISTING), None, None),
    "frames": (
        (False, "census, owners, growth, key sharing, referrers, path, and what pins memory"),
        (False, _NO_SHARING),
        (False, f"{_NO_TASKLETS}; the lines of stalls and of locks"),
    ),
    "operands": (None, None, (False, _NO_TASKLETS)),
    "frame-building": (None, None, (False, "pickles and copies of tasklets")),
    "itertools": (
        None,
        None,
        (False, "pickles and copies of tasklets that hold certain iterators of itertools"),
    ),
    "thread-state": (None, None, (False, _NO_TASKLETS)),
    "instrumentation": (None, None, (False, _NO_TASKLETS)),
    "frame-tracing": (None, None, (False, _NO_TASKLETS)),
    "dict-keys": ((True, "sizes leave out the keys that dicts share"), None, None),
    "inline-values": (
        (False, "key sharing; sizes leave out attributes stored inside or beside instances"),
        (True, "dicts of instances stay mortal, so workers copy their pages"),
        None,
    ),
    "object-sizes": (
        (True, "each object is asked for its size by __sizeof__, which takes longer"),
        None,
        None,
    ),
    "dict-version": (None, (True, _SLOW_LOCKS), (True, _SLOW_LOCKS)),
    "pools": (
        (False, "what is free in pymalloc's arenas, and the pools in trim"),
        (True, _LEFT_BLOCKS),
        None,
    ),
    "arenas": ((False, _ARENAS), None, None),
    "immortal": (None, (False, _NO_SHARING), None),
}

_OTHER_ALLOCATOR: Final = "objects do not come from pymalloc here"

_PREFIXES: Final[dict[Face, tuple[str, str]]] = {
    "doctor": ("does not work: ", "works with less: "),
    "serve": ("", "works with less: "),
    "run": ("does not work: ", "works with less: "),
}


@dataclass(frozen=True, slots=True)
class Loss(Data):
    """The abilities that one command lacks for one reason.

    facts: the names of the facts that are refused. works: whether the command goes on, slower or
    with less. text: the sentence, with the reason.
    """

    facts: tuple[str, ...]
    works: bool
    text: str

    def __str__(self) -> str:
        return self.text


def losses(face: Face, names: Iterable[str] = LOSSES) -> tuple[Loss, ...]:
    """Return the losses of a command in this interpreter, those that do not work first.

    Proves those of the facts `names` that the command needs.
    """
    effects = {name: effect for name in names if (effect := _effect(name, face)) is not None}
    reasons: dict[tuple[bool, str], list[str]] = {}
    for fact in facts(ask=tuple(effects)):
        if fact.name in effects and fact.state == "refused" and not _is_chosen(fact.refusal):
            works, _ = effects[fact.name]
            reasons.setdefault((works, fact.refusal), []).append(fact.name)
    found = []
    for (works, refusal), refused in reasons.items():
        parts = "; ".join(dict.fromkeys(effects[name][1] for name in refused))
        text = f"{_PREFIXES[face][works]}{parts}, because {refusal} ({', '.join(refused)})"
        found.append(Loss(tuple(refused), works, text))
    if face == "serve" and "immortal" in effects and all(each.works for each in found):
        found += _too_old()
    return tuple(sorted(found, key=lambda each: each.works))


def walk_losses(*more: str) -> tuple[str, ...]:
    """Return the sentences on a walk over the heap; a loss that prevents the walk raises there.

    more: other facts that are needed.
    """
    return tuple(each.text for each in losses("doctor", (*_WALK, *more)))


def sentences(name: str) -> list[str]:
    """Return the costs of a refused fact: `doctor: does not work: ...`, for each command."""
    return [
        f"{face}: {_PREFIXES[face][effect[0]]}{effect[1]}"
        for face in FACES
        if (effect := _effect(name, face)) is not None
    ]


def _effect(name: str, face: Face) -> tuple[bool, str] | None:
    return LOSSES[name][FACES.index(face)]


def _is_chosen(refusal: str) -> bool:
    """Whether an allocator was chosen; reports and the log have their own words for that."""
    debugs = sys.flags.dev_mode or hasattr(sys, "gettotalrefcount")
    chosen = debugs or "PYTHONMALLOC" in os.environ or not sys.getallocatedblocks()
    return refusal == _OTHER_ALLOCATOR and chosen


def _too_old() -> list[Loss]:
    """Return the loss that has no fact: 3.11 has no immortal objects."""
    from cpythonplus import _native

    refusal = _native.prefork_refusal()
    text = f"{_NO_SHARING}, because {refusal}"
    return [Loss((), works=False, text=text)] if refusal else []
