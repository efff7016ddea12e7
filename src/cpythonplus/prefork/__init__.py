"""Forked workers that go on sharing their memory."""

from cpythonplus.prefork._blaming import Blame, CategoryShare, OwnerShare, blame
from cpythonplus.prefork._collector import keep_gc_off, let_gc_run
from cpythonplus.prefork._exiting import fast_exit
from cpythonplus.prefork._forking import child, install, uninstall
from cpythonplus.prefork._options import Options
from cpythonplus.prefork._pools import before_fork
from cpythonplus.prefork._preparing import (
    Budget,
    PrepareReport,
    PrepareStatistics,
    has_grown,
    prepare,
    statistics,
)
from cpythonplus.prefork._reasons import Category
from cpythonplus.prefork._sharing import ProcessMemory, Sharing, private_bytes, sharing

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
