"""The linter on the patterns of the watch: functions that leave cycles, each with a clean twin."""

import ast
from pathlib import Path

import pytest

from cpythonplus_lint import Selection, check_text
from tests.memory.cycles.patterns import pattern

pytestmark = pytest.mark.any_version

FOLDER = Path(pattern.__file__).parent
NAMES = ["classes", "closures", "exceptions", "others"]


def hit_lines(name: str, selection: Selection | None = None) -> set[int]:
    found = check_text((FOLDER / f"{name}.py").read_text(), name, selection or Selection())
    assert isinstance(found, list)
    return {hit.row for hit in found}


@pytest.mark.parametrize("name", NAMES)
def test_twins_are_clean(name: str) -> None:
    tree = ast.parse((FOLDER / f"{name}.py").read_text())
    twins = {
        line
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and node.name.lower().endswith("twin")
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    assert len(twins) > 0 or name == "classes"
    assert hit_lines(name) & twins == set()


# The others need a call to be followed, or are no business of the rules.
@pytest.mark.parametrize(("name", "least"), [("exceptions", 20), ("closures", 3)])
def test_most_patterns_are_seen(name: str, least: int) -> None:
    lines = (FOLDER / f"{name}.py").read_text().splitlines()
    marked = {row for row, line in enumerate(lines, 1) if pattern.MARK in line}
    assert len(marked & hit_lines(name)) >= least


def test_classes_in_functions_are_seen_when_asked_for() -> None:
    assert len(hit_lines("classes", Selection(select=("CYC203",)))) >= 9
