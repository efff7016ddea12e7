"""The page of builds that the facts were proven on."""

import platform
import sys

import pytest

from cpythonplus import _interp
from tools import builds_page

pytestmark = pytest.mark.any_version


def test_this_interpreter_is_judged() -> None:
    build = builds_page.ask()
    assert build["python"] == platform.python_version() + getattr(sys, "abiflags", "")
    states = [fact.state for fact in _interp.facts()]
    assert build["proven"] == states.count("proven")
    assert len(build["refused"]) == states.count("refused")


def test_a_refusal_is_told() -> None:
    build = {"python": "3.13.9", "of": "a distribution", "built": "with libpython", "proven": 13}
    refused = {"refused": {"gc-rings": "moved"}, "scheduling": "no slots"}
    *_, row = builds_page.table([build | refused]).splitlines()
    assert row == (
        "| 3.13.9 | a distribution | with libpython | 13 | `gc-rings`: moved | no slots |"
    )


def test_the_page_is_up_to_date() -> None:
    assert builds_page.main(["--check"]) == 0
