"""Cyclic garbage of a function, in strongly connected components, without the package's own C."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cpythonplus.memory._cycles.component import Component


@contextmanager
def saved_garbage() -> Iterator[list[object]]:
    """Yield what the collector puts aside; afterwards it is freed."""
    gc.collect()
    flags = gc.get_debug()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield gc.garbage
    finally:
        gc.set_debug(flags)
        gc.garbage.clear()


def components_of(garbage: list[object]) -> list[list[object]]:
    graph = Component(garbage)
    return [[graph.objects[each] for each in part] for part in graph.cyclic(graph.objects)]


@contextmanager
def garbage_of(leak: Callable[[], object]) -> Iterator[list[list[object]]]:
    """Yield the components of what `leak` leaves to the collector."""
    with saved_garbage() as garbage:
        leak()
        gc.collect()
        found = components_of(garbage)
        try:
            yield found
        finally:
            found.clear()
