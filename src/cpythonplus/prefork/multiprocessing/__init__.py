"""`multiprocessing` and `ProcessPoolExecutor` with a prepared parent; re-exports only."""

from cpythonplus.prefork.multiprocessing.enabling import PRELOAD, disable, enable

__all__ = ["PRELOAD", "disable", "enable"]
