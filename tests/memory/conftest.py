"""What the files of this room get from pytest."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def _quick_collections() -> Iterator[None]:
    """What pytest has, up to a million objects, is not looked at by each collection."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
