"""Fixtures for the tests of this room."""

from tests.quick_collections import quick_collections

__all__ = ["quick_collections"]
