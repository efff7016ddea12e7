"""The objects that the examinations themselves have brought into the process."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OURS = ("cpythonplus.memory", "cpythonplus._base", "cpythonplus._interp")
_brought: "set[str]" = set()


def note(before: int) -> None:
    """Note the modules that have come since; before: the length of `sys.modules` then.

    Only those of the standard library: another thread of the program may have imported its own.
    """
    new = list(sys.modules)[before:]
    _brought.update(name for name in new if name.partition(".")[0] in sys.stdlib_module_names)


def namespaces() -> "dict[str, dict[str, Any]]":
    """Return the namespaces of the modules that examinations have brought, by their names."""
    return {
        name: vars(module)
        for name, module in list(sys.modules.items())
        if type(name) is str
        and type(module) is type(sys)
        and (name in _brought or name == "cpythonplus" or name.startswith(_OURS))
    }
