"""Short cycles of references in a component."""

from collections import deque
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Final, NamedTuple

from cpythonplus.memory._cycles.component import Component
from cpythonplus.memory._cycles.edges import Edge, Role

_SEARCH_LIMIT: Final = 2000  # edges
_TOTAL_LIMIT: Final = 6000
_STARTS_LIMIT: Final = 24


class Hop(NamedTuple):
    """A reference of a cycle."""

    here: int
    there: int
    edge: Edge


def shortest(
    component: Component,
    starts: Sequence[int],
    members: Sequence[int],
    *,
    variables_first: bool = False,
) -> list[Hop]:
    """Return the shortest cycle through one of `starts`; the first few are tried.

    variables_first: it has to begin with a variable.
    """
    inside = frozenset(members)
    best: list[Hop] = []
    budget = _TOTAL_LIMIT
    for start in islice(starts, _STARTS_LIMIT):
        search = _Search(component, start, variables_first=variables_first)
        cycle = search.way_to(frozenset([start]), inside, min(budget, _SEARCH_LIMIT))
        budget -= search.looked_at
        if cycle and (not best or len(cycle) < len(best)):
            best = cycle
    return best


def beginning(component: Component, start: int, inside: frozenset[int]) -> list[Hop]:
    """Return the way from `start` to the nearest of `inside`; [] if none is near."""
    return _Search(component, start).way_to(inside, component.objects.keys(), _SEARCH_LIMIT)


class _Search:
    """Searches breadth-first along the references of one object."""

    def __init__(self, component: Component, start: int, *, variables_first: bool = False) -> None:
        self._component = component
        self._start = start
        self._variables_first = variables_first
        self.looked_at = 0

    def way_to(self, ends: AbstractSet[int], inside: AbstractSet[int], limit: int) -> list[Hop]:
        """Return the way to the nearest of `ends`; [] if none is near.

        inside: the objects that may be on it; limit: references to look at.
        """
        came_from: dict[int, Hop] = {}
        queue = deque([self._start])
        while queue and self.looked_at < limit:
            here = queue.popleft()
            for there in self._component.following(here):
                self.looked_at += 1
                if there not in inside or there in came_from:
                    continue
                edge = _best_edge(self._component.edges(here, there))
                first = here == self._start and self._variables_first
                if first and edge.role is not Role.VARIABLE:
                    continue
                came_from[there] = Hop(here, there, edge)
                if there in ends:
                    return _way(came_from, self._start, there)
                queue.append(there)
        return []


def _best_edge(edges: tuple[Edge, ...]) -> Edge:
    return min(edges, key=lambda each: (each.role is Role.NATURAL, not each.name))


def _way(came_from: dict[int, Hop], start: int, end: int) -> list[Hop]:
    hops = [came_from[end]]
    while hops[-1].here != start:
        hops.append(came_from[hops[-1].here])
    hops.reverse()
    return hops
