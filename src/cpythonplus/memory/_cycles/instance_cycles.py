"""Names the reference that leads back, in a cycle of instances that refer to one another."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import FunctionType, MethodType
from typing import Final

from cpythonplus._base.data import Place
from cpythonplus.memory._cycles import report
from cpythonplus.memory._cycles.advice import for_instances
from cpythonplus.memory._cycles.class_cycles import place_of_class
from cpythonplus.memory._cycles.component import Component, Cut
from cpythonplus.memory._cycles.edges import Edge, Role
from cpythonplus.memory._cycles.finding import Finding
from cpythonplus.memory._cycles.looking import type_module, type_name, type_qualname
from cpythonplus.memory._cycles.paths import is_written
from cpythonplus.memory._cycles.places import stored_from_parameter
from cpythonplus.memory._cycles.placing import Stored, methods, place_in_class
from cpythonplus.memory._cycles.report import Cause, Kind
from cpythonplus.memory._cycles.short_cycles import Hop

# Names of attributes that refer to an older object.
_UPWARDS: Final = frozenset(
    {"back", "container", "manager", "master", "outer", "owner", "parent", "prev", "previous"}
    | {"root", "up"}
)
_SEGMENTS_SHOWN: Final = 6
# Modules whose instances count as parts of their referrers.
_PLAIN_MODULES: Final = frozenset(
    {"", "builtins", "types", "functools", "collections", "weakref", "_weakref"}
)


@dataclass(frozen=True, slots=True, eq=False)  # comparing would compare the owners
class _Segment:
    """The references of a cycle from one instance of a class of the program to the next."""

    owner: object
    hops: list[Hop]

    @property
    def edges(self) -> list[Edge]:
        """The references that are written in the program."""
        return [hop.edge for hop in self.hops if is_written(hop.edge)]

    @property
    def attribute(self) -> str:
        """The name of the first attribute."""
        return next((each.name[1:] for each in self.edges if each.name.startswith(".")), "")

    def steps(self) -> tuple[str, ...]:
        """Return it with the class's name, and without keys, which may differ between calls."""
        parts = ("[]" if each.name.startswith("[") else each.name for each in self.edges)
        return (type_name(type(self.owner)), *parts)

    def text(self) -> str:
        """Return the steps in one text."""
        return "".join(self.steps())


def is_instance(value: object) -> bool:
    """Whether its class is of the program or a library, and no plain container."""
    return type_module(type(value)) not in _PLAIN_MODULES


def of_instances(component: Component, cycle: list[Hop], members: Sequence[int]) -> Finding:
    """Name the reference of a cycle that leads back to an older object.

    cycle: begins at an instance; if it does not end there, it is the beginning of a long one.
    """
    segments = _segments(component, cycle)
    placed = [(_stored_at(each, segments), each) for each in segments]
    stored, back = min(placed, key=_backwardness)
    if not stored.place.file:
        made = place_of_class(type(back.owner))
        function = made.function or type_qualname(type(back.owner))
        stored = stored._replace(place=replace(made, function=function))
    # The reference that leads back comes last, wherever the search began.
    first = segments.index(back) + 1
    segments = segments[first:] + segments[:first]
    shown = segments[-_SEGMENTS_SHOWN:]
    before = ["..."] if segments[len(shown) :] else []
    end = _end(component, segments)
    what = " -> ".join([*before, *(each.text() for each in shown), *end])
    advice = for_instances(stored.steps)
    way = [*(report.Edge(each, "") for each in before), *map(_as_edge, shown)]
    way[-1] = replace(way[-1], closing=True)
    way += [report.Edge(each, "") for each in end if each != way[0].source]
    cause = Cause(Kind.OTHER, stored.place, stored.variable, what, advice, tuple(way))
    written = [each for each in back.hops if each.edge.role is Role.PART and is_written(each.edge)]
    hop = written[-1] if written else back.hops[0]
    return Finding(cause, _alike(component, hop, members))


def _as_edge(segment: _Segment) -> report.Edge:
    name, *parts = segment.steps()
    return report.Edge(name, "".join(parts))


def _end(component: Component, segments: Sequence[_Segment]) -> list[str]:
    """Return the end of a cycle through a single instance."""
    if len(segments) > 1:
        return []
    (only,) = segments
    for hop in only.hops:
        here = component.objects[hop.here]
        if type(here) is MethodType:
            function = MethodType.__dict__["__func__"].__get__(here)
            name = function.__code__.co_name if type(function) is FunctionType else ""
            return [f"bound method {name}" if name.isidentifier() else "bound method"]
    return [type_name(type(component.owner(only.hops[-1].there)))]


def _segments(component: Component, cycle: list[Hop]) -> list[_Segment]:
    """Divide a cycle at the instances, and drop repetitions."""
    found: dict[tuple[int, str], _Segment] = {}
    for each in _divided(component, cycle):
        found.setdefault((id(type(each.owner)), each.text()), each)
    return list(found.values())


def _divided(component: Component, cycle: list[Hop]) -> Iterator[_Segment]:
    hops: list[Hop] = []
    owner = component.objects[cycle[0].here]
    for hop in cycle:
        here = component.objects[hop.here]
        if hops and is_instance(here):
            yield _Segment(owner, hops)
            owner, hops = here, []
        hops.append(hop)
    yield _Segment(owner, hops)


def _stored_at(segment: _Segment, segments: Sequence[_Segment]) -> Stored:
    """Return the place where a class of the cycle stores the attribute, and its spelling."""
    edges = segment.edges
    while edges and not edges[0].name.startswith("."):
        edges.pop(0)
    kinds = [type(segment.owner), *(type(each.owner) for each in segments)]
    for kind in {id(each): each for each in kinds}.values() if edges else ():
        found = place_in_class(kind, edges)
        if found is not None:
            return found
    return Stored(Place(), segment.steps())


def _backwardness(placed: tuple[Stored, _Segment]) -> tuple[bool, ...]:
    """Order segments: the one that leads back to an older object comes first."""
    stored, segment = placed
    name = segment.attribute
    given = any(stored_from_parameter(code, name) for code in methods(type(segment.owner)))
    return _UPWARDS.isdisjoint(name.split("_")), not given, not stored.exact


def _alike(component: Component, hop: Hop, members: Sequence[int]) -> list[Cut]:
    """Return the references of the same name, from the container or instances of the class."""
    inside = frozenset(members)
    holders = [hop.here]
    if hop.edge.name.startswith("."):
        kind = type(component.owner(hop.here))
        holders = [each for each in members if type(component.owner(each)) is kind]
    return [
        (here, there, hop.edge.name)
        for here in holders
        for there in component.out[here]
        if there in inside and hop.edge in component.edges(here, there)
    ]
