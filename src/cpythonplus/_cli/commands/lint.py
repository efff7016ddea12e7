"""`cpythonplus lint`: code that makes reference cycles, found in the source."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from cpythonplus._base.visible import visible_lines
from cpythonplus._cli.arguments import UsageError
from cpythonplus._cli.parser import Parser
from cpythonplus._cli.terminal import complain, show
from cpythonplus.memory import _lint as lint
from cpythonplus.memory._lint import output

if TYPE_CHECKING:
    from collections.abc import Sequence

INTERRUPTED_STATUS = 130
STDIN = "-"

DESCRIPTION = (
    "Finds code that creates reference cycles: stored exceptions, functions"
    " that refer to themselves."
)
_EPILOG = "Exit status: 0 no errors, 1 errors found or a file that cannot be read, 2 wrong usage."


def main(arguments: Sequence[str]) -> int:
    """Carry out `cpythonplus lint ARGUMENTS`. Raises UsageError for wrong ones."""
    parser = Parser(
        prog="cpythonplus lint", description=DESCRIPTION, epilog=_EPILOG, allow_abbrev=False
    )
    add_options(parser)
    options = parser.parse_args(arguments)
    if options.explain is not None:
        return _explain(options.explain)
    selection = lint.Selection(options.select, options.extend_select, options.ignore)
    try:
        return _check(options, selection)
    except KeyboardInterrupt:
        print("cpythonplus lint: interrupted", file=sys.stderr)
        return INTERRUPTED_STATUS
    except lint.WorkerEndedError:
        return complain("cpythonplus lint", "a worker process was killed; --jobs 1 starts none")


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
    results = list(lint.check_files(files, selection, fix=options.fix, jobs=options.jobs))
    return _tell(options, results) or _status(options, results)


def _check_stdin(options: argparse.Namespace, selection: lint.Selection) -> int:
    """Check standard input. With --fix, the fixed text is printed and the report told apart."""
    name = options.stdin_filename or STDIN
    if sys.stdin is None:
        raise UsageError("standard input is closed")
    data = sys.stdin.buffer.read()
    result, text = lint.check_stdin(data, name, selection, fix=options.fix)
    failed = show(text) if options.fix else 0
    if options.fix and options.output is None:
        sys.stderr.write(visible_lines(_report(options, [result])))
    else:
        failed = failed or _tell(options, [result])
    return failed or _status(options, [result])


def _tell(options: argparse.Namespace, results: list[lint.FileResult]) -> int:
    text = _report(options, results)
    if options.output is None:
        return show(text)
    from cpythonplus._base.files import write_output

    try:
        write_output(options.output, visible_lines(text))
    except OSError as error:
        raise UsageError(f"cannot write {options.output!r}: {error.strerror}") from None
    return 0


def _report(options: argparse.Namespace, results: list[lint.FileResult]) -> str:
    return (output.statistics if options.statistics else output.FORMATS[options.format])(results)


def _status(options: argparse.Namespace, results: list[lint.FileResult]) -> int:
    """A file that cannot be read is status 1 even with --exit-zero."""
    unread = any(result.problem is not None for result in results)
    found = any(result.violations for result in results) and not options.exit_zero
    return int(unread or found)
