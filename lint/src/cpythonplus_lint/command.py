"""The command `cpythonplus-lint`: code that makes reference cycles, found in the source."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import cpythonplus_lint as lint
from cpythonplus_lint import output
from cpythonplus_lint.contents import MOST_BYTES
from cpythonplus_lint.files import write_output
from cpythonplus_lint.terminal import NAME, Parser, UsageError, complain, show
from cpythonplus_lint.visible import visible_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

INTERRUPTED_STATUS = 130
STDIN = "-"

DESCRIPTION = (
    "Finds code that creates reference cycles: stored exceptions, functions"
    " that refer to themselves."
)
_EPILOG = "Exit status: 0 no errors, 1 errors found or a file that cannot be read, 2 wrong usage."


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out the command; arguments: `sys.argv[1:]` by default. Returns the exit status."""
    parser = Parser(prog=NAME, description=DESCRIPTION, epilog=_EPILOG, allow_abbrev=False)
    add_options(parser)
    try:
        return _carry_out(parser.parse_args(arguments))
    except UsageError as error:
        return complain(str(error))
    except KeyboardInterrupt:
        print(f"{NAME}: interrupted", file=sys.stderr)
        return INTERRUPTED_STATUS
    except lint.WorkerEndedError:
        return complain("a worker process was killed; --jobs 1 starts none")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to a parser."""
    add = parser.add_argument
    add("paths", nargs="*", metavar="PATH", help="files and folders (.); - is standard input")
    add(
        "--select",
        type=_codes,
        default=(),
        metavar="CODES",
        help="check only these rules: CYC1, ALL",
    )
    add(
        "--extend-select",
        type=_codes,
        default=(),
        metavar="CODES",
        help="check these rules as well",
    )
    add("--ignore", type=_codes, default=(), metavar="CODES", help="do not check these rules")
    add("--exclude", type=_patterns, default=(), metavar="PATTERNS", help="skip paths that match")
    add("--fix", action="store_true", help="fix what can be fixed safely")
    add(
        "--format",
        choices=tuple(output.FORMATS),
        default="text",
        help="format of the report (text)",
    )
    add("--output", metavar="FILE", help="write the report to FILE instead of standard output")
    add(
        "--baseline",
        metavar="FILE",
        help="leave out the errors that are in FILE; tell which of them are gone",
    )
    add(
        "--write-baseline",
        action="store_true",
        help="write the errors into the file of --baseline and exit with status 0",
    )
    add("--statistics", action="store_true", help="print only the number of errors for each rule")
    add("--exit-zero", action="store_true", help="exit with status 0 even if errors were found")
    add("--stdin-filename", metavar="NAME", help="name of standard input in the report")
    add(
        "--jobs",
        type=_count,
        default=0,
        metavar="N",
        help="number of processes (one for each processor)",
    )
    add("--explain", metavar="CODE", help="explain a rule and exit")


def _carry_out(options: argparse.Namespace) -> int:
    """Explain a rule, or check. Raises UsageError."""
    if options.explain is not None:
        return _explain(options.explain)
    if options.write_baseline and options.baseline is None:
        raise UsageError("--write-baseline needs --baseline FILE")
    selection = lint.Selection(options.select, options.extend_select, options.ignore)
    return _check(options, selection)


def _codes(text: str) -> tuple[str, ...]:
    codes = tuple(one.strip().upper() for one in text.split(","))
    odd = lint.unknown(codes)
    if odd:
        raise argparse.ArgumentTypeError(f"unknown rule {odd[0]!r}")
    return codes


def _patterns(text: str) -> tuple[str, ...]:
    return tuple(one.strip() for one in text.split(",") if one.strip())


def _count(text: str) -> int:
    value = int(text) if text.isdecimal() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of 1 or more, got {text!r}")
    return value


def _explain(code: str) -> int:
    rule = lint.RULES.get(code.upper())
    if rule is None:
        raise UsageError(f"unknown rule {code!r}; the rules are {', '.join(lint.RULES)}")
    fix = f"\n--fix: {rule.fixable}.\n" if rule.fixable else ""
    off = "" if rule.on_by_default else ", off by default"
    return show(f"{rule.code} ({rule.name}{off}): {rule.summary}\n\n{rule.explanation}{fix}")


def _check(options: argparse.Namespace, selection: lint.Selection) -> int:
    paths = options.paths or ["."]
    if STDIN in paths or options.stdin_filename is not None:
        if options.paths not in ([], [STDIN]):
            raise UsageError("standard input cannot be combined with other paths")
        return _check_stdin(options, selection)
    try:
        files = lint.find(paths, options.exclude)
    except lint.NoSuchPathError as error:
        raise UsageError(f"{error}: no such file or folder") from None
    known = _baseline(options)
    results = list(lint.check_files(files, selection, fix=options.fix, jobs=options.jobs))
    return _finish(options, selection, known, results)


def _check_stdin(options: argparse.Namespace, selection: lint.Selection) -> int:
    """Check standard input. With --fix, print the fixed text, and the report on standard error."""
    name = options.stdin_filename or STDIN
    if sys.stdin is None:
        raise UsageError("standard input is closed")
    known = _baseline(options)
    try:
        data = sys.stdin.buffer.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read standard input: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise UsageError(f"standard input is longer than {MOST_BYTES >> 20} MiB")
    result, text = lint.check_stdin(data, name, selection, fix=options.fix)
    if not options.fix:
        return _finish(options, selection, known, [result])
    return show(text) or _finish(options, selection, known, [result], on_stderr=True)


# ---- the baseline, the report, the status -------------------------------------------------------


def _baseline(options: argparse.Namespace) -> lint.Baseline | None:
    """The baseline that the options name; if it is to be written, it need not exist."""
    if options.baseline is None:
        return None
    if options.write_baseline and not os.path.lexists(options.baseline):
        return lint.Baseline(options.baseline)
    try:
        return lint.load_baseline(options.baseline)
    except lint.BaselineError as error:
        raise UsageError(str(error)) from None


def _finish(
    options: argparse.Namespace,
    selection: lint.Selection,
    known: lint.Baseline | None,
    results: list[lint.FileResult],
    *,
    on_stderr: bool = False,
) -> int:
    """Report a run, or write its baseline; returns the status."""
    if known is not None and options.write_baseline:
        new = known.updated(results, selection.codes())
        _write(known.path, new.text())
        total = sum(new.counts.values())
        note = f"Wrote {total} error{'' if total == 1 else 's'} to {known.path}.\n"
        unread = [replace(result, violations=(), lines=()) for result in results if result.problem]
        text = output.text(unread) if unread else ""
        return show(text + note) or int(bool(unread))
    notes = ""
    if known is not None:
        compared = known.compared(results, selection.codes())
        results, notes = compared.results, output.baseline_notes(compared, known.path)
    return _tell(options, results, notes, on_stderr=on_stderr) or _status(options, results)


def _tell(
    options: argparse.Namespace, results: list[lint.FileResult], notes: str, *, on_stderr: bool
) -> int:
    text = _report(options, results)
    if options.output is None and options.format == "text":
        text += notes
    else:
        sys.stderr.write(visible_lines(notes))
    if options.output is None:
        if on_stderr:
            sys.stderr.write(visible_lines(text))
            return 0
        return show(text)
    _write(options.output, visible_lines(text))
    return 0


def _write(path: str, text: str) -> None:
    """Write a file of the user's. Raises UsageError."""
    try:
        write_output(path, text)
    except OSError as error:
        raise UsageError(f"cannot write {path!r}: {error.strerror}") from None


def _report(options: argparse.Namespace, results: list[lint.FileResult]) -> str:
    return (output.statistics if options.statistics else output.FORMATS[options.format])(results)


def _status(options: argparse.Namespace, results: list[lint.FileResult]) -> int:
    """The exit status; a file that cannot be read gives 1 even with --exit-zero."""
    unread = any(result.problem is not None for result in results)
    found = any(result.violations for result in results) and not options.exit_zero
    return int(unread or found)
