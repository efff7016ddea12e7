"""Short cycles of references in a component."""

from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Final, NamedTuple

from cpythonplus.memory._cycles.component import Component
from cpythonplus.memory._cycles.edges import Edge, Role

__all__ = ["Hop", "beginning", "shortest"]

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
    """Return the shortest cycle through one of `starts`; the first few are tried."""
    search = _Search(component, frozenset(members), variables_first=variables_first)
    best: list[Hop] = []
    for start in islice(starts, _STARTS_LIMIT):
        cycle = search.through(start)
        if cycle and (not best or len(cycle) < len(best)):
            best = cycle
    return best


class _Search:
    """Searches for cycles, with one budget for all of them."""

    def __init__(
        self, component: Component, inside: frozenset[int], *, variables_first: bool
    ) -> None:
        """variables_first: what a cycle begins with has to be a variable."""
        self._component = component
        self._inside = inside
        self._variables_first = variables_first
        self._budget = _TOTAL_LIMIT

    def through(self, start: int) -> list[Hop]:
        """Search breadth-first from `start` back to it; [] if there is none near."""
        came_from: dict[int, Hop] = {}
        queue = deque([start])
        end = max(self._budget - _SEARCH_LIMIT, 0)
        while queue and self._budget > end:
            here = queue.popleft()
            for there in self._component.following(here):
                self._budget -= 1
                if there not in self._inside or there in came_from:
                    continue
                edge = _best_edge(self._component.edges(here, there))
                if here == start and self._variables_first and edge.role is not Role.VARIABLE:
                    continue
                came_from[there] = Hop(here, there, edge)
                if there == start:
                    return _way(came_from, start, start)
                queue.append(there)
        return []


def _best_edge(edges: tuple[Edge, ...]) -> Edge:
    return min(edges, key=lambda each: (each.role is Role.NATURAL, not each.name))


def beginning(component: Component, start: int, inside: frozenset[int]) -> list[Hop]:
    """Return the way from `start` to the nearest of `inside`; [] if there is none near."""
    came_from: dict[int, Hop] = {}
    queue = deque([start])
    while queue and len(came_from) < _SEARCH_LIMIT:
        here = queue.popleft()
        for there in component.following(here):
            if there not in came_from:
                came_from[there] = Hop(here, there, _best_edge(component.edges(here, there)))
                if there in inside:
                    return _way(came_from, start, there)
                queue.append(there)
    return []


def _way(came_from: dict[int, Hop], start: int, end: int) -> list[Hop]:
    hops = [came_from[end]]
    while hops[-1].here != start:
        hops.append(came_from[hops[-1].here])
    hops.reverse()
    return hops
