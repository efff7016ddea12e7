"""The allow-list of `pytest --no-cycles`: patterns for cycles that do not count.

    WHERE[:FUNCTION[:VARIABLE]]

WHERE is a module (`package.module`), or a file if it has a `/` or ends with `.py`. `*` stands for
any text, also for none; everything else for itself. fnmatch is not used, because it would read the
brackets of `errors[]` as a set of characters.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from cpythonplus.memory._cycles.report import Cause

_MOST_PARTS = 3


@dataclass(frozen=True, slots=True)
class Pattern:
    """One entry: `text` as written, and its three parts; a missing part is `*`."""

    text: str
    where: str
    function: str
    variable: str

    @property
    def names_a_file(self) -> bool:
        """Whether `where` is a file and no module."""
        return "/" in self.where or self.where.endswith(".py")

    def allows(self, cause: Cause, modules: Sequence[str]) -> bool:
        """Whether it fits `cause`; modules: the names that the cause's file is imported by."""
        if not fits(self.function, cause.place.function) or not fits(self.variable, cause.variable):
            return False
        if self.names_a_file:
            # The end of a path suffices: `app/client.py`.
            return fits(self.where, cause.place.file) or fits(f"*/{self.where}", cause.place.file)
        return any(fits(self.where, module) for module in modules) or self.where == "*"


def parse(text: object) -> Pattern:
    """Read one entry; ValueError, with the mistake, if it is invalid."""
    if not isinstance(text, str):
        raise ValueError(f"expected a pattern module:function:variable, got {text!r}")
    parts = [part.strip() for part in text.split(":", _MOST_PARTS - 1)]
    if not all(parts):
        raise ValueError(f"expected module:function:variable (* matches anything), got {text!r}")
    parts += ["*"] * (_MOST_PARTS - len(parts))
    return Pattern(text, *parts)


def parse_lines(lines: Iterable[str]) -> list[Pattern]:
    """Read the lines of the ini file; the text after a `#` is a reason for people."""
    entries = (line.partition("#")[0].strip() for line in lines)
    return [parse(entry) for entry in entries if entry]


def fits(pattern: str, text: str) -> bool:
    """Whether the whole `text` fits `pattern`, in which `*` stands for anything."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None


def module_names(file: str) -> list[str]:
    """Return the names under which a source file is imported.

    The module of a test may have left sys.modules by then; the folders with an `__init__.py` above
    the file tell its name, too.
    """
    if not file.endswith(".py"):
        return []
    path = Path(file)
    parts = [] if path.stem == "__init__" else [path.stem]
    for folder in path.parents:
        if not (folder / "__init__.py").is_file():
            break
        parts.append(folder.name)
    names = [".".join(reversed(parts))] if parts else []
    names += [name for name, _ in modules_of(file) if name not in names]
    return names


def modules_of(file: str) -> Iterator[tuple[str, ModuleType]]:
    """Yield the modules that were imported from a file, with their names in sys.modules."""
    for name, module in list(sys.modules.items()):
        # A module may be any object, and reading its attributes may run code: exact modules only.
        found = module.__dict__.get("__file__") if type(module) is ModuleType else None
        if type(found) is str and found == file:
            yield name, module
