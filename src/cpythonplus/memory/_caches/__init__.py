"""What the interpreter and the standard library keep without being asked, and what that costs."""

from cpythonplus.memory._caches.model import Cache, FixedCost
from cpythonplus.memory._caches.report import Caches, caches

__all__ = ["Cache", "Caches", "FixedCost", "caches"]
