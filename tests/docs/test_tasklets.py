"""The pages about tasklets: their pictures, and what they must have."""

import re
from pathlib import Path

import pytest

from cpythonplus import tasklets
from tests.docs import pages
from tools import stack_pictures

DOCS = pages.ROOT / "docs"


@pytest.mark.parametrize("name", stack_pictures.PICTURES)
def test_the_pictures_are_up_to_date(name: str) -> None:
    drawn = (DOCS / "explanation" / name).read_text("utf-8")
    assert drawn == stack_pictures.PICTURES[name](), "run: make docs"


def test_a_size_that_the_sources_do_not_tell_is_an_error() -> None:
    with pytest.raises(stack_pictures.MissingSizeError, match=r"stacks\.c has no 'NO_SUCH_BYTES'"):
        stack_pictures.size("tasklets/stacks/stacks.c", "NO_SUCH_BYTES")


def named(page: Path) -> set[str]:
    """Return all words of headings and of what is marked as code."""
    text = page.read_text("utf-8")
    marked = re.findall(r"`([^`\n]+)`|^#+ (.*)$", text, re.MULTILINE)
    return {word for pair in marked for part in pair for word in re.findall(r"\w+", part)}


def test_the_reference_has_all_public_names() -> None:
    public = {*tasklets.__all__, "current", "main", "runcount", "threads"}
    for kind in (tasklets.tasklet, tasklets.channel):
        public |= {name for name in vars(kind) if not name.startswith("_")}
    assert len(public) > 60
    assert public - named(DOCS / "reference" / "tasklets.md") == set()


def test_all_that_the_tutorial_runs_is_compared() -> None:
    page = DOCS / "tutorial" / "microthreads.md"
    programs = [
        block for block in pages.blocks(page, page.read_text("utf-8")) if block.language == "python"
    ]
    assert len(programs) > 6
    assert [str(block) for block in programs if block.output is None] == []
