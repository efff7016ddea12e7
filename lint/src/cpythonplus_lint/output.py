"""Reports in the forms that ruff has: one line for each hit, JSON, SARIF 2.1.0."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from cpythonplus_lint.baseline import Compared, identity
from cpythonplus_lint.model import Fix
from cpythonplus_lint.rules import RULES, SYNTAX_ERROR, package_version
from cpythonplus_lint.running import FileResult
from cpythonplus_lint.visible import visible

_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "%SRCROOT%"
_FINGERPRINT = "cpythonplusLint/v1"


class _Entry(NamedTuple):
    """One hit, or why a file cannot be read. Columns are characters, from 1."""

    path: str
    code: str
    message: str
    row: int
    column: int
    end: tuple[int, int] | None = None
    fix: Fix | None = None
    identity: tuple[str, str, str] = ("", "", "")
    """The part of the entry that stays the same when lines move."""


def _entries(results: Iterable[FileResult]) -> Iterator[_Entry]:
    """The entries that every format reports, in order."""
    for result in results:
        path, problem = result.path, result.problem
        if problem is not None:
            yield _Entry(path, SYNTAX_ERROR, problem.message, problem.row, problem.column + 1)
        for hit, line in zip(result.violations, result.lines, strict=True):
            one_row = hit.end_row == hit.row
            end = character(line, hit.end_column) if one_row else hit.end_column + 1
            column = character(line, hit.column)
            place = hit.row, column, (hit.end_row, end)
            yield _Entry(path, hit.code, hit.message, *place, hit.fix, identity(hit, line))


def text(results: Iterable[FileResult]) -> str:
    """`path:row:col: CODE [*] message` for each hit, and a closing line."""
    results = list(results)
    entries = list(_entries(results))
    fixed = sum(result.fixed for result in results)
    return "\n".join([*map(_line, entries), *_closing(entries, fixed)]) + "\n"


def _line(entry: _Entry) -> str:
    mark = ":" if entry.code == SYNTAX_ERROR else " [*]" if entry.fix is not None else ""
    place = f"{entry.path}:{entry.row}:{entry.column}"
    return visible(f"{place}: {entry.code}{mark} {entry.message}")


def _closing(entries: Sequence[_Entry], fixed: int) -> Iterator[str]:
    left = len(entries)
    fixable = sum(entry.fix is not None for entry in entries)
    if fixed:
        yield f"Found {left + fixed} error{_s(left + fixed)} ({fixed} fixed, {left} remaining)."
    elif left:
        yield f"Found {left} error{_s(left)}."
    else:
        yield "All checks passed!"
    if fixable:
        yield f"[*] {fixable} fixable with the `--fix` option."


def baseline_notes(found: Compared, path: str) -> str:
    """The number of hits that a baseline left out, and its gone entries, a line each."""
    lines = []
    if found.left_out:
        verb = "is" if found.left_out == 1 else "are"
        lines.append(f"{found.left_out} more {verb} in the baseline {path}.")
    if found.gone:
        what = "entry is" if len(found.gone) == 1 else "entries are"
        lines.append(f"{len(found.gone)} baseline {what} gone; --write-baseline removes:")
        lines += [f"  {one.file}: {one.code} {one.function or 'module'}" for one in found.gone]
    return "".join(f"{visible(line)}\n" for line in lines)


def _s(number: int) -> str:
    return "" if number == 1 else "s"


def statistics(results: Iterable[FileResult]) -> str:
    """How often each rule was hit, the most frequent first."""
    counts = Counter(entry.code for entry in _entries(results))
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
    """The column in characters from 1, for a column in UTF-8 bytes from 0."""
    return len(line.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "replace")) + 1


# ---- JSON ---------------------------------------------------------------------------------------


def as_json(results: Iterable[FileResult]) -> str:
    """An array with ruff's fields."""
    return json.dumps([_object(entry) for entry in _entries(results)], indent=2) + "\n"


def _object(entry: _Entry) -> dict[str, Any]:
    return {
        "cell": None,
        "code": entry.code,
        "end_location": _location(*(entry.end or (entry.row, entry.column))),
        "filename": _absolute(entry.path),
        "fix": None if entry.fix is None else _fix_object(entry.fix),
        "location": _location(entry.row, entry.column),
        "message": entry.message,
        "noqa_row": entry.row,
        "url": None,
    }


def _location(row: int, column: int) -> dict[str, int]:
    return {"row": row, "column": column}


def _fix_object(fix: Fix) -> dict[str, Any]:
    edit = {
        "content": fix.edit.text,
        "location": _location(fix.edit.first, 1),
        "end_location": _location(fix.edit.last + 1, 1),
    }
    return {"applicability": "safe", "edits": [edit], "message": fix.message}


def _absolute(path: str) -> str:
    return path if path == "-" else str(Path(path).absolute())


# ---- SARIF --------------------------------------------------------------------------------------


def as_sarif(results: Iterable[FileResult]) -> str:
    """One run of SARIF 2.1.0, as code hosts read it.

    Paths are relative to the current folder; code hosts run this in the repository's root. A
    fingerprint stays the same when lines move: it has file, rule, function, the line's text, and a
    number among the hits that are equal in all of these.
    """
    seen: Counter[tuple[str, ...]] = Counter()
    found = [_sarif_result(entry, seen) for entry in _entries(results)]
    driver = {
        "name": "cpythonplus-lint",
        "rules": [_sarif_rule(code) for code in sorted({one["ruleId"] for one in found})],
        "version": package_version(),
    }
    run = {
        "tool": {"driver": driver},
        "originalUriBaseIds": {_ROOT: {"uri": f"{Path.cwd().as_uri()}/"}},
        "results": found,
        "columnKind": "unicodeCodePoints",
    }
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


def _sarif_result(entry: _Entry, seen: Counter[tuple[str, ...]]) -> dict[str, Any]:
    region = {"startLine": entry.row, "startColumn": entry.column}
    if entry.end is not None:
        region |= {"endLine": entry.end[0], "endColumn": entry.end[1]}
    place = _artifact(entry.path)
    same = (place["uri"], entry.code, *entry.identity)
    seen[same] += 1
    text = "\0".join([*same, str(seen[same])])
    return {
        "ruleId": entry.code,
        "level": "error" if entry.code == SYNTAX_ERROR else "warning",
        "message": {"text": entry.message},
        "locations": [{"physicalLocation": {"artifactLocation": place, "region": region}}],
        "partialFingerprints": {
            _FINGERPRINT: sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        },
    }


def _artifact(path: str) -> dict[str, str]:
    """The location of a file: a path below the current folder, or a whole URI."""
    if path == "-":
        return {"uri": "stdin"}
    whole = Path(os.path.abspath(path))  # noqa: PTH100  # resolve() would follow links
    if whole.is_relative_to(Path.cwd()):
        return {"uri": quote(os.fsencode(whole.relative_to(Path.cwd()))), "uriBaseId": _ROOT}
    return {"uri": whole.as_uri()}


FORMATS: dict[str, Callable[[Iterable[FileResult]], str]] = {
    "text": text,
    "json": as_json,
    "sarif": as_sarif,
}
