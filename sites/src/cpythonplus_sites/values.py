"""The readers of a site file's values: each takes any TOML value, or raises ValueError.

The readers are stricter than ipaddress: a prefix length is required (ipaddress takes `10.1.0.0` for
one host), and no value is accepted that could mean something else in a rendered file or on a
command line: no text begins with a dash, as ssh, ip, wg and ping would take it for an option.
"""

from __future__ import annotations

import base64
import re
from binascii import Error as Base64Error
from ipaddress import IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING

from cpythonplus_sites.model import Address, Endpoint, Subnet
from cpythonplus_sites.problems import printable

if TYPE_CHECKING:
    from collections.abc import Callable

KEY_BYTES = 32
NAME_LENGTH = 32
OF_NAMES = "names"
"""The value of `preshared` for keys that are derived from the names of the sites."""

INTERFACE_LENGTH = 15  # IFNAMSIZ less the closing zero
HOST_LENGTH = 253
SHOWN_BITS = 256

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_INTERFACE = re.compile(r"[A-Za-z0-9_=+.-]+")  # as in wg-quick
_SUBNET = re.compile(r"(?P<address>[0-9A-Fa-f:.]+)/(?P<length>[0-9]{1,3})")
_LEADING_ZERO = re.compile(r"(?:^|[.:])0[0-9]+(?=\.)|\.0[0-9]+$")
_HOST = re.compile(
    r"(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?\.)*"
    r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.?"
)
_ENDPOINT = re.compile(r"(?:\[(?P<v6>[^\[\]]*)\]|(?P<host>[^\[\]:]*)):(?P<port>[0-9]{1,5})")
_SSH_KEY = re.compile(
    r"(?P<kind>[a-z0-9][a-z0-9.@-]*) (?P<data>[A-Za-z0-9+/]+={0,2})(?: (?P<comment>[ -~]*))?"
)


def text(value: object) -> str:
    """A string, of printable characters."""
    if not isinstance(value, str):
        raise ValueError(f"expected a string in quotes, got {shown(value)}")
    if not value:
        raise ValueError("is empty: fill it in")
    if not value.isprintable():
        raise ValueError("contains a character that cannot be printed")
    return value


