"""Comments that silence hits, and which rules are asked for."""

import pytest

from cpythonplus.memory._lint import RULES, Selection, check_text, unknown

BAD = "def f():\n    e = ErrorOf()\n    raise e{}\n"


def codes(text: str, selection: Selection | None = None) -> list[str]:
    found = check_text(text, "x.py", selection or Selection())
    assert isinstance(found, list)
    return [hit.code for hit in found]


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa",
        "#noqa",
        "# NOQA",
        "# why  # noqa: CYC105",
        "# noqa:E501,CYC105",
        "# noqa: E501 CYC105",
        "# noqa: cyc105",
        "# noqa: CYC1",
        "# noqa: CYC105 since it is short",
        "# noqa : CYC105",
    ],
)
def test_silenced(comment: str) -> None:
    assert codes(BAD.format("  " + comment)) == []


@pytest.mark.parametrize("comment", ["# noqa: CYC101", "# noqa: E501", "# no qa", "# nota"])
def test_not_silenced(comment: str) -> None:
    assert codes(BAD.format("  " + comment)) == ["CYC105"]


@pytest.mark.parametrize(
    ("comment", "found"),
    [
        ("# flake8: noqa", []),
        ("# cpythonplus: noqa", []),
        ("# flake8: noqa: CYC105", []),
        ("# cpythonplus: noqa: CYC101, CYC105", []),
        ("# flake8: noqa: E501", ["CYC105"]),
        ("# ruff: noqa", ["CYC105"]),
        ("x = 1  # noqa", ["CYC105"]),
    ],
)
def test_for_the_whole_file(comment: str, found: list[str]) -> None:
    text = f"{comment}\n{BAD.format('')}"
    assert codes(text) == codes(text.replace("\n", "\r\n")) == found


@pytest.mark.parametrize(
    ("selection", "chosen"),
    [
        (Selection(), set(RULES) - {"CYC203"}),
        (Selection(select=("ALL",)), set(RULES)),
        (Selection(select=("CYC1",)), {"CYC101", "CYC102", "CYC103", "CYC104", "CYC105"}),
        (Selection(select=("CYC1",), ignore=("CYC105", "CYC104")), {"CYC101", "CYC102", "CYC103"}),
        (Selection(select=("CYC105",), ignore=("CYC1",)), {"CYC105"}),
        (Selection(extend_select=("CYC203",)), set(RULES)),
        (Selection(ignore=("CYC",)), set()),
        (Selection(select=("ALL",), ignore=("ALL",)), set()),
    ],
)
def test_selection(selection: Selection, chosen: set[str]) -> None:
    assert selection.codes() == chosen


def test_what_fits_no_rule() -> None:
    assert unknown(("CYC", "CYC1", "ALL", "CYC101", "E501", "CYC9", "")) == ["E501", "CYC9", ""]


def test_classes_only_when_asked_for() -> None:
    text = "def f():\n    class A: pass\n"
    assert codes(text) == []
    assert codes(text, Selection(extend_select=("CYC2",))) == ["CYC203"]
