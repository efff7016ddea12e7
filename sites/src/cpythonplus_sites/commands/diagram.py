"""`cpythonplus-sites diagram`: a picture of the sites and their links."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cpythonplus_sites.commands import options as common
from cpythonplus_sites.files import write_output
from cpythonplus_sites.rendering.mermaid import mermaid
from cpythonplus_sites.rendering.svg import svg
from cpythonplus_sites.site_file import load
from cpythonplus_sites.terminal import UsageError, show

if TYPE_CHECKING:
    import argparse

FORMATS = {"mermaid": mermaid, "svg": svg}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the action's arguments to a parser."""
    common.add_common(parser, site=False)
    add = parser.add_argument
    add(
        "--format",
        choices=tuple(FORMATS),
        default="mermaid",
        help="format of the diagram (mermaid)",
    )
    add("--output", metavar="FILE", help="write the diagram to FILE instead of standard output")


def run(options: argparse.Namespace) -> int:
    """Print the diagram, or write it to a file."""
    network = load(common.path_of_file(options))
    text = FORMATS[options.format](network)
    if options.output is None:
        return show(text.encode() if options.format == "svg" else text)
    try:
        write_output(options.output, text)
    except OSError as error:
        raise UsageError(f"{options.output}: {error.strerror}") from None
    return 0
