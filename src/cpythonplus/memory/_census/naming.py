"""What classes, modules and namespaces are called, without asking any of them."""

import sys
from types import ModuleType
from typing import Any

from cpythonplus.memory._cycles.looking import is_dict

__all__ = ["module_name", "namespace_name", "source_modules"]

_names_of_module = vars(ModuleType)["__dict__"].__get__


def namespace_name(names: Any) -> str:  # noqa: ANN401  # a dict, most often
    """Return what a module's dict has for `__name__`, "?" for none."""
    name = dict.get(names, "__name__") if is_dict(names) else None
    return name if type(name) is str else "?"


def module_name(module: ModuleType) -> str:
    """Return what a module has for `__name__`, "?" for none."""
    return namespace_name(_names_of_module(module))


def source_modules() -> dict[str, str]:
    """Return the names of modules by the file name that their code objects have."""
    found: dict[str, str] = {}
    for name, module in list(sys.modules.items()):
        if type(name) is str and type(module) is ModuleType:
            found[f"<frozen {name}>"] = name
            file = _names_of_module(module).get("__file__")
            if type(file) is str:
                found.setdefault(file, name)
    return found
