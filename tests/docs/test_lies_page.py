"""The page of what became of facts that were made false."""

import pytest

from tools import lies_page, results_page

pytestmark = pytest.mark.any_version


def result(**lie: object) -> dict[str, object]:
    lie = {"crash": False, "state": "refused", "refused": [], "wrong": []} | lie
    return {"python": "3.13.0", "lies": [{"fact": "pools", "lie": "+8"} | lie]}


@pytest.mark.parametrize(
    ("lie", "told"),
    [
        ({}, "refused"),
        ({"crash": True}, "crash"),
        ({"wrong": ["census"]}, "wrong answer: census"),
        ({"state": "proven"}, "not noticed"),
        ({"state": "proven", "wrong": ["trim"]}, "not noticed; wrong answer: trim"),
    ],
)
def test_outcomes(lie: dict[str, object], told: str) -> None:
    other = {"python": "3.14.0", "lies": []}
    lines = lies_page.table([result(**lie), other]).splitlines()
    assert lines[2] == f"| `pools` | +8 | {told} | - |"
    assert lines[-1].startswith(
        "| all | | 1 refused, 0 else" if told == "refused" else "| all | | 0"
    )


def test_what_refuses_with_a_fact() -> None:
    text = lies_page.features([result(refused=["key_sharing"]), result(refused=["census"])])
    assert "| `pools` | census, key sharing |" in text
    assert "nothing: all go on" in lies_page.features([result()])


def test_the_page_is_up_to_date() -> None:
    assert lies_page.main(["--check"]) == 0, "run: make docs"


def test_each_version_is_recorded_and_refuses_all() -> None:
    """What stands in the page: nothing but refusals."""
    results = results_page.read(results_page.RESULTS, "lies")
    versions = [results_page.minor(one["python"]) for one in results]
    assert versions == ["3.11", "3.12", "3.13", "3.14", "3.15"]
    for one in results:
        for lie in one["lies"]:
            assert list(lies_page.outcomes(lie)) == ["refused"], lie
