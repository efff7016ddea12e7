"""What programs print about a gateway is read, whatever it is."""

from __future__ import annotations

import json
from ipaddress import ip_interface, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpythonplus_sites import live
from cpythonplus_sites.live import (
    Device,
    LivePeer,
    LiveTunnel,
    parse_devices,
    parse_dump,
    parse_endpoint,
    parse_routes,
)
from cpythonplus_sites.live_route import LiveRoute
from cpythonplus_sites.model import Endpoint
from cpythonplus_sites.wanted import sysctl_path

pytestmark = pytest.mark.any_version

DUMP = (
    "wg-acme\tPRIVATE\tPUBLIC\t51820\toff\n"
    "wg-acme\tKEY1\t(none)\t[2001:db8::1]:51820\t10.1.0.0/24,fd00::/64\t1700000000\t12\t34\t25\n"
    "wg-acme\tKEY2\tPSK\t(none)\t(none)\t0\t0\t0\toff\n"
    "wg-b\t(none)\t(none)\t1\t0x5\n"
)


def test_dump() -> None:
    found = parse_dump(DUMP)
    one = LivePeer(
        "KEY1",
        endpoint=Endpoint("2001:db8::1", 51820),
        allowed_ips=frozenset({ip_network("10.1.0.0/24"), ip_network("fd00::/64")}),
        handshake_s=1700000000,
        received_bytes=12,
        sent_bytes=34,
        keepalive_s=25,
    )
    two = LivePeer("KEY2", preshared_key="PSK")
    assert found == {
        "wg-acme": LiveTunnel("wg-acme", "PRIVATE", 51820, (one, two)),
        "wg-b": LiveTunnel("wg-b", None, 1),
    }


def test_devices() -> None:
    text = json.dumps(
        [
            {"ifname": "tun7", "flags": ["UP", "NO-CARRIER"], "mtu": 1420},
            {
                "ifname": "eth0",
                "flags": [],
                "mtu": 1500,
                "addr_info": [{"local": "10.0.0.1", "prefixlen": 24}, {"local": "x"}, 5],
            },
            {
                "ifname": "tun8",
                "flags": ["UP"],
                "mtu": 1420,
                "txqlen": 500,
                "linkinfo": {
                    "info_kind": "tun",
                    "info_data": {"type": "tun", "user": "sites-acme"},
                },
            },
            {"ifname": "tun9", "linkinfo": {"info_data": 3}},
            {"no": "name"},
            7,
        ]
    )
    assert parse_devices(text) == {
        "tun7": Device("tun7", True, 1420, running=False),
        "tun8": Device("tun8", True, 1420, owner="sites-acme", queue=500),
        "tun9": Device("tun9", False, 0),
        "eth0": Device("eth0", False, 1500, (ip_interface("10.0.0.1/24"),)),
    }


def test_routes() -> None:
    text = json.dumps(
        [
            {"dst": "default", "dev": "eth0"},
            {"dst": "10.0.0.0/24", "dev": "eth0", "protocol": "2"},
            {"dst": "10.0.1.5", "dev": "wg-acme", "metric": 7},
            {"type": "6", "dst": "10.9.0.0/16"},
            {"type": "7", "dst": "10.8.0.0/16", "protocol": "99", "metric": 2000000000},
            {"type": "unreachable", "dst": "fd00::/64", "dev": "lo", "protocol": "99", "metric": 9},
            {"type": "1", "dst": "10.0.2.0/24", "dev": "eth0", "protocol": "4"},
            {"type": "2", "dst": "10.0.3.0/24"},
            {"dst": "nonsense", "dev": "eth0"},
        ]
    )
    assert parse_routes(text) == (
        LiveRoute(ip_network("10.0.0.0/24"), "eth0", 2),
        LiveRoute(ip_network("10.0.1.5/32"), "wg-acme", 3, 7),
        LiveRoute(ip_network("10.9.0.0/16"), "", 3, 0, "blackhole"),
        LiveRoute(ip_network("10.8.0.0/16"), "", 99, 2000000000, "unreachable"),
        LiveRoute(ip_network("fd00::/64"), "", 99, 9, "unreachable"),
        LiveRoute(ip_network("10.0.2.0/24"), "eth0", 4),
    )


FIELDS = (
    *("dst", "dev", "type", "metric", "protocol", "ifname", "flags", "addr_info"),
    *("linkinfo", "info_data", "user", "txqlen"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(FIELDS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
).map(json.dumps)


@given(st.text() | JSON)
def test_anything_is_survived(text: str) -> None:
    for parse in (parse_devices, parse_routes, parse_dump, parse_endpoint):
        parse(text)


@given(st.lists(st.text(max_size=6), min_size=4, max_size=10))
def test_any_columns_are_survived(columns: list[str]) -> None:
    parse_dump("\t".join(columns) + "\n" + DUMP)


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("net.ipv4.ip_forward", "net/ipv4/ip_forward"),
        ("net.ipv4.conf.eth0/7.forwarding", "net/ipv4/conf/eth0.7/forwarding"),
        ("net/ipv4/conf/eth0.7/forwarding", "net/ipv4/conf/eth0.7/forwarding"),
    ],
)
def test_keys_of_settings(key: str, path: str) -> None:
    assert sysctl_path(key) == path


def test_what_packets_have_put_into_a_set_is_no_difference() -> None:
    """nft 1.1.6 and later also say how many there are."""
    text = "set heard {\n\t\tsize 100%s\n\t\ttimeout 3m%s\n\t}\n"
    full = text % ("\t# count 2", "\n\t\telements = { 1.2.3.4 . 80,\n\t\t\t     1.2.3.5 . 8 }")
    assert live._ELEMENTS.sub("", full) == text % ("", "")
