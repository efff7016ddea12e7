"""The metaclass of records, and their base class."""

import gc
import inspect
import sys
from collections.abc import Iterator, Mapping
from typing import Any, dataclass_transform

from cpythonplus import _native
from cpythonplus._compact.record.fields import MISSING, annotations_of, declared_fields

Fields = dict[str, Any]
"""Names in their order, with defaults or MISSING."""
_CLOSED: dict[str, Any] = {"__record_closer__": _native.RecordCloser()}
"""The first entry of a class's body: keeps hooks that run while the class is made from making an
instance.
"""


class RecordMeta(_native.RecordType):
    """Makes the fields slots, and removes the collector's header from the instances."""

    def __new__(  # noqa: PYI034  # mypy knows no Self in a metaclass
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        frozen: bool = False,
        **kwargs: Any,  # noqa: ANN401
    ) -> "RecordMeta":
        if {_native.RecordBase, _native.FrozenRecordBase} & {*bases}:  # one of the two below
            return super().__new__(mcls, name, bases, _CLOSED | namespace)
        _native.memory_refuse_free_threaded()
        if mcls.mro is not type.mro:  # mro() runs first, before the class is closed
            raise TypeError(f"the metaclass of {name} must not have an mro()")
        bases = _bases_for(name, bases, frozen=frozen)
        own = declared_fields(name, namespace)
        inherited = _inherited(bases)
        _check(name, bases, namespace, own, {**inherited, **own}, frozen=frozen)
        names, defaults = _split(name, {**inherited, **own})
        namespace = _CLOSED | {key: value for key, value in namespace.items() if key not in own}
        namespace["__slots__"] = tuple(each for each in own if each not in inherited)
        namespace["__record_own__"] = own
        namespace["__record_fields__"] = names
        namespace.setdefault("__match_args__", names)
        # 3.11 collects at any allocation, also in type.__new__ before the closer is called.
        collects = sys.version_info < (3, 12) and gc.isenabled()
        if collects:
            gc.disable()
        try:
            cls = super().__new__(mcls, name, bases, namespace, **kwargs)
        finally:
            if collects:
                gc.enable()
        post_init = "__post_init__" if hasattr(cls, "__post_init__") else None
        _native.memory_seal_record(cls, names, defaults, post_init)
        return cls

    @property
    def __signature__(cls) -> inspect.Signature:  # noqa: N805  # a class
        """The parameters of a call of the class, for inspect.signature()."""
        for each in cls.__mro__[: cls.__mro__.index(_native.RecordBase)]:
            if {"__init__", "__new__"} & vars(each).keys():
                raise AttributeError("__signature__")  # inspect then reads __init__ or __new__
        annotations = annotations_of(cls)
        return inspect.Signature(
            [
                inspect.Parameter(
                    name,
                    inspect.Parameter.POSITIONAL_OR_KEYWORD,
                    default=inspect.Parameter.empty if default is MISSING else default,
                    annotation=annotations.get(name, inspect.Parameter.empty),
                )
                for name, default in _inherited((cls,)).items()
            ]
        )


@dataclass_transform()
class Record(_native.RecordBase, metaclass=RecordMeta):
    """A base for classes of small objects with a fixed set of fields.

    An object of n fields takes 16 + 8 n bytes: no collector's header, no dict, no weak references.

    class Row(memory.Record): annotated names are the fields, and values in the body their defaults.
    They are given by place or by name.  `__post_init__()` is called afterwards if it is defined.
    frozen=True behind the base: fields are not assigned to, and records can be hashed.

    The collector does not see records: a cycle through one is never freed.  Annotations are not
    checked.  Making a class raises TypeError for an impossible field or base, and
    UnsupportedPlatform on a free-threaded build.
    """

    __slots__ = ()


Record.__record_fields__ = ()  # not annotated, or all classes would inherit the annotation


class _FrozenRecord(Record, _native.FrozenRecordBase):
    """Replaces Record among the bases of frozen classes."""

    __slots__ = ()


