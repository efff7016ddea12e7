"""Stacks of frames: the frames outwards, and the features that switch stacks within a thread."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

switchers: set[str] = set()
"""`tasklets`, once they are imported.  A tracer that counts calls and returns is wrong then."""


def outwards(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and its callers, innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back
