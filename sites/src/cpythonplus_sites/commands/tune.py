"""`cpythonplus-sites tune`: kernel parameters for streams over long distances, for any host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cpythonplus_sites import tuning
from cpythonplus_sites.terminal import show

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the action's options: it has none."""
    parser.epilog = (
        f"Put it into {tuning.FOLDER} on the hosts at both ends, then run sysctl --system. "
        "On a gateway, cpythonplus-sites apply --tune does this."
    )


def run(_args: argparse.Namespace) -> int:
    """Print the file."""
    return show(tuning.text())
