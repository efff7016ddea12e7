"""Naming what closes a cycle: the variable, attribute or class that a programmer has to change.

A component is searched for a reference that somebody wrote (into an exception from a variable, into
a function from its own free variable, ...); that is named and cut, and what is still a cycle is
searched again.  At the end each cut that turned out to be needless is taken back, so that of the
causes returned each one has to be fixed, and fixing all of them is enough.
"""

import gc
from collections import deque
from collections.abc import Callable, Sequence
from types import CellType, FrameType, TracebackType
from typing import Final

from cpythonplus._base.data import Place
from cpythonplus.memory._cycles import (
    class_cycles,
    closure_cycles,
    exception_cycles,
    other_cycles,
)
from cpythonplus.memory._cycles.component import Component
from cpythonplus.memory._cycles.finding import Finding
from cpythonplus.memory._cycles.looking import type_name
from cpythonplus.memory._cycles.other_cycles import find_in_long
from cpythonplus.memory._cycles.report import Cause, Kind

__all__ = ["causes"]

_ROUNDS: Final = 32
_LARGE: Final = 3000  # objects
_FAN_OUT: Final = 100  # so many items of a large container are in a sample

# What a sample of a large component begins at, the first kind that there is.
_TELLING: Final = tuple(map(id, (TracebackType, FrameType, CellType)))

_FINDERS: Final[tuple[Callable[[Component, Sequence[int]], Finding | None], ...]] = (
    exception_cycles.find,
    class_cycles.find,
    closure_cycles.find,
    other_cycles.find,
)


def causes(component: list[object]) -> list[Cause]:
    """Return what closes the cycles of a strongly connected component of garbage.

    component: all its objects, each of them once.  They may get a dict of attributes or a frame
    object that they had not yet; otherwise everything stays as it is, and nothing of it is kept.
    No code of the objects' classes runs.  Never raises: what is odd is of `Kind.OTHER`.

    The work is bounded: up to 32 causes are named, for each some thousands of references are
    searched, and of a component of more than 3,000 objects only so many are looked at.
    """
    try:
        return _causes(component)
    except Exception:  # noqa: BLE001  # half-built objects are odd; a report must not end a program
        return [_unknown(component)]


def _causes(component: list[object]) -> list[Cause]:
    graph = Component(component if len(component) <= _LARGE else _sample(component))
    waiting = graph.cyclic(graph.objects)
    found: list[Finding] = []
    if not waiting and len(graph.objects) < len(component):
        found.append(find_in_long(graph, list(graph.objects)))
    while waiting and len(found) < _ROUNDS:
        members = waiting.pop()
        finding = _find(graph, members)
        found.append(finding)
        graph.cut(finding.cuts)
        waiting += graph.cyclic(members)
    if not waiting:
        found = _needed(graph, found)
    result = list(dict.fromkeys(each.cause for each in found))
    return result or [_unknown(component)]


def _sample(component: list[object]) -> list[object]:
    """Return some objects of a large component that are near one another."""
    kinds = list(map(id, map(type, component)))
    start = next((kinds.index(each) for each in _TELLING if each in kinds), 0)
    inside = set(map(id, component))
    found = {id(component[start]): component[start]}
    queue = deque(found.values())
    while queue and len(found) < _LARGE:
        for each in gc.get_referents(queue.popleft())[:_FAN_OUT]:
            if id(each) in inside and id(each) not in found:
                found[id(each)] = each
                queue.append(each)
    return list(found.values())


def _find(graph: Component, members: Sequence[int]) -> Finding:
    for finder in _FINDERS:
        finding = finder(graph, members)
        if finding is not None and finding.cuts:
            return finding
    return Finding(_unknown([graph.objects[each] for each in members]), [members[0]])


def _needed(graph: Component, found: list[Finding]) -> list[Finding]:
    """Leave out those without which there is no cycle either."""
    if len(found) == 1:
        return found
    needed = []
    for each in found:
        graph.mend(each.cuts)
        if graph.cyclic(graph.objects):
            graph.cut(each.cuts)
            needed.append(each)
    return needed


def _unknown(component: Sequence[object]) -> Cause:
    names = sorted({type_name(type(each)) for each in component[:_LARGE]})
    return Cause(Kind.OTHER, Place(), "?", ", ".join(names[:6]), "break the cycle")
