"""The files of a gateway say what the network says, and hold no more secrets than they have to."""

import re
from base64 import b64decode
from dataclasses import replace
from ipaddress import IPv4Address, ip_network
from pathlib import PurePosixPath

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from cpythonplus_sites.model import Endpoint, Network, Site
from cpythonplus_sites.rendering import (
    ROUTE_PROTOCOL,
    Host,
    RenderedFile,
    RenderingError,
    render,
    units,
)
from cpythonplus_sites.rendering import readme as readmes
from cpythonplus_sites.rendering.files import unit_argument, word
from cpythonplus_sites.rendering.static_routes import instructions, option_121
from sites.tests.strategies import example, gateways

pytestmark = pytest.mark.any_version

FEW = settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow], deadline=None)
OWN_KEY = "PRIVATEPRIVATEPRIVATEPRIVATEPRIVATEPRIVATEP="
PAIR_KEY = "PRESHAREDPRESHAREDPRESHAREDPRESHAREDPRESHAR="


def own(network: Network) -> Host:
    pairs = {site.name: PAIR_KEY for site in network.sites}
    return Host(private_key=OWN_KEY, preshared_keys=pairs)


def by_name(network: Network, site: str, host: Host | None = None) -> dict[str, str]:
    files = render(network, network.site(site), host or own(network))
    return {file.path.name: file.text for file in files}


