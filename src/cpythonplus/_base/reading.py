"""Reading an examination: JSON of a process that may have another version, or be malicious.

An examination is a dict of parts, by the name of their question (_doctor/questions.py). A part is a
dict with numbers, texts, and rows: lists of dicts.

A value that is missing or of another type reads as empty, so that a report shows the others. Names
are returned with each of their characters visible: the names of a program's classes and files must
neither move a terminal's cursor nor turn the direction of a page's text.
"""

from collections.abc import Mapping
from math import isfinite
from typing import Final

from cpythonplus._base.text.visible import visible

__all__ = [
    "Examination",
    "Part",
    "amount",
    "entries",
    "inside",
    "known",
    "largest",
    "offered",
    "part",
    "refusal",
    "size",
    "texts",
    "visible",
    "words",
]

Part = Mapping[str, object]
Examination = Mapping[str, object]

_LONGEST: Final = 2_000
"""The most characters that are read of one name."""
_MOST: Final = 100
_LARGEST: Final = 2**63
_NOTHING: Final[dict[str, object]] = {}


def part(examination: Examination, name: str) -> Part | None:
    """Return a part of an examination; None if it was not examined, or could not be."""
    found = examination.get(name)
    return found if isinstance(found, Mapping) and "error" not in found else None


def refusal(examination: Examination, name: str) -> str:
    """Return the reason why a part is missing, "" if there is none."""
    found = examination.get(name)
    return words(found, "error") if isinstance(found, Mapping) else ""


def inside(found: Part, name: str) -> Part:
    """Return `found[name]`, a dict inside of a part; empty if the part lacks it."""
    value = found.get(name)
    return value if isinstance(value, Mapping) else _NOTHING


def entries(found: Part | None, name: str) -> list[Part]:
    """Return `found[name]`, a list of dicts; [] if the report lacks it."""
    value = None if found is None else found.get(name)
    if not isinstance(value, list | tuple):
        return []
    return [each for each in value if isinstance(each, Mapping)]


def largest(found: Part | None, name: str, number: str) -> list[Part]:
    """Return `found[name]`, a list of dicts, those with the largest `row[number]` first."""
    return sorted(entries(found, name), key=lambda row: -amount(row, number))


def offered(target: Part | None, where: str = "") -> dict[str, str]:
    """Return the titles of the examinations that a process offers, by name.

    where: only those that it offers there, see `registry.Examination.at`.
    """
    rows = entries(target, "examinations")[:_MOST]
    return {
        name: words(row, "title") or name
        for row in rows
        if (name := words(row, "name")).isidentifier()
        and name.isascii()
        and (not where or where in texts(row, "at"))
    }


def known(found: Part, name: str) -> bool:
    """Whether there is a number under a name."""
    value = found.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < _LARGEST and isfinite(value)


def amount(found: Part, name: str) -> float:
    """Return a number; 0 if there is none."""
    value = found.get(name)
    return value if known(found, name) else 0  # type: ignore[return-value]


def size(found: Part, name: str) -> int:
    """Return a number of bytes, objects and the like; 0 if there is none."""
    return int(amount(found, name))


def words(found: Part, name: str) -> str:
    """Return a text, each character of it visible; "" if there is none."""
    value = found.get(name)
    return visible(value[:_LONGEST]) if isinstance(value, str) else ""


def texts(found: Part, name: str) -> list[str]:
    """Return the texts in a list."""
    value = found.get(name)
    if not isinstance(value, list | tuple):
        return []
    return [visible(each[:_LONGEST]) for each in value[:_MOST] if isinstance(each, str)]
