"""Counts the objects and bytes of a program: by class, by owner, by module and by size."""

from cpythonplus.memory._census.looking_back import ReferencePath, Referrer, Referrers
from cpythonplus.memory._census.model import Census, CensusRow, Difference
from cpythonplus.memory._census.steps import PathStep
from cpythonplus.memory._census.taking import census

__all__ = [
    "Census",
    "CensusRow",
    "Difference",
    "PathStep",
    "ReferencePath",
    "Referrer",
    "Referrers",
    "census",
]
