"""Fixtures for the tests of this room."""

import pytest

from tests.threads.sides import Outcomes


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest) -> Outcomes:
    """What the module's CASES did on both sides."""
    return Outcomes(request.module.CASES)
