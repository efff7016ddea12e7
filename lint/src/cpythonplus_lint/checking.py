"""All rules on one file."""

from __future__ import annotations

from dataclasses import replace

from cpythonplus_lint import fixing, noqa
from cpythonplus_lint.checks import closures, collector, exceptions, links, wrappers
from cpythonplus_lint.checks.source import Source, UnreadableError
from cpythonplus_lint.model import Problem, Violation
from cpythonplus_lint.rules import DEFAULT, Selection

_CHECKS = (
    (exceptions.CODES, exceptions.check),
    (closures.CODES, closures.check),
    (links.CODES, links.check),
    (wrappers.CODES, wrappers.check),
    (collector.CODES, collector.check),
)


def check(
    source: Source, selection: Selection = DEFAULT, *, with_fixes: bool = True
) -> list[Violation]:
    """Return the hits of a file, in the order of its lines.

    with_fixes: each hit says how it would be fixed, if it can be.
    """
    wanted = selection.codes()
    found = [
        hit
        for codes, run in _CHECKS
        if not codes.isdisjoint(wanted)
        for hit in run(source)
        if hit.code in wanted
    ]
    found = sorted(noqa.wanted(source, found))
    if not found or source.is_generated:
        return []
    found = _placed(source, found)
    if not with_fixes:
        return found
    fixes = fixing.fixes(source, found)
    return [replace(hit, fix=fixes.get(hit)) for hit in found]


def _placed(source: Source, found: list[Violation]) -> list[Violation]:
    """The hits with the names of the functions that they are in."""
    return [replace(hit, inside=source.place(hit.row)) for hit in found]


def check_text(
    text: str, name: str = "<stdin>", selection: Selection = DEFAULT
) -> list[Violation] | Problem:
    """Return the hits of a file's text, or why it cannot be read."""
    try:
        return check(Source(text, name), selection)
    except UnreadableError as error:
        return error.problem
    except RecursionError:
        return Problem(1, 0, "too deeply nested to be checked")
