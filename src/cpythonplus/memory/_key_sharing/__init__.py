"""Instances that need dicts of their own; dicts and sets far larger than what they hold."""

from cpythonplus.memory._key_sharing.finding import key_sharing
from cpythonplus.memory._key_sharing.report import Gain, KeySharing, LostSharing, Oversized

__all__ = ["Gain", "KeySharing", "LostSharing", "Oversized", "key_sharing"]
