"""A job three functions deep with ten small variables: a tasklet, and its state written by hand."""

from __future__ import annotations

from dataclasses import dataclass, field

from cpythonplus.tasklets import schedule_remove


def outer(a: int) -> str:
    """Call the next one."""
    b, c, d = "name", 3.5, [1, 2]
    return f"{middle(a + 1)} {b} {c} {d}"


def middle(x: int) -> int:
    """Call the innermost one."""
    y, z, w = x * 2, {"a": 1}, None
    return inner(y) + len(z) + (w is None)


def inner(n: int) -> int:
    """Stop."""
    k, m = n + 1, True
    schedule_remove()
    return k + m


@dataclass
class Middle:
    """What `middle` has."""

    x: int = 2
    y: int = 4
    z: dict[str, int] = field(default_factory=lambda: {"a": 1})
    w: None = None


@dataclass
class Inner:
    """What `inner` has."""

    n: int = 4
    k: int = 5
    m: bool = True
    step: str = "stopped"


@dataclass
class State:
    """What `outer` has, and where the three stand."""

    a: int = 1
    b: str = "name"
    c: float = 3.5
    d: list[int] = field(default_factory=lambda: [1, 2])
    step: str = "in middle"
    middle: Middle = field(default_factory=Middle)
    inner: Inner = field(default_factory=Inner)
