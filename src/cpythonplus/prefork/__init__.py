"""Forked workers that go on sharing their memory."""

from cpythonplus.prefork._blame.blaming import Blame, CategoryShare, OwnerShare, blame
from cpythonplus.prefork._blame.reasons import Category
from cpythonplus.prefork._blame.sharing import ProcessMemory, Sharing, private_bytes, sharing
from cpythonplus.prefork._fork.collector import keep_gc_off, let_gc_run
from cpythonplus.prefork._fork.exiting import fast_exit
from cpythonplus.prefork._fork.forking import child, install, uninstall
from cpythonplus.prefork._fork.pools import before_fork
from cpythonplus.prefork._fork.preparing import (
    Budget,
    PrepareReport,
    PrepareStatistics,
    has_grown,
    prepare,
    statistics,
)
from cpythonplus.prefork._options import Options

__all__ = [
    "Blame",
    "Budget",
    "Category",
    "CategoryShare",
    "Options",
    "OwnerShare",
    "PrepareReport",
    "PrepareStatistics",
    "ProcessMemory",
    "Sharing",
    "before_fork",
    "blame",
    "child",
    "fast_exit",
    "has_grown",
    "install",
    "keep_gc_off",
    "let_gc_run",
    "prepare",
    "private_bytes",
    "sharing",
    "statistics",
    "uninstall",
]
