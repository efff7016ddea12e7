"""Which packages' own tests are run, which of their tests, and what is known of them.

packages.toml is the list; its head tells what each key is for.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

LIST = Path(__file__).resolve().with_name("packages.toml")
GEVENT = "gevent==26.9.0; python_version < '3.15'"
"""What tasklets' patches are compared with, too; it has no wheel for later ones."""


class ListError(Exception):
    """One line that says what is wrong with the list, or with what was asked of it."""


@dataclass(frozen=True)
class Package:
    """One package of the list; the keys are those of packages.toml."""

    name: str
    version: str
    python: str = ""
    requires: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    before: str = ""
    quick: bool = False
    limit_s: float = 240.0
    left_out: str = ""
    known: Mapping[str, str] = field(default_factory=dict)
    tasklets: bool = False
    only_tasklets: bool = False
    extra_tasklets: tuple[str, ...] = ()
    known_tasklets: Mapping[str, str] = field(default_factory=dict)
    no_cycles: bool = False
    only_no_cycles: bool = False

    @property
    def environment_name(self) -> str:
        """What its environment is called."""
        return f"{self.name}-gevent" if GEVENT in self.requires else self.name

    def supports(self, version: str) -> bool:
        """Return whether the package is for this Python (`3.13.0`), as `python` says."""
        return all(_holds(clause.strip(), version) for clause in self.python.split(",") if clause)


_COMPARED = {
    ">=": lambda left, right: left >= right,
    "<": lambda left, right: left < right,
    "!=": lambda left, right: left != right,
}


def _holds(clause: str, version: str) -> bool:
    """Judge one clause, of minor versions: releases of one minor version do not differ here."""
    match = re.fullmatch(r"(>=|<|!=)(\d+)\.(\d+)", clause)
    if match is None:
        raise ListError(f"python = {clause!r}: expected >=, < or != and a version like 3.13")
    compared, *wanted = match.groups()
    return bool(_COMPARED[compared](_minor(version), tuple(map(int, wanted))))


def _minor(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


def read(path: Path = LIST) -> list[Package]:
    """Return the list; ListError for a key that means nothing, or a package that is there twice."""
    with path.open("rb") as file:
        tables = tomllib.load(file).get("package", [])
    found = [_package(table) for table in tables]
    names = [package.name for package in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ListError(f"{path.name} has {', '.join(twice)} more than once")
    return found


def _package(table: Mapping[str, Any]) -> Package:
    name = table.get("name", "?")
    unknown = table.keys() - {each.name for each in fields(Package)}
    missing = {"name", "version"} - table.keys()
    if unknown or missing:
        raise ListError(f"package {name}: wrong or missing keys: {', '.join(unknown | missing)}")
    if not table.get("tests") and not table.get("left_out"):
        raise ListError(f"package {name}: neither tests nor left_out")
    frozen: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in table.items()
    }
    package = Package(**frozen)
    package.supports("3.11.0")
    return package


def for_run(packages: Iterable[Package]) -> list[Package]:
    """Return those that run under `cpythonplus run`."""
    return [each for each in packages if not (each.only_tasklets or each.only_no_cycles)]


def for_tasklets(packages: Iterable[Package]) -> list[Package]:
    """Return those that run with tasklets' patches, with the arguments and reasons for there."""
    return [
        replace(
            each,
            extra=each.extra + each.extra_tasklets,
            known=each.known_tasklets,
            requires=(*each.requires, GEVENT),
        )
        for each in packages
        if each.tasklets
    ]


def for_no_cycles(packages: Iterable[Package]) -> list[Package]:
    """Return those that run with our plugin of pytest; those that do so only may be quick there."""
    return [
        replace(each, quick=each.quick and each.only_no_cycles, known={})
        for each in packages
        if each.no_cycles or each.only_no_cycles
    ]


def chosen(packages: Sequence[Package], names: Sequence[str], *, quick: bool) -> list[Package]:
    """Return the packages named, in that order, or all, or the quick ones; ListError for a name."""
    if not names:
        return [package for package in packages if package.quick or not quick]
    by_name = {package.name.lower(): package for package in packages}
    wrong = [name for name in names if name.lower() not in by_name]
    if wrong:
        raise ListError(f"no such package in {LIST.name}: {', '.join(wrong)}")
    return [by_name[name.lower()] for name in names]
