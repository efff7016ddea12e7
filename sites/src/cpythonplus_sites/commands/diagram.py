"""`cpythonplus-sites diagram`: a picture of the sites and their links."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cpythonplus_sites.commands import sites
from cpythonplus_sites.files import write_output
from cpythonplus_sites.rendering.mermaid import mermaid
from cpythonplus_sites.rendering.svg import svg
from cpythonplus_sites.site_file import load
from cpythonplus_sites.terminal import UsageError, show

if TYPE_CHECKING:
    import argparse

STDOUT = "-"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the action's arguments to a parser."""
    sites.add_common(parser, site=False)
    parser.add_argument(
        "--svg", metavar="FILE", help="write an SVG picture (- is standard output), no Mermaid"
    )


def run(options: argparse.Namespace) -> int:
    """Print the diagram as Mermaid, or write it as SVG."""
    network = load(sites.path_of_file(options))
    if options.svg is None:
        return show(mermaid(network))
    if options.svg == STDOUT:
        return show(svg(network).encode())
    try:
        write_output(options.svg, svg(network))
    except OSError as error:
        raise UsageError(f"{options.svg}: {error.strerror}") from None
    return 0
