"""The stanzas of a site file, and the problems of their single values.

A stanza is a table of keys, each with the reader of its value (values.py). All keys may be missing
here: a file with a wrong value is checked without it, so that all problems are reported at once.
`required` reports missing keys.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from cpythonplus_sites import values
from cpythonplus_sites.problems import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeGuard

    from cpythonplus_sites.model import Address, Endpoint, Subnet, Topology
    from cpythonplus_sites.problems import Keys

MTU_LOW, MTU_HIGH = 576, 9000
KEEPALIVE_HIGH_S = 65535
TUNNEL_NUMBER_HIGH = 9999
PORT_HIGH = 65535
REVISION_HIGH = 999_999

MTU = values.whole_number(MTU_LOW, MTU_HIGH, " (bytes)")
KEEPALIVE = values.whole_number(0, KEEPALIVE_HIGH_S, " (seconds)")
TUNNEL_NUMBER = values.whole_number(0, TUNNEL_NUMBER_HIGH)
PORT = values.whole_number(1, PORT_HIGH)

Reader = Callable[[object], object]
"""A reader takes any TOML value and returns its meaning, never None, or raises ValueError."""


class Key(NamedTuple):
    """How a key of a stanza is read; is_array: it has an array, and `read` takes each item."""

    read: Reader
    is_array: bool = False


def _key(read: Reader, default: object = None) -> Any:  # noqa: ANN401  # the field's type
    return field(default=default, metadata={"key": Key(read)})


def _array(read: Reader) -> Any:  # noqa: ANN401  # the field's type
    return field(default=None, metadata={"key": Key(read, is_array=True)})


@dataclass(frozen=True)
class Stanza:
    """One table of the file. In arrays None stands for an item that was wrong."""


@dataclass(frozen=True)
class NetworkStanza(Stanza):
    """`[network]`."""

    name: str | None = _key(values.name)
    tunnel: Subnet | None = _key(values.subnet)
    topology: Topology = _key(values.one_of("mesh", "hub"), "mesh")
    hub: str | None = _key(values.name)
    mtu: int = _key(MTU, 1420)
    keepalive: int = _key(KEEPALIVE, 25)
    preshared: bool | str = _key(values.preshared, default=True)
    revision: int = _key(values.whole_number(0, REVISION_HIGH), 0)


@dataclass(frozen=True)
class SiteStanza(Stanza):
    """`[sites.NAME]`."""

    lan: list[Subnet | None] | None = _array(values.subnet)
    gateway: Address | None = _key(values.address)
    tunnel_address: Address | None = _key(values.address)
    endpoint: Endpoint | None = _key(values.endpoint)
    more_endpoints: list[Endpoint | None] | None = _array(values.endpoint)
    probe: Address | None = _key(values.address)
    listen_port: int | None = _key(PORT)
    second_port: int | None = _key(PORT)
    interface: str | None = _key(values.interface)
    lan_interface: str | None = _key(values.interface)
    public_key: str | None = _key(values.public_key)
    next_public_key: str | None = _key(values.public_key)
    ssh_endpoint: Endpoint | None = _key(values.endpoint)
    ssh_public_key: str | None = _key(values.ssh_key)
    ssh_host_key: str | None = _key(values.ssh_key)


@dataclass(frozen=True)
class LinkStanza(Stanza):
    """`[[links]]`."""

    between: list[str | None] | None = _array(values.name)
    via: str = _key(values.via, "wireguard")
    fallback: Literal["ssh"] | None = _key(values.one_of("ssh"))
    mtu: int | None = _key(MTU)
    keepalive: int | None = _key(KEEPALIVE)
    tunnel_number: int | None = _key(TUNNEL_NUMBER)
    caller: str | None = _key(values.name)


@dataclass(frozen=True)
class FileStanzas:
    """The whole file."""

    network: NetworkStanza | None = None
    sites: dict[str, SiteStanza] | None = None
    links: list[LinkStanza] = field(default_factory=list)


class Wrong(NamedTuple):
    """A problem without its line."""

    keys: Keys
    message: str


REQUIRED = {
    "network": ("name", "tunnel"),
    "sites": ("lan", "gateway", "tunnel_address"),
    "links": ("between",),
}
HEADERS = {"network": "[network]", "sites": "[sites.NAME]", "links": "[[links]]"}
S = TypeVar("S", bound=Stanza)


def read(data: dict[str, Any]) -> tuple[FileStanzas, list[Wrong]]:
    """The stanzas of a parsed file without its wrong values, and the problems."""
    wrong = [*required(data), *_unknown(data, HEADERS, ())]
    network = sites = None
    links = []
    if "network" in data:
        network = stanza(NetworkStanza, data["network"], ("network",), wrong)
    if "sites" in data and _is_table(data["sites"], ("sites",), wrong):
        sites = _sites(data["sites"], wrong)
    if "links" in data and _is_array(data["links"], ("links",), wrong):
        for index, table in enumerate(data["links"]):
            links.append(stanza(LinkStanza, table, ("links", index), wrong) or LinkStanza())
    return FileStanzas(network, sites, links), wrong


def _sites(table: dict[str, object], wrong: list[Wrong]) -> dict[str, SiteStanza]:
    """The sites with a valid name; the values of the others are checked, too."""
    found = {}
    for name, value in table.items():
        site = stanza(SiteStanza, value, ("sites", name), wrong)
        word = _value(values.name, name, ("sites", name), wrong)
        if site is not None and word is not None:
            found[name] = site
    return found


def stanza(kind: type[S], table: object, keys: Keys, wrong: list[Wrong]) -> S | None:
    """A table as a stanza; None if it is no table. Wrong values are noted, and left out."""
    if not _is_table(table, keys, wrong):
        return None
    known = readers(kind)
    wrong += _unknown(table, known, keys)
    found = {}
    for name, key in known.items():
        if name not in table:
            continue
        value, way = table[name], (*keys, name)
        if not key.is_array:
            meaning = _value(key.read, value, way, wrong)
        elif _is_array(value, way, wrong):
            meaning = [_value(key.read, one, (*way, i), wrong) for i, one in enumerate(value)]
        else:
            continue
        if meaning is not None:
            found[name] = meaning
    return kind(**found)


def readers(kind: type[Stanza]) -> dict[str, Key]:
    """The keys that a stanza may have."""
    return {one.name: one.metadata["key"] for one in fields(kind)}


def _value(read: Reader, value: object, keys: Keys, wrong: list[Wrong]) -> object:
    """The meaning of a value; None if it is wrong, which is noted."""
    try:
        return read(value)
    except ValueError as error:
        wrong.append(Wrong(keys, str(error)))
        return None


def _is_table(value: object, keys: Keys, wrong: list[Wrong]) -> TypeGuard[dict[str, object]]:
    if not isinstance(value, dict):
        header = HEADERS[str(keys[0])]
        text = f"expected a table, {header}, got {values.shown(value)}"
        wrong.append(Wrong(keys, text))
    return isinstance(value, dict)


def _is_array(value: object, keys: Keys, wrong: list[Wrong]) -> TypeGuard[list[object]]:
    if not isinstance(value, list):
        text = f"expected an array, in brackets, got {values.shown(value)}"
        wrong.append(Wrong(keys, text))
    return isinstance(value, list)


def _unknown(table: dict[str, Any], known: Iterable[str], keys: Keys) -> Iterator[Wrong]:
    """The unknown keys of a table, each perhaps with a similar known one."""
    for key in table:
        if key not in known:
            close = get_close_matches(printable(key), known, n=1)
            hint = f" (did you mean {close[0]}?)" if close else ""
            yield Wrong((*keys, key), f"unknown key{hint}")


def required(data: dict[str, Any]) -> Iterator[Wrong]:
    """The required tables and keys that are missing."""
    if "network" not in data:
        yield Wrong(("network",), "there is no [network]")
    if data.get("sites", {}) == {}:
        yield Wrong(("sites",), "there is no [sites.NAME]")
    for keys, table in _tables(data):
        for key in REQUIRED[str(keys[0])]:
            if key not in table:
                yield Wrong(keys, f"{key} is missing")


def _tables(data: dict[str, Any]) -> Iterator[tuple[Keys, dict[str, Any]]]:
    """The stanzas that are tables, each with the way to it."""
    if isinstance(data.get("network"), dict):
        yield ("network",), data["network"]
    sites, links = data.get("sites"), data.get("links")
    for name, table in sites.items() if isinstance(sites, dict) else ():
        if isinstance(table, dict):
            yield ("sites", name), table
    for index, table in enumerate(links if isinstance(links, list) else ()):
        if isinstance(table, dict):
            yield ("links", index), table
