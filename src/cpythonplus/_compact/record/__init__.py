"""Records: a fixed set of fields in an object without a collector's header."""

from cpythonplus._compact.record.making import Record

__all__ = ["Record"]
