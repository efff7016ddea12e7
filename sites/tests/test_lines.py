"""The line of each key, in every way in which TOML may be written."""

from typing import Any

import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from cpythonplus_sites import toml
from cpythonplus_sites.lines import scan

pytestmark = pytest.mark.any_version

TEXT = '''\
# a comment with [brackets] and "quotes
top = 1  # [no] = table
"quoted key" = """several
lines with [a] = 1 and \\""" and more"""

[ table . 'inner' ]
dotted.key = [ 1,
  # ] a comment
  [ "]", '#' ], { x = "}", y.z = 2 },
]
date = 1979-05-27 07:32:00
ends = """quoted"""""

[[list]]
a = \'\'\'
\'\'\'\'\'
[list.sub]
b = 2
[[list]]
[[list.deep]]
c = 3
'''


def test_lines() -> None:
    layout = scan(TEXT)
    expected = {
        ("top",): 2,
        ("quoted key",): 3,
        ("table",): 6,
        ("table", "inner"): 6,
        ("table", "inner", "dotted"): 7,
        ("table", "inner", "dotted", "key"): 7,
        ("table", "inner", "dotted", "key", 0): 7,
        ("table", "inner", "dotted", "key", 1): 9,
        ("table", "inner", "dotted", "key", 2, "y", "z"): 9,
        ("table", "inner", "date"): 11,
        ("table", "inner", "ends"): 12,
        ("list",): 14,
        ("list", 0, "a"): 15,
        ("list", 0, "sub"): 17,
        ("list", 0, "sub", "b"): 18,
        ("list", 1): 19,
        ("list", 1, "deep", 0, "c"): 21,
        ("list", 1, "missing"): 19,
        ("missing",): 1,
        (): 1,
    }
    assert {keys: layout.line(keys) for keys in expected} == expected


def test_spans_are_those_of_the_values() -> None:
    layout = scan(TEXT)
    for one in layout.statements:
        value: Any = toml.loads(TEXT)
        for key in one.keys:
            value = value[key]
        assert toml.loads(f"x = {TEXT[one.value_start : one.end]}")["x"] == value


def paths(data: object, keys: tuple[str | int, ...] = ()) -> set[tuple[str | int, ...]]:
    items: Any = ()
    if isinstance(data, dict):
        items = data.items()
    elif isinstance(data, list):
        items = enumerate(data)
    return {keys}.union(*(paths(value, (*keys, key)) for key, value in items))


KEYS = st.text("ab.\"'\\ #=[]\n\té", max_size=3)
SCALARS = KEYS | st.integers(-9, 9) | st.booleans() | st.just(0.5)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=15, deadline=None)
@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_every_key_is_found(data: dict[str, Any]) -> None:
    text = tomlkit.dumps(data)
    layout = scan(text)
    assert set(layout._offsets) | {()} == paths(toml.loads(text))
