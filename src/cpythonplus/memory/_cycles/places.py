"""Finds the code that stores a variable, an attribute or an item."""

import gc
from collections.abc import Iterator, Sequence
from types import CodeType, FunctionType
from typing import Any, Final

from cpythonplus.memory._cycles.bytecode import Step, positions, steps
from cpythonplus.memory._cycles.looking import function_of, is_type, type_dict

_STATEMENT_LIMIT: Final = 30  # instructions
_WRAPPERS_LIMIT: Final = 10

# Methods that put their argument into their object.
ADDING: Final = frozenset(
    {"add", "append", "appendleft", "callback", "enqueue", "extend", "extendleft", "handle"}
    | {"insert", "push", "put", "put_nowait", "send", "set", "set_exception", "set_result"}
    | {"setdefault", "update"}
)

# ---- finding the store --------------------------------------------------------------------------


def store_line(
    code: CodeType,
    variable: str,
    parts: Sequence[str],
    *,
    after: int = 0,
    caught: Sequence[str] = (),
    from_variable: bool = False,
) -> int:
    """Return the line that stores ``variable`` followed by `parts`; 0: none does.

    parts: such as ``[".info", "[]"]``; "" at the end: something inside of it that has no name.
    after: a line at which it was not stored yet, 0 if unknown: the first line from there on is
    taken, else the last of all. caught: names of the exception's classes, its own first: lines that
    make one of this class, or in an except clause for one of them, are preferred. from_variable:
    only attributes that are set to the value of a variable.
    """
    own = steps(code)
    at = list(_stores(code, variable, parts))
    if from_variable:
        at = [i for i in at if _value_step(own, i).what == "load"]
    if caught and len(at) > 1:
        made = [i for i in at if _is_made(own, i, caught[0])]
        at = made or [i for i in at if not _handled_there(own, i).isdisjoint(caught)] or at
    found = sorted({own[i].line for i in at})
    return next((line for line in found if line >= after > 0), found[-1] if found else 0)


def _stores(code: CodeType, variable: str, parts: Sequence[str]) -> Iterator[int]:
    own = steps(code)
    if not parts:
        yield from (i for i in positions(code, "store", variable) if not _is_constant(own, i))
        return
    last = parts[-1]
    if last.startswith("."):
        name = last[1:]
        yield from (i for i in positions(code, "set", name) if not _sets_constant(own, i))
        # The attribute may be set through the dict, as in `self.__dict__["error"] = e`.
        yield from (i for i in positions(code, "item", "") if i and own[i - 1].name == repr(name))
        return
    attributes = [part for part in parts[:-1] if part.startswith(".")]
    container = attributes[-1][1:] if attributes else variable
    for what in ("load", "attribute"):
        for i in positions(code, what, container):
            if _is_added(own, i, last[1:-1]):
                yield i


def _is_made(code: tuple[Step, ...], at: int, name: str) -> bool:
    """Whether the statement names a class: ``new = Name(...)``."""
    start = at
    while start and code[start - 1].what != "store" and at - start < _STATEMENT_LIMIT:
        start -= 1
    line = code[at].line
    return any(
        each.what in ("load", "attribute") and each.name == name and each.line >= line
        for each in code[start:at]
    )


def _handled_there(code: tuple[Step, ...], at: int) -> frozenset[str]:
    """Return the names that spell the exception classes of the except clause around an instruction.

    The set is empty if there is no except clause.
    """
    for i in range(at, 0, -1):
        if code[i].name == "RERAISE" and code[i].what == "other":
            break
        if code[i].name == "CHECK_EXC_MATCH":
            names = []
            while i and (code[i - 1].what in ("load", "attribute") or "BUILD" in code[i - 1].name):
                i -= 1  # noqa: PLW2901
                names.append(code[i].name)
            return frozenset(names)
    return frozenset()


def _is_constant(code: tuple[Step, ...], at: int) -> bool:
    """Whether the instruction stores a constant, also ``a = b = None``."""
    before = at - 1
    while before > 0 and (code[before].what == "store" or code[before].name == "COPY"):
        before -= 1
    return before >= 0 and _is_always(code, before)


def _sets_constant(code: tuple[Step, ...], at: int) -> bool:
    """Whether ``x.y = constant``."""
    return _value_step(code, at).what == "constant" and _is_always(code, _value_at(code, at))


def _value_step(code: tuple[Step, ...], at: int) -> Step:
    """Return the last step of the value of an attribute that is set."""
    return code[_value_at(code, at)]


