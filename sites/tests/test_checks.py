"""Each thing that can be wrong with a site file, and its line for people."""

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cpythonplus_sites import site_file
from cpythonplus_sites.advice import ROUTERS_CHOICES
from cpythonplus_sites.checks import MOST_SITES
from cpythonplus_sites.schema import (
    LinkStanza,
    NetworkStanza,
    SiteStanza,
    Stanza,
    Wrong,
    read,
    readers,
    stanza,
)
from sites.tests.site_texts import BERLIN_KEY, GOOD, PARIS_KEY, SSH_KEY, with_changed

pytestmark = pytest.mark.any_version


def found(text: str) -> list[tuple[str, str]]:
    """Key and message of each problem."""
    _, layout, wrong = site_file.examine(Path("sites.toml"), text)
    return [problem[1:] for problem in site_file._placed(wrong, layout)]


def test_the_good_file_is_good() -> None:
    assert found(GOOD) == []


NAME = 'name = "acme"\n'
TUNNEL = 'tunnel = "10.254.0.0/24"\n'
BERLIN = 'lan = ["192.168.10.0/24"]'
ROME = 'lan = ["192.168.30.0/24"]'
LINK = 'between = ["berlin", "rome"]\nvia = "ssh"\ntunnel_number = 7\nmtu = 1380\n'
ROME_ADDRESS = 'tunnel_address = "10.254.0.3"\n'
ROME_LAN = "sites.rome.lan"


