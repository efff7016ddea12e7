"""Instances that need dicts of their own; dicts and sets far larger than what they hold."""

from cpythonplus.memory._key_sharing.finding import key_sharing
from cpythonplus.memory._key_sharing.report import KeySharing, LostSharing, Oversized

__all__ = ["KeySharing", "LostSharing", "Oversized", "key_sharing"]
