"""Diagrams hold every site and link, whatever they are called."""

import re
from dataclasses import replace
from ipaddress import ip_address, ip_network
from itertools import combinations
from xml.etree import ElementTree as ET

import pytest
from hypothesis import HealthCheck, given, settings

from cpythonplus_sites.model import Link, Network, Site, Topology
from cpythonplus_sites.rendering.mermaid import mermaid
from cpythonplus_sites.rendering.svg import layout, svg
from sites.tests.strategies import example, networks

pytestmark = pytest.mark.any_version

SVG = "{http://www.w3.org/2000/svg}"
FEW = settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow], deadline=None)


def of_size(count: int, *, hub: bool) -> Network:
    sites = tuple(
        Site(
            name=f"site-{number:02}",
            lans=(ip_network(f"10.{number}.0.0/24"),),
            gateway=ip_address(f"10.{number}.0.1"),
            tunnel_address=ip_address(f"172.31.0.{number + 1}"),
            interface="wg-acme",
            listen_port=51820,
        )
        for number in range(count)
    )
    names = [site.name for site in sites]
    pairs = [pair for pair in combinations(names, 2) if not hub or names[0] in pair]
    links = tuple(Link(pair, "wireguard", 1420, 25) for pair in pairs)
    topology: Topology = "hub" if hub else "mesh"
    middle = names[0] if hub else None
    return Network("acme", ip_network("172.31.0.0/24"), topology, middle, True, sites, links)


def overlapping(network: Network) -> list[tuple[str, str]]:
    boxes, _, _ = layout(network)
    return [
        (one, other)
        for (one, a), (other, b) in combinations(boxes.items(), 2)
        if abs(a.x - b.x) < (a.width + b.width) / 2 and abs(a.y - b.y) < (a.height + b.height) / 2
    ]


@pytest.mark.parametrize("hub", [False, True], ids=["mesh", "hub"])
def test_no_box_hides_another(hub: bool) -> None:
    for count in range(2, 31):
        network = of_size(count, hub=hub)
        assert overlapping(network) == [], count
        boxes, width, height = layout(network)
        for box in boxes.values():
            assert box.width / 2 <= box.x <= width - box.width / 2
            assert box.height / 2 <= box.y <= height - box.height / 2


@FEW
@given(networks())
def test_every_site_and_link_is_drawn(network: Network) -> None:
    root = ET.fromstring(svg(network))
    names = [each.text for each in root.iter(f"{SVG}text") if each.get("class") == "name"]
    assert sorted(filter(None, names)) == sorted(site.name for site in network.sites)
    tips = [t.text or "" for each in root.iter(f"{SVG}path") for t in each.iter(f"{SVG}title")]
    assert len(tips) == len(network.links)
    flow = mermaid(network)
    arrows = [line for line in flow.splitlines() if "<-->" in line or ".->" in line]
    assert len(arrows) == len(network.links)
    assert overlapping(network) == []


def test_names_are_escaped() -> None:
    network = example()
    sites = (replace(network.sites[0], name='"<b>&\x01'), *network.sites[1:])
    network = replace(network, sites=sites, links=())
    root = ET.fromstring(svg(network))
    assert '"<b>&' in [each.text for each in root.iter(f"{SVG}text")]
    label = re.search(r's0\["<b>(.*?)</b>', mermaid(network))
    assert label is not None
    assert label[1] == "#34;#60;b#62;#38;#1;"


def test_the_picture_needs_nothing_from_elsewhere() -> None:
    text = svg(example()).replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "http" not in text
    assert "<script" not in text
    assert "prefers-color-scheme: dark" in text
