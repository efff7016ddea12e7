"""Data of an examination made anew from the JSON that a child process has written."""

# ruff: noqa: ANN401 (JSON)
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")


def rebuilt(kind: type[T], found: dict[str, Any]) -> T:
    """Return what `as_json` was called on, but for the fields that it leaves out."""
    hints = get_type_hints(kind)
    names = [each.name for each in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: _value(hints[name], found[name]) for name in names if name in found})


def _value(hint: Any, found: Any) -> Any:
    if get_origin(hint) is tuple:
        return tuple(_value(get_args(hint)[0], each) for each in found)
    return rebuilt(hint, found) if is_dataclass(hint) and isinstance(hint, type) else found
