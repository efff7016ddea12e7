"""What the interpreter and the standard library keep without being asked, and what that costs."""

from cpythonplus.memory._hidden_caches.finding import caches
from cpythonplus.memory._hidden_caches.report import Cache, Caches, FixedCost

__all__ = ["Cache", "Caches", "FixedCost", "caches"]
