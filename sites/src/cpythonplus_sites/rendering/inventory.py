"""The network as an Ansible inventory: a group of its gateways, with variables. No secrets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cpythonplus_sites.model import Network, Site

Variables = dict[str, Any]

_PLAIN = frozenset({"all", "children", "hosts", "vars"})
"""Keys that need no quotation marks; a site may be called `on` or `null`, which YAML misreads."""


def group(network: Network) -> str:
    """The group of all gateways; Ansible wants identifiers."""
    return "sites_" + _identifier(network.name)


def groups(network: Network) -> dict[str, list[str]]:
    """All groups with their hosts: every gateway, the hub, those behind NAT, those with ssh."""
    name = group(network)
    found = {
        name: [site.name for site in network.sites],
        f"{name}_hub": [network.hub] if network.hub else [],
        f"{name}_behind_nat": [site.name for site in network.sites if site.endpoint is None],
        f"{name}_ssh": [
            site.name
            for site in network.sites
            if any(link.has_ssh for link in network.links_of(site.name))
        ],
    }
    return {name: hosts for name, hosts in found.items() if hosts}


def variables_of_group(network: Network) -> Variables:
    """The variables of the whole network."""
    return {
        "cpythonplus_network": network.name,
        "cpythonplus_tunnel": str(network.tunnel),
        "cpythonplus_topology": network.topology,
        "cpythonplus_preshared": network.preshared,
    }


def variables_of_host(network: Network, site: Site) -> Variables:
    """The variables of one gateway. `ansible_host`: its LAN address, which the tunnels reach."""
    found: Variables = {
        "ansible_host": str(site.gateway),
        "cpythonplus_site": site.name,
        "cpythonplus_lans": [str(lan) for lan in site.lans],
        "cpythonplus_tunnel_address": str(site.tunnel_address),
        "cpythonplus_interface": site.interface,
        "cpythonplus_listen_port": site.listen_port,
        "cpythonplus_endpoint": str(site.endpoint) if site.endpoint else None,
        "cpythonplus_lan_interface": site.lan_interface,
        "cpythonplus_public_key": site.public_key,
        "cpythonplus_links": [
            {"peer": link.other(site.name), "via": link.via, "mtu": link.mtu}
            for link in network.links_of(site.name)
        ],
        "cpythonplus_remote_subnets": [
            str(route.subnet) for route in network.routes_from(site.name)
        ],
    }
    return {name: value for name, value in found.items() if value is not None}


def dynamic(network: Network) -> str:
    """The output that Ansible expects of an inventory program called with --list."""
    hostvars = {site.name: variables_of_host(network, site) for site in network.sites}
    found: Variables = {"_meta": {"hostvars": hostvars}, "all": {"children": list(groups(network))}}
    for name, hosts in groups(network).items():
        found[name] = {"hosts": hosts}
    found[group(network)]["vars"] = variables_of_group(network)
    return _json(found)


def host(network: Network, site: Site) -> str:
    """The output that Ansible expects of an inventory program called with --host NAME."""
    return _json(variables_of_host(network, site))


def as_json(network: Network) -> str:
    """A static inventory, as JSON; Ansible reads such a file as YAML."""
    return _json(_static(network))


def as_yaml(network: Network) -> str:
    """The static inventory as YAML."""
    return "---\n" + "\n".join(_yaml(_static(network))) + "\n"


def _static(network: Network) -> Variables:
    hosts = {site.name: variables_of_host(network, site) for site in network.sites}
    children: Variables = {group(network): {"hosts": hosts, "vars": variables_of_group(network)}}
    for name, members in groups(network).items():
        if name != group(network):
            children[name] = {"hosts": {member: {} for member in members}}
    return {"all": {"children": children}}


def _identifier(name: str) -> str:
    return "".join(each if each.isalnum() else "_" for each in name)


def _json(value: Variables) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _yaml(value: Any, indent: str = "") -> list[str]:  # noqa: ANN401 -- whatever JSON can hold
    """Block style for mappings; lists and scalars as JSON, which is YAML."""
    lines: list[str] = []
    for name, each in value.items():
        plain = name in _PLAIN or name.startswith(("ansible_", "cpythonplus_", "sites_"))
        key = name if plain else json.dumps(name)
        if isinstance(each, dict) and each:
            lines += [f"{indent}{key}:", *_yaml(each, indent + "  ")]
        else:
            lines.append(f"{indent}{key}: {json.dumps(each, ensure_ascii=False)}")
    return lines
