"""A function's instructions, as far as they show where something is stored.

They come from the bytecode, because the source may be missing or changed. `dis.get_instructions` is
not used: it calls `repr` on constants, which may be of any class.
"""

import dis
import sys
import weakref
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType
from typing import Final, NamedTuple


class Step(NamedTuple):
    """An instruction.

    what: 'load' or 'store' a variable, 'attribute' to read, 'set' an attribute, 'item' to be
    stored, 'constant' to load, 'jump' ahead, or 'other'. name: the variable or attribute; the
    literal of a constant, "" if it is no string, number or tuple of strings; the target address of
    a jump; else the instruction's own name. line: 0 if unknown. address: in bytes.
    """

    what: str
    name: str
    line: int
    address: int


_Positions = Mapping[tuple[str, str], Sequence[int]]

_CACHE_LIMIT: Final = 4000
# By id: code objects of different files may be equal.
_cache: Final[dict[int, tuple["weakref.ref[CodeType]", tuple[Step, ...], _Positions]]] = {}

# Instructions with a name: their `what`, and how far the name's index is shifted up.
_NAMED: Final = {
    "LOAD_ATTR": ("attribute", 1 if sys.version_info >= (3, 12) else 0),
    "LOAD_METHOD": ("attribute", 0),
    "LOAD_SUPER_ATTR": ("attribute", 2),
    "STORE_ATTR": ("set", 0),
    "STORE_NAME": ("store", 0),
    "STORE_GLOBAL": ("store", 0),
    "LOAD_NAME": ("load", 0),
    "LOAD_GLOBAL": ("load", 1),
}
_CONSTANT: Final = frozenset({"LOAD_CONST", "LOAD_SMALL_INT", "LOAD_COMMON_CONSTANT"})
_EMPTY: Final = frozenset({"BUILD_LIST", "BUILD_MAP", "BUILD_TUPLE", "BUILD_SET"})
_IGNORED: Final = frozenset(
    {"CACHE", "NOP", "RESUME", "PUSH_NULL", "NOT_TAKEN", "MAKE_CELL", "PRECALL", "EXTENDED_ARG"}
)


def steps(code: CodeType) -> tuple[Step, ...]:
    """Return the instructions of a function in the order of their addresses."""
    return _known(code)[0]


def positions(code: CodeType, what: str, name: str) -> Sequence[int]:
    """Return the indices in `steps(code)` of the steps that do `what` to `name`.

    Cached: naming one cause asks the methods of a class and its bases some hundred times.
    """
    return _known(code)[1].get((what, name), ())


def _known(code: CodeType) -> tuple[tuple[Step, ...], _Positions]:
    known = _cache.get(id(code))
    if known is not None and known[0]() is code:
        return known[1:]
    result = tuple(_decode(code))
    places: dict[tuple[str, str], list[int]] = {}
    for place, step in enumerate(result):
        places.setdefault(step[:2], []).append(place)
    if len(_cache) >= _CACHE_LIMIT:
        _cache.clear()
    _cache[id(code)] = weakref.ref(code), result, places
    return result, places


def _decode(code: CodeType) -> Iterator[Step]:
    names = _Names(code)
    extended = 0
    raw = code.co_code
    for address, position in zip(range(0, len(raw), 2), code.co_positions(), strict=False):
        operation = dis.opname[raw[address]]
        argument = extended << 8 | raw[address + 1]
        extended = argument if operation == "EXTENDED_ARG" else 0
        if operation not in _IGNORED:
            for what, name in names.meaning(operation, argument, address):
                yield Step(what, name, position[0] or 0, address)


class _Names:
    """The meanings of instructions' arguments in one code object."""

    __slots__ = ("_attributes", "_constants", "_variables")

    def __init__(self, code: CodeType) -> None:
        own = set(code.co_varnames)
        cells = tuple(name for name in code.co_cellvars if name not in own)
        self._variables = code.co_varnames + cells + code.co_freevars
        self._attributes = code.co_names
        self._constants = code.co_consts

    def meaning(self, operation: str, argument: int, address: int) -> Iterator[tuple[str, str]]:
        """Yield the `what` and the name of an instruction; two pairs if it does two things."""
        if "_FAST" in operation or operation.endswith("_DEREF"):
            yield from self._variable(operation, argument)
        elif operation in _NAMED:
            what, shift = _NAMED[operation]
            yield what, _at(self._attributes, argument >> shift)
        elif operation in _CONSTANT or (operation in _EMPTY and not argument):
            yield "constant", self._constant(operation, argument)
        elif operation == "STORE_SUBSCR":
            yield "item", ""
        elif operation == "JUMP_FORWARD":
            yield "jump", str(address + 2 + 2 * argument)
        else:
            yield "other", f"CALL_{argument}" if operation == "CALL" else operation

    def _constant(self, operation: str, argument: int) -> str:
        if operation == "LOAD_SMALL_INT":
            return str(argument)
        value = self._constants[argument] if operation == "LOAD_CONST" else None
        if type(value) is tuple:
            return repr(value) if all(type(each) is str for each in value) else ""
        return repr(value) if type(value) is str or type(value) is int else ""

    def _variable(self, operation: str, argument: int) -> Iterator[tuple[str, str]]:
        """Yield the pairs of an instruction with variables.

        Since 3.13 instructions such as STORE_FAST_LOAD_FAST have two: the first is in the upper
        bits.
        """
        kinds = [word for word in operation.split("_") if word in ("LOAD", "STORE", "DELETE")]
        numbers = [argument] if len(kinds) < 2 else [argument >> 4, argument & 15]  # noqa: PLR2004
        for kind, number in zip(kinds, numbers, strict=False):
            yield kind.lower(), _at(self._variables, number)


def _at(names: Sequence[str], number: int) -> str:
    return names[number] if number < len(names) else ""
