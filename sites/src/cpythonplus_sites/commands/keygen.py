"""`cpythonplus-sites keygen`: makes the keys of this host; private ones do not leave it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cpythonplus_sites import keys
from cpythonplus_sites.commands import options as common
from cpythonplus_sites.commands.keys import change_keys, plain_errors
from cpythonplus_sites.host_folder import HostFolder, write_key
from cpythonplus_sites.secrets import read_secret, write_atomically
from cpythonplus_sites.terminal import UsageError
from cpythonplus_sites.visible import visible

if TYPE_CHECKING:
    import argparse

STDIN = "-"
PUBLIC_MODE = 0o644
_WARNING = "keep this secret; do not leave it in a history, a chat or a log"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the action's arguments to a parser."""
    common.add_common(parser)
    add = parser.add_argument
    add("--ssh", action="store_true", help="also create a key for links over ssh")
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--secret", action="store_true", help="also create the secret for preshared keys"
    )
    source.add_argument(
        "--secret-from",
        metavar="FILE",
        help="read that secret, copied from another gateway (- is stdin)",
    )
    source.add_argument(
        "--show-secret",
        action="store_true",
        help="print that secret, to copy it to another gateway",
    )
    add(
        "--force",
        action="store_true",
        help="replace what the options above name; without them, this gateway's key",
    )


def run(options: argparse.Namespace) -> int:
    """Make the missing keys and print their public halves."""
    folder = HostFolder(options.host_dir)
    with plain_errors():
        if options.show_secret:
            return _show_secret(folder)
        path = common.path_of_file(options) if options.site is not None else None
        with folder.locked():
            if path is not None:
                # Try it before a key in use is replaced: the file must be able to take the new one.
                own = folder.public_key() or keys.public_key(keys.new_private_key())
                change_keys(path, options.site, {"public_key": own}, only_try=True)
            changes = _make(folder, options)
        if path is not None:
            change_keys(path, options.site, changes)
            _tell(f"wrote {' and '.join(changes)} of sites.{options.site} to {path}")
        return 0


def _make(folder: HostFolder, options: argparse.Namespace) -> dict[str, str]:
    """Make the keys; returns the public ones by their names in the site file."""
    with_secret = options.secret or options.secret_from is not None
    replaces_key = options.force and not (options.ssh or with_secret)
    made = {"public_key": _gateway_key(folder, replace=replaces_key)}
    if options.ssh:
        made["ssh_public_key"] = _ssh_key(folder, replace=options.force)
    for name, value in made.items():
        print(f'{name} = "{value}"')
    if with_secret:
        _preshared_secret(folder, options)
    return made


def _gateway_key(folder: HostFolder, *, replace: bool) -> str:
    key = folder.private_key()
    if key is None or replace:
        if folder.next_key() is not None:
            raise UsageError("this gateway's key is being changed; see cpythonplus-sites rotate")
        key = keys.new_private_key()
        public = keys.public_key(key)  # fails without wg, before the key is written
        write_key(folder.private_key_path, key)
        _tell(f"created {folder.private_key_path}")
        return public
    return keys.public_key(key)


def _ssh_key(folder: HostFolder, *, replace: bool) -> str:
    try:
        read_secret(folder.ssh_key_path)
        is_there = True
    except FileNotFoundError:
        is_there = False
    if is_there and not replace:
        line = keys.ssh_public_line(folder.ssh_key_path)
    else:
        text, line = keys.new_ssh_key(folder.path)
        write_key(folder.ssh_key_path, text.strip())
        _tell(f"created {folder.ssh_key_path}")
    write_atomically(folder.ssh_public_path, f"{line}\n", mode=PUBLIC_MODE)
    return line


def _preshared_secret(folder: HostFolder, options: argparse.Namespace) -> None:
    path, old = folder.preshared_path, folder.preshared_secret()
    if options.secret and old is not None and not options.force:
        return _tell(f"{path} already exists")
    new = keys.new_preshared_secret() if options.secret else _read_secret_from(options.secret_from)
    if new == old:
        return _tell(f"{path} already has this secret")
    if old is not None and not options.force:
        raise UsageError(f"{path} has another secret; --force replaces it")
    write_key(path, new)
    return _tell(f"created {path}; copy it to the other gateways: keygen --secret-from there")


def _read_secret_from(source: str) -> str:
    if source == STDIN:
        text = _asked()
    else:
        try:
            text = read_secret(Path(source))
        except FileNotFoundError:
            raise UsageError(f"{source}: there is no such file") from None
    try:
        keys.decoded(text)
    except keys.KeyFormatError as error:
        raise UsageError(f"{'stdin' if source == STDIN else source}: {error}") from None
    return text


def _asked() -> str:
    """The line on standard input; on a terminal it is prompted for and not echoed."""
    if sys.stdin is None:
        return ""
    if not sys.stdin.isatty():
        return sys.stdin.readline().strip()
    from getpass import getpass

    try:
        return getpass("secret, as keygen --show-secret prints it on another gateway: ").strip()
    except EOFError:
        return ""


def _show_secret(folder: HostFolder) -> int:
    secret = folder.preshared_secret()
    if secret is None:
        raise UsageError(f"there is no {folder.preshared_path}; keygen --secret creates it")
    _tell(_WARNING)
    print(secret)
    return 0


def _tell(message: str) -> None:
    # Only the public keys go to standard output.
    print(visible(message), file=sys.stderr)
