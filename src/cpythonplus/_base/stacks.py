"""Stacks of frames: those of all threads, and the features that switch stacks within a thread."""

from __future__ import annotations

import sys
from functools import partial

from cpythonplus._base.modules import imported
from cpythonplus._native import stacks_outwards as outwards
from cpythonplus._native import stacks_without_collection as without_collection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType
    from typing import Any

__all__ = [
    "frames_of_threads",
    "known_threads",
    "outwards",
    "switchers",
    "variables_of",
    "without_collection",
]

switchers: set[str] = set()
"""`tasklets`, once they are imported.  A tracer that counts calls and returns is wrong then."""

frames_of_threads = partial(without_collection, sys._current_frames)  # noqa: SLF001  # documented
"""Return the innermost frame of each thread, by ident; of this one, the caller's."""


def known_threads() -> dict[int, object]:
    """Return the threads that `threading` knows, by ident, without waiting for a lock of it."""
    active: object = getattr(imported("threading"), "_active", None)
    # Up to 3.11 a finalizer may let another thread change it within copy(), and the copy is broken.
    return without_collection(active.copy) if isinstance(active, dict) else {}


def variables_of(frame: FrameType) -> Mapping[str, Any]:
    """Return the variables of a frame, which another thread may execute."""
    return without_collection(getattr, frame, "f_locals")
