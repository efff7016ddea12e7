"""Other objects that refer to one another: frames, parents and children, lists of themselves."""

import sys
import weakref
from types import FrameType
from typing import Any

from tests.memory.cycles.patterns.pattern import Pattern


def own_frame() -> str:
    frame = sys._getframe()  # <- here
    return frame.f_code.co_name


def own_frame_twin() -> str:
    frame = sys._getframe()
    try:
        return frame.f_code.co_name
    finally:
        del frame


class Tracer:
    frame: FrameType | None = None

    def enter(self) -> None:
        self.frame = sys._getframe()  # <- here


def frame_on_self() -> None:
    Tracer().enter()


def frame_on_self_twin() -> None:
    tracer = Tracer()
    tracer.enter()
    tracer.frame = None


class Parent:
    def __init__(self, *, weak: bool) -> None:
        self.child = Child(weakref.proxy(self) if weak else self)


class Child:
    def __init__(self, parent: object) -> None:
        self.parent = parent  # <- here


def parent_and_child() -> None:
    Parent(weak=False)


def parent_and_child_twin() -> None:
    Parent(weak=True)


class Tree:
    __slots__ = ("__weakref__", "branches", "up")

    def __init__(self) -> None:
        self.branches: list[Tree] = []
        self.up: Any = None

    def grow(self, *, weak: bool) -> None:
        branch = Tree()
        branch.up = weakref.proxy(self) if weak else self  # <- here
        self.branches.append(branch)


def tree() -> None:
    root = Tree()
    for _ in range(3):
        root.grow(weak=False)


def tree_twin() -> None:
    root = Tree()
    for _ in range(3):
        root.grow(weak=True)


class Button:
    def __init__(self) -> None:
        self.action = self.press  # <- here

    def press(self) -> None: ...


class PlainButton:
    def press(self) -> None: ...


def bound_method() -> None:
    Button().action()


def bound_method_twin() -> None:
    PlainButton().press()


PATTERNS = [
    Pattern(name, leak, twin, "other", function, variable, marked)
    for name, leak, twin, function, variable, marked in (
        ("own frame", own_frame, own_frame_twin, "own_frame", "frame", None),
        (
            "frame on self",
            frame_on_self,
            frame_on_self_twin,
            "Tracer.enter",
            "self.frame",
            Tracer.enter,
        ),
        (
            "parent and child",
            parent_and_child,
            parent_and_child_twin,
            "Child.__init__",
            "self.parent",
            Child,
        ),
        ("tree", tree, tree_twin, "Tree.grow", "branch.up", Tree.grow),
        (
            "bound method",
            bound_method,
            bound_method_twin,
            "Button.__init__",
            "self.action",
            Button.__init__,
        ),
    )
]
