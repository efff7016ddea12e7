"""Extensions for stock CPython: a GIL that serves I/O threads first, and atomic sections.

The names below are loaded when they are first used (PEP 562), so that importing the package, which
the start-up hook of ``cpythonplus run`` does in every interpreter, costs next to nothing.

PYTEST_DONT_REWRITE: pytest, whose plugin is in here, would warn where it finds this imported.
"""

TYPE_CHECKING = False  # as in typing, whose import costs more than all the rest
if TYPE_CHECKING:
    from cpythonplus.base.errors import UnsupportedPlatform
    from cpythonplus.gil import atomic

    __version__: str

__all__ = ["UnsupportedPlatform", "__version__", "atomic"]

_HOMES = {"UnsupportedPlatform": "cpythonplus.base", "atomic": "cpythonplus.gil"}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        value: object = version("cpythonplus")
    elif name in _HOMES:
        from importlib import import_module

        value = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
