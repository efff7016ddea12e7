"""The fixture `cycles`: a test checks its own cycles so far, with `--no-cycles` or without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cpythonplus.memory._cycles.naming import ALL_KINDS
from cpythonplus.memory._no_cycles import settings
from cpythonplus.memory._no_cycles.checker import Checker

if TYPE_CHECKING:
    from collections.abc import Generator

    import pytest

    from cpythonplus.memory._cycles.report import Cycle


class Cycles:
    """The reference cycles that one test has left so far."""

    def __init__(self, item: pytest.Item, checker: Checker) -> None:
        self._item = item
        self._checker = checker

    def check(self) -> None:
        """Fail the test if it has left a cycle since the last look.

        Only cycles of the kinds in the session's options or the test's mark; without allowed ones.
        """
        self._checker.check(self._item)

    def found(self) -> tuple[Cycle, ...]:
        """Return the cycles that were left since the last look, of every kind, each cause once.

        The test is no longer failed for these.
        """
        return self._checker.found(self._item)


def provide(request: pytest.FixtureRequest, checker: Checker | None) -> Generator[Cycles]:
    """Yield the fixture's value. checker: the session's own, if it is running."""
    item = request.node
    if checker is not None and checker.young.running:
        checker.young.name(ALL_KINDS)  # until the next test begins
        yield Cycles(item, checker)
        return
    own = Checker(request.config, settings.from_config(request.config, everywhere=False))
    own.young.name(ALL_KINDS)
    own.young.start()
    try:
        yield Cycles(item, own)
    finally:
        own.young.stop()
