"""Contents of files as they are after an accident, or by ill will."""

# ruff: noqa: ANN401 (JSON)
import copy
import json
import random
from collections.abc import Iterator
from typing import Any

DEEP = 100_000

WHOLE = (
    b"",
    b"\0",
    b"\0" * 5000,
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\x7fELF",
    b"\n",
    b"null",
    b"[]",
    b"{}",
    b"7",
    b'""',
    b"NaN",
    b'"\\ud800"',
    b"[" * DEEP,
    b"[" * 900 + b"]" * 900,
    b'{"a":' * DEEP,
    b'{"owners":' * 500 + b"1" + b"}" * 500,
    b"9" * 5000,
    b"-" * DEEP,
    b"(" * 5000,
    b"a: " * 5000,
    b"# coding: nothing\n",
    b"# coding: rot13\n",
    b"# coding: utf-7\n+AGE",
)
OTHERS: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    10**19,
    10**400,
    1e308,
    float("nan"),
    float("-inf"),
    "",
    "7",
    "\ud800",
    "\0",
    "a\nb\x1b[2J",
    "x" * 10_000,
    [],
    {},
    [[[]]],
    [{}],
    {"a": None},
)


def damaged(right: bytes, *, most: int = 120) -> Iterator[bytes]:
    """Yield other contents, and the right ones cut, with bits flipped, and with bytes in them."""
    chance = random.Random(7)
    yield from WHOLE
    places = range(len(right))
    few = sorted(chance.sample(places, min(most, len(right))))
    for at in few:
        yield right[:at]
    for at in few:
        yield right[:at] + bytes([right[at] ^ 1 << chance.randrange(8)]) + right[at + 1 :]
    for at in few[::8]:
        for odd in (b"\0", b"\xff", b"\xed\xa0\x80", b"\r", b"\x0c", b"{"):
            yield right[:at] + odd + right[at:]
    yield b"\xef\xbb\xbf" + right
    yield right + right
    yield right.decode("utf-8", "surrogateescape").encode("utf-16", "surrogatepass")
    yield right + b"\0" * 4096  # as after a power cut


def of_other_types(right: Any) -> Iterator[bytes]:
    """Yield JSON in which one value is another, in which one is missing, and one is there twice."""
    for way in _ways(right):
        for other in OTHERS:
            found = copy.deepcopy(right)
            _inside(found, way)[way[-1]] = other
            yield json.dumps(found).encode()
        found = copy.deepcopy(right)
        del _inside(found, way)[way[-1]]
        text = json.dumps(found)
        yield text.encode()
        if isinstance(way[-1], str):
            name = json.dumps(way[-1])
            yield json.dumps(right).replace(f"{name}:", f"{name}: 5, {name}:").encode()


def _ways(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if way:
        yield way
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _ways(each, (*way, name))
    elif isinstance(value, list):
        for at, each in enumerate(value):
            yield from _ways(each, (*way, at))


def _inside(value: Any, way: tuple[Any, ...]) -> Any:
    for step in way[:-1]:
        value = value[step]
    return value
