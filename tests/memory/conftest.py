"""What the files of this room get from pytest."""

import gc

import pytest


@pytest.fixture(scope="module", autouse=True)
def _quick_collections() -> None:
    """What pytest has, up to a million objects, is not looked at by each collection."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
