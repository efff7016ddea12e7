"""The page of messages and the sources: each message has an entry, each entry a message."""

from functools import cache

import pytest

from tools import messages as sources

messages = cache(sources.messages)  # reads all sources


def test_page_and_sources_agree() -> None:
    wrong = sources.differences(messages(), sources.PAGE.read_text("utf-8"))
    assert not wrong, (
        "docs/reference/troubleshooting.md does not fit the sources; change the fragments in the "
        "first column (python -m tools.messages prints the same):\n" + "\n".join(wrong)
    )


def test_a_message_and_an_entry_that_are_alone_are_reported_with_what_is_near() -> None:
    found = [sources.Message("a.py:1", "the folder {} does not exist")]
    page = "| `the folder … is not there` | text |\n"
    bare, dead = sources.differences(found, page)
    assert bare.startswith("no entry covers a.py:1: the folder {} does not exist; ")
    assert bare.endswith("reworded from 'the folder … is not there'?")
    assert dead.startswith("no message has 'the folder … is not there'; ")
    assert dead.endswith("now 'the folder {} does not exist'?")
    assert sources.differences(found, "| `the folder … does` | text |\n") == []


@pytest.mark.parametrize(
    "place", ["_cli/", "_compare/", "gil/", "lint/", "memory/", "prefork/", "tasklets/", "threads/"]
)
def test_every_room_has_messages(place: str) -> None:
    assert any(each.place.startswith(place) for each in messages())


def test_messages_of_both_languages_are_found() -> None:
    texts = {each.text for each in messages()}
    assert any("the GIL cannot be scheduled here" in text for text in texts)
    assert any("another library has redirected" in text for text in texts)


@pytest.mark.parametrize(
    "text",
    [
        "{} must be 1 or 0",
        "does not listen any longer",
        "expected a script, -m MODULE, -c CODE or -",
        "skipped: process_vm_readv and pipe2 are refused here",
    ],
    ids=["a setting", "returned", "a constant", "a note"],
)
def test_messages_of_each_form_are_found(text: str) -> None:
    assert any(text in each.text for each in messages())
