"""Code that makes reference cycles, found in the source by `cpythonplus-lint` and by flake8."""

from cpythonplus_lint.baseline import Baseline, BaselineError
from cpythonplus_lint.baseline import load as load_baseline
from cpythonplus_lint.checking import check_text
from cpythonplus_lint.finding import NoSuchPathError, find
from cpythonplus_lint.model import Edit, Fix, Problem, Violation
from cpythonplus_lint.rules import RULES, Rule, Selection, unknown
from cpythonplus_lint.running import (
    FileResult,
    WorkerEndedError,
    check_files,
    check_stdin,
    fix_text,
)

__all__ = [
    "RULES",
    "Baseline",
    "BaselineError",
    "Edit",
    "FileResult",
    "Fix",
    "NoSuchPathError",
    "Problem",
    "Rule",
    "Selection",
    "Violation",
    "WorkerEndedError",
    "check_files",
    "check_stdin",
    "check_text",
    "find",
    "fix_text",
    "load_baseline",
    "unknown",
]
