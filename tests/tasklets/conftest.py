"""What the files of this room get from pytest."""

from collections.abc import Iterator
from contextlib import suppress

import pytest

from cpythonplus import tasklets


@pytest.fixture(autouse=True)
def only_main() -> Iterator[None]:
    """Fail a test that leaves runnable tasklets behind, and end them for the next one."""
    yield
    tasklets.getmain().block_trap = False
    left = tasklets.getruncount() - 1
    while tasklets.getruncount() > 1:
        with suppress(Exception, SystemExit):
            following = tasklets.getcurrent().next
            assert following is not None
            following.kill()
    assert left == 0
