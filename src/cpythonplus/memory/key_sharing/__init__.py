"""Instances that need dicts of their own; dicts and sets far larger than what they hold."""

from cpythonplus.memory.key_sharing.finding import dicts
from cpythonplus.memory.key_sharing.report import Dicts, LostSharing, Oversized

__all__ = ["Dicts", "LostSharing", "Oversized", "dicts"]
