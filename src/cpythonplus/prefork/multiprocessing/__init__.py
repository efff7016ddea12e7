"""`multiprocessing` and `ProcessPoolExecutor` with a prepared parent; re-exports only."""

from cpythonplus.prefork.multiprocessing._installing import install, uninstall

__all__ = ["install", "uninstall"]
