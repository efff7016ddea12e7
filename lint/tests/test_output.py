"""The forms of a report."""

import json
import sys
from pathlib import Path
from typing import Any

from cpythonplus_lint import FileResult, Selection, check_stdin, output

TEXT = "def f():\n    é = ErrorOf(); é.x = 1; raise é\n\ndef g():\n    e = E1()\n    raise e\n"
CODES = Selection(select=("CYC105",))


def result(text: str = TEXT.replace("E1", "ErrorOf")) -> FileResult:
    return check_stdin(text.encode(), "a b.py", CODES)[0]


def test_text_is_as_ruffs() -> None:
    assert output.text([result()]) == (
        "a b.py:2:29: CYC105 `raise é` leaves `é` on its own traceback; `finally: del é`\n"
        "a b.py:6:5: CYC105 [*] `raise e` leaves `e` on its own traceback; `finally: del e`\n"
        "Found 2 errors.\n"
        "[*] 1 fixable with the `--fix` option.\n"
    )


def test_text_of_nothing_and_of_what_cannot_be_read() -> None:
    assert output.text([]) == output.text([result("x = 1\n")]) == "All checks passed!\n"
    lines = output.text([result("def f(:\n")]).splitlines()
    assert lines[0].startswith("a b.py:1:7: invalid-syntax: ")
    assert lines[1] == "Found 1 error."


def test_statistics() -> None:
    assert output.statistics([result(), result("(")]) == (
        "2  CYC105          raised-from-local\n1  invalid-syntax\n"
    )


def test_json_has_ruffs_fields() -> None:
    first, second = json.loads(output.as_json([result()]))
    assert first["location"] == {"row": 2, "column": 29}
    assert first["end_location"] == {"row": 2, "column": 36}
    assert first["fix"] is None
    assert first["code"] == "CYC105"
    assert first["filename"].endswith("/a b.py")
    assert set(first) >= {"message", "url", "noqa_row", "cell"}
    fix = second["fix"]
    assert fix["applicability"] == "safe"
    (edit,) = fix["edits"]
    assert edit["location"] == {"row": 6, "column": 1}
    assert edit["end_location"] == {"row": 7, "column": 1}
    assert edit["content"] == "    try:\n        raise e\n    finally:\n        del e\n"


def run_of(*results: FileResult) -> dict[str, Any]:
    report = json.loads(output.as_sarif(results))
    assert report["version"] == "2.1.0"
    (run,) = report["runs"]
    assert isinstance(run, dict)
    return run


def test_sarif() -> None:
    run = run_of(result(), result("("))
    assert [one["ruleId"] for one in run["results"]] == ["CYC105", "CYC105", "invalid-syntax"]
    assert [one["level"] for one in run["results"]] == ["warning", "warning", "error"]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "a%20b.py", "uriBaseId": "%SRCROOT%"}
    assert run["originalUriBaseIds"]["%SRCROOT%"]["uri"] == f"{Path.cwd().as_uri()}/"
    assert place["region"] == {"startLine": 2, "startColumn": 29, "endLine": 2, "endColumn": 36}
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["CYC105", "invalid-syntax"]
    assert run_of()["results"] == []


def test_a_file_outside_has_its_whole_address_in_sarif() -> None:
    found = check_stdin(TEXT.encode(), "/elsewhere/a.py", CODES)[0]
    place = run_of(found)["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "file:///elsewhere/a.py"}


def fingerprints(text: str, name: str = "a.py") -> list[str]:
    found = run_of(check_stdin(text.encode(), name, CODES)[0])["results"]
    return [one["partialFingerprints"]["cpythonplusLint/v1"] for one in found]


def test_fingerprints_stay_when_lines_move() -> None:
    text = "def f(x):\n    e = ErrorOf()\n    if x: raise e\n    raise e\n"
    assert fingerprints("import os\n\n" + text) == fingerprints(text)
    assert len(set(fingerprints(text + text.replace("f(", "g(")))) == 4
    assert set(fingerprints(text, "b.py")).isdisjoint(fingerprints(text))
    # Two that are equal but for their place.
    assert len(set(fingerprints(text.replace("if x: ", "if x:\n        ")))) == 2


def calls_for(findings: int) -> int:
    """Return how many functions are called for a file with so many findings."""
    text = "".join(
        f"def f{i}(a):\n    def g(): return g() + a\n    return g\n" for i in range(findings)
    )
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        found = check_stdin(text.encode(), "a.py", Selection())[0]
    finally:
        sys.setprofile(None)
    assert len(found.violations) == findings
    return calls


def test_work_grows_with_the_file_and_no_faster() -> None:
    none = calls_for(0)
    assert (calls_for(400) - none) < 5 * (calls_for(100) - none)
