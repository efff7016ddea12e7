"""All patterns of leaks, each with its clean twin."""

from tests.memory.cycles.patterns import classes, closures, exceptions, others
from tests.memory.cycles.patterns.pattern import Pattern

PATTERNS: list[Pattern] = [
    *exceptions.PATTERNS,
    *closures.PATTERNS,
    *classes.PATTERNS,
    *others.PATTERNS,
]
