"""What the documentation's examples get from pytest."""

import pytest

from tests.docs import as_typed, pages
from tests.servers import postgres_server, redis_server

__all__ = ["postgres_server", "redis_server"]


def pytest_addoption(parser: pytest.Parser) -> None:
    help_text = (
        "examples run where nothing is installed but the package and what their page installs"
    )
    parser.addoption("--as-typed", action="store_true", help=help_text)


@pytest.fixture
def python(request: pytest.FixtureRequest, block: pages.Block) -> str:
    """The interpreter that an example runs in."""
    if not request.config.getoption("--as-typed"):
        return as_typed.OURS
    return as_typed.environment(block.page)
