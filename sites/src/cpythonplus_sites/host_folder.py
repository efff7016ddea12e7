"""The folder with this host's keys (/etc/cpythonplus/sites); private keys never leave it."""

from __future__ import annotations

import fcntl
import os
import stat
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cpythonplus_sites import keys
from cpythonplus_sites.files import PRIVATE_FOLDER_MODE, make_folder, remove_left_over
from cpythonplus_sites.secrets import SecretError, read_secret, write_atomically
from cpythonplus_sites.trust import weak_spot

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cpythonplus_sites.model import Network, Site

SECRET_MODE = 0o600
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True)
class HostFolder:
    """The folder with the keys of this host: paths and contents.

    Methods that read return None if the file does not exist yet, and raise SecretError for a file
    that others can read or that holds something else.
    """

    path: Path

    @property
    def private_key_path(self) -> Path:
        """This gateway's WireGuard key."""
        return self.path / "private.key"

    @property
    def next_key_path(self) -> Path:
        """The next private key; the file exists only during a change of keys."""
        return self.path / "next-private.key"

    @property
    def aborted_key_path(self) -> Path:
        """The next key of an aborted change, until the other gateways have stopped using it."""
        return self.path / "aborted-private.key"

    @property
    def preshared_path(self) -> Path:
        """The secret that is the same on every gateway."""
        return self.path / "preshared.secret"

    @property
    def ssh_key_path(self) -> Path:
        """The private key for links over ssh."""
        return self.path / "ssh_key"

    @property
    def ssh_public_path(self) -> Path:
        """The public key for links over ssh."""
        return self.path / "ssh_key.pub"

    @property
    def sites_path(self) -> Path:
        """This host's copy of the site file."""
        return self.path / "sites.toml"

    @property
    def record_path(self) -> Path:
        """The record of everything that `apply` has set up on this host."""
        return self.path / "written.json"

    @property
    def editions_path(self) -> Path:
        """The times since which site files are known (agreement.py)."""
        return self.path / "editions.json"

    @property
    def trial_path(self) -> Path:
        """The state of a trial: its limit, and whether a file was applied before (confirming)."""
        return self.path / "unconfirmed.json"

    @property
    def before_path(self) -> Path:
        """The site file that is restored if the trial is not confirmed."""
        return self.path / "before.toml"

    def create(self) -> None:
        """Make the folder, 0700, if it is missing.

        Raises SecretError if others could put files into it, OSError if it cannot be made.
        """
        with suppress(FileExistsError):
            make_folder(self.path, PRIVATE_FOLDER_MODE)
        self.check()

    def check(self) -> None:
        """Raise SecretError if others could put files into the folder, or replace it.

        Raises OSError if there is none.
        """
        status = self.path.stat()
        if not stat.S_ISDIR(status.st_mode):
            raise SecretError(f"{self.path} is not a folder")
        if status.st_uid not in (0, os.geteuid()):
            raise SecretError(f"{self.path} belongs to user {status.st_uid}")
        if status.st_mode & _WRITABLE_BY_OTHERS:
            raise SecretError(f"others can change {self.path}; chmod 700 {self.path}")
        found = weak_spot(self.path, sticky=True)
        if found is not None:
            raise SecretError(found)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder against other programs that change keys; SecretError if one holds it.

        Unfinished files of a killed program are removed.
        """
        self.create()
        file = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise SecretError(f"another program is changing the keys in {self.path}") from None
            remove_left_over(self.path)
            yield
        finally:
            os.close(file)

    def private_key(self) -> str | None:
        """This gateway's WireGuard key."""
        return _key(self.private_key_path)

    def public_key(self) -> str | None:
        """The public half of `private_key`."""
        return _public(self.private_key())

    def next_key(self) -> str | None:
        """The private key of the second interface while a change lasts, aborted or not."""
        return _key(self.next_key_path) or _key(self.aborted_key_path)

    def next_public_key(self) -> str | None:
        """The public half of `next_key`."""
        return _public(self.next_key())

    def preshared_secret(self) -> str | None:
        """The secret that is the same on every gateway."""
        return _key(self.preshared_path)

    def preshared_key(self, one: str, other: str, *, of_names: bool = False) -> str | None:
        """The preshared key of a pair, by its public keys or, `of_names`, by its names."""
        secret = self.preshared_secret()
        return secret and keys.preshared_key(secret, one, other, of_names=of_names)

    def site_in(self, network: Network) -> Site | None:
        """The site whose public key, now or next, belongs to this host's private key."""
        own = {self.public_key(), self.next_public_key()} - {None}
        for site in network.sites:
            if own & {site.public_key, site.next_public_key}:
                return site
        return None


def write_key(path: Path, key: str) -> None:
    """Put a private key or a secret into a file that only its owner can read."""
    write_atomically(path, f"{key}\n", mode=SECRET_MODE)


def _key(path: Path) -> str | None:
    try:
        text = read_secret(path)
    except FileNotFoundError:
        return None
    try:
        keys.decoded(text)
    except keys.KeyFormatError as error:
        raise SecretError(f"{path}: {error}") from None
    return text


def _public(private_key: str | None) -> str | None:
    return None if private_key is None else keys.public_key(private_key)
