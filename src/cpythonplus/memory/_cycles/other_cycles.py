"""Names cycles of frames, generators, instances and containers that no exception closes."""

from collections.abc import Sequence
from types import FunctionType

from cpythonplus._base.data import Place
from cpythonplus.memory._cycles.advice import for_frame, for_instances, for_namespace
from cpythonplus.memory._cycles.component import Component
from cpythonplus.memory._cycles.edges import Role, frame_of
from cpythonplus.memory._cycles.finding import Finding
from cpythonplus.memory._cycles.instance_cycles import is_instance, of_instances
from cpythonplus.memory._cycles.looking import globals_of, type_name
from cpythonplus.memory._cycles.paths import Path
from cpythonplus.memory._cycles.placing import Stored, along, place_in
from cpythonplus.memory._cycles.report import Cause, Edge, Kind
from cpythonplus.memory._cycles.short_cycles import Hop, beginning, shortest


def find(component: Component, members: Sequence[int]) -> Finding:
    """Name a variable or an attribute that closes a short cycle."""
    namespace = _of_namespace(component, members)
    if namespace is not None:
        return namespace
    running = [each for each in members if frame_of(component.objects[each]) is not None]
    best = shortest(component, running, members, variables_first=True)
    if best:
        return _of_frame(component, best)
    instances = [each for each in members if is_instance(component.objects[each])]
    best = shortest(component, instances, members)
    if best:
        return of_instances(component, best, members)
    best = shortest(component, members, members)
    return _of_containers(component, best, members) if best else find_in_long(component, members)


def find_in_long(component: Component, members: Sequence[int]) -> Finding:
    """Name a reference of a cycle that is too long to be followed to its end."""
    instances = [each for each in members if is_instance(component.objects[each])]
    way = beginning(component, instances[0], frozenset(instances)) if instances else []
    if way:
        return of_instances(component, way, instances)
    return _of_containers(component, [], members)


# ---- frames and generators ----------------------------------------------------------------------


def _of_frame(component: Component, cycle: list[Hop]) -> Finding:
    owner = component.objects[cycle[0].here]
    written = [hop for hop in cycle[1:] if hop.edge.role is not Role.HIDDEN]
    edges = tuple(hop.edge for hop in written)
    sources = tuple(hop.here for hop in written)
    path = Path(owner, cycle[0].edge.name, edges, sources, cycle[0].there)
    stored = place_in(component, path)
    last = next(hop for hop in reversed(cycle) if hop.edge.name)
    what = type_name(type(component.objects[last.there]))
    way = [*along(f"frame of {stored.place.function}()", stored.steps), Edge(what, "")]
    cause = _cause(stored, what, for_frame(stored.steps), way)
    return Finding(cause, [(last.here, last.there, last.edge.name)])


def _cause(stored: Stored, what: str, advice: str, edges: Sequence[Edge]) -> Cause:
    return Cause(Kind.OTHER, stored.place, stored.variable, what, advice, tuple(edges))


# ---- namespaces ---------------------------------------------------------------------------------


def _of_namespace(component: Component, members: Sequence[int]) -> Finding | None:
    """Name a function in the namespace that it was executed in: ``exec(source, namespace)``."""
    inside = frozenset(members)
    for each in members:
        function = component.objects[each]
        if type(function) is FunctionType and id(globals_of(function)) in inside:
            code = function.__code__
            function_name = code.co_qualname.rpartition(".")[0] or "<module>"
            place = Place(code.co_filename, code.co_firstlineno, function_name)
            stored = Stored(place, (code.co_name,), exact=True)
            what = f"function {code.co_name} and the namespace it was executed in"
            way = (
                Edge("the namespace it was executed in", code.co_name, closing=True),
                Edge(f"function {code.co_name}", "__globals__"),
            )
            cause = _cause(stored, what, for_namespace(code.co_name), way)
            return Finding(cause, [id(globals_of(function))])
    return None


# ---- the rest -----------------------------------------------------------------------------------


def _of_containers(component: Component, cycle: list[Hop], members: Sequence[int]) -> Finding:
    start = component.objects[cycle[0].here if cycle else members[0]]
    kind = type_name(type(start))
    if not cycle:
        # The cycle is longer than the search: cut all references to one of its objects.
        return Finding(
            _cause(Stored(Place(), (kind,)), kind, for_instances((kind,)), ()), [members[0]]
        )
    parts = ("[]" if hop.edge.name.startswith("[") else hop.edge.name for hop in cycle)
    stored = Stored(Place(), (kind, *parts))
    last = cycle[-1]
    name = stored.variable
    way = [Edge(kind, "".join(stored.steps[1:]), closing=True)]
    cause = _cause(stored, f"{name} -> {kind}", for_instances(stored.steps), way)
    return Finding(cause, [(last.here, last.there, last.edge.name)])
