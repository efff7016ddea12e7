"""The exception for a comparison that cannot be made."""


class ComparisonError(Exception):
    """One sentence on the cause: the command, the program that failed, the server."""
