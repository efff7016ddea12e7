"""A plan for hundreds of sites works each route out once, not once for each peer."""

from collections import Counter
from ipaddress import ip_address, ip_network

import pytest

from cpythonplus_sites import rotation
from cpythonplus_sites.model import Endpoint, Link, Network, Site
from cpythonplus_sites.rendering import Host, render

pytestmark = pytest.mark.any_version

SITES = 40


def mesh() -> Network:
    sites = tuple(
        Site(
            name=f"s{n:02}",
            lans=(ip_network(f"10.1.{n}.0/24"),),
            gateway=ip_address(f"10.1.{n}.1"),
            tunnel_address=ip_address(f"10.254.0.{n + 1}"),
            interface="wg-acme",
            listen_port=51820,
            endpoint=Endpoint(f"203.0.113.{n + 1}", 51820),
            public_key=f"key{n:02}",
        )
        for n in range(SITES)
    )
    names = [site.name for site in sites]
    links = tuple(
        Link((one, other), "wireguard", 1420, 25)
        for place, one in enumerate(names)
        for other in names[place + 1 :]
    )
    network = ip_network("10.254.0.0/24")
    return Network("acme", network, "mesh", None, preshared=False, sites=sites, links=links)


def test_routes_are_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[str] = Counter()
    original = Network._routes

    def counted(network: Network, name: str) -> object:
        asked[name] += 1
        return original(network, name)

    monkeypatch.setattr(Network, "_routes", counted)
    network = mesh()
    render(network, network.site("s00"), Host())
    (tunnel,) = rotation.wanted_tunnels(network, "s00")
    assert [len(peer.allowed_ips) for peer in tunnel.peers] == [2] * (SITES - 1)
    assert asked == {"s00": 1}
