"""What a program holds: objects and bytes, by class, by owner, by module and by size."""

from cpythonplus.memory.heap_census.looking_back import Path, Referrer, Referrers
from cpythonplus.memory.heap_census.model import Census, Difference, Row
from cpythonplus.memory.heap_census.taking import census

__all__ = ["Census", "Difference", "Path", "Referrer", "Referrers", "Row", "census"]
