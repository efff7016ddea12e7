"""Fixtures for the tests of this room."""

from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.servers import postgres_server, redis_server

__all__ = ["only_main", "postgres_server", "redis_server"]


@pytest.fixture(autouse=True)
def only_main(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves runnable tasklets behind, and end them for the next one.

    A test runner has threads of its own, beside which nothing would be a deadlock.
    """
    with_threads = request.cls is not None and "Threads" in request.cls.__name__
    from cpythonplus import tasklets

    before = tasklets.set_foreign_wakers(with_threads)
    yield
    tasklets.set_foreign_wakers(before)
    tasklets.getmain().block_trap = False
    left = tasklets.getruncount() - 1
    while tasklets.getruncount() > 1:
        with suppress(Exception, SystemExit):
            following = tasklets.getcurrent().next
            assert following is not None
            following.kill()
    tasklets.schedule()  # the thread's hub, which does not count, rests
    assert left == 0
