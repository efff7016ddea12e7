"""The pages about cycles: what they must have."""

from dataclasses import fields

from cpythonplus.memory import cycles
from tests.docs import pages

REFERENCE = pages.ROOT / "docs" / "reference" / "cycles.md"
TUTORIAL = pages.ROOT / "docs" / "tutorial" / "find-the-line.md"


def test_the_reference_has_all_public_names() -> None:
    text = REFERENCE.read_text("utf-8")
    assert [name for name in cycles.__all__ if f"### memory.cycles.{name}\n" not in text] == []
    for kind in (cycles.Report, cycles.Cycle, cycles.Cause, cycles.Hoard):
        assert [field.name for field in fields(kind) if f"    {field.name} " not in text] == []
    assert [kind for kind in cycles.Kind if f"| `{kind}` |" not in text] == []


def test_the_tutorial_corrects_one_thing_after_the_other() -> None:
    blocks = pages.blocks(TUTORIAL, TUTORIAL.read_text("utf-8"))
    files = [block for block in blocks if block.file_name == "service.py"]
    reports = [block for block in blocks if block.mark == "compare"]
    assert len(files) == len(reports) == 3
    assert [block.text.count(" keeps ") for block in reports] == [2, 0, 0]
    assert ["still held" in block.text for block in reports] == [True, True, False]
