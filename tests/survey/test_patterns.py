"""The tool that counts what patterns leave behind, and what it wrote into the documentation."""

import shlex
import sys

import pytest

from survey import patterns
from tests.docs import pages

PYTHON = shlex.quote(sys.executable)
TITLES = {pattern.title: pattern.kind for pattern in patterns.patterns()}


def test_tables_are_up_to_date() -> None:
    text = patterns.PAGE.read_text("utf-8")
    assert patterns.filled(text, patterns.stored()) == text, "run: python -m survey.patterns"


def test_pictures_are_up_to_date() -> None:
    for name, drawn in patterns.pictures(patterns.stored()).items():
        text = patterns.PAGE.with_name(name).read_text("utf-8")
        assert drawn == text, f"{name}: run: python -m survey.patterns"


def test_every_pattern_was_counted_on_every_version() -> None:
    results = patterns.stored()
    assert [patterns.minor(result["python"]) for result in results][:1] == [(2, 7)]
    assert len(results) >= 6
    for result in results:
        assert set(result["objects"]) == set(TITLES), "run it with all interpreters again"


def test_clean_patterns_leave_nothing_and_the_others_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "WORKER_OPTIONS", {"JOBS": 200, "LIVE_CONTAINERS": 2})
    result = patterns.measured(PYTHON)
    assert patterns.minor(result["python"]) == sys.version_info[:2]
    clean = {title for title, kind in TITLES.items() if kind == "clean"}
    # What the standard library's own patterns leave depends on its version.
    own = {title for title, kind in TITLES.items() if kind not in ("clean", "library")}
    nothing = {title for title, count in result["objects"].items() if not count}
    assert clean <= nothing
    assert {title for title in nothing & own if "`locals()` called" not in title} == set()
    assert len(result["steps"]["kept"]) == 10
    assert max(result["steps"]["clean"]) == 100


def test_new_results_replace_those_of_the_same_version() -> None:
    old = [{"python": "3.9.1"}, {"python": "3.13.0"}]
    new = [{"python": "3.13.2"}, {"python": "3.10.0"}]
    names = [result["python"] for result in patterns.merged(old, new)]
    assert names == ["3.9.1", "3.10.0", "3.13.2"]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("/nonexistent/python", "No such file"),
        (f"{PYTHON} -c 'raise SystemExit(\"no\")'", "no$"),
        (f"{PYTHON} -c pass", "Expecting value"),
    ],
)
def test_an_interpreter_that_fails_is_one_line(command: str, message: str) -> None:
    with pytest.raises(patterns.PatternsError, match=message) as caught:
        patterns.measured(command)
    assert "\n" not in str(caught.value)


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(patterns.PatternsError, match="cycle-patterns:begin"):
        patterns.filled("nothing", [])


def test_the_page_has_both_pictures() -> None:
    text = patterns.PAGE.read_text("utf-8")
    linked = set(pages.links(text))
    assert {"cycle-exception.svg", "cycle-steps.svg"} <= linked
