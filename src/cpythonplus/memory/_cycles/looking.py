"""Reads any object without running code of its class, through the built-in types' own fields.

``type(x).__name__`` asks the metaclass, ``x.__dict__`` asks the class, and ``isinstance`` believes
``x.__class__``. Here all reads go through descriptors that were taken from `type` or from built-in
types, or whose own type shows that they are written in C.
"""

from collections.abc import Callable, Iterator, Mapping
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Any, Final

_HEAP_TYPE: Final = 1 << 9

_own: Final = type.__dict__
_get_name = _own["__name__"].__get__
_get_qualname = _own["__qualname__"].__get__
_get_module = _own["__module__"].__get__
_get_flags = _own["__flags__"].__get__
_get_mro = _own["__mro__"].__get__
_get_dict = _own["__dict__"].__get__
_get_traceback = BaseException.__dict__["__traceback__"].__get__
_get_globals = FunctionType.__dict__["__globals__"].__get__

_Slots = tuple[tuple[str, MemberDescriptorType], ...]
# By id of a type that is never freed.
_static_slots: Final[dict[int, _Slots]] = {}


def type_name(kind: type) -> str:
    """Return ``kind.__name__`` as `type` has it."""
    return str.__str__(_get_name(kind))  # may be of a class derived from str


def type_qualname(kind: type) -> str:
    """Return ``kind.__qualname__`` as `type` has it."""
    return str.__str__(_get_qualname(kind))


def type_module(kind: type) -> str:
    """Return the class's ``__module__``, "" if it is no name."""
    try:
        module = _get_module(kind)
    except AttributeError:
        return ""
    return module if type(module) is str else ""


def qualified_name(kind: type) -> str:
    """Return a class's `module.Name`, or `Name` for a built-in class."""
    module = type_module(kind)
    name = type_qualname(kind)
    return name if module in ("", "builtins") else f"{module}.{name}"


def type_dict(kind: type) -> Mapping[str, Any]:
    """Return the namespace of the class itself."""
    result: Mapping[str, Any] = _get_dict(kind)
    return result


def mro(kind: type) -> tuple[type, ...]:
    """Return the class and its bases in the order of look-up; the class alone if half-built."""
    result = _get_mro(kind)
    return result if type(result) is tuple else (kind,)


def _check_of(flag: int) -> Callable[[object], bool]:
    def check(value: object) -> bool:
        return bool(_get_flags(type(value)) & flag)

    return check


# Whether an object is of this class or of a derived one, whatever its `__class__` says.
is_list: Final = _check_of(1 << 25)
is_tuple: Final = _check_of(1 << 26)
is_dict: Final = _check_of(1 << 29)
is_exception: Final = _check_of(1 << 30)
is_type: Final = _check_of(1 << 31)


def traceback_of(error: Any) -> Any:  # noqa: ANN401  # a traceback, or None
    """Return the built-in ``error.__traceback__``, which a subclass may override."""
    return _get_traceback(error)


def attribute_dict(value: object) -> dict[Any, Any] | None:
    """Return the dict of an instance's attributes; None: it has none, or hides it.

    Call this for garbage only: it creates the dict if the instance had none.
    """
    for kind in mro(type(value)):
        descriptor = type_dict(kind).get("__dict__")
        if type(descriptor) is GetSetDescriptorType:
            try:
                found = descriptor.__get__(value)
            except (AttributeError, TypeError):
                return None
            return found if is_dict(found) else None
    return None


def slots(value: object) -> Iterator[tuple[str, object]]:
    """Yield the names and values of the slots that are set, and of a C type's plain fields."""
    for name, descriptor in _slots_of(type(value)):
        try:
            yield name, descriptor.__get__(value)
        except (AttributeError, TypeError):
            continue


def _slots_of(kind: type) -> _Slots:
    known = _static_slots.get(id(kind))
    if known is None:
        known = tuple(
            (name, descriptor)
            for each in mro(kind)
            for name, descriptor in type_dict(each).items()
            if type(descriptor) is MemberDescriptorType and type(name) is str
        )
        if not _get_flags(kind) & _HEAP_TYPE:
            _static_slots[id(kind)] = known
    return known


def function_name(function: FunctionType) -> str:
    """Return ``function.__name__``, which a decorator may have set to another function's."""
    return str.__str__(function.__name__)


def function_of(value: object) -> FunctionType | None:
    """Return the function behind a class attribute: of a method, or of a property's setter.

    None: the attribute is something else.
    """
    if type(value) is staticmethod or type(value) is classmethod:
        value = value.__func__
    elif type(value) is property:
        value = value.fset
    return value if type(value) is FunctionType else None


def globals_of(function: FunctionType) -> dict[str, Any]:
    """Return the namespace of the function's module."""
    result: dict[str, Any] = _get_globals(function)
    return result
