"""The baseline: what it leaves out, what is gone, and what it survives."""

import json
from pathlib import Path

import pytest

from cpythonplus_lint import (
    Baseline,
    BaselineError,
    FileResult,
    Selection,
    check_files,
    find,
    load_baseline,
)

pytestmark = pytest.mark.any_version

CODES = Selection(select=("CYC105",)).codes()
ONE = "def f():\n    e = ErrorOf()\n    raise e\n"
OTHER = "def g():\n    e = ErrorOf()\n    raise e\n"


def checked(folder: Path) -> list[FileResult]:
    return list(check_files(find([str(folder)]), Selection()))


@pytest.fixture
def baseline(tmp_path: Path) -> Baseline:
    """Of one file with two functions."""
    (tmp_path / "a.py").write_text(ONE + OTHER)
    path = tmp_path / "known.json"
    path.write_text(Baseline(str(path)).updated(checked(tmp_path), CODES).text())
    return load_baseline(str(path))


def test_what_is_in_it_is_left_out(tmp_path: Path, baseline: Baseline) -> None:
    found = baseline.compared(checked(tmp_path), CODES)
    assert [one.violations for one in found.results] == [()]
    assert (found.left_out, found.gone) == (2, [])


@pytest.mark.parametrize(
    "text",
    [
        "import os\n\n\n" + ONE + OTHER,
        OTHER + "\n" + ONE,
        "if True:\n" + "".join(f"    {line}\n" for line in (ONE + OTHER).splitlines()),
        (ONE + OTHER).replace("raise e", "raise  e"),
        ONE.replace("    e =", "    # a comment\n    e =") + OTHER,
    ],
    ids=["below others", "in another order", "indented", "laid out anew", "with a comment"],
)
def test_lines_that_moved_are_in_it(tmp_path: Path, baseline: Baseline, text: str) -> None:
    (tmp_path / "a.py").write_text(text)
    found = baseline.compared(checked(tmp_path), CODES)
    assert (found.left_out, found.gone) == (2, [])


def test_one_more_of_the_same_is_new(tmp_path: Path, baseline: Baseline) -> None:
    (tmp_path / "a.py").write_text(
        "def f(x):\n    e = ErrorOf()\n    if x:\n        raise e\n    raise e\n" + OTHER
    )
    found = baseline.compared(checked(tmp_path), CODES)
    assert [[hit.row for hit in one.violations] for one in found.results] == [[5]]
    assert found.left_out == 2


def test_what_is_gone_is_told_unless_nobody_looked(tmp_path: Path, baseline: Baseline) -> None:
    (tmp_path / "a.py").write_text(OTHER)
    (tmp_path / "b.py").write_text("")
    gone = baseline.compared(checked(tmp_path), CODES).gone
    assert [(one.file, one.function) for one in gone] == [("a.py", "f")]
    other_file = list(check_files([str(tmp_path / "b.py")], Selection()))
    assert baseline.compared(other_file, CODES).gone == []
    assert baseline.compared(checked(tmp_path), {"CYC101"}).gone == []
    (tmp_path / "a.py").write_text("def f(:\n")
    assert baseline.compared(checked(tmp_path), CODES).gone == []
    (tmp_path / "a.py").unlink()
    assert len(baseline.compared(other_file, CODES).gone) == 2


def test_written_anew_it_keeps_what_nobody_looked_at(tmp_path: Path, baseline: Baseline) -> None:
    (tmp_path / "b.py").write_text(ONE)
    only_b = list(check_files([str(tmp_path / "b.py")], Selection()))
    new = baseline.updated(only_b, CODES)
    assert sorted({one.file for one in new.counts}) == ["a.py", "b.py"]
    (tmp_path / "a.py").write_text("")
    assert {one.file for one in new.updated(checked(tmp_path), CODES).counts} == {"b.py"}


def test_it_may_be_in_another_folder(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text(ONE)
    (tmp_path / "ci").mkdir()
    path = tmp_path / "ci" / "known.json"
    text = Baseline(str(path)).updated(checked(tmp_path / "src"), CODES).text()
    assert [one["file"] for one in json.loads(text)["findings"]] == ["../src/a.py"]


def test_an_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    path.write_text(Baseline(str(path)).text())
    assert json.loads(path.read_text()) == {"version": 1, "findings": []}
    assert load_baseline(str(path)).counts == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a baseline: no JSON"),
        ("[]", "it has no 'findings'"),
        ('{"version": 2, "findings": []}', "has version 2, expected 1"),
        ('{"version": 1, "findings": [1]}', "finding 1 is not one"),
        ('{"version": 1, "findings": [{"file": "a", "count": 1}]}', "finding 1 is not one"),
        (
            (
                '{"version": 1, "findings": [{"file": "a", "code": "b", "function": "",'
                ' "line": "", "count": true}]}'
            ),
            "finding 1 is not one",
        ),
        (
            (
                '{"version": 1, "findings": [{"file": "a", "code": "b", "function": "",'
                ' "line": "", "count": 1000000000000}]}'
            ),
            "finding 1 is not one",
        ),
    ],
)
def test_what_is_none_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "known.json"
    path.write_text(text)
    with pytest.raises(BaselineError) as caught:
        load_baseline(str(path))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_entry_whose_file_cannot_be_there_is_gone(tmp_path: Path) -> None:
    row = {"file": f"{'a' * 300}.py", "code": "CYC105", "function": "", "line": "x", "count": 1}
    path = tmp_path / "known.json"
    path.write_text(json.dumps({"version": 1, "findings": [row]}))
    compared = load_baseline(str(path)).compared([], CODES)
    assert [entry.file for entry in compared.gone] == [row["file"]]
