"""What of this package switches between stacks of frames within a thread, by its users' word."""

__all__ = ["switchers"]

switchers: set[str] = set()
"""`tasklets`, once they are imported.  A tracer that counts calls and returns is wrong there."""
