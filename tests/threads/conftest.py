"""What the files of this room get from pytest."""

import pytest

from tests.threads.sides import Outcomes


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest) -> Outcomes:
    """What the module's CASES did on both sides."""
    return Outcomes(request.module.CASES)
