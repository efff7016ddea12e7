"""A mapping with the methods of dict, in the memory of its entries."""

from collections.abc import ItemsView, KeysView, MutableMapping, ValuesView

from cpythonplus import _native

__all__ = ["CompactDict"]

CompactDict = _native.CompactDict

MutableMapping.register(CompactDict)
KeysView.register(_native.CompactKeys)
ValuesView.register(_native.CompactValues)
ItemsView.register(_native.CompactItems)