def shown(value: object) -> str:
    """A TOML value in a message."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (dict, list)):
        return "a table" if isinstance(value, dict) else "an array"
    if isinstance(value, int) and value.bit_length() > SHOWN_BITS:
        # Python refuses to print a number of many thousand digits.
        return "a number with too many digits"
    return f'"{printable(value)}"' if isinstance(value, str) else printable(str(value))


def one_of(*words: str) -> Callable[[object], str]:
    """A reader for one of these words."""

    def read(value: object) -> str:
        if value not in words:
            choice = " or ".join(f'"{word}"' for word in words)
            raise ValueError(f"expected {choice}, got {shown(value)}")
        return str(value)

    return read


def whole_number(low: int, high: int, unit: str = "") -> Callable[[object], int]:
    """A reader for a whole number from `low` to `high`."""

    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"expected a number from {low} to {high}{unit}, got {shown(value)}")
        return value

    return read


def boolean(value: object) -> bool:
    """`true` or `false`."""
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, got {shown(value)}")
    return value


def preshared(value: object) -> bool | str:
    """`true`, `false` or `"names"`."""
    if value == OF_NAMES:
        return OF_NAMES
    if not isinstance(value, bool):
        raise ValueError(f'expected true, false or "{OF_NAMES}", got {shown(value)}')
    return value


def name(value: object) -> str:
    """The name of a site or network: lower-case letters, digits and dashes."""
    word = text(value)
    if not _NAME.fullmatch(word) or len(word) > NAME_LENGTH:
        raise ValueError(
            f"{shown(word)} is not a name: up to {NAME_LENGTH} of a-z, 0-9 and -,"
            " with a letter or digit at both ends"
        )
    return word


def via(value: object) -> str:
    """The carrier of a link: a kind of tunnel, or the site that relays it."""
    if not isinstance(value, str) or not _NAME.fullmatch(value) or len(value) > NAME_LENGTH:
        choice = 'expected "wireguard", "ssh" or the name of a site'
        raise ValueError(f"{choice}, got {shown(value)}")
    return value


def interface(value: object) -> str:
    """A name that the kernel and wg-quick take for an interface."""
    word = text(value)
    if len(word) > INTERFACE_LENGTH:
        raise ValueError(
            f"{shown(word)} has {len(word)} characters; an interface's name has at most 15"
        )
    if not _INTERFACE.fullmatch(word) or word in (".", "..") or word.startswith("-"):
        raise ValueError(
            f"{shown(word)} is not an interface name: letters, digits and _ = + . - only"
        )
    return word


def address(value: object) -> Address:
    """An IPv4 or IPv6 address of one host."""
    word = text(value)
    if "/" in word:
        raise ValueError(f"expected one address without a prefix length, got {shown(word)}")
    try:
        found = _ip_address(word)
    except ValueError:
        raise ValueError(f"{shown(word)} is not an IP address") from None
    _refuse_odd(found, word)
    return found


def _ip_address(word: str) -> Address:
    """An address as ipaddress reads it, without leading zeros, which may mean octal numbers.

    Python 3.9 accepts leading zeros before 3.9.5.
    """
    if _LEADING_ZERO.search(word):
        raise ValueError(word)
    return ip_address(word)


def subnet(value: object) -> Subnet:
    """A subnet with its prefix length and without host bits."""
    word = text(value)
    if "/" not in word:
        raise ValueError(_without_length(word))
    match = _SUBNET.fullmatch(word)
    try:
        first = _ip_address(match["address"]) if match else None
        found = ip_network(word, strict=False) if match else None
    except ValueError:
        first = found = None
    if first is None or found is None:
        raise ValueError(f"{shown(word)} is not a subnet, such as 192.168.10.0/24")
    if first != found.network_address:
        raise ValueError(f"{shown(word)} has host bits set; the subnet is {found}")
    _refuse_odd(found.network_address, word)
    return found


def _without_length(word: str) -> str:
    try:
        meant = _ip_address(word)
    except ValueError:
        return f"{shown(word)} is not a subnet, such as 192.168.10.0/24"
    length = 64 if meant.version == 6 else 24  # noqa: PLR2004
    return (
        f"{shown(word)} has no prefix length, such as {ip_network((meant, length), strict=False)}"
    )


def _refuse_odd(found: Address, word: str) -> None:
    if isinstance(found, IPv6Address):
        if found.scope_id is not None:
            raise ValueError(f"{shown(word)} has a zone, which means something on one host only")
        if found.ipv4_mapped is not None:
            raise ValueError(f"{shown(word)} is an IPv4 address in IPv6 form; write the IPv4 form")


def endpoint(value: object) -> Endpoint:
    """`host:port`, the host a DNS name or an address, IPv6 in brackets."""
    word = text(value)
    match = _ENDPOINT.fullmatch(word)
    if match is None:
        raise ValueError(_not_an_endpoint(word))
    port = int(match["port"])
    if not 0 < port <= 65535:  # noqa: PLR2004
        raise ValueError(f"port {port} is not from 1 to 65535")
    if match["v6"] is not None:
        return Endpoint(str(_v6(match["v6"])), port)
    return Endpoint(host(match["host"]), port)


def _not_an_endpoint(word: str) -> str:
    bare, _, port = word.rpartition(":")
    if word.count(":") > 1 and "[" not in word and port.isdecimal():
        return f"an IPv6 address must be in brackets: [{printable(bare)}]:{printable(port)}"
    if ":" not in word or word.endswith("]"):
        return f"{shown(word)} has no port, such as {printable(word)}:51820"
    return f"{shown(word)} is not HOST:PORT"


def _v6(word: str) -> IPv6Address:
    found = address(word)
    if not isinstance(found, IPv6Address):
        raise ValueError(f"{word} is not an IPv6 address; only those are in brackets")
    return found


def host(word: str) -> str:
    """A DNS name in lower case, or an IPv4 address."""
    last = word.rstrip(".").rpartition(".")[2]
    if last.isdecimal() or last.lower().startswith("0x"):
        return str(address(word))  # resolvers would read it as a number
    if not _HOST.fullmatch(word) or len(word) > HOST_LENGTH:
        raise ValueError(f"{shown(word)} is not a DNS name")
    return word.lower()


def public_key(value: object) -> str:
    """A WireGuard key: base64 of 32 bytes, as `wg pubkey` writes it."""
    word = text(value)
    try:
        data = base64.b64decode(word, validate=True)
    except (Base64Error, ValueError):
        data = b""
    if len(data) != KEY_BYTES or base64.b64encode(data).decode() != word:
        raise ValueError("is not a WireGuard key: base64 of 32 bytes, 44 characters")
    if not any(data):
        raise ValueError("is a key of zeros, which WireGuard treats as no key")
    return word


def ssh_key(value: object) -> str:
    """The line of an OpenSSH public key, as in a `.pub` file."""
    word = text(value)
    match = _SSH_KEY.fullmatch(word)
    if match is None or not _names_itself(match["kind"], match["data"]):
        raise ValueError('is not an OpenSSH public key, such as "ssh-ed25519 AAAA... name"')
    return word


def _names_itself(kind: str, data: str) -> bool:
    """Whether the blob starts with the name of its kind (RFC 4253, 6.6)."""
    try:
        blob = base64.b64decode(data, validate=True)
    except (Base64Error, ValueError):
        return False
    head = len(kind).to_bytes(4, "big") + kind.encode()
    return blob.startswith(head) and len(blob) > len(head)


def is_v6(subnet_or_address: Subnet | Address) -> bool:
    """Whether a subnet or address is of IPv6."""
    return isinstance(subnet_or_address, (IPv6Address, IPv6Network))
