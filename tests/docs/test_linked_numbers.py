"""A number that is the text of a link to a page of benchmarks stands on that page."""

import re

from tests.docs.pages import PAGES

_NUMBER_LINK = re.compile(r"\[([\d.,]+)(?: [A-Za-z%]+)?\]\(([^)\s]*benchmarks/[\w-]+\.md)[#\w-]*\)")


def test_linked_numbers_stand_on_the_pages_of_benchmarks() -> None:
    missing, looked_at = [], 0
    for page in PAGES:
        for number, target in _NUMBER_LINK.findall(page.read_text("utf-8")):
            looked_at += 1
            measured = (page.parent / target).resolve().read_text("utf-8")
            if not re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d,]|\.\d)", measured):
                missing.append(f"{page.name}: {number} is not in {target}")
    assert missing == []
    assert looked_at > 3
