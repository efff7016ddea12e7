"""Names the holder of an exception whose traceback keeps the frames that it came through."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from types import FunctionType, TracebackType
from typing import Final, NamedTuple

from cpythonplus._base.data import Place
from cpythonplus.memory._cycles import report
from cpythonplus.memory._cycles.advice import for_exception, for_snapshot
from cpythonplus.memory._cycles.component import Component, Cut
from cpythonplus.memory._cycles.edges import Edge, Role, frame_of, is_running
from cpythonplus.memory._cycles.finding import Finding
from cpythonplus.memory._cycles.looking import is_exception, is_type, mro, traceback_of, type_name
from cpythonplus.memory._cycles.paths import Path, paths_to
from cpythonplus.memory._cycles.placing import Stored, along, place_in, place_in_scope, place_of
from cpythonplus.memory._cycles.report import Cause, Kind
from cpythonplus.memory._cycles.short_cycles import shortest

_HOLDERS_LIMIT: Final = 32
_TRACEBACK_LIMIT: Final = 1000
_HANDLED: Final = "sys.exception()"
_NOWHERE: Final = Stored(Place(), ("",))


class _Holder(NamedTuple):
    """An object that refers to exceptions or tracebacks.

    here: its id. variable: the variable's name, if it is a frame or a generator. targets: its
    referents, with the references.
    """

    here: int
    variable: str
    targets: list[tuple[int, Edge]]

    def first(self, component: Component) -> tuple[int, Edge]:
        """Return the reference that names it: to an exception rather than to a traceback."""
        for there, edge in self.targets:
            if is_exception(component.objects[there]):
                return there, edge
        return self.targets[0]

    def cuts(self) -> list[Cut]:
        return [(self.here, there, edge.name) for there, edge in self.targets]


def is_error(value: object) -> bool:
    """Whether it is an exception or a traceback."""
    return type(value) is TracebackType or is_exception(value)


def find(component: Component, members: Sequence[int]) -> Finding | None:
    """Name one variable, attribute or container that has to release them; None: there is none."""
    if not any(is_error(component.objects[each]) for each in members):
        return None
    holders = _holders(component, members)
    in_variables = [each for each in holders if each.variable]
    in_variables.sort(key=lambda each: not is_exception(component.objects[each.targets[0][0]]))
    if in_variables:
        return _in_variable(component, in_variables[0], in_variables)
    worse = None
    for holder in islice(holders, _HOLDERS_LIMIT):
        path, place = _best_path(component, holder)
        if path is not None and not is_exception(path.owner):
            return _in_object(component, holder, holders, path, place)
        worse = worse or (holder, path, place)
    if worse is not None:
        return _in_object(component, worse[0], holders, *worse[1:])
    return _among_exceptions(component, members)


def _holders(component: Component, members: Sequence[int]) -> list[_Holder]:
    found: dict[tuple[int, str], _Holder] = {}
    errors = [each for each in members if is_error(component.objects[each])]
    for here, there, edge in component.references_to(errors, frozenset(members)):
        variable = edge.name if edge.role is Role.VARIABLE else ""
        if not variable and is_running(component.objects[here]):
            variable = _HANDLED
        holder = found.setdefault((here, variable), _Holder(here, variable, []))
        holder.targets.append((there, edge))
    return list(found.values())


# ---- in a variable of a frame -------------------------------------------------------------------


def _in_variable(
    component: Component, holder: _Holder, others: Sequence[_Holder]
) -> Finding | None:
    there, _ = holder.first(component)
    path = Path(_owner(component, holder), holder.variable, (), (), there)
    place = _place(component, path, there)
    cuts: list[Cut] = []
    together: list[str] = []
    for each in others:
        if _same_code(component, each, holder) and each.variable == holder.variable:
            cuts += each.cuts()
        elif each.here == holder.here and _beside(component, each, holder, place):
            cuts += each.cuts()
            together.append(each.variable)
    cause = _cause(component, place, there, together)
    if component.frame_of_snapshot(holder.here) is not None:
        cause = replace(cause, advice=for_snapshot())
    return Finding(cause, cuts)


def _owner(component: Component, holder: _Holder) -> object:
    """Return the frame or generator that has the variable, or whose copy of variables has it."""
    return component.frame_of_snapshot(holder.here) or component.objects[holder.here]


def _same_code(component: Component, one: _Holder, other: _Holder) -> bool:
    """Whether both are frames of one function: a recursive one, or one that was called again."""
    frames = [frame_of(_owner(component, each)) for each in (one, other)]
    return (
        frames[0] is not None and frames[1] is not None and (frames[0].f_code is frames[1].f_code)
    )


def _beside(component: Component, one: _Holder, other: _Holder, stored: Stored) -> bool:
    """Whether `one` is the traceback next to `other`: ``kind, error, traceback = exc_info()``."""
    there, _ = one.first(component)
    if is_exception(component.objects[there]) or one.variable == _HANDLED:
        return False
    path = Path(_owner(component, one), one.variable, (), (), there)
    first, _ = other.first(component)
    beside = _place(component, path, there)
    return is_exception(component.objects[first]) and beside.place.line == stored.place.line


# ---- in an object -------------------------------------------------------------------------------


def _best_path(component: Component, holder: _Holder) -> tuple[Path | None, Stored]:
    """Return the path to the holder that names it best, and the place of the store."""
    there, edge = holder.first(component)
    best: tuple[tuple[int, ...], Path | None, Stored] = ((9,), None, _NOWHERE)
    for path in paths_to(component, holder.here, edge):
        place = _place(component, path, there)
        rank = (_rank(path), not place.exact, len(path.parts))
        if rank < best[0]:
            best = rank, path, place
    return best[1], best[2]


def _rank(path: Path) -> int:
    if is_running(path.owner):
        return 0
    if is_type(path.owner):
        return 2
    return 3 if is_exception(path.owner) else 1


def _in_object(
    component: Component,
    holder: _Holder,
    others: Sequence[_Holder],
    path: Path | None,
    place: Stored,
) -> Finding:
    there, edge = holder.first(component)
    if path is None:
        kind = type_name(type(component.owner(holder.here)))
        place = place_in(component, Path(None, kind, (edge,), (holder.here,), holder.here))
    cuts = holder.cuts()
    if edge.name.startswith("."):
        for each in others:
            if _alike(component, each, holder, edge):
                cuts += each.cuts()
    return Finding(_cause(component, place, there, ()), cuts)


def _alike(component: Component, one: _Holder, other: _Holder, edge: Edge) -> bool:
    """Whether both are instances of one class that hold exceptions in the same attribute."""
    kinds = [type(component.objects[each.here]) for each in (one, other)]
    return one is not other and kinds[0] is kinds[1] is not dict and one.targets[0][1] == edge


# ---- among themselves ---------------------------------------------------------------------------


def _among_exceptions(component: Component, members: Sequence[int]) -> Finding | None:
    """Name the link between exceptions that are causes or contexts of one another."""
    errors = [each for each in members if is_exception(component.objects[each])]
    cycle = shortest(component, errors, members)
    if not cycle:
        return None
    hop = cycle[-1]
    error = component.objects[hop.here]
    entries = list(_entries(error))
    code = entries[-1].tb_frame.f_code if entries else None
    place = place_of(code, entries[-1].tb_lineno or 0) if code else Place()
    stored = Stored(place, (type_name(type(error)), hop.edge.name))
    cuts = [(hop.here, hop.there, hop.edge.name)]
    return Finding(_cause(component, stored, hop.there, ()), cuts)


# ---- the finding --------------------------------------------------------------------------------


def _place(component: Component, path: Path, there: int) -> Stored:
    if type(path.owner) is FunctionType:
        return place_in_scope(component, path)
    frame = frame_of(path.owner)
    error = component.objects[there]
    after = 0 if frame is None else _passed_at(error, frame)
    caught = list(map(type_name, mro(type(error)))) if is_exception(error) else []
    return place_in(component, path, after, caught)


def _passed_at(error: object, frame: object) -> int:
    """Return the line at which an exception first came through a frame, 0 if it did not.

    If it was raised again, the traceback has the frame again in front of the first entry.
    """
    lines = [entry.tb_lineno for entry in _entries(error) if entry.tb_frame is frame]
    return lines[-1] if lines else 0


def _entries(error: object) -> Iterator[TracebackType]:
    entry = error if type(error) is TracebackType else traceback_of(error)
    for _ in range(_TRACEBACK_LIMIT):
        if type(entry) is not TracebackType:
            return
        yield entry
        entry = entry.tb_next


def _cause(component: Component, stored: Stored, there: int, together: Sequence[str]) -> Cause:
    what = type_name(type(component.objects[there]))
    if together:
        what += " and its traceback"
    function = stored.place.function
    return Cause(
        kind=Kind.EXCEPTION,
        place=stored.place,
        variable=stored.variable,
        what=what,
        advice=for_exception(stored.steps, together),
        edges=(
            *along(f"frame of {function}()" if function else "a frame", stored.steps),
            report.Edge(what, "__traceback__"),
            report.Edge("traceback", "tb_frame"),
        ),
    )
