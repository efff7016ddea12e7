"""The parser of commands that have argparse; `arguments.py` is for those that start programs."""

import argparse
from typing import NoReturn

from cpythonplus._cli.arguments import UsageError


class Parser(argparse.ArgumentParser):
    """One whose errors are UsageError: one line, without the usage in front."""

    def error(self, message: str) -> NoReturn:
        """Raise it."""
        raise UsageError(message)
