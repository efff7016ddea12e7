"""Values of each tasklet."""

from cpythonplus._native import tasklets_local as local

__all__ = ["local"]