@pytest.mark.parametrize(
    ("old", "new", "key", "message"),
    [
        # shapes
        ("[network]", "[[network]]", "network", "expected a table, [network], got an array"),
        ("[[links]]", "[links]", "links", "expected an array, in brackets, got a table"),
        (BERLIN, 'lan = "192.168.10.0/24"', "sites.berlin.lan", 'an array, in brackets, got "192'),
        (BERLIN, "lan = []", "sites.berlin.lan", "it contains no subnet"),
        (BERLIN, "lan = [7]", "sites.berlin.lan", "expected a string in quotes, got 7"),
        (NAME, "name = true\n", "network.name", "expected a string in quotes, got true"),
        (NAME, NAME + "preshared = 1\n", "network.preshared", 'true, false or "names", got 1'),
        (NAME, NAME + "mtu = true\n", "network.mtu", "from 576 to 9000 (bytes), got true"),
        (NAME, NAME + "mtu = 1420.0\n", "network.mtu", "from 576 to 9000 (bytes), got 1420.0"),
        (NAME, NAME + "keepalive = -1\n", "network.keepalive", "from 0 to 65535 (seconds), got -1"),
        (NAME, NAME + "mtu = 0x" + "f" * 9000 + "\n", "network.mtu", "got a number with too many"),
        (NAME, NAME + 'topology = "star"\n', "network.topology", 'expected "mesh" or "hub", got'),
        (NAME, NAME + "hubb = 1\n", "network.hubb", "unknown key (did you mean hub?)"),
        (BERLIN, BERLIN + "\nzzz = 1", "sites.berlin.zzz", "unknown key"),
        (LINK, LINK + "vai = 1\n", "links.vai", "unknown key (did you mean via?)"),
        (NAME, "", "network", "name is missing"),
        (BERLIN, "", "sites.berlin", "lan is missing"),
        (ROME_ADDRESS, "", "sites.rome", "tunnel_address is missing"),
        ('between = ["berlin", "rome"]', "", "links", "between is missing"),
        # names
        ("[sites.rome]", "[sites.Rome]", "sites.Rome", '"Rome" is not a name: up to 32 of a-z'),
        ("[sites.rome]", '[sites."a b"]', "sites.a b", '"a b" is not a name'),
        (
            "[sites.rome]",
            '[sites."\\n"]',
            "sites.\\n",
            "contains a character that cannot be printed",
        ),
        (NAME, 'name = "acmecompanies"\n', "network.name", "wg-acmecompanies is too long for an"),
        (
            BERLIN,
            BERLIN + '\ninterface = "wg/0"',
            "sites.berlin.interface",
            "is not an interface name",
        ),
        (
            BERLIN,
            BERLIN + '\ninterface = "wg-0123456789abc"',
            "sites.berlin.interface",
            "has 16 characters; an interface's name has at most 15",
        ),
        (
            BERLIN,
            BERLIN + '\ninterface = "all"',
            "sites.berlin.interface",
            "is not a usable interface",
        ),
        (
            BERLIN,
            BERLIN + '\nlan_interface = "wg-acme"',
            "sites.berlin.lan_interface",
            "wg-acme is the tunnel's interface",
        ),
        # addresses and subnets
        (ROME, 'lan = ["192.168.30.0"]', ROME_LAN, "no prefix length, such as 192.168.30.0/24"),
        (ROME, 'lan = ["192.168.30.7"]', ROME_LAN, "no prefix length, such as 192.168.30.0/24"),
        (ROME, 'lan = ["fd00:30::"]', ROME_LAN, "no prefix length, such as fd00:30::/64"),
        (ROME, 'lan = ["192.168.30.7/24"]', ROME_LAN, "bits set; the subnet is 192.168.30.0/24"),
        (ROME, 'lan = ["192.168.30.0/255.255.255.0"]', ROME_LAN, "is not a subnet, such as"),
        (ROME, 'lan = ["192.168.30.0/33"]', ROME_LAN, "is not a subnet, such as"),
        (ROME, 'lan = ["house"]', ROME_LAN, '"house" is not a subnet, such as'),
        (ROME, 'lan = [""]', ROME_LAN, "is empty: fill it in"),
        (ROME, 'lan = ["::ffff:192.168.30.0/120"]', ROME_LAN, "write the IPv4 form"),
        (ROME, 'lan = ["192.168.30.0/24", "127.0.0.0/8"]', ROME_LAN, "is never routed"),
        (ROME, 'lan = ["192.168.30.0/24", "::/0"]', ROME_LAN, "::/0 covers all addresses"),
        ('"192.168.30.1"', '"192.168.30.1/24"', "sites.rome.gateway", "without a prefix length"),
        ('"192.168.30.1"', '"192.168.030.1"', "sites.rome.gateway", "is not an IP address"),
        ('"192.168.30.1"', '"fe80::1%eth0"', "sites.rome.gateway", "has a zone, which means"),
        ('"192.168.30.1"', '"192.168.31.1"', "sites.rome.gateway", "in none of this site's LANs"),
        ('"192.168.30.1"', '"192.168.30.0"', "sites.rome.gateway", "is the network address of"),
        ('"192.168.30.1"', '"192.168.30.255"', "sites.rome.gateway", "is the broadcast address of"),
        ('"10.254.0.3"', '"10.253.0.3"', "sites.rome.tunnel_address", "not in the tunnel range 10"),
        ('"10.254.0.3"', '"10.254.0.0"', "sites.rome.tunnel_address", "is the network address of"),
        ('"10.254.0.3"', '"10.254.0.255"', "sites.rome.tunnel_address", "is the broadcast address"),
        (
            '"10.254.0.3"',
            '"10.254.0.1"',
            "sites.rome.tunnel_address",
            "same tunnel address is used",
        ),
        # overlaps
        (ROME, 'lan = ["192.168.30.0/24", "192.168.10.0/25"]', ROME_LAN, "10.0/24 of berlin"),
        (ROME, 'lan = ["192.168.30.0/24", "192.168.10.0/24"]', ROME_LAN, "10.0/24 of berlin"),
        (ROME, 'lan = ["192.168.30.0/24", "192.168.30.8/29"]', ROME_LAN, "30.0/24 of the same"),
        (ROME, 'lan = ["192.168.30.0/24", "fd00::/16"]', ROME_LAN, "fd00:20::/64 of paris"),
        (ROME, 'lan = ["192.168.30.0/24", "10.254.0.128/25"]', ROME_LAN, "the tunnel range 10.2"),
        (TUNNEL, 'tunnel = "10.254.0.0/30"\n', "sites.rome.tunnel_address", "is the broadcast"),
        # endpoints
        (
            '"vpn.example.org:51820"',
            '"vpn.example.org"',
            "sites.berlin.endpoint",
            "has no port, su",
        ),
        (
            '"vpn.example.org:51820"',
            '"vpn.example.org:0"',
            "sites.berlin.endpoint",
            "port 0 is not",
        ),
        (
            '"vpn.example.org:51820"',
            '"v.org:65536"',
            "sites.berlin.endpoint",
            "65536 is not from 1",
        ),
        (
            '"vpn.example.org:51820"',
            '"-v.org:1"',
            "sites.berlin.endpoint",
            '"-v.org" is not a DNS name',
        ),
        ('"vpn.example.org:51820"', '"v.org:x"', "sites.berlin.endpoint", "is not HOST:PORT"),
        (
            '"vpn.example.org:51820"',
            '"1.2.3:51820"',
            "sites.berlin.endpoint",
            "is not an IP address",
        ),
        (
            '"vpn.example.org:51820"',
            '"0x7f000001:1"',
            "sites.berlin.endpoint",
            "is not an IP address",
        ),
        ('"[2001:db8::3]:4500"', '"2001:db8::3:4500"', "sites.rome.endpoint", "[2001:db8::3]:4500"),
        (
            '"[2001:db8::3]:4500"',
            '"[1.2.3.4]:4500"',
            "sites.rome.endpoint",
            "is not an IPv6 address",
        ),
        ('"[2001:db8::3]:4500"', '"[::1]:4500"', "sites.rome.endpoint", "no other host can reach"),
        ('"[2001:db8::3]:4500"', '"192.168.10.9:1"', "sites.rome.endpoint", "10.0/24 of berlin"),
        ('"[2001:db8::3]:4500"', '"192.168.30.9:1"', "sites.rome.endpoint", "30.0/24 of the same"),
        (
            '"[2001:db8::3]:4500"',
            '"10.254.0.9:1"',
            "sites.rome.endpoint",
            "inside the tunnel range",
        ),
        ('"rome.example.org:22"', '"192.168.20.9:22"', "sites.rome.ssh_endpoint", "inside 192.168"),
        (
            '"[2001:db8::3]:4500"',
            '"VPN.example.org:51820"',
            "sites.rome.endpoint",
            "the same endpoint is used by berlin",
        ),
        # keys
        (
            BERLIN_KEY,
            "abc",
            "sites.berlin.public_key",
            "is not a WireGuard key: base64 of 32 bytes",
        ),
        (BERLIN_KEY, BERLIN_KEY[:-2] + "V=", "sites.berlin.public_key", "is not a WireGuard key"),
        (BERLIN_KEY, "A" * 43 + "=", "sites.berlin.public_key", "is a key of zeros"),
        (
            ROME_ADDRESS,
            f'{ROME_ADDRESS}next_public_key = "{BERLIN_KEY}"\n',
            "sites.rome.next_public_key",
            "the same key is used by berlin",
        ),
        (
            ROME_ADDRESS,
            ROME_ADDRESS + 'ssh_public_key = "ssh-ed25519 AAAA"\n',
            "sites.rome.ssh_public_key",
            "is not an OpenSSH public key",
        ),
        # hub
        (NAME, NAME + 'topology = "hub"\n', "network.hub", "requires the name of a site here"),
        (NAME, NAME + 'topology = "hub"\nhub = "oslo"\n', "network.hub", "there is no site oslo"),
        (NAME, NAME + 'hub = "rome"\n', "network.hub", "this network is a mesh"),
        (
            NAME,
            NAME + 'topology = "hub"\nhub = "paris"\n',
            "links.between",
            "every link has the hub, paris, at one end",
        ),
        # links
        ('["berlin", "rome"]', '["berlin", "oslo"]', "links.between", "there is no site oslo"),
        ('["berlin", "rome"]', '["rome", "rome"]', "links.between", "name two different sites"),
        ('["berlin", "rome"]', '["berlin"]', "links.between", "must name two different sites"),
        (
            LINK,
            LINK + '[[links]]\nbetween = ["rome", "berlin"]\n',
            "links.between",
            "linked by a table above",
        ),
        ("tunnel_number = 7\n", "", "links.tunnel_number", 'via = "ssh" needs one'),
        ('via = "ssh"\n', "", "links.tunnel_number", 'is for links with via = "ssh" or fallback'),
        # fallback
        ('via = "ssh"', 'fallback = "openvpn"', "links.fallback", 'expected "ssh", got "openvpn"'),
        (
            'via = "ssh"',
            'via = "ssh"\nfallback = "ssh"',
            "links.fallback",
            'is for links over WireGuard; this one has via = "ssh"',
        ),
        (
            'via = "ssh"\ntunnel_number = 7',
            'fallback = "ssh"',
            "links.tunnel_number",
            'is missing; fallback = "ssh" needs one',
        ),
        # relays
        (
            'via = "ssh"\ntunnel_number = 7\nmtu = 1380',
            'via = "bonn"',
            "links.via",
            'is neither "wireguard" nor "ssh", and there is no site bonn',
        ),
        (
            'via = "ssh"\ntunnel_number = 7\nmtu = 1380',
            'via = "rome"',
            "links.via",
            "rome is one of the two; it is to be a third site",
        ),
        ('via = "ssh"', 'via = "paris"', "links.mtu", "is for links of their own; paris relays"),
        (
            'via = "ssh"\ntunnel_number = 7\nmtu = 1380',
            'via = "paris"\n[[links]]\nbetween = ["paris", "rome"]\nvia = "berlin"',
            "links.via",
            "paris has no link of its own with rome: that is relayed, too",
        ),
        (
            "tunnel_number = 7",
            "tunnel_number = -1",
            "links.tunnel_number",
            "from 0 to 9999, got -1",
        ),
        (
            LINK,
            f'{LINK}[[links]]\nbetween = ["paris", "rome"]\nvia = "ssh"\ntunnel_number = 7\n',
            "links.tunnel_number",
            "tun7 is taken at rome by the link of berlin and rome",
        ),
        (
            BERLIN,
            BERLIN + '\ninterface = "tun7"',
            "links.tunnel_number",
            "tun7 is taken at berlin by its WireGuard interface",
        ),
        # who can call
        (
            'ssh_endpoint = "rome.example.org:22"\n',
            "",
            "sites.rome.ssh_endpoint",
            "neither this site nor berlin has an ssh_endpoint",
        ),
        (
            'endpoint = "[2001:db8::3]:4500"\n',
            "",
            "sites.rome.endpoint",
            "neither this site nor paris has an endpoint",
        ),
        # families and sizes
        ("mtu = 1380", "mtu = 1279", "links.mtu", "1279 is too small for IPv6, which needs 1280"),
        (NAME, NAME + "mtu = 1000\n", "network.mtu", "1000 is too small for IPv6"),
    ],
)
def test_each_problem(old: str, new: str, key: str, message: str) -> None:
    hits = found(with_changed(old, new))
    assert any(hit[0] == key and message in hit[1] for hit in hits), hits


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"[2001:db8::3]:4500"', '"vpn.example.org:51821"'),  # two behind one address
        (BERLIN, BERLIN + '\ninterface = "wg0"\nlisten_port = 4500'),
        (BERLIN, f'{BERLIN}\nnext_public_key = "{PARIS_KEY}"'),
        (BERLIN, f'{BERLIN}\nssh_public_key = "{SSH_KEY}"\nssh_host_key = "{SSH_KEY}"'),
        (ROME, 'lan = ["192.168.30.0/31"]'),  # its first address is a host
        ('"vpn.example.org:51820"', '"_vpn.x-1.example.org.:1"'),
        ('["berlin", "rome"]', '["rome", "berlin"]'),
    ],
)
def test_what_is_no_problem(old: str, new: str) -> None:
    text = with_changed(old, new)
    assert found(text.replace('"192.168.30.1"', '"192.168.30.0"') if "/31" in new else text) == []


