"""Names the classes that are made while the program runs: each of them refers to itself."""

import gc
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, Final

from cpythonplus._base.data import Place
from cpythonplus.memory._cycles.advice import for_class
from cpythonplus.memory._cycles.bytecode import steps
from cpythonplus.memory._cycles.component import Component
from cpythonplus.memory._cycles.finding import Finding
from cpythonplus.memory._cycles.looking import (
    function_of,
    globals_of,
    is_dict,
    is_type,
    type_dict,
    type_module,
    type_qualname,
)
from cpythonplus.memory._cycles.places import calls_type, find_code
from cpythonplus.memory._cycles.placing import methods, place_of
from cpythonplus.memory._cycles.report import Cause, Edge, Kind

_LOCALS: Final = ".<locals>."
_SEARCH_LIMIT: Final = 2000  # code objects
_module_dict: Final = vars(ModuleType)["__dict__"].__get__


def find(component: Component, members: Sequence[int]) -> Finding | None:
    """Name the first class of the component; None: there is none.

    Since 3.14 functions of a class may refer to its dict, or to the namespace of its body, and so
    form cycles of their own: both count as the class.
    """
    bodies = {each: _body(component, each) for each in members}
    for each in members:
        kind = component.objects[each]
        if is_type(kind):
            qualname = type_qualname(kind)  # type: ignore[arg-type]
            own = [cell for cell, body in bodies.items() if body and body[0] == qualname]
            place = place_of_class(kind)  # type: ignore[arg-type]
            own += map(id, gc.get_referents(type_dict(kind)))  # type: ignore[arg-type]
            return Finding(_cause(qualname, place), [each, *own])
    for each, body in bodies.items():
        if body is not None:
            return Finding(_cause(body[0], _place(*body)), [each])
    return None


_Body = tuple[str, str, Mapping[str, Any]]  # qualified name, module, and the namespace of the body


def _body(component: Component, here: int) -> _Body | None:
    """Return the namespace of a class's body, if the object is a cell ``__classdict__``."""
    if type(component.objects[here]) is not CellType:
        return None
    for there in component.out[here]:
        inside: Any = component.objects[there]
        if is_dict(inside):
            module = dict.get(inside, "__module__")
            fields = {k: v for k, v in dict.items(inside) if type(k) is str}
            qualname = _qualname_of_body(fields)
            if type(module) is str and qualname:
                return qualname, module, fields
    return None


def _qualname_of_body(fields: Mapping[str, Any]) -> str:
    qualname = fields.get("__qualname__")
    if type(qualname) is str:
        return qualname
    for name, value in fields.items():
        if type(value) is FunctionType and value.__code__.co_qualname.endswith(f".{name}"):
            return value.__code__.co_qualname.removesuffix(f".{name}")
    return ""


def _cause(qualname: str, place: Place) -> Cause:
    variable = qualname.rpartition(_LOCALS)[2]
    return Cause(
        kind=Kind.CLASS,
        place=place,
        variable=variable,
        what=f"class {variable}",
        advice=for_class(variable),
        edges=(Edge(f"class {variable}", "__mro__", closing=True), Edge("its __mro__", "[0]")),
    )


def place_of_class(kind: type) -> Place:
    """Return the place where a class was made, as far as it and its module tell."""
    place = _place(type_qualname(kind), type_module(kind), type_dict(kind))
    if place.line:
        return place
    # The class was made for one instance, as by `unittest.mock`: ``type(cls.__name__, bases, {})``.
    for code in methods(kind):
        line = calls_type(code) if code.co_name == "__new__" else 0
        if line:
            return place_of(code, line)
    return place


def _place(qualname: str, module: str, fields: Mapping[str, Any]) -> Place:
    namespace = _namespace(module, fields)
    code = find_code(namespace, qualname)
    function, _, name = qualname.rpartition(_LOCALS)
    if code is not None:
        return Place(code.co_filename, code.co_firstlineno, function)
    line = fields.get("__firstlineno__")  # since 3.13
    own = list(_own_methods(name.rpartition(".")[2], fields))
    if own:
        first = min(own, key=lambda each: each.co_firstlineno)
        outer = first.co_qualname.removesuffix(f".{first.co_name}").rpartition(_LOCALS)[0]
        known = line if type(line) is int else first.co_firstlineno
        return Place(first.co_filename, known, function or outer)
    if type(line) is int:
        file = namespace.get("__file__")
        return Place(file if type(file) is str else "", line, function)
    return _place_of_call(namespace, name, function)


def _own_methods(name: str, fields: Mapping[str, Any]) -> Iterator[CodeType]:
    """Yield the code of functions that were defined in the class's own body."""
    for value in fields.values():
        function = function_of(value)
        if function is not None:
            owner, _, _ = function.__code__.co_qualname.rpartition(".")
            if owner.rpartition(".")[2] == name:
                yield function.__code__


def _namespace(module: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the namespace of the class's module, {} if it is not there."""
    for value in fields.values():
        if type(value) is FunctionType:
            name = globals_of(value).get("__name__")
            if type(name) is str and name == module:
                return globals_of(value)
    found = sys.modules.get(module)
    return _module_dict(found) if type(found) is ModuleType else {}


def _place_of_call(namespace: dict[str, Any], name: str, function: str) -> Place:
    """Return the only function in the module that has the name as a constant.

    An example is ``type("Name", ...)``. If there is none, return the only one that calls ``type``
    to make a class.
    """
    codes = list(_codes(namespace))
    named = [
        place_of(code, step.line)
        for code in codes
        for step in steps(code)
        if step.what == "constant" and step.name == repr(name)
    ]
    made = [place_of(each, calls_type(each)) for each in codes]
    for found in (named, [each for each in made if each.line]):
        if found and all(each.function == found[0].function for each in found):
            return found[0]
    file = namespace.get("__file__")
    return Place(file if type(file) is str else "", 0, function)


def _codes(namespace: dict[str, Any]) -> Iterator[CodeType]:
    """Yield the code of a module's functions and methods, and the code nested in it."""
    file = namespace.get("__file__")
    waiting: list[CodeType] = []
    for value in list(namespace.values()):
        inner = list(type_dict(value).values()) if is_type(value) else [value]
        waiting += [each.__code__ for each in inner if type(each) is FunctionType]
    for _ in range(_SEARCH_LIMIT):
        if not waiting:
            return
        code = waiting.pop()
        if type(file) is str and code.co_filename == file:
            yield code
            waiting += [each for each in code.co_consts if type(each) is CodeType]
