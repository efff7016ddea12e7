"""The plugin of pytest for threads: without `--lock-order` it only adds options."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

    from cpythonplus.threads._lock_order import LockOrder

_NAME = "cpythonplus-lock-order"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--lock-order` to `pytest --help`."""
    group = parser.getgroup("cpythonplus-threads", "locks (cpythonplus)")
    group.addoption(
        "--lock-order",
        action="store_true",
        help="fail a test that takes locks in an order that can deadlock with another one",
    )
    parser.addini("lock_order", "as --lock-order", type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """With `--lock-order` note each lock that is made from now on."""
    if config.getoption("lock_order") or config.getini("lock_order"):
        from cpythonplus.threads._lock_order import LockOrder

        order = LockOrder()
        order.install()
        config.add_cleanup(order.uninstall)
        config.pluginmanager.register(_Checker(order), _NAME)


class _Checker:
    """Fails the test during which a cycle is closed."""

    def __init__(self, order: LockOrder) -> None:
        self._order = order

    def _check(self) -> Generator[None, object, object]:
        result = yield
        found = self._order.taken()
        if found:
            pytest.fail("\n".join(found), pytrace=False)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        """Check what the test and its fixtures have done."""
        return (yield from self._check())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self) -> Generator[None, object, object]:
        """Check what the fixtures do behind the test."""
        return (yield from self._check())
