"""The caches of the interpreter and the standard library, and their cost."""

from cpythonplus.memory._caches.model import Cache, FixedCost
from cpythonplus.memory._caches.report import Caches, caches

__all__ = ["Cache", "Caches", "FixedCost", "caches"]