def sections(text: str) -> list[dict[str, list[str]]]:
    """The sections of a wg-quick file: [Interface] first; keys that occur twice are lists."""
    found: list[dict[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("["):
            found.append({})
        elif line and not line.startswith("#"):
            key, _, value = line.partition(" = ")
            found[-1].setdefault(key, []).append(value)
    return found


def replaced(network: Network, name: str, **changes: object) -> Network:
    sites = [replace(s, **changes) if s.name == name else s for s in network.sites]  # type: ignore[arg-type]
    return replace(network, sites=tuple(sites))


# ---- WireGuard ----------------------------------------------------------------------------------


def test_the_interface_has_its_own_key_address_and_smallest_mtu() -> None:
    interface, *peers = sections(by_name(example(), "berlin")["wg-acme.conf"])
    assert interface["PrivateKey"] == [OWN_KEY]
    assert interface["Address"] == ["10.254.0.1/32"]
    assert interface["MTU"] == ["1400"]
    assert interface["Table"] == ["off"]
    assert len(peers) == 2


def test_a_peer_has_what_belongs_to_its_link() -> None:
    network = example()
    _, paris, oslo = sections(by_name(network, "berlin")["wg-acme.conf"])
    assert paris == {
        "PublicKey": [network.site("paris").public_key],
        "PresharedKey": [PAIR_KEY],
        "AllowedIPs": ["192.168.20.0/24, 10.254.0.2/32"],
        "PersistentKeepalive": ["25"],
    }
    assert oslo["Endpoint"] == ["203.0.113.7:51820"]


def test_a_name_that_does_not_resolve_leaves_the_other_peers_alone() -> None:
    """`wg` refuses a whole file because of one `Endpoint` that has no address."""
    text = by_name(example(), "paris")["wg-acme.conf"]
    interface, berlin = sections(text)
    assert "Endpoint" not in berlin
    commands = [x for x in interface["PostUp"] if " vpn.example.org 51820 &" in x]
    assert len(commands) == 1
    assert commands[0].endswith("& wait")  # which is successful


def test_routes_go_through_the_hub() -> None:
    network = example()
    links = tuple(link for link in network.links if "berlin" in link.ends)
    network = replace(network, topology="hub", hub="berlin", links=links)
    interface, berlin = sections(by_name(network, "paris")["wg-acme.conf"])
    route = f"ip -4 route add 192.168.30.0/24 dev %i proto {ROUTE_PROTOCOL} || true"
    assert route in interface["PostUp"]
    assert "192.168.30.0/24" in berlin["AllowedIPs"][0]


def test_a_peer_without_a_key_is_left_out() -> None:
    network = replaced(example(), "paris", public_key=None)
    text = by_name(network, "berlin")["wg-acme.conf"]
    assert len(sections(text)) == 2
    assert "# paris has no public key yet." in text


def test_an_ipv6_endpoint_stands_in_brackets() -> None:
    network = replaced(example(), "oslo", endpoint=Endpoint("2001:db8::7", 51820))
    assert "Endpoint = [2001:db8::7]:51820\n" in by_name(network, "berlin")["wg-acme.conf"]


def test_without_preshared_keys_there_is_none() -> None:
    network = replace(example(), preshared=False)
    assert "PresharedKey" not in by_name(network, "berlin")["wg-acme.conf"]


@FEW
@given(gateways())
def test_every_route_is_set_by_one_device(found: tuple[Network, Site, Host]) -> None:
    """Each subnet of each site that can be reached has one route, by WireGuard or by ssh."""
    network, site, host = found
    text = "\n".join(file.text for file in render(network, site, host))
    set_here = re.findall(r"route add (\S+) dev (?:%i|tun\d+) proto 99", text)
    assert sorted(set_here) == sorted(str(r.subnet) for r in network.routes_from(site.name))


@FEW
@given(gateways())
def test_secrets_stand_in_secret_files_only(found: tuple[Network, Site, Host]) -> None:
    network, site, host = found
    secrets = {host.private_key, *host.preshared_keys.values()} - {None}
    public = {key for each in network.sites for key in (each.public_key, each.next_public_key)}
    assume(not {str(secret) for secret in secrets} & {str(key) for key in public})
    for file in render(network, site, host):
        has = any(secret in file.text for secret in secrets if secret)
        assert has == file.secret
        assert file.mode == 0o600 or not has
        assert not has or str(host.private_key) not in repr(file)
    for file in render(network, site, Host()):
        assert not file.secret
        assert not any(secret in file.text for secret in secrets if secret)


@FEW
@given(gateways())
def test_files_are_the_same_each_time_and_have_one_place(
    found: tuple[Network, Site, Host],
) -> None:
    network, site, host = found
    files = render(network, site, host)
    assert files == render(network, site, host)
    assert len({file.path for file in files}) == len(files)
    assert all(file.path.is_absolute() and file.text.endswith("\n") for file in files)


@FEW
@given(gateways())
def test_every_unit_has_a_file(found: tuple[Network, Site, Host]) -> None:
    network, site, host = found
    names = {file.path.name for file in render(network, site, host)}
    for unit in units(network, site):
        template = re.sub(r"@[^.]*\.", "@.", unit)
        assert {unit, template} & names or unit.startswith("wg-quick@")


# ---- words that could break out -----------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["a b", "x;reboot", "$(id)", "a\nPostUp = id", "`id`", "%i", "-oProxyCommand=id", ""]
)
def test_an_odd_endpoint_runs_nothing(host: str) -> None:
    network = replaced(example(), "berlin", endpoint=Endpoint(host, 1))
    with pytest.raises(RenderingError):
        render(network, network.site("paris"), own(network))


@given(st.text())
def test_a_word_is_one_word(text: str) -> None:
    try:
        found = word(text)
    except RenderingError:
        return
    assert re.fullmatch(r"[!-~]+", found)
    assert not set(found) & set("\"'`$;&|<>(){}[]#\\%*?!")


def test_arguments_of_units_are_quoted() -> None:
    assert unit_argument("/opt/my env/bin/python") == '"/opt/my env/bin/python"'
    assert unit_argument("a%b$c") == "a%%b$$c"
    assert unit_argument('a"b\\') == '"a\\"b\\\\"'


def test_a_folder_that_a_unit_would_misread_is_refused() -> None:
    with pytest.raises(RenderingError):
        Host(folder=PurePosixPath("/etc/my sites"))


# ---- forwarding ---------------------------------------------------------------------------------


def test_mss_fits_the_mtu_of_each_device() -> None:
    text = by_name(example(), "oslo")["acme.nft"]
    assert 'oifname { "tun7" } meta nfproto ipv4' in text
    assert re.search(r'oifname \{ "wg-acme" \} meta nfproto ipv4 .* size set 1360\n', text)
    assert re.search(r'iifname \{ "tun7" \} meta nfproto ipv6 .* size set 1360\n', text)


def test_the_rules_are_readable_by_old_versions_of_nft() -> None:
    """`tcp flags VALUE / MASK` came with nft 0.9.9; Debian 11 has 0.9.8."""
    text = by_name(example(), "oslo")["acme.nft"]
    assert len(re.findall(r" tcp flags & \(syn \| rst\) == syn tcp option maxseg ", text)) == 8
    assert not re.search(r"tcp flags [\w,]+ /", text)


def test_only_our_table_is_made_anew() -> None:
    text = by_name(example(), "berlin")["acme.nft"]
    assert "flush" not in text
    assert set(re.findall(r"(?:^|delete )table (\S+ \S+)", text, re.MULTILINE)) == {
        "inet cpythonplus_sites_acme"
    }


def test_ipv6_is_forwarded_where_there_is_some() -> None:
    name = "60-cpythonplus-sites-acme.conf"
    assert "ipv6" not in by_name(example(), "berlin")[name]
    network = replaced(example(), "paris", lans=(ip_network("fd00:2::/64"),))
    assert "net.ipv6.conf.all.forwarding = 1" in by_name(network, "berlin")[name]


def test_what_comes_through_ssh_is_held_to_its_subnets() -> None:
    rule = 'iifname "tun7" ip saddr != { 192.168.20.0/24, 10.254.0.2/32 } drop'
    assert rule in by_name(example(), "oslo")["acme.nft"]
    assert "saddr !=" not in by_name(example(), "berlin")["acme.nft"]


# ---- ssh ----------------------------------------------------------------------------------------


def test_the_side_that_can_be_reached_is_the_server() -> None:
    network = example()
    oslo, paris = by_name(network, "oslo"), by_name(network, "paris")
    assert "acme.keys" in oslo
    assert "acme.keys" not in paris
    assert "HostName 203.0.113.7\n    Port 22\n" in paris["acme.config"]
    assert "cpythonplus-sites-acme-ssh@7.service" in units(network, network.site("paris"))
    assert "cpythonplus-sites-acme-ssh@7.service" not in units(network, network.site("oslo"))


def test_the_client_gives_up_and_comes_back() -> None:
    unit = by_name(example(), "paris")["cpythonplus-sites-acme-ssh@.service"]
    config = by_name(example(), "paris")["acme.config"]
    for line in ("StartLimitIntervalSec=0", "Restart=always", "User=sites-acme"):
        assert f"{line}\n" in unit
    for line in ("ExitOnForwardFailure yes", "BatchMode yes", "StrictHostKeyChecking yes"):
        assert f"    {line}\n" in config


def test_the_server_takes_the_tunnel_and_nothing_else() -> None:
    files = by_name(example(), "oslo")
    key = example().site("paris").ssh_public_key
    assert key is not None
    options, _, rest = files["acme.keys"].partition(" ")
    assert rest == f"{key}\n"
    assert set(options.split(",")) == {
        "no-agent-forwarding",
        "no-X11-forwarding",
        "no-pty",
        "no-user-rc",
        'tunnel="7"',
        'command="/bin/false"',
    }
    drop_in = files["50-cpythonplus-sites-acme.conf"]
    assert drop_in.startswith("Match User sites-acme\n")
    assert "PermitTunnel point-to-point\n" in drop_in
    assert "AllowTcpForwarding no\n" in drop_in


def test_the_hosts_key_is_pinned() -> None:
    known = by_name(example(), "paris")["acme.known_hosts"]
    assert known == f"oslo.acme {example().site('oslo').ssh_host_key}\n"
    network = replaced(example(), "oslo", ssh_host_key=None)
    assert by_name(network, "paris")["acme.known_hosts"].startswith("# oslo has no ssh_host_key")


# ---- static routes ------------------------------------------------------------------------------


def test_option_121_is_as_the_rfc_says() -> None:
    """The examples of RFC 3442, page 4: 10/8, 10.17/16, 10.27.129/24, and the default route."""
    router = IPv4Address("10.0.0.1")

    def encoded(subnet: str) -> str:
        return option_121([(ip_network(subnet), router)]).removesuffix(":0a:00:00:01")

    assert encoded("0.0.0.0/0") == "00"
    assert encoded("10.0.0.0/8") == "08:0a"
    assert encoded("10.17.0.0/16") == "10:0a:11"
    assert encoded("10.27.129.0/24") == "18:0a:1b:81"
    assert encoded("10.229.0.128/25") == "19:0a:e5:00:80"


def test_the_default_route_is_asked_for() -> None:
    network = example()
    site = network.site("berlin")
    assert "--lan-router" in instructions(network, site, Host()).text
    text = instructions(network, site, Host(), router=IPv4Address("192.168.10.254")).text
    assert "dhcp-option=121,0.0.0.0/0,192.168.10.254,192.168.20.0/24,192.168.10.1" in text
    assert "    00:c0:a8:0a:fe:18:c0:a8:14:c0:a8:0a:01:" in text


def test_windows_is_told_masks() -> None:
    text = by_name(example(), "berlin")["static-routes.md"]
    assert "route -p add 192.168.20.0 mask 255.255.255.0 192.168.10.1\n" in text


# ---- README -------------------------------------------------------------------------------------


def test_the_readme_names_every_file_and_what_is_missing() -> None:
    network = replaced(example(), "oslo", ssh_host_key=None)
    site = network.site("paris")
    files: tuple[RenderedFile, ...] = render(network, site, Host())
    text = readmes.readme(network, site, files)
    assert all(f"`{file.path}`" in text for file in files)
    assert "oslo has no `ssh_host_key`" in text
    assert "The private key and the preshared keys are not in these files." in text
    assert OWN_KEY not in readmes.readme(network, site, render(network, site, own(network)))


def test_example_keys_are_keys() -> None:
    for site in example().sites:
        assert len(b64decode(site.public_key or "")) == 32


def test_the_link_may_name_the_caller() -> None:
    """So that a site with another name does not turn the call round."""
    network = replaced(example(), "paris", ssh_endpoint=Endpoint("203.0.113.9", 22))
    for caller, expected in ((None, "oslo"), ("paris", "paris"), ("oslo", "oslo")):
        links = tuple(replace(x, caller=caller) if x.has_ssh else x for x in network.links)
        found = {
            name
            for name in ("oslo", "paris")
            if "acme.config" in by_name(replace(network, links=links), name)
        }
        assert found == {expected}
