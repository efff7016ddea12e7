"""Modules that the program has imported, seen by a thread that looks at it from beside."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def imported(name: str) -> Any:  # noqa: ANN401  # a module
    """Return the module if it is imported to its end, else None.

    While another thread imports it, it is in `sys.modules` without most of its names.
    """
    found = sys.modules.get(name)
    spec = getattr(found, "__spec__", None)
    return None if getattr(spec, "_initializing", False) else found
