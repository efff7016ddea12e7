"""Sets single keys in the text of a site file; all other characters stay as they are.

The new text is made from the spans that the scanner found, and is then parsed: it must mean the
same as the old one, with the changes. Writing the file from its data would lose the comments.
tomlkit (0.15) keeps them, but moves separate `[[links]]` tables together, and puts a new key behind
the comment of the next table, without indentation, and with a Unix line ending in any file.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Union

from cpythonplus_sites import toml
from cpythonplus_sites.lines import scan
from cpythonplus_sites.problems import dotted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cpythonplus_sites.lines import Layout, Statement
    from cpythonplus_sites.problems import Keys

Value = Union[str, int, bool, None]
"""The value of a key; None removes the key."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


class NotEditableError(Exception):
    """A key that cannot be set at its place in the text."""

    def __init__(self, keys: Keys, message: str) -> None:
        self.keys = keys
        self.message = message
        super().__init__(f"{dotted(keys)}: {message}")


def edited(text: str, changes: Mapping[Keys, Value]) -> str:
    """The text of a TOML file with these keys set. Raises NotEditableError.

    The tables of the keys must exist. A new key comes behind the last one of its table.
    """
    data = toml.loads(text.removeprefix("\ufeff"))
    for keys, value in changes.items():
        _change(data, keys, value)
        layout = scan(text)
        text = _with(layout, keys, value) if value is not None else _without(layout, keys)
        if not _means(text, data):
            raise NotEditableError(keys, "cannot be set in this layout of the file; set it by hand")
    return text


def _change(data: object, keys: Keys, value: Value) -> None:
    """Set one value in parsed data."""
    for key in keys[:-1]:
        data = data.get(key) if isinstance(data, dict) else None
    if not isinstance(data, dict):
        raise NotEditableError(keys, f"there is no [{dotted(keys[:-1])}]")
    if value is None:
        data.pop(keys[-1], None)
    else:
        data[keys[-1]] = value


def _means(text: str, data: object) -> bool:
    try:
        return toml.loads(text.removeprefix("\ufeff")) == data
    except ValueError:
        return False


def _with(layout: Layout, keys: Keys, value: Value) -> str:
    text, written = layout.text, _written(value)
    for one in layout.statements:
        if one.keys == keys:
            return text[: one.value_start] + written + text[one.end :]
    at, indent, key = _place(layout, keys)
    newline = "\r\n" if "\r\n" in text else "\n"
    line = f"{indent}{key} = {written}"
    if at == len(text) and not text.endswith("\n"):
        return text + newline + line
    return text[:at] + line + newline + text[at:]


def _without(layout: Layout, keys: Keys) -> str:
    text = layout.text
    for one in layout.statements:
        if one.keys == keys:
            _refuse_inline(one, keys)
            return text[: _line_start(text, one.start)] + text[_line_end(text, one.end) :]
    return text


def _place(layout: Layout, keys: Keys) -> tuple[int, str, str]:
    """The offset of a new line, its indentation, and the key as it is written there."""
    table = keys[:-1]
    neighbours = [one for one in layout.statements if one.keys[:-1] == table]
    if neighbours:
        last = neighbours[-1]
        _refuse_inline(last, keys)
        start = _line_start(layout.text, last.start)
        indent = layout.text[start : last.start].strip("\ufeff")
        key = ".".join(map(_quoted, keys[len(last.header) :]))
        return _line_end(layout.text, last.end), indent, key
    if table not in layout.header_ends:
        raise NotEditableError(keys, f"[{dotted(table)}] has no lines of its own")
    return _line_end(layout.text, layout.header_ends[table]), "", _quoted(keys[-1])


def _refuse_inline(statement: Statement, keys: Keys) -> None:
    if statement.inline:
        raise NotEditableError(keys, f"is an inline table; write [{dotted(keys[:-1])}] on its own")


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _line_end(text: str, at: int) -> int:
    """The offset behind the line break that ends the line, or the end of the text."""
    return text.find("\n", at) + 1 or len(text)


def _written(value: Value) -> str:
    """A value in TOML, whose strings in double quotes have JSON's escapes."""
    return json.dumps(value, ensure_ascii=False)


def _quoted(key: str | int) -> str:
    return str(key) if _BARE.fullmatch(str(key)) else _written(str(key))
