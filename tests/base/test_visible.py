"""Text of unknown origin, made so that a terminal shows all of it and obeys none of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpythonplus._base.text.visible import visible, visible_lines

pytestmark = pytest.mark.any_version


@given(st.text(st.characters()))
def test_everything_is_printable_and_nothing_printable_changes(text: str) -> None:
    shown = visible(text)
    assert shown.isprintable()
    assert (shown == text) == text.isprintable()
    lines = visible_lines(text)
    assert lines.replace("\n", "").replace("\t", "").isprintable()
    assert (lines.count("\n"), lines.count("\t")) == (text.count("\n"), text.count("\t"))


def test_escapes() -> None:
    assert visible("\x1b[31m\r\x9b\u202e\u2028\ud800 \xa0é🐍") == (
        "\\x1b[31m\\r\\x9b\\u202e\\u2028\\ud800 \\xa0é🐍"
    )
    assert visible_lines("a\tb\x0b\nc\x85") == "a\tb\\x0b\nc\\x85"
