"""How each side makes a row, and reads it: as expressions, so that no call stands in between.

A row has the fields `f0`, `f1`, ...; its values are `v0`, `v1`, ... or, together, the tuple `v`.
A side whose package or function is not there ends the worker with one line that says so.
"""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from typing import Any

from benchmarks.common.sides import Side


@dataclasses.dataclass(frozen=True, slots=True)
class Kind:
    """One side. Expressions see `make`, `names`, `asdict`, `values_of`; and `row`, where it is."""

    create: Callable[[list[str]], object]
    """Return what the expression calls `make`, for rows with these fields."""
    build: str
    """A row of the values; `{names}` is `v0, v1, ...`, `{display}` is `"f0": v0, ...`."""
    field: str
    """A value of a row; `{name}` and `{place}` say which."""
    items: str
    """What gives names and values of a row in turn."""
    miss: str = ""
    """What asks for a key that is not there; empty where nobody would ask."""
    unpacks: bool = True
    """Whether `build` wants `v0, v1, ...`."""


def ours(name: str) -> Any:  # noqa: ANN401 - a class or a function
    """Return a name of cpythonplus.memory; or end this process with one line."""
    from cpythonplus import memory

    found = getattr(memory, name, None)
    if found is None:
        raise SystemExit(f"cpythonplus.memory has no {name} here")
    return found


def peer(name: str) -> Any:  # noqa: ANN401 - a module
    """Return another package; or end this process with one line."""
    try:
        return import_module(name)
    except ImportError as error:
        raise SystemExit(f"{name}: {error}") from None


def record_class(fields: dict[str, str]) -> Any:  # noqa: ANN401 - a class
    """Return a class on memory.Record with these fields and annotations."""
    space = {"Record": ours("Record"), "__name__": __name__}
    lines = [f"    {name}: {annotation}\n" for name, annotation in fields.items()]
    exec(f"class Row(Record):\n{''.join(lines)}", space)  # noqa: S102 - as it is written in programs
    return space["Row"]


def _struct(names: list[str]) -> object:
    return peer("msgspec").defstruct("Row", names, gc=False)


_ASDICT: dict[Side, Callable[[], Any]] = {
    "msgspec": lambda: peer("msgspec").structs.asdict,
    "recordclass": lambda: peer("recordclass").asdict,
}


def asdict(side: Side) -> Any:  # noqa: ANN401 - a function
    """Return the package's own function that makes a dict of a row; None where it has none."""
    return _ASDICT[side]() if side in _ASDICT else None


_BY_NAME = "row.{name}"
_BY_KEY = "row[{name!r}]"
_MISS = "row.get('absent')"

KINDS: dict[Side, Kind] = {
    "dict": Kind(lambda _: dict, "{{{display}}}", _BY_KEY, "row.items()", _MISS),
    "shared dict": Kind(
        lambda _: ours("shared_dict"),
        "make(zip(names, v))",
        _BY_KEY,
        "row.items()",
        _MISS,
        unpacks=False,
    ),
    "CompactDict": Kind(
        lambda _: ours("CompactDict"),
        "make(zip(names, v))",
        _BY_KEY,
        "row.items()",
        _MISS,
        unpacks=False,
    ),
    "Record": Kind(
        lambda names: record_class(dict.fromkeys(names, "object")),
        "make({names})",
        _BY_NAME,
        "row.asdict().items()",
    ),
    "msgspec": Kind(_struct, "make({names})", _BY_NAME, "asdict(row).items()"),
    "recordclass": Kind(
        lambda names: peer("recordclass").make_dataclass("Row", names),
        "make({names})",
        _BY_NAME,
        "asdict(row).items()",
    ),
    "slots": Kind(
        lambda names: dataclasses.make_dataclass("Row", names, slots=True),
        "make({names})",
        _BY_NAME,
        "zip(names, values_of(row))",
    ),
    "namedtuple": Kind(
        lambda names: namedtuple("Row", names),  # noqa: PYI024 - it is what is measured
        "make({names})",
        _BY_NAME,
        "zip(names, row)",
    ),
    "tuple": Kind(lambda _: tuple, "({names})", "row[{place}]", "zip(names, row)"),
}


def field_names(fields: int) -> list[str]:
    """Return the names of the fields of a row."""
    return [f"f{place}" for place in range(fields)]


class Loops:
    """The loops over rows of one side, compiled."""

    def __init__(self, side: Side, fields: int) -> None:
        """Make the side's class, if it has one.  fields: how many a row has."""
        self.kind = KINDS[side]
        self.names = field_names(fields)
        self._space: dict[str, Any] = {
            "names": tuple(self.names),
            "make": self.kind.create(self.names),
            "asdict": asdict(side),
            "values_of": attrgetter(*self.names),
        }
        variables = [f"v{place}" for place in range(fields)]
        pairs = zip(self.names, variables, strict=True)
        self._row = self.kind.build.format(
            names="".join(f"{variable}, " for variable in variables),
            display=", ".join(f"{name!r}: {variable}" for name, variable in pairs),
        )
        self._given = f"({''.join(f'{v}, ' for v in variables)})" if self.kind.unpacks else "v"

    def _compiled(self, arguments: str, *lines: str) -> Callable[..., Any]:
        text = f"def loop({arguments}):\n" + "".join(f"    {line}\n" for line in lines)
        exec(compile(text, "<loop>", "exec"), self._space)  # noqa: S102 - made of KINDS
        found: Callable[..., Any] = self._space.pop("loop")
        return found

    def build(self, expression: str = "") -> Callable[..., list[Any]]:
        """Return what makes a list of rows of a list of tuples of values.

        expression: of `v`, another way to make a row than the side's own.
        """
        row, given = (expression, "v") if expression else (self._row, self._given)
        return self._compiled("rows", f"return [{row} for {given} in rows]")

    def fill(self) -> Callable[..., None]:
        """Return what puts a row of each tuple of values into a list that is long enough."""
        return self._compiled(
            "kept, rows",
            f"for place, {self._given} in enumerate(rows):",
            f"    kept[place] = {self._row}",
        )

    def fields(self) -> Callable[..., None]:
        """Return what reads each field of each row once."""
        reads = [
            self.kind.field.format(name=name, place=place) for place, name in enumerate(self.names)
        ]
        return self._compiled("rows", "for row in rows:", *(f"    {read}" for read in reads))

    def misses(self) -> Callable[..., None]:
        """Return what asks each row as often for what it does not have."""
        asked = [f"    {self.kind.miss}"] * len(self.names)
        return self._compiled("rows", "for row in rows:", *asked)

    def items(self) -> Callable[..., None]:
        """Return what goes through names and values of each row."""
        return self._compiled(
            "rows", "for row in rows:", f"    for name, value in {self.kind.items}:", "        pass"
        )
