"""The input and output of rendering: the host's values, files, and words that are safe in them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cpythonplus_sites.model import Subnet

ROUTE_PROTOCOL = 99
"""The `proto` of every route that we set for a network, which distinguishes it from the user's."""

HOST_FOLDER = PurePosixPath("/etc/cpythonplus/sites")
IPV4, IPV6 = 4, 6

PUBLIC_MODE = 0o644
SECRET_MODE = 0o600

_WORD = re.compile(r"[A-Za-z0-9:+/][A-Za-z0-9._:@+/=~-]*")
_PLAIN_PATH = re.compile(r"/[A-Za-z0-9._+/-]+")
_KEY = re.compile(r"[A-Za-z0-9@.-]+ [A-Za-z0-9+/=]+")


class RenderingError(ValueError):
    """A value of the model that cannot be used in a configuration file."""


@dataclass(frozen=True)
class Host:
    """The values of a gateway that are not in the shared file.

    private_key, preshared_keys (by the peer's site): base64; without them no file has a secret, and
    the files that need one cannot be used as they are.  program: the command of cpythonplus in
    units.  advertised: interfaces whose default route comes from IPv6 router advertisements.
    own_subnets: the networks to refuse while an own LAN is not connected; empty: its LANs.
    Raises RenderingError if `folder` is no plain absolute path: units contain it unquoted.
    """

    folder: PurePosixPath = HOST_FOLDER
    program: tuple[str, ...] = ("cpythonplus-sites",)
    private_key: str | None = field(default=None, repr=False)
    preshared_keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    advertised: tuple[str, ...] = ()
    own_subnets: tuple[Subnet, ...] = ()

    def __post_init__(self) -> None:
        if not _PLAIN_PATH.fullmatch(str(self.folder)):
            raise RenderingError(f"{self.folder} is not a plain absolute path")


@dataclass(frozen=True)
class RenderedFile:
    """A file for the gateway. secret: only root may read it."""

    path: PurePosixPath
    text: str = field(repr=False)
    mode: int = PUBLIC_MODE
    secret: bool = False


def word(text: object) -> str:
    """The text, for a file that a shell, wg, ssh or systemd reads as root.

    Raises RenderingError if it is not a plain word. The checks of the site file have refused such
    values before, but a network that was made in another way must not run commands as root either.
    """
    found = str(text)
    if not _WORD.fullmatch(found):
        raise RenderingError(f"{found!r} cannot be used in a configuration file")
    return found


def public_ssh_key(text: str) -> str:
    """The type and base64 of an ssh public key, without its comment. Raises RenderingError."""
    found = " ".join(text.split()[:2])
    if not _KEY.fullmatch(found):
        raise RenderingError(f"{text!r} is not an ssh public key")
    return found


def unit_argument(text: object) -> str:
    """One argument of a command line in a systemd unit (systemd.service(5), COMMAND LINES)."""
    found = str(text)
    if "\n" in found:
        raise RenderingError(f"{found!r} cannot be used in a unit")
    for special, instead in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("$", "$$")):
        found = found.replace(special, instead)
    plain = re.fullmatch(r"[A-Za-z0-9._:@+/=%$~,-]+", found)
    return found if plain else f'"{found}"'
