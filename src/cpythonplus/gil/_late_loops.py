"""Event loops of asyncio that are late, because a callback blocks while nobody waits for the GIL.

A thread asks each loop that is busy for a sign of life, by `call_soon_threadsafe`, and looks at the
frames of the loop's thread while there is none. It does nothing to a loop that waits for events.
A callback that keeps the GIL keeps it from this thread as well, and is a stall of the GIL.
"""

import sys
from _thread import get_ident, get_native_id
from collections import Counter
from time import monotonic_ns, time
from types import FrameType
from typing import Any

from cpythonplus._base.data import Place, place_of
from cpythonplus._base.replacing import when_loaded
from cpythonplus._base.stacks import frames_of_threads, outwards, variables_of
from cpythonplus.gil._background import Background
from cpythonplus.gil._stalls import Stall, note, thread_names

_TURNS_A_LIMIT = 4
_FRAMES = 24
_RUN_FOREVER = ("base_events.py", "BaseEventLoop.run_forever")
_RUNNER = ("runners.py", "Runner.run")
_HANDLE = ("events.py", "Handle._run")


class LateLoops:
    """Records each time for which a loop did not answer for as long as the limit."""

    def __init__(self) -> None:
        """Nothing begins before `find`."""
        self._limit_ns = self._turn_ns = 0
        self._background = Background("cpythonplus loops", 0.0, self._look)
        self._loops: dict[int, _Loop] = {}
        self._looked_ns = 0
        self._forks = self._awaits = self._ended = False

    def set_limit(self, limit_ms: float) -> None:
        """Set the limit, also of loops that are found already."""
        self._limit_ns = int(limit_ms * 1e6)
        self._turn_ns = self._limit_ns // _TURNS_A_LIMIT
        self._background.turn_s = self._turn_ns / 1e9
        self._loops.clear()
        if not self._awaits:
            self._awaits = True
            when_loaded("asyncio.events", self._await_starts)

    def _await_starts(self) -> None:
        """Have each loop of asyncio's own tell its start."""
        events: Any = sys.modules["asyncio.events"]
        inner = events._set_running_loop  # noqa: SLF001

        def set_running_loop(loop: Any) -> None:  # noqa: ANN401
            inner(loop)
            if loop is not None and not self._ended:
                ident = get_ident()
                self._loops[ident] = _Loop(loop, ident, self._limit_ns)
                self._begin()

        events._set_running_loop = set_running_loop  # noqa: SLF001

    def find(self) -> None:
        """Look for loops that run, as those in C; begin to ask them, or end if there is none."""
        if "asyncio.base_events" not in sys.modules:
            return
        for ident, frame in frames_of_threads().items():
            loop = _loop_of(frame)
            known = self._loops.get(ident)
            if loop is not None and (known is None or known.loop is not loop):
                self._loops[ident] = _Loop(loop, ident, self._limit_ns)
        if not self._loops:
            self._background.stop()
            return
        self._begin()

    def _begin(self) -> None:
        self._background.start()
        if not self._forks:
            self._forks = True
            self._background.go_on_behind_forks(self._loops.clear)

    def stop(self) -> None:
        """End the thread, for good."""
        self._ended = True
        self._background.stop()

    def _look(self) -> None:
        before_ns, self._looked_ns = self._looked_ns, monotonic_ns()
        # This thread did not get the GIL in time: what the frames show now did not keep it.
        in_time = self._looked_ns - before_ns < 2 * self._turn_ns
        frames = frames_of_threads()
        for ident in [*self._loops]:  # the pairs would allocate: see stacks.frames_of_threads()
            each = self._loops[ident]
            if ident not in frames or not each.look(frames[ident], in_time=in_time):
                self._loops.pop(ident).forget()


class _Loop:
    """A loop that runs, and the sign of life that it was asked for."""

    def __init__(self, loop: Any, ident: int, limit_ns: int) -> None:  # noqa: ANN401
        self.loop = loop
        self._ident, self._limit_ns = ident, limit_ns
        self._asked: Any = None  # the handle of `_answer`
        self._asked_ns = 0
        self._seen: Counter[tuple[Place, ...]] = Counter()

    def look(self, frame: FrameType, *, in_time: bool) -> bool:
        """Ask for a sign of life, or look why there was none; False: the loop does not run."""
        if not self.loop.is_running():
            return False
        if self._asked is not None:
            stack = _inside(frame)
            if in_time and stack:
                self._seen[stack] += 1
            return True
        if _is_idle(frame):
            return True
        self._seen.clear()
        self._asked_ns = monotonic_ns()
        try:
            self._asked = self.loop.call_soon_threadsafe(self._answer)
        except RuntimeError:  # closed
            return False
        return True

    def forget(self) -> None:
        """Take the question back."""
        if self._asked is not None:
            self._asked.cancel()

    def _answer(self) -> None:
        """Called by the loop."""
        late_ns = monotonic_ns() - self._asked_ns
        self._asked = None
        if late_ns >= self._limit_ns and self._seen:
            native_id = get_native_id()
            note(
                Stall(
                    ended_s=time(),
                    thread=thread_names().get(native_id, f"thread {native_id}"),
                    ident=self._ident,
                    native_id=native_id,
                    hold_ns=late_ns,
                    waiters=0,
                    waited_ns=0,
                    kind="loop",
                    stack=self._seen.most_common(1)[0][0],
                )
            )


def _is(frame: FrameType, which: tuple[str, str]) -> bool:
    code = frame.f_code
    return code.co_qualname == which[1] and code.co_filename.endswith(f"asyncio/{which[0]}")


def _loop_of(frame: FrameType) -> Any:  # noqa: ANN401
    """Return the loop that this thread runs, or None; loops in C are found by their Runner."""
    for each in outwards(frame):
        if _is(each, _RUN_FOREVER):
            return variables_of(each).get("self")
        if _is(each, _RUNNER):
            return getattr(variables_of(each).get("self"), "_loop", None)
    return None


def _is_idle(frame: FrameType) -> bool:
    """Whether the loop waits for events; a loop in C has no frame of its own."""
    return frame.f_code.co_filename.endswith("selectors.py") or _is(frame, _RUNNER)


def _inside(frame: FrameType) -> tuple[Place, ...]:
    """Return the frames of the callback, outermost first; () between two callbacks."""
    found: list[Place] = []
    for each in outwards(frame):
        if _is(each, _HANDLE) or _is(each, _RUNNER):
            return tuple(reversed(found[:_FRAMES]))
        if _is(each, _RUN_FOREVER):
            break
        found.append(place_of(each))
    return ()
