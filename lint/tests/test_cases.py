"""Each rule on small functions, and whether these make the garbage that the rule says they make."""

import gc
import re
from collections.abc import Callable, Iterator

import pytest

from cpythonplus_lint import Problem, Selection, check_text
from cpythonplus_lint.checking import check
from cpythonplus_lint.checks.source import Source
from lint.tests.support import EXCEPTIONS, case, outcomes

MARK = re.compile(r"CYC\d+")


def expected(text: str) -> list[tuple[int, str]]:
    return [
        (row, code)
        for row, line in enumerate(text.splitlines(), 1)
        for code in MARK.findall(line.partition("  # ")[2])
    ]


EVERY = Selection(select=("ALL",), ignore=("CYC203",))


@pytest.mark.parametrize("name", [*EXCEPTIONS, "closures", "links", "others"])
@pytest.mark.any_version
def test_the_marked_lines_are_hit_and_no_others(name: str) -> None:
    text = case(name)
    found = check_text(text, f"{name}.py", EVERY)
    assert not isinstance(found, Problem)
    assert [(hit.row, hit.code) for hit in found] == expected(text)


@pytest.mark.parametrize("name", [*EXCEPTIONS, "closures", "links"])
def test_what_is_hit_makes_garbage_and_what_is_not_does_not(name: str) -> None:
    wrong = [
        function
        for function, outcome in outcomes(case(name)).items()
        if outcome.leaves_garbage != function.startswith("bad_")
    ]
    assert wrong == []


def test_of_two_functions_of_one_name_the_first_is_hit_in_every_run() -> None:
    definition = "def walk(n):\n            return walk(n)"
    text = f"def outer(x):\n    if x:\n        {definition}\n    else:\n        {definition}\n"
    # What decided before was where in memory a tree's nodes lay.
    found = [check_text(text) for _ in range(50)]
    assert [[hit.row for hit in hits] for hits in found if isinstance(hits, list)] == [[3]] * 50


FIXABLE = """
def last_of():
    def walk(n):
        return n and walk(n - 1)
    try:
        walk(2)
    except ValueError as e:
        last = e
    raise last
"""


@pytest.fixture
def collected() -> Iterator[Callable[[], int]]:
    """How much the collector finds that was made in the test."""
    gc.collect()
    gc.freeze()
    yield gc.collect
    gc.unfreeze()


def test_checking_makes_no_garbage_itself(collected: Callable[[], int]) -> None:
    for name in ("exceptions", "closures", "links"):
        check(Source(case(name)), with_fixes=False)
    check(Source(FIXABLE))
    assert collected() == 0
