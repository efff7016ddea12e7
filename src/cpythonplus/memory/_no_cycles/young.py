"""Finds the cyclic garbage of a test, at the price of a young collection.

While it runs, the young generations have only objects that were made since the last boundary
between two tests: the collector starts late (thresholds raised), and each boundary ends with a
collection of generation 1, which moves all survivors to the oldest one. So the garbage in a
collection of generation 0 or 1 belongs to the running test. A full collection, which a test may ask
for, also finds garbage of earlier tests and imports: it is kept apart.

The incremental collector of CPython 3.14.0 to 3.14.4 has no generation 1: only a full collection
finds garbage that has survived a young one. There `exact` is false, and one look, at the boundary,
has to suffice.
"""

import gc
import sys
import threading
import time

from cpythonplus._base.data import Place
from cpythonplus.memory import cycles
from cpythonplus.memory._cycles import watching
from cpythonplus.memory._cycles.report import Cause, Cycle, Kind

_ALLOCATIONS = 50_000
"""Allocations minus deallocations before the collector starts by itself; CPython: 700 or 2,000."""
_YOUNG_COLLECTIONS = 1_000
"""Automatic collections of generation 0 before one of generation 1: never in a usual test."""
_OLDEST = 2
_TRIES = 2_000
"""How often a look tries again while another thread collects, a millisecond or more apart."""

_NOT_LOOKED_FOR = Cycle(
    Cause(Kind.OTHER, Place(), "?", "objects, a collection of another thread did not end", "-"),
    *(1, 0, 0, 0, 0),
)


def probe() -> None:
    """Raise UnsupportedPlatform, a RuntimeError, if the collector cannot be watched."""
    watch = cycles.watch(hoards=False, collect=False)
    watch.start()
    watch.stop()


class Young:
    """The collector's settings and a watch, from `start` to `stop`; one at a time per session."""

    def __init__(self, kinds: frozenset[Kind]) -> None:
        """kinds: kinds of causes to name; other cycles may be left out."""
        self.running = False
        self.exact = not (3, 14) <= sys.version_info < (3, 14, 5)
        self._watch = cycles.watch(hoards=False, collect=False)
        self._named = kinds
        watching.name_always(self._watch, kinds)
        self._swept = False
        # The current look: its thread, its generation, and whether its collection has run.
        self._thread = self._generation = 0
        self._looked = False
        self._certain: list[Cycle] = []
        self.found_during: list[Cycle] = []
        """The findings of full collections, of any test; the user clears them."""
        self._thresholds: tuple[int, int, int] | None = None
        self._own_thresholds: tuple[int, int, int] | None = None
        self._uncertain_from = _OLDEST if self.exact else 1

    def start(self) -> None:
        """Begin at a boundary: the garbage of now was left by imports and is not reported.

        The first time all of it is collected, so that a later full collection finds garbage of
        tests.
        """
        if self.running:
            return
        gc.collect(1 if self._swept else _OLDEST)
        self._swept = True
        self.relax()
        self._watch.start()
        gc.callbacks.append(self._note)
        self.running = True

    def stop(self) -> None:
        """Restore the collector, except settings that the tests themselves have changed."""
        if self.running:
            self.running = False
            if self._note in gc.callbacks:
                gc.callbacks.remove(self._note)
            self._watch.stop()
        if self._thresholds is not None and gc.get_threshold() == self._own_thresholds:
            gc.set_threshold(*self._thresholds)
        self._thresholds = None

    def look(self) -> list[Cycle]:
        """Collect objects made since the last look or boundary; return the cycles found since."""
        return self._collect(0)

    def boundary(self) -> list[Cycle]:
        """Like `look`, for objects made since the last boundary, including earlier looks."""
        return self._collect(1 if self.exact else 0)

    def name(self, kinds: frozenset[Kind]) -> None:
        """Name causes of these kinds from now on."""
        if self._named != kinds:
            self._named = kinds
            watching.name_always(self._watch, kinds)

    def rest(self) -> list[Cycle]:
        """Run a full collection, at the end; return all that it finds."""
        certain = self._collect(_OLDEST)
        found, self.found_during = [*certain, *self.found_during], []
        return found

    def _collect(self, generation: int) -> list[Cycle]:
        if not gc.get_debug() & gc.DEBUG_SAVEALL or self._note not in gc.callbacks:
            # Watch again, if a test has replaced the collector's debug flags or callbacks.
            self._watch.stop()
            self._watch.start()
            if self._note in gc.callbacks:
                gc.callbacks.remove(self._note)
            gc.callbacks.append(self._note)
        looked = self._certainly_collect(generation)
        found = [*self._certain, *self._watch.take()]
        self._certain = []
        return found if looked else [*found, _NOT_LOOKED_FOR]

    def _certainly_collect(self, generation: int) -> bool:
        """Collect; `gc.collect` does nothing while a collection of another thread runs.

        Garbage of this test would then be found after the next one. Tries are counted, not timed:
        on a busy machine each takes longer.
        """
        self._thread, self._generation = threading.get_ident(), generation
        self._looked = False
        for _ in range(_TRIES):
            gc.collect(generation)
            if self._looked:
                return True
            time.sleep(0.001)
        return False

    def relax(self) -> None:
        """Make the collector start late; before the first test too, while tests are collected."""
        if self._thresholds is not None:
            return
        before = gc.get_threshold()
        # 0 means switched off, like gc.disable(); a larger number of the program's is kept, too.
        if 0 < before[0] < _ALLOCATIONS:
            gc.set_threshold(_ALLOCATIONS, _YOUNG_COLLECTIONS, before[2])
            self._thresholds = before
            self._own_thresholds = gc.get_threshold()

    def _note(self, phase: str, info: dict[str, int]) -> None:
        """Keep apart the findings of a collection of the oldest generation (for gc.callbacks)."""
        if phase == "stop" and info["generation"] >= self._generation:
            self._looked = self._looked or threading.get_ident() == self._thread
        if info["generation"] < self._uncertain_from:
            return
        into = self._certain if phase == "start" else self.found_during
        into += self._watch.take()
