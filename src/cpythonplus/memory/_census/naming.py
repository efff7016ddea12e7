"""Names of classes, modules and namespaces, found without running code of the program."""

import sys
from types import ModuleType
from typing import Any

from cpythonplus.memory._cycles.looking import is_dict

_names_of_module = vars(ModuleType)["__dict__"].__get__


def namespace_name(names: Any) -> str:  # noqa: ANN401  # a dict, most often
    """Return `__name__` of a module's namespace, "?" if there is none."""
    name = dict.get(names, "__name__") if is_dict(names) else None
    return name if type(name) is str else "?"


def module_name(module: ModuleType) -> str:
    """Return `__name__` of a module, "?" if there is none."""
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
