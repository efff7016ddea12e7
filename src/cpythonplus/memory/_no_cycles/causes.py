"""Root causes of a whole session: the tests that met them, and whether they were known before.

A cause is identified by facts that stay when its file is edited, moved or installed elsewhere:

    KIND WHERE:FUNCTION:VARIABLE

WHERE is the name of the module, or the file below the project's folder if it is in no package. A
baseline consists of such lines, and xdist's workers send them to the process that started them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from cpythonplus._base import files
from cpythonplus._base.contents import contents
from cpythonplus._base.text.visible import visible
from cpythonplus.memory._cycles.naming import is_named
from cpythonplus.memory._cycles.report import Cause, Kind
from cpythonplus.memory._no_cycles import allowing

_INSTALLED = ("site-packages", "dist-packages")
_HEAD = """\
# Causes of reference cycles that are known: `pytest --no-cycles` fails no test for them.
# Written by --no-cycles-write-baseline. Lines may be taken out: then their causes count.
"""


class State(StrEnum):
    """The state of a cause for the tests that met it."""

    COUNTS = "counts"
    """The cause fails the tests."""
    KNOWN = "known"
    """The cause is in the baseline, or is written into it."""
    ELSEWHERE = "elsewhere"
    """The cause is in none of the packages that count."""


class Met(NamedTuple):
    """A cause that a test met: its identity, and its place and advice for people."""

    state: str
    identity: str
    where: str
    advice: str


@dataclass(slots=True)
class Seen:
    """A cause of the session, and the tests that met it, in their order."""

    met: Met
    tests: dict[str, None] = field(default_factory=dict)


def identity(cause: Cause, root: Path) -> str:
    """Return the line of a baseline for a cause; "" if the cause has no name."""
    if not is_named(cause):
        return ""
    place = cause.place
    return f"{cause.kind} {_where(place.file, root)}:{place.function}:{cause.variable}"


def _where(file: str, root: Path) -> str:
    path = Path(file)
    names = allowing.module_names(file)
    in_package = path.stem == "__init__" or (path.parent / "__init__.py").is_file()
    if names and (in_package or not path.is_relative_to(root) or {*_INSTALLED} & {*path.parts}):
        return names[0]
    return str(path.relative_to(root)) if path.is_relative_to(root) else file


def read_baseline(path: Path) -> frozenset[str]:
    """Return the causes of a baseline; ValueError, with the mistake, if it is invalid."""
    name = visible(str(path))
    try:
        lines = contents(path).decode().splitlines()
    except OSError as error:
        raise ValueError(f"the baseline {name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"the baseline {name} cannot be read: {error}") from None
    found = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    for line in found:
        kind, _, rest = line.partition(" ")
        if kind not in {*Kind} or rest.count(":") < 2:  # noqa: PLR2004
            raise ValueError(
                f"the baseline {name}: expected KIND WHERE:FUNCTION:VARIABLE, got {line!r}"
            )
    return frozenset(found)


def write_baseline(path: Path, identities: Iterable[str]) -> None:
    """Write a baseline, sorted, so that two of them can be compared. Raises OSError."""
    files.write_output(path, _HEAD + "".join(f"{each}\n" for each in sorted(identities)))


class Tally:
    """The causes that a session met."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], Seen] = {}

    def add(self, test: str, found: Iterable[Sequence[str]]) -> None:
        """Note the causes that a test met; found: of `Met`, which may be lists by now."""
        for each in found:
            met = Met(*each)
            # A cause without a name is identified by its text.
            seen = self._seen.setdefault((met.identity, met.identity or met.where), Seen(met))
            seen.tests[test] = None

    def of(self, state: State) -> list[Seen]:
        """Return the causes of a state; causes that most tests met come first."""
        found = [each for each in self._seen.values() if each.met.state == state]
        return sorted(found, key=lambda each: (-len(each.tests), each.met.identity))
