"""The question before a gateway is changed; `--yes` answers it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from cpythonplus_sites.terminal import UsageError

if TYPE_CHECKING:
    import argparse


def add_yes(parser: argparse.ArgumentParser) -> None:
    """Add the option that answers."""
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def agreed() -> bool:
    """Ask. Raises UsageError if there is nobody to ask."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError("no terminal to ask for confirmation; --yes carries out the plan")
    try:
        return input("proceed? [y/N] ").strip().lower() in ("y", "yes")
    except (EOFError, KeyboardInterrupt):
        return False
