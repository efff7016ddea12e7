"""The known ways to leave cycles: whether they do, and what the linter finds of them."""

import pytest

from cpythonplus_lint import Selection
from survey import lint_recall

LEAST = 24
"""Of thirty; four need a call to be followed, or a container."""


@pytest.mark.parametrize("one", lint_recall.known(), ids=lambda one: one.title)
@pytest.mark.needs_gil
def test_it_leaks_and_is_found_by_its_rule(one: lint_recall.Known) -> None:
    assert lint_recall.left_behind(one.source) >= 1
    found = lint_recall.found(one.source, Selection(select=("ALL",)))
    assert found == ([one.code] if one.code else [])


@pytest.mark.any_version
def test_most_are_found() -> None:
    patterns = lint_recall.known()
    assert len(patterns) == 30
    assert sum(one.code != "" for one in patterns) >= LEAST


def test_what_leaks_nothing_is_told_apart() -> None:
    assert lint_recall.left_behind("def leak():\n    return [1]\n") == 0
