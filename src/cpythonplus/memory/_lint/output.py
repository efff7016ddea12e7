"""Reports in the forms that ruff has: one line for each hit, JSON, SARIF 2.1.0."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from cpythonplus.memory._lint.model import Edit, Violation
from cpythonplus.memory._lint.rules import RULES, SYNTAX_ERROR, package_version
from cpythonplus.memory._lint.running import FileResult

_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def text(results: Iterable[FileResult]) -> str:
    """`path:row:col: CODE [*] message` for each hit, and a closing line."""
    results = list(results)
    lines = [line for result in results for line in _lines(result)]
    return "\n".join([*lines, *_closing(results)]) + "\n"


def _lines(result: FileResult) -> Iterator[str]:
    problem = result.problem
    if problem is not None:
        place = f"{result.path}:{problem.row}:{problem.column + 1}"
        yield f"{place}: {SYNTAX_ERROR}: {problem.message}"
    for hit, line in zip(result.violations, result.lines, strict=True):
        mark = "[*] " if hit.fix is not None else ""
        place = f"{result.path}:{hit.row}:{character(line, hit.column)}"
        yield f"{place}: {hit.code} {mark}{hit.message}"


def _closing(results: Sequence[FileResult]) -> Iterator[str]:
    left = count(results)
    fixed = sum(result.fixed for result in results)
    fixable = sum(hit.fix is not None for result in results for hit in result.violations)
    if fixed:
        yield f"Found {left + fixed} error{_s(left + fixed)} ({fixed} fixed, {left} remaining)."
    elif left:
        yield f"Found {left} error{_s(left)}."
    else:
        yield "All checks passed!"
    if fixable:
        yield f"[*] {fixable} fixable with the `--fix` option."


def _s(number: int) -> str:
    return "" if number == 1 else "s"


def count(results: Iterable[FileResult]) -> int:
    """How many lines the text report has: hits, and files that cannot be read."""
    return sum(len(result.violations) + (result.problem is not None) for result in results)


def statistics(results: Iterable[FileResult]) -> str:
    """How often each rule was hit, the most frequent first."""
    counts = Counter(hit.code for result in results for hit in result.violations)
    unread = sum(result.problem is not None for result in results)
    if unread:
        counts[SYNTAX_ERROR] = unread
    width = len(str(max(counts.values(), default=0)))
    names = max(map(len, counts), default=0)
    rows = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return "".join(
        f"{number:>{width}}  {code:<{names}}  {_name(code)}".rstrip() + "\n"
        for code, number in rows
    )


def _name(code: str) -> str:
    return RULES[code].name if code in RULES else ""


def character(line: str, column: int) -> int:
    """The column from 1 in characters, for one from 0 in UTF-8 bytes."""
    return len(line.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "replace")) + 1


# ---- JSON ---------------------------------------------------------------------------------------


def as_json(results: Iterable[FileResult]) -> str:
    """An array with ruff's fields."""
    return json.dumps([one for result in results for one in _objects(result)], indent=2) + "\n"


def _objects(result: FileResult) -> Iterator[dict[str, Any]]:
    name = _absolute(result.path)
    problem = result.problem
    if problem is not None:
        place = {"row": problem.row, "column": problem.column + 1}
        yield _object(name, SYNTAX_ERROR, problem.message, place)
    for hit, line in zip(result.violations, result.lines, strict=True):
        place = {"row": hit.row, "column": character(line, hit.column)}
        fields = _object(name, hit.code, hit.message, place)
        fields["end_location"] = {"row": hit.end_row, "column": _end_column(hit, line)}
        if hit.fix is not None:
            edits = [_edit_object(hit.fix.edit)]
            fields["fix"] = {
                "applicability": "safe",
                "edits": edits,
                "message": hit.fix.message,
            }
        yield fields


def _object(name: str, code: str, message: str, place: dict[str, int]) -> dict[str, Any]:
    return {
        "cell": None,
        "code": code,
        "end_location": place,
        "filename": name,
        "fix": None,
        "location": place,
        "message": message,
        "noqa_row": place["row"],
        "url": None,
    }


def _edit_object(edit: Edit) -> dict[str, Any]:
    return {
        "content": edit.text,
        "location": {"row": edit.first, "column": 1},
        "end_location": {"row": edit.last + 1, "column": 1},
    }


def _end_column(hit: Violation, line: str) -> int:
    if hit.end_row == hit.row:
        return character(line, hit.end_column)
    return hit.end_column + 1


def _absolute(path: str) -> str:
    return path if path == "-" else str(Path(path).absolute())


# ---- SARIF --------------------------------------------------------------------------------------


def as_sarif(results: Iterable[FileResult]) -> str:
    """One run of SARIF 2.1.0, as code hosts read it."""
    found = [one for result in results for one in _sarif_results(result)]
    driver = {
        "name": "cpythonplus lint",
        "rules": [_sarif_rule(code) for code in sorted({one["ruleId"] for one in found})],
        "version": package_version(),
    }
    run = {"tool": {"driver": driver}, "results": found, "columnKind": "unicodeCodePoints"}
    return (
        json.dumps({"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"
    )


def _sarif_rule(code: str) -> dict[str, Any]:
    rule = RULES.get(code)
    if rule is None:
        return {"id": code, "shortDescription": {"text": "file that cannot be read"}}
    return {
        "id": code,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.explanation},
        "help": {"text": rule.explanation},
    }


def _sarif_results(result: FileResult) -> Iterator[dict[str, Any]]:
    problem = result.problem
    if problem is not None:
        region = {"startLine": problem.row, "startColumn": problem.column + 1}
        yield _sarif_result(SYNTAX_ERROR, "error", problem.message, result.path, region)
    for hit, line in zip(result.violations, result.lines, strict=True):
        region = {
            "startLine": hit.row,
            "startColumn": character(line, hit.column),
            "endLine": hit.end_row,
            "endColumn": _end_column(hit, line),
        }
        yield _sarif_result(hit.code, "warning", hit.message, result.path, region)


def _sarif_result(
    code: str, level: str, message: str, path: str, region: dict[str, int]
) -> dict[str, Any]:
    artifact = {"uri": Path(_absolute(path)).as_uri() if path != "-" else "stdin"}
    place = {"artifactLocation": artifact, "region": region}
    return {
        "ruleId": code,
        "level": level,
        "message": {"text": message},
        "locations": [{"physicalLocation": place}],
    }


FORMATS: dict[str, Callable[[Iterable[FileResult]], str]] = {
    "text": text,
    "json": as_json,
    "sarif": as_sarif,
}
