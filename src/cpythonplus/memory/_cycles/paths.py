"""Spells the path from a variable to an object: ``self.jobs[].error``."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from types import CellType, FunctionType
from typing import Final, NamedTuple

from cpythonplus.memory._cycles.component import Component
from cpythonplus.memory._cycles.edges import Edge, Role
from cpythonplus.memory._cycles.looking import is_exception, is_type, type_name

_SEARCH_LIMIT: Final = 2000  # edges
_PATHS_LIMIT: Final = 24
_SHOWN_PARTS: Final = 3
_WRAPPING: Final = frozenset(
    {".__wrapped__", ".__self__", ".__func__", ".func", ".__dict__", ".fget", ".__callback__"}
)


def is_written(edge: Edge) -> bool:
    """Whether it is part of the name: the insides of bound methods and wrappers are not."""
    return bool(edge.name) and edge.name not in _WRAPPING


@dataclass(frozen=True, slots=True, eq=False)  # comparing would compare the owners
class Path:
    """A path along references.

    owner: the object that has the variable: a frame, a generator, a function (a free variable of
    it), a class or an exception (then `variable` is the name of their type). edges: the references
    after the variable. sources: the object that each edge begins at, by its id. value: the value of
    the variable, by its id.
    """

    owner: object
    variable: str
    edges: tuple[Edge, ...]
    sources: tuple[int, ...]
    value: int

    @property
    def parts(self) -> list[str]:
        """The parts after the variable; of a long path only the first ones.

        "" at the end: something inside of the last part, as in an object written in C.
        """
        return [each.name for each in self.shown()] + [""] * self.is_open()

    @property
    def stored_parts(self) -> list[str]:
        """`parts` up to the part that was stored: tuples at the end were made with their items."""
        shown = self.shown()
        while shown and shown[-1].role is Role.INDEX:
            shown.pop()
        return [each.name for each in shown] + [""] * self.is_open()

    def shown(self) -> list[Edge]:
        """Return the edges that are written."""
        result = [each for each in self.edges if is_written(each)]
        if len(result) > _SHOWN_PARTS:
            del result[_SHOWN_PARTS - 1 :]
            while len(result) > 1 and not result[-1].name.startswith("."):
                result.pop()
        return result

    def is_open(self) -> bool:
        """Whether the path leads to something inside of the written part."""
        written = sum(map(is_written, self.edges))
        hidden = self.edges[-1:] and self.edges[-1].role is Role.HIDDEN
        return bool(hidden) or written > _SHOWN_PARTS


def paths_to(component: Component, here: int, last: Edge) -> Iterator[Path]:
    """Yield paths from variables to `here` and on along `last`, the shortest first.

    Breadth first, against the references, and not through exceptions and tracebacks; at most some
    thousands of references are looked at.
    """
    start = (
        () if last.role is Role.HIDDEN and type(component.objects[here]) is CellType else (last,)
    )
    queue = deque([_Tail(here, start, (here,) * len(start))])
    seen = {here}
    budget, found = _SEARCH_LIMIT, 0
    while queue and budget > 0 and found < _PATHS_LIMIT:
        tail = queue.popleft()
        for before in component.preceding(tail.node):
            for edge in component.edges(before, tail.node):
                budget -= 1
                path = _root(component, before, edge, tail)
                if path is not None:
                    found += 1
                    yield path
                if before not in seen and _goes_on(component, before, edge):
                    seen.add(before)
                    queue.append(tail.after(before, edge))


class _Tail(NamedTuple):
    """The end of a path, from `node` on."""

    node: int
    edges: tuple[Edge, ...]
    sources: tuple[int, ...]

    def after(self, before: int, edge: Edge) -> "_Tail":
        """Return the path extended by one reference, which may add nothing to the name."""
        if edge.role in (Role.PART, Role.INDEX):
            return _Tail(before, (edge, *self.edges), (before, *self.sources))
        return self._replace(node=before)


def _goes_on(component: Component, before: int, edge: Edge) -> bool:
    """Whether the referrers of `before` may be part of the name; a variable begins the name.

    A closure is an exception: the search goes on to the holder of its function.
    """
    if edge.role is Role.NATURAL:
        return type(component.objects[before]) is FunctionType
    if edge.role is Role.VARIABLE:
        return component.function_of_closure(before) is not None
    return not is_exception(component.objects[before])


def _root(component: Component, before: int, edge: Edge, tail: _Tail) -> Path | None:
    owner = component.objects[before]
    if edge.role is Role.VARIABLE:
        owner = (
            component.function_of_closure(before) or component.frame_of_snapshot(before) or owner
        )
        return Path(owner, edge.name, tail.edges, tail.sources, tail.node)
    if edge.role is Role.NATURAL:
        return None
    if is_type(owner):
        name = type_name(owner)  # type: ignore[arg-type]
    elif is_exception(owner):
        name = type_name(type(owner))
    else:
        return None
    whole = tail.after(before, edge)
    return Path(owner, name, whole.edges, whole.sources, before)
