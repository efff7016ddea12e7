"""Options that several actions have: the site file, this site, the folder of this host."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cpythonplus_sites.terminal import UsageError

if TYPE_CHECKING:
    import argparse

HOST_DIR = Path("/etc/cpythonplus/sites")


def add_common(
    parser: argparse.ArgumentParser,
    *,
    site: bool = True,
    default_file: str = "./sites.toml, else the host's",
) -> None:
    """Add the options that most actions have."""
    add = parser.add_argument
    add("--file", type=Path, metavar="PATH", help=f"site file ({default_file})")
    if site:
        add("--site", metavar="NAME", help="name of this site (the one with this host's key)")
    add_host_dir(parser)


def add_host_dir(parser: argparse.ArgumentParser) -> None:
    """Add the option for the folder of this host's keys."""
    parser.add_argument(
        "--host-dir",
        type=Path,
        default=HOST_DIR,
        metavar="DIR",
        help=f"folder of this host ({HOST_DIR})",
    )


def path_of_file(options: argparse.Namespace) -> Path:
    """The site file that the options name. Raises UsageError if there is none."""
    if options.file is not None:
        return Path(options.file)
    here, host = Path("sites.toml"), Path(options.host_dir) / "sites.toml"
    for path in (here, host):
        if _is_there(path):
            return path
    raise UsageError(f"there is no {here} here and no {host}; cpythonplus-sites init creates one")


def _is_there(path: Path) -> bool:
    """Whether the file exists; also true if permission is denied: reading it reports that."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True
