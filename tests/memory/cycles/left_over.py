"""What a call leaves to the garbage collector, counted in two ways."""

import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Payload:
    """Something that a frame or an inner function holds."""

    def __bool__(self) -> bool:
        return True


_payloads: list[weakref.ref[Payload]] = []


def payload() -> Payload:
    result = Payload()
    _payloads.append(weakref.ref(result))
    return result


def dead_payloads() -> list[bool]:
    """Return for each payload since the beginning of the test whether it is dead."""
    return [ref() is None for ref in _payloads]


@contextmanager
def collector_off() -> Iterator[None]:
    """Keep the collector from running, and from looking at what was there before."""
    _payloads.clear()
    gc.collect()
    gc.freeze()
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


def garbage(call: Callable[[], object]) -> int:
    """Return how many objects a call leaves to the collector; 0: each payload died at once, too."""
    gc.collect()
    _payloads.clear()
    call()
    assert _payloads
    all_dead = all(dead_payloads())
    found = gc.collect()
    assert (found == 0) == all_dead, (found, dead_payloads())
    return found
