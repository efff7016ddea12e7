"""The basis of the other folders: errors here, and in C futexes, clocks and histograms."""

from cpythonplus._base.errors import UnsupportedPlatform

__all__ = ["UnsupportedPlatform"]