def _bases_for(name: str, bases: tuple[type, ...], *, frozen: bool) -> tuple[type, ...]:
    """Return the bases to use: those given, with _FrozenRecord for Record if frozen."""
    for base in bases:
        if base is Record or not issubclass(base, Record):
            continue
        if frozen and not issubclass(base, _FrozenRecord):
            raise TypeError(f"{name} cannot be frozen: its base {base.__name__} is not")
        if not frozen and issubclass(base, _FrozenRecord):
            raise TypeError(f"{name} needs frozen=True: its base {base.__name__} is frozen")
    return tuple(_FrozenRecord if frozen and base is Record else base for base in bases)


def _classes(bases: tuple[type, ...]) -> Iterator[type]:
    """Yield the bases and all classes that they are derived from, each once.

    A class comes before the classes derived from it, as in a reversed __mro__.
    """
    return iter(dict.fromkeys(c for base in reversed(bases) for c in reversed(base.__mro__)))


def _own(cls: type) -> Fields:
    found: Fields = vars(cls).get("__record_own__", {})
    return found


def _inherited(bases: tuple[type, ...]) -> Fields:
    fields: Fields = {}
    for cls in _classes(bases):
        fields |= _own(cls)
    return fields


def _check(
    name: str,
    bases: tuple[type, ...],
    namespace: Mapping[str, Any],
    own: Fields,
    fields: Fields,
    *,
    frozen: bool,
) -> None:
    if "__slots__" in namespace:
        raise TypeError(f"{name} must not have __slots__: a Record's fields are its slots")
    _check_names(name, namespace)
    for hook in ("__setattr__", "__delattr__"):
        if frozen and hook in namespace:
            raise TypeError(f"{name} is frozen and must not have {hook}")
    for field in fields.keys() - own.keys():
        if field in namespace:
            raise TypeError(f"{field!r} is a field of a base of {name}: annotate it here, too")
    for field, default in own.items():
        _check_default(name, field, default)
    for cls in _classes(bases):
        _check_base(name, cls, fields)


def _check_names(name: str, namespace: Mapping[str, Any]) -> None:
    """Refuse names whose own `__eq__` would run inside of type.__new__."""
    if any(type(each) is not str for each in namespace):
        raise TypeError(f"{name}: the names in its body and in its bases must be plain strings")


def _check_default(name: str, field: str, default: object) -> None:
    if type(default).__hash__ is None:
        raise TypeError(
            f"{name}.{field}: all records would share this {type(default).__name__};"
            " use None and set it in __post_init__"
        )
    if isinstance(default, property):
        raise TypeError(f"{name}.{field} is a field and a property")
    if type(default).__module__ == "dataclasses":
        raise TypeError(f"{name}.{field}: dataclasses.field() is not for records")


def _check_base(name: str, cls: type, fields: Fields) -> None:
    hidden = sorted(fields.keys() & vars(cls).keys() - _own(cls).keys())
    if hidden:
        owner = "Record" if issubclass(Record, cls) else cls.__name__
        raise TypeError(f"{name}.{hidden[0]} is a field and an attribute of {owner}")
    if issubclass(cls, Record):
        return
    _check_names(name, vars(cls))
    if (
        cls.__basicsize__ > object.__basicsize__
        or cls.__itemsize__
        or cls.__dictoffset__
        or cls.__weakrefoffset__
    ):
        raise TypeError(
            f"{cls.__name__} cannot be a base of {name}: its instances have attributes of their"
            " own; __slots__ = () in it may help"
        )


def _split(name: str, fields: Fields) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """Return the names, and the defaults of the last ones."""
    defaults: list[Any] = []
    for field, default in fields.items():
        if default is not MISSING:
            defaults.append(default)
        elif defaults:
            raise TypeError(f"{name}.{field} needs a default: the field in front of it has one")
    return tuple(fields), tuple(defaults)
