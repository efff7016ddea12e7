"""What the files of this folder get from pytest."""

from tests.quick_collections import quick_collections

__all__ = ["quick_collections"]
