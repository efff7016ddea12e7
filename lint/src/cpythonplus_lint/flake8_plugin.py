"""The rules as a flake8 plugin: `flake8 --select CYC`, with its configuration and `# noqa`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from cpythonplus_lint.checking import check
from cpythonplus_lint.checks.source import Source
from cpythonplus_lint.rules import RULES, Selection, package_version

_ALL = Selection(select=("ALL",))


class Plugin:
    """The object that flake8 makes for each file; flake8 itself drops the unselected hits."""

    name = "cpythonplus-lint"
    version = package_version()

    def __init__(self, tree: ast.Module, filename: str, lines: list[str]) -> None:
        self._source = Source("".join(lines), filename, tree)

    @staticmethod
    def add_options(manager: Any) -> None:  # noqa: ANN401  # flake8 need not be installed
        """Ignore by default the rules that `cpythonplus-lint` does not select by default."""
        manager.extend_default_ignore(
            [rule.code for rule in RULES.values() if not rule.on_by_default]
        )

    def run(self) -> Iterator[tuple[int, int, str, type]]:
        """Yield row from 1, column from 0, text and the plugin's type."""
        for hit in check(self._source, _ALL, with_fixes=False):
            yield hit.row, hit.column, f"{hit.code} {hit.message}", type(self)
