"""Instances with dicts of their own; dicts and sets that are far larger than their contents."""

from cpythonplus.memory._dicts.finding import key_sharing
from cpythonplus.memory._dicts.report import Gain, KeySharing, LostSharing, Oversized

__all__ = ["Gain", "KeySharing", "LostSharing", "Oversized", "key_sharing"]
