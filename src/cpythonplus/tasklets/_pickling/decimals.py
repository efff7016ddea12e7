"""Decimal contexts in pickles and copies of tasklets.

The decimal context is the value of a context variable, which does not travel. Without it the loaded
tasklet would compute with another precision, so a pickle has it beside the frames.

`decimal.localcontext()` is an operand of its `with` statement, by itself or by its method
`__exit__`, and pickle and copy refuse both.
"""

import decimal
from contextvars import Context, copy_context
from types import MethodDescriptorType
from typing import Any

from cpythonplus import _native
from cpythonplus.tasklets._pickling.wrapping import reduce_as


def _variable() -> Any:
    decimal.getcontext()
    return next(iter(copy_context()), None)


_VARIABLE = Context().run(_variable)
"""The interpreter's context variable; None with `_pydecimal`, whose own is a module's."""


def decimal_context(task: _native.tasklet) -> decimal.Context | None:
    """Return the decimal context of a tasklet that lives; None if it has none yet."""
    if task.context_id is None or _VARIABLE is None:
        return None
    context: Context = task.context_run(copy_context)
    return context.get(_VARIABLE)


def set_decimal_context(task: _native.tasklet, within: decimal.Context) -> None:
    """Give a loaded tasklet its decimal context; it runs in a copy of the current context."""
    context = copy_context()
    context.run(decimal.setcontext, within)
    task.set_context(context)


def _made_local_context(within: decimal.Context, before: decimal.Context) -> Any:
    """Return `decimal.localcontext(within)`, which sets `before` at its end."""

    def make() -> Any:
        decimal.setcontext(before)
        return decimal.localcontext(within)

    return Context().run(make)


def _contexts_of(manager: Any) -> tuple[decimal.Context, decimal.Context]:
    within = manager.__enter__()
    manager.__exit__(None, None, None)
    return within, decimal.getcontext()


def _reduce_local_context(manager: Any, _: Any) -> tuple[Any, ...]:
    """Reduce decimal.localcontext(); entering and leaving it changes nothing but the context."""
    return _made_local_context, Context().run(_contexts_of, manager)


_LocalContext: Any = type(_made_local_context(decimal.Context(), decimal.Context()))


def _method_of_local_context(name: str) -> Any:
    return getattr(_LocalContext, name)


def _reduce_method(method: Any, _: Any) -> Any:
    """Reduce a method of a class; that of local contexts has no name in its module."""
    if method.__objclass__ is _LocalContext:
        return _method_of_local_context, (method.__name__,)
    return method.__reduce__()


def _has_class_with_name(method: Any) -> bool:
    return method.__objclass__ is not _LocalContext


reduce_as(_LocalContext, _reduce_local_context)
# From 3.14 on `__exit__` itself is an operand of `with`, beside its object.
reduce_as(MethodDescriptorType, _reduce_method, pickled=_has_class_with_name)
