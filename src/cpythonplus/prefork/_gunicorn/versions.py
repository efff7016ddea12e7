"""The versions of gunicorn that the master and the workers here were tested with.

They are subclasses of gunicorn's own, and use its private attributes: with an untested version a
service might serve for days and then lose requests.  So it is refused at the start.
"""

import re
from dataclasses import dataclass

import gunicorn

from cpythonplus._base.errors import UnsupportedPlatform


@dataclass(frozen=True, slots=True)
class Tested:
    """Versions from `first` on and below `below`, whose gthread worker is of one kind.

    worker: the class of `workers` that replaces it.
    """

    first: tuple[int, int]
    below: tuple[int, int]
    worker: str

    def __str__(self) -> str:
        return f"{self.first[0]}.{self.first[1]} to below {self.below[0]}.{self.below[1]}"


TESTED = (
    Tested((20, 1), (21, 0), "ThreadWorker20"),
    Tested((21, 0), (24, 0), "ThreadWorker22"),
    Tested((24, 0), (28, 0), "ThreadWorker24"),
)
"""In their order, without gaps; pyproject.toml has the first and the last bound."""


def require(version: str = gunicorn.__version__) -> Tested:
    """Return the row of `version`; UnsupportedPlatform, with one line, if there is none."""
    match = re.match(r"(\d+)\.(\d+)", version)
    found = (int(match[1]), int(match[2])) if match else (0, 0)
    for row in TESTED:
        if row.first <= found < row.below:
            return row
    tested = ", ".join(map(str, TESTED))
    raise UnsupportedPlatform(f"gunicorn {version} is installed; tested versions are {tested}")
