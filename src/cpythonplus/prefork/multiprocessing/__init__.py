"""`multiprocessing` and `ProcessPoolExecutor` with a prepared parent; re-exports only."""

from cpythonplus.prefork.multiprocessing._enabling import disable, enable

__all__ = ["disable", "enable"]
