"""The checker of phrases, tools/prose.py."""

import pytest

from tools import prose


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Who waits for a database waits.", ["Who"]),
        ("It waits.\nWho comes late goes last.", ["Who"]),
        ("- Who comes late goes last.", ["Who"]),
        ("Who gets the GIL?", []),
        ("## Who trusts whom\n\nNobody.", []),
        ("It shall\nend.", ["shall"]),
        ("As before, not as\n  ever.", ["as ever"]),
        ("It stays so.", ["so."]),
        ("It is so. And then", ["so."]),
        ("Also.", []),
        ("so.path is a file", []),
        ("They have memory of their own.", ["of their own."]),
        ("They have a stack of their own and more.", []),
        ("The number is\nwanted.", ["is wanted"]),
        ("`shall`, and [that](shall)", []),
        ("```text\nshall\n```\n", []),
        ("    shall not\n", []),
        ("<!-- prose: off -->\nshall\n<!-- prose: on -->\n", []),
        ("<!-- generated: x -->\nshall\n<!-- end of generated -->\n", []),
    ],
)
def test_pages(text: str, found: list[str]) -> None:
    hits = prose.in_page("a.md", text)
    assert [" ".join(hit.text.split()) for hit in hits] == found


def test_a_hit_has_its_line_and_advice() -> None:
    (hit,) = prose.in_page("a.md", "One.\n\n`two`\nthree shall come")
    assert str(hit) == 'a.md:4: "shall": must, or will'


def test_of_a_source_the_strings_are_read() -> None:
    source = (
        '"""It shall not be seen."""\n'
        "first = 'it shall be seen'\n"
        "second = f'{first} shall be seen'\n"
        "third = 'it shall be quoted'  # prose: off\n"
        "shall = 'shall'\n"
    )
    assert [hit.line for hit in prose.in_source("a.py", source)] == [2, 3]


def test_comments_begin_with_their_subject() -> None:
    c = 'int x; /* The lock.\n * Who waits, sleeps. */\n/* Of a thread. */ char *y = "What is";\n'
    python = '"""Do it.\n\nWhere it is not, none.\n"""\nx = "What is"  # What there is.\n'
    assert [hit.line for hit in prose.in_comments("a.c", c)] == [2, 3]
    assert sorted(hit.line for hit in prose.in_comments("a.py", python)) == [3, 5]
