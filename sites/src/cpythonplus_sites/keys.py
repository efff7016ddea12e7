"""Keys: WireGuard key pairs, preshared keys for each pair of sites, keys for links over ssh.

WireGuard's keys are those of X25519 (RFC 7748), 32 bytes in base64, as `wg genkey` writes them.
"""

from __future__ import annotations

import base64
import binascii
import os
import socket

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

KEY_BYTES = 32
_INFO = "cpythonplus sites psk v1"


class KeyFormatError(ValueError):
    """A text that is not a key; the message does not show it."""


def new_private_key() -> str:
    """A private key from the system's random numbers, clamped as RFC 7748, section 5, says."""
    key = bytearray(os.urandom(KEY_BYTES))
    key[0] &= 0b11111000
    key[-1] = key[-1] & 0b01111111 | 0b01000000
    return _encoded(bytes(key))


def public_key(private_key: str) -> str:
    """The public half of a private key. Raises KeyFormatError for what is none."""
    private = X25519PrivateKey.from_private_bytes(decoded(private_key))
    public = private.public_key().public_bytes(
        serialization.Encoding.Raw, serialization.PublicFormat.Raw
    )
    return _encoded(public)


def new_preshared_secret() -> str:
    """A secret for all gateways, from which `preshared_key` makes the keys of the pairs."""
    return _encoded(os.urandom(KEY_BYTES))


def preshared_key(secret: str, one: str, other: str) -> str:
    """The preshared key of two sites: the same at both, another for each pair (HKDF, RFC 5869).

    It depends on the two names alone, so it stays when sites are added or removed. Raises
    KeyFormatError for a secret that is none, ValueError for a site with itself.
    """
    if one == other:
        raise ValueError(f"a preshared key needs two sites, got {one!r} twice")
    info = " ".join((_INFO, *sorted((one, other)))).encode()
    derivation = HKDF(algorithm=hashes.SHA256(), length=KEY_BYTES, salt=None, info=info)
    return _encoded(derivation.derive(decoded(secret)))


def new_ssh_key(comment: str | None = None) -> tuple[str, str]:
    """An ed25519 key for links over ssh: the private file's text, and the public line.

    comment: behind the public key, so that people can tell whose it is (user's host name).
    """
    private = Ed25519PrivateKey.generate()
    text = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    return text.decode(), _with_comment(private, comment)


def ssh_public_line(private_text: str, comment: str | None = None) -> str:
    """The public line of a private ssh key without a passphrase. Raises KeyFormatError."""
    try:
        key = serialization.load_ssh_private_key(private_text.encode(), password=None)
    except (ValueError, TypeError):
        raise KeyFormatError("not a private ssh key without a passphrase") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise KeyFormatError("not an ed25519 key")
    return _with_comment(key, comment)


def decoded(key: str) -> bytes:
    """The 32 bytes of a key in base64. Raises KeyFormatError for anything else."""
    try:
        data = base64.b64decode(key.encode(), validate=True)
    except (binascii.Error, UnicodeError):
        data = b""
    # Base64 of 32 bytes has two bits to spare; wg refuses a text in which they are set.
    if len(data) != KEY_BYTES or _encoded(data) != key:
        raise KeyFormatError("not a key: expected 32 bytes in base64 (44 characters)")
    return data


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _with_comment(private: Ed25519PrivateKey, comment: str | None) -> str:
    public = private.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    shown = "".join((comment or f"cpythonplus@{socket.gethostname()}").split())
    return f"{public.decode()} {shown}"
