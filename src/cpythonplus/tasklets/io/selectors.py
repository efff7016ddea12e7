"""Drop-in for `selectors` in which a selector's select() blocks only the tasklet."""

import selectors as _stock
from typing import Any

from cpythonplus.tasklets.io import _hub as hub  # noqa: F401  # takes the standard selector
from cpythonplus.tasklets.io import select

__all__ = ["DefaultSelector", "EpollSelector", "PollSelector", "SelectSelector"]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    return getattr(_stock, name)


def __dir__() -> list[str]:
    return sorted({*dir(_stock), *globals()})


class EpollSelector(_stock.EpollSelector):
    """The standard selector over our epoll."""

    _selector_cls = select.epoll


class PollSelector(_stock.PollSelector):
    """The standard selector over our poll."""

    _selector_cls = select.poll


class SelectSelector(_stock.SelectSelector):
    """The standard selector over our select()."""

    _select = staticmethod(select.select)


DefaultSelector = EpollSelector

# The replacements of patch(), by module and name.
REPLACEMENTS = {
    "select": {name: getattr(select, name) for name in select.__all__},
    "selectors": {name: globals()[name] for name in __all__},
}
