"""Extensions for stock CPython; what is imported are gil, threads, tasklets, memory and prefork.

The names below are loaded when they are first used (PEP 562), so that importing the package, which
the start-up hook of ``cpythonplus run`` does in every interpreter, costs next to nothing.

PYTEST_DONT_REWRITE: pytest, whose plugin is in here, would warn where it finds this imported.
"""

TYPE_CHECKING = False  # as in typing, whose import costs more than all the rest
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from cpythonplus._base.data import Place
    from cpythonplus._base.errors import UnsupportedPlatform

    __version__: str

__all__ = ["Place", "UnsupportedPlatform", "__version__"]


def _on_demand(
    module: "dict[str, Any]", table: dict[str, str]
) -> "tuple[Callable[[str], Any], Callable[[], list[str]]]":
    """Return `__getattr__` and `__dir__` of a module whose names are loaded at their first use.

    module: its globals. table: the names, separated by blanks, by the module that has them or, for
    a name of a module, is it. It is relative to the package if it begins with a dot.
    """
    own = module["__name__"]
    homes = {name: home for home, names in table.items() for name in names.split()}

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {own!r} has no attribute {name!r}")
        from importlib import import_module

        home = import_module(homes[name], module["__package__"])
        value: object = home if home.__name__ == f"{own}.{name}" else getattr(home, name)
        module[name] = value
        return value

    return load, lambda: sorted({*module, *homes})


_HOMES = {"._base.data": "Place", "._base.errors": "UnsupportedPlatform"}
_load, __dir__ = _on_demand(globals(), _HOMES)


def __getattr__(name: str) -> object:
    if name != "__version__":
        return _load(name)
    from importlib.metadata import version

    return globals().setdefault(name, version("cpythonplus"))
