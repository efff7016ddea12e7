"""Keys: WireGuard key pairs, preshared keys for each pair of sites, keys for links over ssh.

WireGuard's keys are those of X25519 (RFC 7748), 32 bytes in base64, as `wg genkey` writes them.
The programs that use the keys, wg and ssh-keygen, compute the public halves. Rejected: arithmetic
of our own, whose running time would reveal something about the key; and packages with C, which no
gateway has. No private key is on a command line, where others could see it.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import shutil
import socket
from functools import lru_cache
from typing import TYPE_CHECKING

from cpythonplus_sites.files import PRIVATE_FOLDER_MODE, make_folder
from cpythonplus_sites.machine import NOT_FOUND_STATUS, Machine, ProgramError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

KEY_BYTES = 32
SSH_KIND = "ssh-ed25519"
PACKAGES = {"wg": "wireguard-tools", "ssh-keygen": "openssh-client"}
_INFO = "cpythonplus sites psk v2"
_INFO_OF_NAMES = "cpythonplus sites psk v1"


class KeyFormatError(ValueError):
    """A text that is not a key; the message does not show it."""


def new_private_key() -> str:
    """A private key from the system's random numbers, clamped as RFC 7748, section 5, says."""
    key = bytearray(os.urandom(KEY_BYTES))
    key[0] &= 0b11111000
    key[-1] = key[-1] & 0b01111111 | 0b01000000
    return _encoded(bytes(key))


def public_key(private_key: str) -> str:
    """The public half of a private key, by `wg pubkey`.

    Raises KeyFormatError for an invalid key, ProgramError without wg.
    """
    decoded(private_key)
    return _public_key(private_key)


@lru_cache(maxsize=16)  # this host has three keys
def _public_key(private_key: str) -> str:
    public = _printed(["wg", "pubkey"], stdin=f"{private_key}\n").strip()
    decoded(public)
    return public


def new_preshared_secret() -> str:
    """A secret for all gateways, from which `preshared_key` makes the keys of the pairs."""
    return _encoded(os.urandom(KEY_BYTES))


def preshared_key(secret: str, one: str, other: str, *, of_names: bool = False) -> str:
    """The preshared key of a pair of sites: the same at both ends, unique to the pair (HKDF).

    It is derived from their two public keys, which both ends have to agree on anyway: so it stays
    the same when sites are added, removed or renamed, and new hardware at one end is one change,
    not two. of_names: `one` and `other` are the names of the sites, as up to version 0.2. Raises
    KeyFormatError for an invalid secret, ValueError for a site with itself.
    """
    if one == other:
        raise ValueError(f"a preshared key needs two sites, got {one!r} twice")
    info = " ".join((_INFO_OF_NAMES if of_names else _INFO, *sorted((one, other)))).encode()
    return _encoded(hkdf(decoded(secret), info))


def hkdf(secret: bytes, info: bytes, salt: bytes = bytes(KEY_BYTES)) -> bytes:
    """32 bytes from a secret: the first block of HKDF with SHA-256 (RFC 5869)."""
    extracted = hmac.digest(salt, secret, "sha256")
    return hmac.digest(extracted, info + b"\x01", "sha256")


def new_ssh_key(folder: Path, comment: str | None = None) -> tuple[str, str]:
    """An ed25519 key for links over ssh: the private file's text, and the public line.

    folder: one that nobody else can change; the key is made in a temporary folder in it.
    comment: the text behind the public key that says whose it is; by default with the host name.
    """
    made_in = folder / ".new-ssh-key"
    shutil.rmtree(made_in, ignore_errors=True)  # files of a killed process
    make_folder(made_in, PRIVATE_FOLDER_MODE)
    try:
        path, shown = made_in / "key", _comment(comment)
        words = ["-q", "-t", "ed25519", "-N", "", "-C", shown, "-f", str(path)]
        _printed(["ssh-keygen", *words])
        return path.read_text("utf-8"), ssh_public_line(path, comment)
    finally:
        shutil.rmtree(made_in, ignore_errors=True)


def ssh_public_line(path: Path, comment: str | None = None) -> str:
    """The public line of a private ssh key without a passphrase, in a file that only we can read.

    Raises KeyFormatError for an invalid key, ProgramError without ssh-keygen.
    """
    # With an empty passphrase, ssh-keygen does not ask for one.
    done = Machine().run(["ssh-keygen", "-y", "-P", "", "-f", str(path)])
    _refuse_missing("ssh-keygen", done.status)
    if done.status != 0:
        raise KeyFormatError(f"{path}: not a private ssh key without a passphrase")
    kind, data, *_ = [*done.out.split(), "", ""]
    if kind != SSH_KIND:
        raise KeyFormatError(f"{path}: not an ed25519 key")
    return f"{kind} {data} {_comment(comment)}"


def decoded(key: str) -> bytes:
    """The 32 bytes of a key in base64. Raises KeyFormatError for anything else."""
    try:
        data = base64.b64decode(key.encode(), validate=True)
    except (binascii.Error, UnicodeError):
        data = b""
    # Base64 of 32 bytes has two unused bits; wg refuses a text in which they are set.
    if len(data) != KEY_BYTES or _encoded(data) != key:
        raise KeyFormatError("not a key: expected 32 bytes in base64 (44 characters)")
    return data


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _comment(text: str | None) -> str:
    return "".join((text or f"cpythonplus@{socket.gethostname()}").split())


def _printed(command: Sequence[str], stdin: str = "") -> str:
    """The output of a program. Raises ProgramError if the program is missing, or fails."""
    done = Machine().run(command, stdin=stdin)
    _refuse_missing(command[0], done.status)
    if done.status != 0:
        raise ProgramError(f"{command[0]}: {done.reason}")
    return done.out


def _refuse_missing(program: str, status: int) -> None:
    if status == NOT_FOUND_STATUS:
        hint = f"Debian: apt-get install {PACKAGES[program]}"
        raise ProgramError(f"requires {program}, which is not on PATH ({hint})")
