"""The parser of commands that use argparse; commands that start programs use `arguments.py`."""

import argparse
from typing import NoReturn

from cpythonplus._cli.arguments import UsageError


class Parser(argparse.ArgumentParser):
    """A parser whose errors are UsageError: one line, without the usage in front."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        raise UsageError(message)
