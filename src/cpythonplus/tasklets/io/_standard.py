"""Names that a drop-in takes over from the standard module that it replaces."""

import types
from typing import Any


def function_over(function: Any, names: dict[str, Any]) -> types.FunctionType:  # noqa: ANN401
    """Return a function of a standard module that finds its globals in `names`."""
    made = types.FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__doc__ = function.__doc__
    return made


def fill(own: dict[str, Any], stock: types.ModuleType) -> None:
    """Give a drop-in the standard names that it lacks; functions among them find its classes."""
    for name, value in vars(stock).items():
        if name in own:
            continue
        is_its = isinstance(value, types.FunctionType) and value.__module__ == stock.__name__
        own[name] = function_over(value, own) if is_its else value
