"""Forked workers that go on sharing their memory."""

from cpythonplus.prefork.collector import keep_gc_off, let_gc_run
from cpythonplus.prefork.exiting import fast_exit
from cpythonplus.prefork.forking import child, disable, enable
from cpythonplus.prefork.preparing import PrepareReport, has_grown, prepare

__all__ = [
    "PrepareReport",
    "child",
    "disable",
    "enable",
    "fast_exit",
    "has_grown",
    "keep_gc_off",
    "let_gc_run",
    "prepare",
]