OPTIONS = ("-x", "--help", "-oProxyCommand=id", "-")


def _as_values(option: str) -> Iterator[object]:
    """Yield what a careless reader would take it in."""
    yield option
    yield [option]
    yield f"{option}:51820"
    yield f"a.{option}:51820"
    kind = option.lower().replace("=", "")
    blob = b64encode(len(kind).to_bytes(4, "big") + kind.encode() + b"key").decode()
    yield f"{kind} {blob}"


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("kind", [NetworkStanza, SiteStanza, LinkStanza])
def test_nothing_is_taken_that_a_program_takes_for_an_option(
    kind: type[Stanza], option: str
) -> None:
    """Of all keys there are: most of them come onto a command line somewhere."""
    for key in readers(kind):
        for value in _as_values(option):
            wrong: list[Wrong] = []
            assert stanza(kind, {key: value}, ("sites", "a"), wrong) == kind(**_left(key, value))
            assert [one.keys[2] for one in wrong] == [key]


def test_the_port_of_a_change_of_keys_is_another_one() -> None:
    for line in ("second_port = 51820", "listen_port = 7\nsecond_port = 7"):
        ((key, message),) = found(with_changed(BERLIN, f"{BERLIN}\n{line}"))
        assert key == "sites.berlin.second_port"
        assert message.endswith("is the port of the first interface")


