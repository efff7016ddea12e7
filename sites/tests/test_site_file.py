"""Reading a site file: defaults, and one line for everything that keeps it from being read."""

import os
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest

from cpythonplus_sites.model import Endpoint, Link
from cpythonplus_sites.problems import Problem, SiteFileError
from cpythonplus_sites.site_file import MOST_BYTES, load
from sites.tests.site_texts import BERLIN_KEY, GOOD, with_changed

pytestmark = pytest.mark.any_version


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "sites.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def problems(path: Path) -> list[Problem]:
    with pytest.raises(SiteFileError) as caught:
        load(path)
    assert caught.value.path == path
    lines = str(caught.value).split("\n")
    assert lines == caught.value.lines()
    assert len(lines) == len(caught.value.problems) > 0
    assert all(":" in line for line in lines)
    return list(caught.value.problems)


def test_defaults_are_filled_in(tmp_path: Path) -> None:
    network = load(written(tmp_path, GOOD))
    assert (network.name, network.topology, network.hub) == ("acme", "mesh", None)
    assert network.tunnel == ip_network("10.254.0.0/24")
    assert network.preshared
    assert [site.name for site in network.sites] == ["berlin", "paris", "rome"]
    assert network.links == (
        Link(("berlin", "paris"), "wireguard", 1420, 25),
        Link(("berlin", "rome"), "ssh", 1380, 25, 7),
        Link(("paris", "rome"), "wireguard", 1420, 25),
    )
    berlin, paris, rome = network.sites
    assert berlin.endpoint == Endpoint("vpn.example.org", 51820)
    assert berlin.public_key == BERLIN_KEY
    assert berlin.interface == paris.interface == "wg-acme"
    assert paris.lans == (ip_network("192.168.20.0/24"), ip_network("fd00:20::/64"))
    assert paris.gateway == ip_address("192.168.20.1")
    assert (paris.endpoint, paris.listen_port, paris.public_key) == (None, 51820, None)
    assert rome.endpoint == Endpoint("2001:db8::3", 4500)
    assert str(rome.endpoint) == "[2001:db8::3]:4500"
    assert (rome.listen_port, rome.ssh_endpoint) == (4500, Endpoint("rome.example.org", 22))


def test_a_hub_is_linked_with_each_site(tmp_path: Path) -> None:
    hub = 'name = "acme"\ntopology = "hub"\nhub = "rome"\nkeepalive = 0'
    network = load(written(tmp_path, with_changed('name = "acme"', hub)))
    assert [link.ends for link in network.links] == [("berlin", "rome"), ("paris", "rome")]
    assert {link.keepalive_s for link in network.links} == {0}


def test_every_problem_is_told_at_once_by_line(tmp_path: Path) -> None:
    text = """\
[network]
name = "acme"
tunel = "10.254.0.0/24"
mtu = "big"

[sites.berlin]
lan = ["192.168.10.0/24", "10.1.0.0"]
gateway = "192.168.10.1"
tunnel_address = "10.254.0.1"
[sites.paris]
lan = [
  "192.168.0.0/16",
  "192.168.20.1/24",
]
tunnel_address = "10.254.0.1"
[[links]]
via = "carrier pigeon"
between = ["berlin", "pris"]
"""
    assert problems(written(tmp_path, text)) == [
        (1, "network", "tunnel is missing"),
        (3, "network.tunel", "unknown key (did you mean tunnel?)"),
        (4, "network.mtu", 'expected a number from 576 to 9000 (bytes), got "big"'),
        (7, "sites.berlin.lan", '"10.1.0.0" has no prefix length, such as 10.1.0.0/24'),
        (10, "sites.paris", "gateway is missing"),
        (
            10,
            "sites.paris.endpoint",
            "neither this site nor berlin has an endpoint, so neither end can call",
        ),
        (12, "sites.paris.lan", "192.168.0.0/16 overlaps 192.168.10.0/24 of berlin"),
        (
            13,
            "sites.paris.lan",
            '"192.168.20.1/24" has host bits set; the subnet is 192.168.20.0/24',
        ),
        (15, "sites.paris.tunnel_address", "the same tunnel address is used by berlin"),
        (
            17,
            "links.via",
            'expected "wireguard", "ssh" or the name of a site, got "carrier pigeon"',
        ),
        (18, "links.between", "there is no site pris"),
    ]


