"""Tells why instances have dicts of their own, and the remedy."""

from dataclasses import dataclass

SHARED_NAMES = 30
"""The most attribute names that a class shares among its instances."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of one class.

    They count instances that take more than they would with shared names and no dict. split: a dict
    was made for them; many, general, foreign, put: their dict has a key table of its own, because
    there are too many attributes, keys that are no strings, names that the class does not share, or
    for none of these reasons. foreign and put are a sample. names: the class's shared names; room:
    for how many more.
    """

    split: int
    combined: int
    many: int
    general: int
    foreign: int
    put: int
    names: int
    room: int


_READ = (
    "a dict because vars() or __dict__ was read (cached_property, copy and pickle do so too)",
    "Read attributes by name or getattr(), or give the class __slots__",
)
_MANY = (
    f"more than {SHARED_NAMES} attributes, and no more can be shared",
    "Give the class __slots__, or split it",
)
_GENERAL = ("keys in __dict__ that are not strings", "Keep such keys in a dict of their own")
_FOREIGN = (
    "attributes whose names are not shared: the class shares {names} others and no more",
    "Set the same attributes in every __init__, None where there is no value, or use __slots__",
)
_PUT = (
    "a __dict__ assigned or filled as a whole (__dict__ = ..., __dict__.update())",
    "Set each attribute by name (setattr() in a loop is enough), or give the class __slots__",
)


def explain(counts: Counts) -> tuple[str, str]:
    """Return the cause that most of the instances have, and the remedy."""
    own = counts.combined
    number = own
    if counts.split > own:
        number, (cause, remedy) = counts.split, _READ
    elif counts.many * 2 > own:
        number, (cause, remedy) = counts.many, _MANY
    elif counts.general * 2 > own:
        number, (cause, remedy) = counts.general, _GENERAL
    elif counts.foreign > counts.put and counts.room == 0:
        cause, remedy = _FOREIGN
    else:
        cause, remedy = _PUT
    have = "instance has" if number == 1 else "instances have"
    return f"{number:,} {have} {cause.format(names=counts.names)}", remedy
