"""A component of cyclic garbage as a graph of named references, some of which may be cut."""

import gc
from array import array
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from types import CellType, FunctionType
from typing import Final

from cpythonplus import _native
from cpythonplus.memory._cycles.edges import SNAPSHOT, Edge, Role, attribute_items, edges, frame_of
from cpythonplus.memory._cycles.looking import attribute_dict, is_type

Cut = tuple[int, int, str] | int
"""A reference by its holder, target and name; or an object, and with it all that leads to it."""

_UNNAMED: Final = (Edge("", Role.HIDDEN),)
_get_closure = FunctionType.__dict__["__closure__"].__get__


class Component:
    """Objects and the references between them.  Objects are given by their ids throughout."""

    __slots__ = ("_cut", "_cut_pairs", "_edges", "back", "objects", "out")

    def __init__(self, objects: Iterable[object]) -> None:
        """Build the graph of the objects at once; names are found on demand."""
        self.objects = {id(each): each for each in objects}
        self.out: dict[int, tuple[int, ...]] = {}
        self.back: dict[int, list[int]] = defaultdict(list)
        for here, value in self.objects.items():
            targets = {id(each): None for each in gc.get_referents(value)}
            self.out[here] = tuple(each for each in targets if each in self.objects)
        for here, there in self.out.items():
            for each in there:
                self.back[each].append(here)
        self._edges: dict[int, dict[int, tuple[Edge, ...]]] = {}
        self._cut: set[Cut] = set()
        self._cut_pairs: dict[tuple[int, int], int] = defaultdict(int)

    # ---- names ----------------------------------------------------------------------------------

    def edges(self, here: int, there: int) -> tuple[Edge, ...]:
        """Return the references from one to the other that have not been cut."""
        known = self._named(here).get(there, _UNNAMED)
        if not self._cut_pairs.get((here, there)):
            return known
        return tuple(each for each in known if (here, there, each.name) not in self._cut)

    def _named(self, here: int) -> dict[int, tuple[Edge, ...]]:
        known = self._edges.get(here)
        if known is None:
            known = self._edges[here] = self._name(here)
        return known

    def _name(self, here: int) -> dict[int, tuple[Edge, ...]]:
        wanted = frozenset(self.out[here])
        found: dict[int, tuple[Edge, ...]] = {}
        for edge, value in self._edges_of(here):
            there = id(value)
            if there in wanted and edge not in found.get(there, ()):
                found[there] = (*found.get(there, ()), edge)
        return found

    def _edges_of(self, here: int) -> Iterator[tuple[Edge, object]]:
        """Yield edges as `edges` does; attributes' dicts and closures are read through owners."""
        value = self.objects[here]
        function = self.function_of_closure(here)
        if function is not None:
            return _free_variables(function)
        if type(value) is dict:
            if self.frame_of_snapshot(here) is not None:
                return _variables(value)
            if self._owner_of_attributes(here) is not None:
                return attribute_items(value)
        return edges(value)

    def function_of_closure(self, here: int) -> FunctionType | None:
        """Return the function that has this closure; None: the object is something else."""
        for each in self.back[here] if type(self.objects[here]) is tuple else ():
            function = self.objects[each]
            if type(function) is FunctionType and id(_get_closure(function)) == here:
                return function
        return None

    def frame_of_snapshot(self, here: int) -> object | None:
        """Return the frame or generator whose variables this dict copies; None: it is no copy."""
        if type(self.objects[here]) is dict:
            for each in self.back[here]:
                if frame_of(self.objects[each]) and SNAPSHOT in self.edges(each, here):
                    return self.objects[each]
        return None

    def _owner_of_attributes(self, here: int) -> object | None:
        """Return the object whose attributes this dict has; None: it is an ordinary dict."""
        for each in self.back[here]:
            owner = self.objects[each]
            if is_type(owner) or attribute_dict(owner) is self.objects[here]:
                return owner
        return None

    def owner(self, here: int) -> object:
        """Return the object that a reader means: the instance of a dict, the content of a cell."""
        value = self.objects[here]
        if type(value) is dict:
            owner = self._owner_of_attributes(here)
            return value if owner is None else owner
        if type(value) is CellType and self.out[here]:
            return self.objects[self.out[here][0]]
        return value

    # ---- cutting --------------------------------------------------------------------------------

    def cut(self, cuts: Iterable[Cut]) -> None:
        """Leave these references out from now on."""
        for each in cuts:
            if each not in self._cut:
                self._cut.add(each)
                if isinstance(each, tuple):
                    self._cut_pairs[each[:2]] += 1

    def mend(self, cuts: Iterable[Cut]) -> None:
        """Put these references back."""
        for each in cuts:
            if each in self._cut:
                self._cut.discard(each)
                if isinstance(each, tuple):
                    self._cut_pairs[each[:2]] -= 1

    def following(self, here: int) -> Iterator[int]:
        """Yield the referents, along references that have not been cut."""
        for there in self.out[here]:
            if there not in self._cut and (
                not self._cut_pairs.get((here, there)) or self.edges(here, there)
            ):
                yield there

    def preceding(self, here: int) -> Iterator[int]:
        """Yield the referrers, along references that have not been cut."""
        if here not in self._cut:
            for each in self.back[here]:
                if not self._cut_pairs.get((each, here)) or self.edges(each, here):
                    yield each

    def references_to(
        self, targets: Iterable[int], inside: Container[int]
    ) -> Iterator[tuple[int, int, Edge]]:
        """Yield (holder, target, reference) for references of the program, from `inside`."""
        for there in targets:
            for here in self.preceding(there):
                for edge in self.edges(here, there) if here in inside else ():
                    if edge.role is not Role.NATURAL:
                        yield here, there, edge

    def cyclic(self, inside: Iterable[int]) -> list[list[int]]:
        """Return the strongly connected components of a part that have a cycle."""
        number = {each: place for place, each in enumerate(dict.fromkeys(inside))}
        first, target = array("L", [0]), array("I")
        for each in number:
            target.extend(number[there] for there in self.following(each) if there in number)
            first.append(len(target))
        component = memoryview(_native.memory_components(first, target)).cast("I")
        found: dict[int, list[int]] = {}
        for each, place in number.items():
            found.setdefault(component[place], []).append(each)
        return [
            each
            for _, each in sorted(found.items())
            if len(each) > 1 or each[0] in set(self.following(each[0]))
        ]


def _variables(snapshot: dict[str, object]) -> Iterator[tuple[Edge, object]]:
    for name, value in snapshot.items():
        if type(name) is str:
            yield Edge(name, Role.VARIABLE), value


def _free_variables(function: FunctionType) -> Iterator[tuple[Edge, object]]:
    names = function.__code__.co_freevars
    for name, cell in zip(names, _get_closure(function) or (), strict=False):
        if type(cell) is CellType:
            yield Edge(name, Role.VARIABLE), cell
