"""`decimal.localcontext()` in pickles and copies, from CPython 3.14 on.

There an operand of `with` is the manager itself, which pickle and copy refuse. Before, it is the
bound method `__exit__`, which copies share.
"""

import decimal
import gc
from contextvars import Context
from typing import Any

from cpythonplus.tasklets._pickling.wrapping import reduce_as


def _made_local_context(within: decimal.Context, before: decimal.Context) -> Any:
    """Return `decimal.localcontext(within)`, which sets `before` at its end."""

    def make() -> Any:
        decimal.setcontext(before)
        return decimal.localcontext(within)

    return Context().run(make)


def _reduce_local_context(manager: Any, _: Any) -> tuple[Any, ...]:
    """Reduce decimal.localcontext(): the collector finds both contexts, in this order."""
    within, before = (each for each in gc.get_referents(manager) if type(each) is decimal.Context)
    return _made_local_context, (within, before)


reduce_as(type(_made_local_context(decimal.Context(), decimal.Context())), _reduce_local_context)