def test_more_endpoints_are_checked_as_the_first_one_is() -> None:
    more = 'more_endpoints = ["{}"]'
    for place, expected in (
        ("192.168.20.7:51820", "is inside 192.168.20.0/24 of paris"),
        ("vpn.example.org:51820", "the same endpoint is used by berlin"),
        ("127.0.0.1:51820", "is an address that no other host can reach"),
    ):
        ((key, message),) = found(with_changed(BERLIN, f"{BERLIN}\n{more.format(place)}"))
        assert key == "sites.berlin.more_endpoints"
        assert expected in message
    text = GOOD.replace(
        'tunnel_address = "10.254.0.2"',
        f'tunnel_address = "10.254.0.2"\n{more.format("a.example:1")}',
    )
    assert ("sites.paris.more_endpoints", "the first one belongs into endpoint") in found(text)


def _left(key: str, value: object) -> dict[str, Any]:
    """What is left of a value that is wrong: of an array the places of its items."""
    return (
        {key: [None]}
        if isinstance(value, list) and key in ("lan", "between", "more_endpoints")
        else {}
    )


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_is_no_name_of_a_site(option: str) -> None:
    hits = found(with_changed("[sites.rome]", f'[sites."{option}"]'))
    assert any(f'"{option}" is not a name' in message for _, message in hits)
    hits = found(with_changed('"rome.example.org:22"', f'"{option}:22"'))
    assert [message for _, message in hits] == [f'"{option}" is not a DNS name']


