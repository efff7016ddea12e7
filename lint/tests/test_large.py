"""The work that a large file takes grows as the file does."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cpythonplus_lint.checking import check_text
from cpythonplus_lint.checks.source import Source

SHAPES = {
    "functions": "def f{0}(a):\n    def g(): return g() + a\n    return g\n",
    "methods": "class C{0}:\n    def f(self):\n        self.f = self\n        return self.f()\n",
    "handlers": "def f{0}():\n    try: a()\n    except Exception as e:\n        x = e\n",
    "handlers with strings": (
        "def f{0}():\n    try: a()\n    except Exception as e:\n        x = e\n"
        '        a("""1\n2""")\n        b()\n'
    ),
    "handlers that return": (
        "def f{0}():\n    try: a()\n    except Exception as e: return e\n"
        "def g{0}():\n    e = f{0}()\n    a(e)\n"
    ),
    "handlers on objects": (
        "class C{0}:\n    def f(self):\n        try: a()\n"
        "        except Exception as e: self.e = e\n    def g(self): self.e = None\n"
    ),
    "in one function": "    def g{0}(): return g{0}() + a\n",
    "containers": (
        "def f{0}(errors):\n    try: a()\n    except Exception as e: errors.append(e)\n"
        "def g{0}():\n    errors = []\n    f{0}(errors)\n    errors.clear()\n"
    ),
    "inner functions": (
        "def f{0}():\n    e = None\n    def g():\n        nonlocal e\n        try: a()\n"
        "        except Exception as why: e = why\n    g()\n    e = None\n"
    ),
}


@contextmanager
def calls() -> Iterator[list[int]]:
    """Count the calls of functions inside, of Python and of C."""
    count = [0]

    def note(_frame: object, event: str, _argument: object) -> None:
        count[0] += event in {"call", "c_call"}

    sys.setprofile(note)
    try:
        yield count
    finally:
        sys.setprofile(None)


def work(shape: str, times: int) -> int:
    text = "".join(SHAPES[shape].format(number) for number in range(times))
    if shape.endswith("in one function"):
        text = "def f(a):\n" + text
    with calls() as count:
        check_text(text, "large.py")
    return count[0]


@pytest.mark.parametrize("shape", SHAPES)
def test_four_times_as_much_takes_four_times_as_many_calls(shape: str) -> None:
    work(shape, 10)  # tables are made once
    few, many = work(shape, 50), work(shape, 200)
    assert many < few * 5, (few, many)


def test_the_text_is_searched_once_for_a_word() -> None:
    searched = []

    class Text(str):
        __slots__ = ()

        def __contains__(self, word: object) -> bool:
            searched.append(word)
            return super().__contains__(word)  # type: ignore[operator]

    source = Source(Text("a = 1\n"))
    assert [source.says("global") for _ in range(3)] == [False] * 3
    assert searched == ["global"]
