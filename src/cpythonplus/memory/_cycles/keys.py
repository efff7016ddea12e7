"""Keys of dicts in reports: they may be names, sessions or passwords, and reports are passed on."""

from typing import Any

from cpythonplus.memory._cycles.looking import qualified_name

_CHARACTERS = 40
_KEPT = 4
_SMALL = 1000
_LARGE = 10**20


def key_text(key: Any, *, whole: bool = False) -> str:  # noqa: ANN401  # of many kinds
    """Return a key for people: the first characters of a text; `<int>` for a large number.

    Four characters, and half of the text at most, tell a user's key from a session's. whole: the
    first 40 characters, and numbers as they are. For other objects, return the type.
    """
    kind = type(key)
    if kind is int:
        return str(key) if abs(key) < (_LARGE if whole else _SMALL) else "<int>"
    if kind is not str:
        return f"<{qualified_name(kind)}>"
    if not whole:
        return f"{repr(key[: min(_KEPT, len(key) // 2)])[:-1]}..."
    shown = repr(key)
    return shown if len(shown) <= _CHARACTERS else f"{shown[: _CHARACTERS - 3]}..."
