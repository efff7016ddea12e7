"""Growth while a function is called, for the cases of owners."""

from collections.abc import Callable

import pytest

from cpythonplus import memory
from tests.support import SANITIZED

# A row has to be a share of what RSS grew by; and the parts are those of the C library's malloc.
of_rss = pytest.mark.skipif(SANITIZED, reason="the sanitizer's own memory grows by more")


def grown(make: Callable[[], object]) -> memory.Growth:
    """Return what has grown while it was called; what it returns is kept until then."""
    with memory.growth() as found:
        kept = make()
    del kept
    assert found.result is not None
    return found.result