def test_one_mistake_is_told_once() -> None:
    for old, new in [
        ('"vpn.example.org:51820"', '"vpn.example.org"'),
        (BERLIN, 'lan = ["192.168.10.0"]'),
        ("tunnel_number = 7", 'tunnel_number = "7"'),
        (TUNNEL, 'tunnel = "10.254.0.0"\n'),
        (NAME, NAME + 'topology = "hub"\nhub = 7\n'),
    ]:
        assert len(found(with_changed(old, new))) == 1, new


def site(number: int, *, lan: str | None = None, more: str = "") -> str:
    lan = lan or f"10.{number}.0.0/24"
    gateway = lan.replace("0/24", "1").replace("::/64", "::1")
    return (
        f'[sites.s{number}]\nlan = ["{lan}"]\ngateway = "{gateway}"\n'
        f'tunnel_address = "172.30.{number // 200}.{number % 200 + 1}"\n{more}'
    )


def network(*sites: str, more: str = "") -> str:
    return f'[network]\nname = "n"\ntunnel = "172.30.0.0/16"\n{more}\n' + "".join(sites)


def test_no_family_in_common() -> None:
    hosts = 'endpoint = "a.example.org:1"\n'
    text = network(site(1, more=hosts), site(3, lan="fd00:3::/64"))
    only = "only IPv6 here and only IPv4 at s1: no host reaches the other"
    assert found(text) == [("sites.s3.lan", only)]


def test_a_link_with_a_fallback_needs_both_endpoints() -> None:
    text = GOOD.replace('via = "ssh"', 'fallback = "ssh"')
    assert found(text) == []
    (hit,) = found(text.replace('ssh_endpoint = "rome.example.org:22"\n', ""))
    assert hit[0] == "sites.rome.ssh_endpoint"
    assert "neither this site nor berlin has an ssh_endpoint" in hit[1]


