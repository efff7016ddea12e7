"""The two ways a benchmark can fail, told apart because the exit status differs."""


class UsageError(Exception):
    """The request cannot be carried out as asked; nothing was measured. One line, status 2."""


class MeasurementError(Exception):
    """One measurement gave no result: a child crashed, hung or answered nonsense. One line."""
