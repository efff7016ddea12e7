"""The features that switch between stacks of frames within a thread; their users add them here."""

switchers: set[str] = set()
"""`tasklets`, once they are imported.  A tracer that counts calls and returns is wrong then."""
