"""The stanzas of a site file, and every way in which one of their values is wrong.

All keys may be missing here: a file with a wrong value is looked at without it, so that what else
is wrong is said at once. What must be there is said by `required`.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError

from cpythonplus_sites import values
from cpythonplus_sites.model import Address, Endpoint, Subnet, Topology, Via
from cpythonplus_sites.problems import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_core import ErrorDetails

    from cpythonplus_sites.problems import Keys

MTU_LOW, MTU_HIGH = 576, 9000
KEEPALIVE_HIGH_S = 65535
TUNNEL_NUMBER_HIGH = 9999
PORT_HIGH = 65535

Name = Annotated[str, PlainValidator(values.name)]
InterfaceName = Annotated[str, PlainValidator(values.interface)]
SubnetText = Annotated[Subnet, PlainValidator(values.subnet)]
SubnetItem = Annotated[Subnet | None, PlainValidator(values.or_left_out(values.subnet))]
NameItem = Annotated[str | None, PlainValidator(values.or_left_out(values.name))]
AddressText = Annotated[Address, PlainValidator(values.address)]
EndpointText = Annotated[Endpoint, PlainValidator(values.endpoint)]
KeyText = Annotated[str, PlainValidator(values.public_key)]
SshKeyText = Annotated[str, PlainValidator(values.ssh_key)]
Mtu = Annotated[int, PlainValidator(values.whole_number(MTU_LOW, MTU_HIGH, " (bytes)"))]
Keepalive = Annotated[int, PlainValidator(values.whole_number(0, KEEPALIVE_HIGH_S, " (seconds)"))]
TunnelNumber = Annotated[int, PlainValidator(values.whole_number(0, TUNNEL_NUMBER_HIGH))]
Port = Annotated[int, PlainValidator(values.whole_number(1, PORT_HIGH))]
Boolean = Annotated[bool, PlainValidator(values.boolean)]


class Stanza(BaseModel):
    """One table of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NetworkStanza(Stanza):
    """`[network]`."""

    name: Name | None = None
    tunnel: SubnetText | None = None
    topology: Annotated[Topology, PlainValidator(values.one_of("mesh", "hub"))] = "mesh"
    hub: Name | None = None
    mtu: Mtu = 1420
    keepalive: Keepalive = 25
    preshared: Boolean = True


class SiteStanza(Stanza):
    """`[sites.NAME]`."""

    lan: list[SubnetItem] | None = None
    gateway: AddressText | None = None
    tunnel_address: AddressText | None = None
    endpoint: EndpointText | None = None
    listen_port: Port | None = None
    interface: InterfaceName | None = None
    lan_interface: InterfaceName | None = None
    public_key: KeyText | None = None
    next_public_key: KeyText | None = None
    ssh_endpoint: EndpointText | None = None
    ssh_public_key: SshKeyText | None = None
    ssh_host_key: SshKeyText | None = None


class LinkStanza(Stanza):
    """`[[links]]`."""

    between: list[NameItem] | None = None
    via: Annotated[Via, PlainValidator(values.one_of("wireguard", "ssh"))] = "wireguard"
    mtu: Mtu | None = None
    keepalive: Keepalive | None = None
    tunnel_number: TunnelNumber | None = None


class FileStanzas(Stanza):
    """The whole file."""

    network: NetworkStanza | None = None
    sites: dict[Name, SiteStanza] | None = None
    links: list[LinkStanza] = Field(default_factory=list)


class Wrong(NamedTuple):
    """A problem without its line."""

    keys: Keys
    message: str


REQUIRED = {
    "network": ("name", "tunnel"),
    "sites": ("lan", "gateway", "tunnel_address"),
    "links": ("between",),
}


def read(data: dict[str, Any]) -> tuple[FileStanzas, list[Wrong]]:
    """The stanzas of a parsed file without what is wrong in it, and what is wrong."""
    wrong = list(required(data))
    while True:
        try:
            return FileStanzas.model_validate(data), wrong
        except ValidationError as error:
            found = [_explained(details) for details in error.errors(include_url=False)]
        wrong += found
        data = _without(data, _tree([one.keys for one in found]))
        data["links"] = [link or {} for link in data.get("links", [])]


def required(data: dict[str, Any]) -> Iterator[Wrong]:
    """What has to be there and is not."""
    if "network" not in data:
        yield Wrong(("network",), "there is no [network]")
    if data.get("sites", {}) == {}:
        yield Wrong(("sites",), "there is no [sites.NAME]")
    for keys, stanza in _tables(data):
        for key in REQUIRED[str(keys[0])]:
            if key not in stanza:
                yield Wrong(keys, f"{key} is missing")


def _tables(data: dict[str, Any]) -> Iterator[tuple[Keys, dict[str, Any]]]:
    """The stanzas that are tables, each with the way to it."""
    if isinstance(data.get("network"), dict):
        yield ("network",), data["network"]
    sites, links = data.get("sites"), data.get("links")
    for name, stanza in sites.items() if isinstance(sites, dict) else ():
        if isinstance(stanza, dict):
            yield ("sites", name), stanza
    for index, stanza in enumerate(links if isinstance(links, list) else ()):
        if isinstance(stanza, dict):
            yield ("links", index), stanza


Tree = dict[str | int, "Tree | None"]


def _tree(wrong: list[Keys]) -> Tree:
    """The ways as nested tables; None is the end of one."""
    root: Tree = {}
    for keys in wrong:
        node: Tree | None = root
        for key in keys[:-1]:
            node = node.setdefault(key, {}) if node is not None else None
        if node is not None:
            node[keys[-1]] = None
    return root


def _without(data: dict[str, Any], wrong: Tree) -> dict[str, Any]:
    """A copy of a table without these values; items of arrays keep their places, as None."""
    return {
        key: _cut(value, wrong.get(key, {}))
        for key, value in data.items()
        if wrong.get(key, {}) is not None
    }


def _cut(value: object, wrong: Tree | None) -> object:
    if wrong is None:
        return None
    if isinstance(value, dict):
        return _without(value, wrong)
    if isinstance(value, list):
        return [_cut(item, wrong.get(index, {})) for index, item in enumerate(value)]
    return value


def _explained(details: ErrorDetails) -> Wrong:
    keys, kind, value = tuple(details["loc"]), details["type"], details["input"]
    if kind == "extra_forbidden":
        return Wrong(keys, f"unknown key{_suggestion(keys)}")
    if kind == "value_error":
        keys = keys[:-1] if keys[-1] == "[key]" else keys  # a name of [sites.NAME]
        return Wrong(keys, str(details["ctx"]["error"]))
    shape = "an array, in brackets" if kind == "list_type" else f"a table{_header(keys)}"
    return Wrong(keys, f"expected {shape}, got {values.shown(value)}")


def _header(keys: Keys) -> str:
    heads = {"network": ", [network]", "sites": ", [sites.NAME]", "links": ", [[links]]"}
    return heads[str(keys[0])]


def _suggestion(keys: Keys) -> str:
    stanzas: dict[int, type[Stanza]] = {1: FileStanzas, 2: NetworkStanza}
    known = stanzas.get(len(keys))
    if len(keys) == 3:  # noqa: PLR2004
        known = SiteStanza if keys[0] == "sites" else LinkStanza
    fields = list(known.model_fields) if known is not None else []
    close = get_close_matches(printable(str(keys[-1])), fields, n=1)
    return f" (did you mean {close[0]}?)" if close else ""
