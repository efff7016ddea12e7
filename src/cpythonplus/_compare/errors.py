"""What keeps two sides from being compared."""


class ComparisonError(Exception):
    """One sentence on what is wrong: the command, the program that failed, the server."""
