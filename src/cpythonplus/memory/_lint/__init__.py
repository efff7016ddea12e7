"""What can be seen in the source: code that makes cycles, told by `cpythonplus lint` and flake8."""

from cpythonplus.memory._lint.baseline import Baseline, BaselineError
from cpythonplus.memory._lint.baseline import load as load_baseline
from cpythonplus.memory._lint.checking import check_text
from cpythonplus.memory._lint.files import NoSuchPathError, find
from cpythonplus.memory._lint.model import Edit, Fix, Problem, Violation
from cpythonplus.memory._lint.rules import RULES, Rule, Selection, unknown
from cpythonplus.memory._lint.running import (
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
