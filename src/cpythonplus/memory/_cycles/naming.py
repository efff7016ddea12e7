"""Names the variable, attribute or class that closes a cycle, for a programmer to change.

A component is searched for a reference that somebody wrote (to an exception from a variable, to a
function from its own free variable, ...). This reference is named and cut, and the remaining cycles
are searched again. At the end each needless cut is taken back, so that each returned cause has to
be fixed, and fixing all of them is enough.
"""

import gc
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from types import CellType, FrameType, FunctionType, TracebackType
from typing import Final

from cpythonplus._base.data import Place
from cpythonplus.memory._cycles import class_cycles, closure_cycles, exception_cycles, other_cycles
from cpythonplus.memory._cycles.component import Component
from cpythonplus.memory._cycles.finding import Finding
from cpythonplus.memory._cycles.looking import is_type, type_name
from cpythonplus.memory._cycles.other_cycles import find_in_long
from cpythonplus.memory._cycles.report import Cause, Kind

ALL_KINDS: Final = frozenset(Kind)

_NAMELESS: Final = "?"
_ROUNDS: Final = 32
_LARGE: Final = 3000  # objects
_FAN_OUT: Final = 100  # items of a large container in a sample

# Types of objects that a sample of a large component begins at, the best type first.
_TELLING: Final = tuple(map(id, (TracebackType, FrameType, CellType)))

_FINDERS: Final[tuple[Callable[[Component, Sequence[int]], Finding | None], ...]] = (
    exception_cycles.find,
    class_cycles.find,
    closure_cycles.find,
    other_cycles.find,
)


def causes(component: list[object], kinds: AbstractSet[Kind] = ALL_KINDS) -> list[Cause]:
    """Return the causes of the cycles of a strongly connected component of garbage.

    component: all its objects, each of them once. A missing dict of attributes or frame object may
    be created for them; otherwise nothing is changed, and no reference is kept. No code of the
    objects' classes runs. Never raises: unusual objects are of `Kind.OTHER`. kinds: if the types of
    the objects rule out all of these, nothing is searched; else causes of other kinds are returned
    as well.

    The work is limited by counts, not by time: up to 32 causes are named, each by a search of some
    thousands of references, and only 3,000 objects of a larger component are looked at. Cycles
    beyond the 32 become one last cause without a name (`is_named`).
    """
    try:
        return _causes(component) if _may_have(component, kinds) else []
    except Exception:  # noqa: BLE001  # half-built objects may fail anywhere; a report must not end a program
        return [_unknown(component)]


def is_named(cause: Cause) -> bool:
    """Whether the cause has a name; without a name it may be of any kind."""
    return cause.variable != _NAMELESS


def _may_have(component: Iterable[object], kinds: AbstractSet[Kind]) -> bool:
    """Return whether a cause of one of these kinds is possible, by the types of the objects.

    Most cycles of many programs are of instances that refer to each other. Naming them only to
    leave them out would cost more than all the rest.
    """
    telling = {
        Kind.EXCEPTION: exception_cycles.is_error,
        Kind.CLOSURE: _has_closure,
        Kind.CLASS: _is_of_class,
    }
    checks = [telling[each] for each in kinds if each in telling]
    return Kind.OTHER in kinds or any(check(each) for check in checks for each in component)


def _has_closure(value: object) -> bool:
    return type(value) is FunctionType and value.__closure__ is not None


def _is_of_class(value: object) -> bool:
    return type(value) is CellType or is_type(value)  # a cell: of the body of a class


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
    if waiting:
        left = dict.fromkeys(each for members in waiting for each in members)
        result.append(_unknown([graph.objects[each] for each in left]))
    return result or [_unknown(component)]


def _sample(component: list[object]) -> list[object]:
    """Return some objects of a large component that are close to one another."""
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
    """Drop findings that are not needed to break all cycles."""
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
    return Cause(Kind.OTHER, Place(), _NAMELESS, ", ".join(names[:6]), "break the cycle")
