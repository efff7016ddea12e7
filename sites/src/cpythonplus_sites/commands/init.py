"""`cpythonplus-sites init`: a new site file to fill in."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from cpythonplus_sites import values
from cpythonplus_sites.secrets import SecretError, write_atomically
from cpythonplus_sites.template import template
from cpythonplus_sites.terminal import UsageError, show

if TYPE_CHECKING:
    from collections.abc import Callable

MODE = 0o644  # the file has public keys only
LEAST_SITES = 2
LONGEST_NAME = values.INTERFACE_LENGTH - len("wg-")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the action's options."""
    add = parser.add_argument
    add(
        "--file",
        type=Path,
        default=Path("sites.toml"),
        metavar="PATH",
        help="file to write (sites.toml)",
    )
    add(
        "--name",
        type=_network,
        default="sites",
        help="name of the network and of its interface (sites)",
    )
    tunnel = values.subnet("10.254.0.0/24")
    add(
        "--tunnel",
        type=_reader(values.subnet),
        default=tunnel,
        metavar="SUBNET",
        help=f"addresses of the tunnels' ends ({tunnel})",
    )
    add(
        "--topology", choices=("mesh", "hub"), default="mesh", help="topology of the network (mesh)"
    )
    add(
        "--sites",
        type=_names,
        default=("first", "second"),
        metavar="NAMES",
        help="names of the sites (first,second)",
    )
    add("--force", action="store_true", help="overwrite an existing file")


def _reader(read: Callable[[object], object]) -> Callable[[str], object]:
    """A converter for an option, from a reader of the file's values."""

    def convert(text: str) -> object:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert


def _network(text: str) -> object:
    name = _reader(values.name)(text)
    if len(text) > LONGEST_NAME:
        raise argparse.ArgumentTypeError(f"{text} is longer than {LONGEST_NAME} characters")
    return name


def _names(text: str) -> tuple[object, ...]:
    names = tuple(map(_reader(values.name), text.split(",")))
    if len(set(names)) < max(len(names), LEAST_SITES):
        raise argparse.ArgumentTypeError(f"expected two or more different names, got {text!r}")
    return names


def run(options: argparse.Namespace) -> int:
    """Write the file. Raises UsageError if it exists, or cannot be written."""
    path: Path = options.file
    if not options.force and os.path.lexists(path):
        raise UsageError(f"{path} already exists; --force replaces it")
    try:
        text = template(options.name, options.tunnel, options.topology, options.sites)
        write_atomically(path, text, mode=MODE)
    except (SecretError, ValueError) as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"{path}: {(error.strerror or 'cannot be written').lower()}") from None
    return show(f"fill in {path}; cpythonplus-sites check reports what is missing\n")
