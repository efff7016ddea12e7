"""A fixture for rooms that look at the whole heap: import it into their conftest.py."""

import gc

import pytest

__all__ = ["quick_collections"]


@pytest.fixture(scope="module", autouse=True)
def quick_collections() -> None:
    """Keep collections from looking at what pytest has, up to a million objects."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