def test_a_relay_needs_no_endpoint_at_the_two() -> None:
    hosts = 'endpoint = "a.example.org:1"\n'
    link = '[[links]]\nbetween = ["s2", "s3"]\nvia = "s1"\n'
    assert found(network(site(1, more=hosts), site(2), site(3), link)) == []
    (hit,) = found(network(site(1, more=hosts), site(2), site(3)))
    assert hit[0] == "sites.s3.endpoint"
    assert 'a [[links]] table with via = "s1" lets that site relay' in hit[1]
    ssh = 'ssh_endpoint = "b.example.org:22"\n'
    (hit,) = found(network(site(1, more=hosts), site(2, more=ssh), site(3)))
    assert 'via = "ssh" needs only the ssh_endpoint' in hit[1]
    hub = 'topology = "hub"\nhub = "s1"\n'
    (hit,) = found(network(site(1, more=hosts), site(2), site(3), link, more=hub))[1:]
    assert 'a relay is for topology = "mesh"' in hit[1]


def test_those_behind_nat_are_told_once_each() -> None:
    names = "s1, s2, s3, s4, s5 and 2 more"
    hits = dict(found(network(*map(site, range(1, 9)))))
    assert len(hits) == 7
    assert hits["sites.s8.endpoint"].startswith(f"neither this site nor {names} has an endpoint")


def test_a_hub_that_nobody_can_call() -> None:
    text = network(*map(site, range(1, 4)), more='topology = "hub"\nhub = "s1"')
    (hit,) = found(text)
    assert hit[0] == "sites.s1.endpoint"
    assert "neither this site nor s2, s3 has an endpoint" in hit[1]
    called = network(
        site(1),
        *(site(n, more=f'endpoint = "s{n}.example.org:1"\n') for n in (2, 3)),
        more='topology = "hub"\nhub = "s1"',
    )
    assert found(called) == []


def test_overlaps_are_found_however_they_are_nested() -> None:
    nested = ["10.0.0.0/8", "10.1.0.0/16", "10.1.1.0/24", "10.2.0.0/16"]
    for order in (nested, nested[::-1]):
        lans = ", ".join(f'"{lan}"' for lan in order)
        text = network(site(1).replace('"10.1.0.0/24"', lans))
        assert sum("overlaps" in message for _, message in found(text)) == 3


def test_too_many_sites(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpythonplus_sites.checks.MOST_SITES", 2)
    hits = found(network(*map(site, range(3))))
    assert hits == [("sites", "3 sites; at most 2 can be linked")]
    assert MOST_SITES == 500


@pytest.mark.parametrize(
    "data",
    [{"network": {}}, {"sites": {}}, {"network": 1, "sites": []}, {"links": [1, {}], "x": {}}, {}],
    ids=str,
)
def test_what_has_to_be_there(data: dict[str, Any]) -> None:
    _, wrong = read(data)
    assert {one.keys[0] for one in wrong} >= {"network", "sites"}
    assert len(wrong) == len({(one.keys, one.message) for one in wrong})


def test_every_key_stands_in_the_reference() -> None:
    root = Path(__file__).parents[1]
    page = (root / "docs" / "reference" / "sites-file.md").read_text("utf-8")
    for kind in (NetworkStanza, SiteStanza, LinkStanza):
        assert [key for key in readers(kind) if f"`{key}`" not in page] == []


def test_what_routers_use_stands_in_the_reference() -> None:
    root = Path(__file__).parents[1]
    page = (root / "docs" / "reference" / "sites-file.md").read_text("utf-8")
    assert [subnet for subnet in ROUTERS_CHOICES if subnet not in page] == []


@pytest.mark.parametrize(
    ("caller", "expected"),
    [
        ("berlin", None),
        ("rome", "berlin, which would be called, has no ssh_endpoint"),
        ("paris", "paris is not one of the two"),
    ],
)
def test_who_calls_over_ssh(caller: str, expected: str | None) -> None:
    text = with_changed('via = "ssh"', f'via = "ssh"\ncaller = "{caller}"')
    assert [message for _, message in found(text)] == ([expected] if expected else [])
