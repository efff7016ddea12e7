"""Names the holder of a function that refers to the holder by a free variable."""

from collections.abc import Sequence
from types import CellType, CodeType, FunctionType
from typing import NamedTuple

from cpythonplus._base.data import Place
from cpythonplus.memory._cycles import report
from cpythonplus.memory._cycles.advice import for_closure
from cpythonplus.memory._cycles.component import Component, Cut
from cpythonplus.memory._cycles.edges import Edge, Role
from cpythonplus.memory._cycles.finding import Finding
from cpythonplus.memory._cycles.looking import function_name, type_name
from cpythonplus.memory._cycles.paths import Path, paths_to
from cpythonplus.memory._cycles.placing import Stored, along, place_in, place_in_scope
from cpythonplus.memory._cycles.report import Cause, Kind

_get_closure = FunctionType.__dict__["__closure__"].__get__


class _Holder(NamedTuple):
    """An object that refers to functions with closures. path: its spelling."""

    here: int
    targets: list[tuple[int, Edge]]
    path: Path | None

    def cuts(self) -> list[Cut]:
        return [(self.here, there, edge.name) for there, edge in self.targets]


def find(component: Component, members: Sequence[int]) -> Finding | None:
    """Name one variable or attribute that closes a cycle through a closure; None: there is none."""
    inside = frozenset(members)
    functions = [each for each in members if _has_closure(component, each, inside)]
    holders = _holders(component, functions, inside)
    if not holders:
        return None
    best = min(holders, key=lambda each: _rank(component, each))
    function = component.objects[best.targets[0][0]]
    if type(function) is not FunctionType:
        return None
    others = [component.objects[each] for each in functions]
    return Finding(_cause(component, best, function, others), best.cuts())


def _has_closure(component: Component, here: int, inside: frozenset[int]) -> bool:
    value = component.objects[here]
    return type(value) is FunctionType and id(_get_closure(value)) in inside


def _holders(
    component: Component, functions: Sequence[int], inside: frozenset[int]
) -> list[_Holder]:
    found: dict[tuple[int, str], _Holder] = {}
    for here, there, edge in component.references_to(functions, inside):
        key = here, edge.name if edge.role is Role.VARIABLE else ""
        if key not in found:
            found[key] = _Holder(here, [], _path(component, here, edge, there))
        found[key].targets.append((there, edge))
    return list(found.values())


def _path(component: Component, here: int, edge: Edge, there: int) -> Path | None:
    """Return the path to a function; if it is in a cell, by the variable of the outermost scope."""
    if edge.role is Role.VARIABLE:
        return Path(component.objects[here], edge.name, (), (), there)
    best: tuple[tuple[bool, int, int], Path] | None = None
    for path in paths_to(component, here, edge):
        is_function = type(path.owner) is FunctionType
        depth = _depth(path.owner) if type(path.owner) is FunctionType else 0
        rank = not is_function, len(path.parts), depth
        if best is None or rank < best[0]:
            best = rank, path
    return best and best[1]


def _rank(component: Component, holder: _Holder) -> tuple[int, ...]:
    """Order: attributes and containers, then variables named as their function, then by line."""
    function = component.objects[holder.targets[0][0]]
    path = holder.path
    if path is None or type(function) is not FunctionType:
        return (3,)
    in_cell = type(component.objects[holder.here]) is CellType
    other_name = path.variable not in (function.__code__.co_name, function_name(function))
    return int(in_cell), int(in_cell and other_name), function.__code__.co_firstlineno


def _cause(
    component: Component, holder: _Holder, function: FunctionType, others: Sequence[object]
) -> Cause:
    path = holder.path
    if path is None:
        holding = type_name(type(component.objects[holder.here]))
        edge = holder.targets[0][1]
        path = Path(None, holding, (edge,), (holder.here,), holder.here)
    stored = _place(component, path, function)
    names = [_name(each) for each in others if type(each) is FunctionType and each is not function]
    kept = f"function {_name(function)}"
    # The number of functions in the cycle differs between calls, so the cause does not name it.
    other = names[0] if len(names) == 1 else ""
    return Cause(
        kind=Kind.CLOSURE,
        place=stored.place,
        variable=stored.variable,
        what=f"{kept}, which {other} leads back to" if other else kept,
        advice=for_closure(stored.steps, stored.place.function),
        edges=(
            *along(f"closure of {other or _name(function)}", stored.steps),
            *(
                [report.Edge(kept, ""), report.Edge(f"function {other}", "__closure__")]
                if other
                else []
            ),
            *([] if other else [report.Edge(kept, "__closure__")]),
        ),
    )


def _place(component: Component, path: Path, function: FunctionType) -> Stored:
    """Return the function that has the variable, and the line that stores the object at `path`.

    The code's name is used: functools.wraps gives functions the names of others.
    """
    code = function.__code__
    if not path.stored_parts and path.variable == code.co_name:
        return Stored(_defined_at(code), (path.variable,), exact=True)
    if type(path.owner) is FunctionType:
        return place_in_scope(component, path)
    stored = place_in(component, path)
    return stored if stored.place.file else stored._replace(place=_defined_at(code))


def _defined_at(code: CodeType) -> Place:
    """Return the line of an inner function's definition, in the outer function."""
    scope = code.co_qualname.rpartition(".<locals>.")[0]
    return Place(code.co_filename, code.co_firstlineno, scope)


def _depth(function: FunctionType) -> int:
    return function.__code__.co_qualname.count(".")


def _name(function: FunctionType) -> str:
    return function.__code__.co_name
