"""Fragments become a section of the changelog, which may grow until the version is tagged."""

import pytest

from tools.changelog import (
    CLOCK,
    CLOCK_PAGES,
    START,
    area,
    from_changelog,
    from_towncrier,
    merged,
    with_floor,
    with_floor_on_page,
)
from tools.setup_env import ROOT

pytestmark = pytest.mark.any_version

DRAFT = """## 9.9.0 (2030-01-01)

### Added

- `doctor list` lists them. (#7)
- - Tasklets are
    quick. (#21)

### Fixed

- The word (#5) stays in the text of this. (#4, #7)
"""
OLDER = "\n## 9.8.0 (2029-01-01)\n\n### Tasklets\n\n#### Added\n\n- Old.\n"
OLD = f"# Changes\n\nWords.\n\n{START}{OLDER}"


def test_fragments_are_grouped_by_what_they_are_about() -> None:
    assert from_towncrier(DRAFT) == {
        "Memory and the doctor": {"Added": ["`doctor list` lists them."]},
        "Tasklets": {"Added": ["Tasklets are\nquick."]},
        "serve: forked workers": {"Fixed": ["The word (#5) stays in the text of this."]},
    }


def test_the_first_word_decides_where_the_issue_does_not() -> None:
    assert area(22, "`run --stats` and `doctor` agree") == "GIL and threads"
    assert area(22, "`doctor` and `run --stats` agree") == "Memory and the doctor"
    assert area(22, "Nothing that is known") == "The package as a whole"
    assert area(8, "Tasklets: here is the issue's word") == "Sites and clocks"


def test_a_section_is_made_above_the_older_ones() -> None:
    text = merged(OLD, from_towncrier(DRAFT), "9.9.0", "2030-01-01")
    assert text.startswith(OLD.partition(START)[0] + START + "\n## 9.9.0 (2030-01-01)\n")
    assert text.endswith(OLDER)
    assert "- Tasklets are\n  quick.\n" in text


def test_a_section_that_is_there_keeps_what_was_written_by_hand_and_grows() -> None:
    first = merged(OLD, from_towncrier(DRAFT), "9.9.0", "2030-01-01")
    by_hand = first.replace("(2030-01-01)\n", "(2030-01-01)\n\nBy hand:\n\n- a list\n", 1)
    by_hand = by_hand.replace("lists them", "lists all")
    more = from_towncrier("### Added\n\n- More tasklets. (#5)\n")
    text = merged(by_hand, more, "9.9.0", "2030-02-02")
    expected = by_hand.replace("2030-01-01", "2030-02-02")
    assert text == expected.replace("  quick.\n", "  quick.\n- More tasklets.\n", 1)
    assert merged(text, more, "9.9.0", "2030-02-02") == text


def test_the_front_of_a_section_is_not_taken_for_a_list() -> None:
    front, section = from_changelog("\nWords.\n\n- a list\n\n### A\n\n#### Fixed\n\n- one\n- two\n")
    assert front == "Words.\n\n- a list"
    assert section == {"A": {"Fixed": ["one", "two"]}}


def test_the_floor_of_the_clock_is_the_day_of_the_release() -> None:
    source = (ROOT / CLOCK).read_text("utf-8")
    moved = with_floor(source, "2030-01-01")
    assert 'FLOOR = 1893456000\n"""2030-01-01, when' in moved
    changed = zip(source.split("\n"), moved.split("\n"), strict=True)
    assert sum(old != new for old, new in changed) == 2
    assert with_floor(moved, "2030-01-01") == moved


@pytest.mark.parametrize("name", CLOCK_PAGES)
def test_so_is_that_of_the_pages(name: str) -> None:
    page = (ROOT / name).read_text("utf-8")
    moved = with_floor_on_page(page, "2030-01-01")
    changed = zip(page.split("\n"), moved.split("\n"), strict=True)
    assert [("2030-01-01" in new) for old, new in changed if old != new] == [True]