def _value_at(code: tuple[Step, ...], at: int) -> int:
    before = at - 1  # the load of the attribute's object is between
    while before > 0 and code[before].what == "attribute":
        before -= 1
    return max(before - 1, 0)


def _is_always(code: tuple[Step, ...], at: int) -> bool:
    """Whether a constant is always loaded there, unlike in a branch of ``x if y else None``."""
    branch = at and code[at - 1].what == "jump" and at + 1 < len(code)
    return code[at].what == "constant" and not (
        branch and code[at - 1].name == str(code[at + 1].address)
    )


def _is_added(code: tuple[Step, ...], at: int, key: str) -> bool:
    """Whether something is put into the object loaded there, by a method or an item's assignment.

    key: a literal that the item's key has to be; "": any.
    """
    step = code[at]
    following = code[at + 1 : at + 10]
    for i, each in enumerate(following):
        if each.what == "item" and i and each.line == step.line:
            last = following[i - 1]
            return not key or last.what != "constant" or last.name == key
    while len(following) > 1 and following[1].name.startswith("BINARY_"):
        following = following[2:]  # an item of it, by a key
    return bool(following) and following[0].what == "attribute" and following[0].name in ADDING


def stored_from_parameter(code: CodeType, attribute: str) -> bool:
    """Whether ``x.attribute = parameter``: then the value is older than x."""
    parameters = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    own = steps(code)
    values = (_value_step(own, i) for i in positions(code, "set", attribute))
    return any(value.what == "load" and value.name in parameters for value in values)


def setter_at(code: CodeType, line: int, attribute: str) -> str:
    """Return the variable whose attribute is set at a line; "": none."""
    own = steps(code)
    for i in positions(code, "set", attribute):
        if own[i].line == line and i:
            return own[i - 1].name if own[i - 1].what == "load" else ""
    return ""


def mentions(code: CodeType, literal: str) -> bool:
    """Whether the code has a literal key: by itself, or in ``{"key": ...}``."""
    own = steps(code)
    return any(
        step.what == "constant"
        and (
            step.name == literal
            or (
                literal in step.name
                and own[i + 1 : i + 2]
                and own[i + 1].name == "BUILD_CONST_KEY_MAP"
            )
        )
        for i, step in enumerate(own)
    )


def calls_type(code: CodeType) -> int:
    """Return the line of ``type(name, bases, namespace)``; 0: there is none."""
    if "type" in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
        return 0  # a variable of that name, as parameters often are
    own = steps(code)
    for i, step in enumerate(own):
        if step.what == "load" and step.name == "type":
            rest = own[i + 1 : i + _STATEMENT_LIMIT]
            calls = [j for j, each in enumerate(rest) if each.name.startswith("CALL_")]
            one = calls and sum(each.what != "attribute" for each in rest[: calls[0]]) == 1
            if not one and any(rest[j].name == "CALL_3" for j in calls):
                return step.line
    return 0


# ---- finding code -------------------------------------------------------------------------------


def find_code(namespace: dict[str, Any], qualname: str) -> CodeType | None:
    """Return the code of a module's function or class by its qualified name, if it exists."""
    scope: Any = namespace
    code: CodeType | None = None
    for part in qualname.split("."):
        if part == "<locals>":
            continue
        if code is not None:
            code = nested_code(code, part)
            if code is None:
                return None
            continue
        value = scope.get(part)
        function = function_of(value)
        if function is not None:
            code = _unwrapped(function).__code__
        elif is_type(value):
            scope = type_dict(value)
        else:
            return None
    return code


def _unwrapped(function: FunctionType) -> FunctionType:
    """Return the function inside of a wrapper by `functools.wraps`.

    Not by the function's ``__dict__``: reading it would create it, and this function is in use.
    """
    for _ in range(_WRAPPERS_LIMIT):
        for each in gc.get_referents(function):
            if type(each) is dict and each is not function.__globals__:
                inner = each.get("__wrapped__")
                if type(inner) is FunctionType:
                    function = inner
                    break
        else:
            break
    return function


def nested_code(code: CodeType, name: str) -> CodeType | None:
    """Return the first function or class of that name inside of a function's code."""
    for value in code.co_consts:
        if type(value) is CodeType:
            if value.co_name == name:
                return value
            if value.co_name.startswith("<generic parameters"):
                inner = nested_code(value, name)
                if inner is not None:
                    return inner
    return None