@pytest.mark.parametrize(
    ("text", "line", "key", "message"),
    [
        ("", 0, "", "is empty; cpythonplus-sites init creates one"),
        ("# nothing\n", 0, "", "is empty; cpythonplus-sites init creates one"),
        (b"[network]\nname = '\xe4'\n", 2, "", "is not UTF-8"),
        ("[network]\nname = \n", 2, "", "is not TOML: Invalid value"),
        ("a = 1\nb = 2\na = 3\n", 3, "", "a is defined twice"),
        ("[sites.a]\n[sites.b]\n[sites.a]\n", 3, "sites.a", "this table is defined twice"),
        ("a = [1,\n", 2, "", "is not TOML: "),
        ("a = " + "9" * 5000, 0, "", "is not TOML: "),
        ("a = " + "[" * 100_000, 0, "", "is nested too deeply"),
        ("#" * (MOST_BYTES + 1), 0, "", "is longer than 1 MiB, too long for a site file"),
    ],
    ids=str.split("empty comment latin-1 syntax key table open digits deep huge"),
)
def test_what_is_no_site_file_is_one_line(
    tmp_path: Path, text: str | bytes, line: int, key: str, message: str
) -> None:
    (problem,) = problems(written(tmp_path, text))
    assert problem[:2] == (line, key)
    assert problem.message.startswith(message)


def test_what_is_no_file_is_one_line(tmp_path: Path) -> None:
    assert problems(tmp_path) == [(0, "", "is not a file")]
    assert problems(tmp_path / "none.toml") == [(0, "", "no such file or directory")]
    with pytest.raises(SiteFileError, match=r"nu\\x00ll: is not a file"):
        load(tmp_path / "nu\0ll")
    os.mkfifo(tmp_path / "pipe")
    assert problems(tmp_path / "pipe") == [(0, "", "is not a file")]
    (tmp_path / "loop").symlink_to("loop")
    assert problems(tmp_path / "loop")[0].message == "too many levels of symbolic links"


def test_a_byte_order_mark_and_windows_line_ends_change_nothing(tmp_path: Path) -> None:
    usual = load(written(tmp_path, GOOD))
    text = "\ufeff" + GOOD.replace("\n", "\r\n")
    assert load(written(tmp_path, text)) == usual
    wrong = text.replace('"192.168.10.1"', '"192.168.11.1"')
    (problem,) = problems(written(tmp_path, wrong))
    assert problem == (8, "sites.berlin.gateway", "192.168.11.1 is in none of this site's LANs")


@pytest.mark.parametrize(
    "line",
    [
        "berlin = {{ {} }}",
        '"berlin" = {{ {} }}',
        "berlin={{{}}}",
    ],
)
def test_other_ways_to_write_a_table(tmp_path: Path, line: str) -> None:
    values = 'lan = ["10.1.0.0/16"], gateway = "10.1.0.1", tunnel_address = "10.254.0.1"'
    text = f'network.name = "a"\nnetwork.tunnel = "10.254.0.0/24"\n[sites]\n{line.format(values)}\n'
    assert load(written(tmp_path, text)).site("berlin").gateway == ip_address("10.1.0.1")
    wrong = text.replace('"10.1.0.1"', '"10.2.0.1"')
    assert problems(written(tmp_path, wrong))[0][:2] == (4, "sites.berlin.gateway")


def test_a_relay_is_no_link_and_what_it_relays_goes_to_the_third_site(tmp_path: Path) -> None:
    relay = 'between = ["paris", "rome"]\nvia = "berlin"\n'
    network = load(written(tmp_path, f"{GOOD}\n[[links]]\n{relay}"))
    assert network.link("paris", "rome") is None
    assert network.relay("rome", "paris") == "berlin"
    lan = ip_network("192.168.30.0/24")
    (route,) = (x for x in network.routes_from("paris") if x.subnet == lan)
    assert (route.target, route.peer, route.link.ends) == ("rome", "berlin", ("berlin", "paris"))
    assert lan in network.allowed_ips("paris", "berlin")
    assert ip_network("192.168.20.0/24") in network.allowed_ips("rome", "berlin")
    assert network.allowed_ips("berlin", "paris") == network.site("paris").subnets


def test_a_fallback_is_of_its_link(tmp_path: Path) -> None:
    network = load(written(tmp_path, GOOD.replace('via = "ssh"', 'fallback = "ssh"')))
    link = network.link("berlin", "rome")
    assert link is not None
    assert (link.via, link.fallback, link.tunnel_number, link.has_ssh) == (
        "wireguard",
        "ssh",
        7,
        True,
    )
    other = network.link("berlin", "paris")
    assert other is not None
    assert not other.has_ssh
