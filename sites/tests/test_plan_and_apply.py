"""From any state of a gateway, `apply` reaches one with nothing left to do, and touches no more."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import replace
from ipaddress import ip_interface, ip_network
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cpythonplus_sites import rotation
from cpythonplus_sites.applying import Outcome, apply
from cpythonplus_sites.live import Device, LivePeer, LiveTunnel, Unit, look
from cpythonplus_sites.live_route import LiveRoute
from cpythonplus_sites.model import Endpoint, Link, Network
from cpythonplus_sites.planning import END_LOST_SESSIONS, plan
from cpythonplus_sites.rendering import (
    ROUTE_PROTOCOL,
    Host,
    closed,
    names,
    render,
    units,
    withdrawn,
)
from cpythonplus_sites.steps import Command, Plan
from cpythonplus_sites.wanted import Keys, Wanted, want
from sites.tests import strategies
from sites.tests.simulated import NOW_S, Simulated

if TYPE_CHECKING:
    from cpythonplus_sites.model import Site, Subnet

pytestmark = pytest.mark.any_version

NEW_KEY = b64encode(bytes([77] * 32)).decode()
RECORD = PurePosixPath("/etc/cpythonplus/sites/written.json")
OWN_KEY = b64encode(bytes([78] * 32)).decode()
FOREIGN = LiveRoute(ip_network("172.16.5.0/24"), "eth0", 4)
DEVICES = (Device("lo", True, 65536), Device("eth0", True, 1500))


def renamed(network: Network, old: str, new: str) -> Network:
    def name(each: str) -> str:
        return new if each == old else each

    sites = tuple(replace(site, name=name(site.name)) for site in network.sites)

    def linked(link: Link) -> Link:
        one, other = sorted(map(name, link.ends))
        return replace(link, ends=(one, other))

    links = tuple(map(linked, network.links))
    return replace(network, sites=sites, links=links)


def wants(network: Network, name: str = "berlin", *, own: str = OWN_KEY) -> Wanted:
    site = network.site(name)
    public = str(site.public_key)
    keys = Keys(own, preshared=lambda one, other: f"{one}+{other}" if network.preshared else "")
    peers = {x.name: f"{public}+{x.public_key}" for x in network.sites}
    host = Host(private_key=own, preshared_keys=peers if network.preshared else {})
    return want(
        network,
        site,
        keys if network.preshared else Keys(own),
        files=render(network, site, host),
        withdrawn=withdrawn(network, site),
        units=units(network, site),
        changing_units=names.changing_units(network),
        tunnel_user=names.tunnel_user(network),
        record=RECORD,
    )


def gateway(**changes: object) -> Simulated:
    found = Simulated(
        devices={device.name: device for device in DEVICES},
        routes=[FOREIGN],
        settings={"net/ipv4/ip_forward": "0", "net/ipv6/conf/all/forwarding": "0"},
        names={"vpn.example.org": ("198.51.100.7",), "new.example.org": ("198.51.100.8",)},
    )
    for name, value in changes.items():
        setattr(found, name, value)
    return found


def planned(machine: Simulated, wanted: Wanted) -> Plan:
    return plan(wanted, look(machine, wanted))


def descriptions(found: Plan) -> list[str]:
    return [step.description for step in found.steps]


def applied(machine: Simulated, wanted: Wanted) -> Outcome:
    outcome = apply(machine, wanted)
    assert outcome.is_good, outcome
    assert planned(machine, wanted).steps == ()
    assert FOREIGN in machine.routes
    return outcome


def handshakes(machine: Simulated, *, age_s: int) -> None:
    for name, tunnel in machine.tunnels.items():
        peers = [replace(peer, handshake_s=int(NOW_S) - age_s) for peer in tunnel.peers]
        machine.tunnels[name] = replace(tunnel, peers=tuple(peers))


def through(machine: Simulated, subnet: Subnet) -> set[str]:
    return {x.device for x in machine.routes if x.subnet == subnet and x.kind == "unicast"}


def refused(machine: Simulated, wanted: Wanted) -> list[Subnet]:
    """What no default route can take."""
    mark = ("unreachable", closed.PROTOCOL, wanted.closed_metric)
    found = [x.subnet for x in machine.routes if (x.kind, x.protocol, x.metric) == mark]
    return sorted(found, key=str)


def changed(network: Network, name: str, **values: object) -> Network:
    sites = [replace(x, **values) if x.name == name else x for x in network.sites]  # type: ignore[arg-type]
    return replace(network, sites=tuple(sites))


def without(network: Network, name: str) -> Network:
    return replace(
        network,
        sites=tuple(site for site in network.sites if site.name != name),
        links=tuple(link for link in network.links if name not in link.ends),
    )


EXAMPLE = strategies.example()


@pytest.mark.parametrize("systemd", [False, True])
@pytest.mark.parametrize("name", ["berlin", "paris", "oslo"])
def test_from_nothing(name: str, systemd: bool) -> None:
    machine = gateway(systemd=systemd)
    wanted = wants(EXAMPLE, name)
    applied(machine, wanted)
    tunnel = machine.tunnels["wg-acme"]
    assert tunnel.private_key == OWN_KEY
    assert {peer.public_key for peer in tunnel.peers} == {
        peer.public_key for peer in wanted.tunnels[0].peers
    }
    assert machine.settings["net/ipv4/ip_forward"] == "1"
    assert set(machine.tables) == {"inet cpythonplus_sites_acme"}
    assert all(machine.devices[name].up for name in wanted.devices)
    conf, mode = machine.files["/etc/wireguard/wg-acme.conf"]
    assert (OWN_KEY in conf, mode) == (True, 0o600)
    assert any(path.startswith("/etc/systemd/") for path in machine.files) is systemd
    assert set(machine.units) == (set(wanted.units) if systemd else set())


def test_nothing_secret_is_on_a_command_line_or_shown() -> None:
    machine, wanted = gateway(), wants(EXAMPLE)
    shown = str([step.as_json() for step in planned(machine, wanted).steps])
    applied(machine, wanted)
    other = replace(wanted, tunnels=(replace(wanted.tunnels[0], private_key=NEW_KEY),))
    found = planned(machine, other)
    assert descriptions(found) == ["wg-acme: set the private key"]
    shown += str([step.as_json() for step in found.steps])
    for secret in (OWN_KEY, NEW_KEY, "berlin+paris"):
        assert secret not in shown
        assert secret not in str(machine.ran)


def test_a_site_more_and_a_site_less() -> None:
    machine = gateway()
    two = without(EXAMPLE, "oslo")
    applied(machine, wants(two))
    handshakes(machine, age_s=10)
    before = machine.tunnels["wg-acme"].peers
    steps = planned(machine, wants(EXAMPLE)).steps
    assert not any(step.interrupts for step in steps)
    applied(machine, wants(EXAMPLE))
    assert before[0] in machine.tunnels["wg-acme"].peers
    lan = ip_network("192.168.30.0/24")
    assert LiveRoute(lan, "wg-acme", ROUTE_PROTOCOL) in machine.routes
    found = descriptions(planned(machine, wants(two)))
    routes = [x for x in found if x.startswith("remove the route")]
    peer = next(x for x in found if "remove peer" in x)
    assert len(routes) == 2
    assert found.index(peer) < found.index(routes[0])
    assert found.index(routes[1]) < found.index("no longer refuse 192.168.30.0/24")
    applied(machine, wants(two))
    assert lan not in {route.subnet for route in machine.routes}
    assert machine.tunnels["wg-acme"].peers == before


def test_a_site_that_is_gone_may_not_log_in_any_more() -> None:
    path = "/etc/ssh/cpythonplus-sites/acme.keys"
    alone = without(EXAMPLE, "paris")  # who called Oslo over ssh
    machine = gateway()
    applied(machine, wants(EXAMPLE, "oslo"))
    assert "ssh-ed25519" in machine.files[path][0]
    applied(machine, wants(alone, "oslo"))
    assert "ssh-ed25519" not in machine.files[path][0]
    fresh = gateway()
    applied(fresh, wants(alone, "oslo"))
    assert path not in fresh.files


def test_an_mtu_and_a_key() -> None:
    machine = gateway()
    applied(machine, wants(EXAMPLE))
    links = tuple(replace(link, mtu=1300) for link in EXAMPLE.links)
    small = replace(EXAMPLE, links=links)
    assert "set the MTU of wg-acme to 1300" in descriptions(planned(machine, wants(small)))
    applied(machine, wants(small))
    assert machine.devices["wg-acme"].mtu == 1300
    other = changed(small, "paris", public_key=NEW_KEY)
    applied(machine, wants(other))
    assert NEW_KEY in {peer.public_key for peer in machine.tunnels["wg-acme"].peers}
    assert len(machine.tunnels["wg-acme"].peers) == 2


def test_an_interface_with_another_name_takes_over_the_port() -> None:
    machine = gateway()
    applied(machine, wants(EXAMPLE))
    applied(machine, wants(changed(EXAMPLE, "berlin", interface="wg-new")))
    assert set(machine.tunnels) == {"wg-new"}


def test_wireguard_is_given_the_peers_alone_that_differ() -> None:
    """Whatever is set of a peer anew, its allowed IPs are gone for a moment, and packets lost."""
    machine = gateway()
    applied(machine, wants(without(EXAMPLE, "oslo")))
    oslo = str(EXAMPLE.site("oslo").public_key)
    (added,) = wireguards(applied(machine, wants(EXAMPLE)))
    assert added.argv == ("wg", "addconf", "wg-acme", "/dev/stdin")
    assert re.findall("^PublicKey = (.*)$", added.stdin, re.MULTILINE) == [oslo]
    assert "[Interface]" not in added.stdin
    (removed,) = wireguards(applied(machine, wants(without(EXAMPLE, "oslo"))))
    assert removed.argv == ("wg", "set", "wg-acme", "peer", oslo, "remove")


def wireguards(outcome: Outcome) -> list[Command]:
    return [each for step in outcome.done for each in step.commands if each.argv[0] == "wg"]


# ---- endpoints ----------------------------------------------------------------------------------


def moved(machine: Simulated, wanted: Wanted, address: str) -> Plan:
    machine.names["vpn.example.org"] = (address,)
    return plan(wanted, look(machine, wanted), endpoints_only=True)


def test_a_name_that_moved_is_followed_unless_the_peer_is_heard_of() -> None:
    machine, wanted = gateway(), wants(EXAMPLE, "paris")
    applied(machine, wanted)
    assert moved(machine, wanted, "198.51.100.7").steps == ()
    handshakes(machine, age_s=179)
    found = moved(machine, wanted, "198.51.100.9")
    assert found.steps == ()
    assert "handshake was 179 s ago" in found.notes[0]
    handshakes(machine, age_s=180)
    (step,) = moved(machine, wanted, "198.51.100.9").steps
    assert step.description == "wg-acme: set the endpoint of berlin to 198.51.100.9:51820"
    assert apply(machine, wanted, endpoints_only=True).is_good
    assert Endpoint("198.51.100.9", 51820) in {p.endpoint for p in machine.tunnels["wg-acme"].peers}
    assert moved(machine, wanted, "198.51.100.9").steps == ()


def test_only_endpoints_changes_nothing_else() -> None:
    machine = gateway()
    applied(machine, wants(EXAMPLE))
    wanted = wants(changed(without(EXAMPLE, "oslo"), "paris", public_key=NEW_KEY))
    assert plan(wanted, look(machine, wanted), endpoints_only=True).steps == ()


def test_the_timer_loads_a_table_that_somebody_flushed_and_changes_none() -> None:
    machine, wanted = gateway(), wants(EXAMPLE)
    applied(machine, wanted)
    meant = dict(machine.tables)
    machine.tables.clear()
    assert apply(machine, wanted, endpoints_only=True).is_good
    assert machine.tables == meant
    wanted = wants(without(EXAMPLE, "oslo"))
    assert apply(machine, wanted, endpoints_only=True).is_good
    assert machine.tables == meant


def test_the_timer_loads_no_table_on_a_gateway_that_was_taken_down() -> None:
    machine, wanted = gateway(), wants(EXAMPLE)
    applied(machine, wanted)
    machine.tables.clear()
    live = replace(look(machine, wanted), devices={})
    assert plan(wanted, live, endpoints_only=True).steps == ()


@pytest.mark.parametrize("of_names", [False, True])
def test_a_site_with_another_name_keeps_its_link(of_names: bool) -> None:
    """But where its preshared key comes from the names: the far gateway still has the old one."""
    network = replace(EXAMPLE, preshared_of_names=of_names)
    before = {x.site: x for x in wants(network).tunnels[0].peers}
    after = {x.site: x for x in wants(renamed(network, "oslo", "rome")).tunnels[0].peers}
    changed = before["oslo"].preshared_key != after["rome"].preshared_key
    assert changed is of_names
    assert replace(before["oslo"], site="rome", preshared_key="") == replace(
        after["rome"], preshared_key=""
    )


def test_another_preshared_key_is_told_to_end_the_link() -> None:
    """The far gateway still has the old one."""
    machine = gateway()
    applied(machine, wants(EXAMPLE))
    wanted = wants(EXAMPLE)
    peers = tuple(
        replace(x, site="rome", preshared_key="berlin+rome") if x.site == "oslo" else x
        for x in wanted.tunnels[0].peers
    )
    named = replace(wanted, tunnels=(replace(wanted.tunnels[0], peers=peers),))
    (step,) = planned(machine, named).steps
    assert step.interrupts
    assert "change the preshared key of rome, which comes from the secret and the" in str(step)
    assert "the link is down, until rome has the same" in str(step)


UDP = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid
 1034: 00000000:CA6C 00000000:0000 07 00000000:00000000 00:00000000 00000000     0
 1035: 00000000:{0:04X} 00000000:0000 07 00000000:00000000 00:00000000 00000000     0
"""


@pytest.mark.parametrize("is_there", [False, True])
def test_a_second_port_that_somebody_else_has_stops_nothing_else(is_there: bool) -> None:
    """While another gateway changes its key; that one then waits for this one."""
    machine = gateway()
    applied(machine, wants(without(EXAMPLE, "oslo")))
    machine.files["/proc/net/udp6"] = (UDP.format(51821), 0o444)
    if is_there:  # an earlier version made it, and stopped there
        machine.devices["wg-acme-n"] = Device("wg-acme-n", False, 1420)
        machine.tunnels["wg-acme-n"] = LiveTunnel("wg-acme-n", None, 40000)
    wanted = wants(changed(EXAMPLE, "paris", next_public_key=NEW_KEY))
    outcome = apply(machine, wanted)
    (obstacle,) = outcome.obstacles
    assert obstacle.startswith("UDP port 51821, which wg-acme-n needs for a change of keys, is in")
    assert outcome.failed is None
    assert len(machine.tunnels["wg-acme"].peers) == 2
    machine.files["/proc/net/udp6"] = (UDP.format(51822), 0o444)
    applied(machine, wanted)
    assert machine.tunnels["wg-acme-n"].listen_port == 51821
    machine.files["/proc/net/udp6"] = (UDP.format(51821), 0o444)
    applied(machine, wanted)  # now it is ours


@pytest.mark.parametrize("address", ["192.168.10.1", "192.168.30.5", "10.254.0.9"])
def test_a_name_that_leads_into_a_tunnel_is_not_used(address: str) -> None:
    """As an office's own DNS answers: the tunnel would send its packets into itself."""
    machine, wanted = gateway(), wants(EXAMPLE, "paris")
    machine.names = {"vpn.example.org": (address,)}
    outcome = apply(machine, wanted)
    (obstacle,) = outcome.obstacles
    assert obstacle.startswith(f"berlin: vpn.example.org resolves to {address}, in a LAN or the")
    assert not any(address in " ".join(words) for words in machine.ran if words[0] == "wg")
    machine.names = {"vpn.example.org": (address, "198.51.100.7")}
    applied(machine, wanted)
    assert Endpoint("198.51.100.7", 51820) in {p.endpoint for p in machine.tunnels["wg-acme"].peers}


def test_a_name_that_does_not_resolve_is_said_and_the_rest_is_done() -> None:
    machine, wanted = gateway(names={}), wants(EXAMPLE, "paris")
    outcome = apply(machine, wanted)
    assert outcome.failed is None
    assert outcome.obstacles == ("berlin: vpn.example.org does not resolve",)
    assert not outcome.is_good
    assert len(machine.tunnels["wg-acme"].peers) == 1


# ---- what is not ours ---------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [2, 3, 4, 16])
def test_a_route_of_somebody_else_is_left(protocol: int) -> None:
    theirs = LiveRoute(ip_network("192.168.20.0/24"), "eth0", protocol)
    machine = gateway(routes=[FOREIGN, theirs])
    outcome = apply(machine, wants(EXAMPLE))
    assert outcome.failed is None
    expected = "192.168.20.0/24 is reached through eth0, by a route of other software"
    assert outcome.obstacles == (expected,)
    assert theirs in machine.routes


def test_a_device_that_is_no_wireguard_is_left() -> None:
    machine = gateway(devices={"wg-acme": Device("wg-acme", True, 1500)})
    outcome = apply(machine, wants(without(EXAMPLE, "oslo")))
    assert outcome.obstacles[0] == "wg-acme exists, but is not a WireGuard interface"
    assert machine.devices["wg-acme"] == Device("wg-acme", True, 1500)


def test_other_tunnels_and_routes_on_them_are_left() -> None:
    peer = LivePeer(NEW_KEY, allowed_ips=frozenset({ip_network("10.77.0.0/16")}))
    theirs = LiveTunnel("wg-theirs", NEW_KEY, 51820, (peer,))
    machine = gateway(tunnels={"wg-theirs": theirs})
    machine.devices["wg-theirs"] = Device("wg-theirs", True, 1420)
    route = LiveRoute(ip_network("10.77.0.0/16"), "wg-theirs", 3)
    machine.routes.append(route)
    applied(machine, wants(EXAMPLE))
    assert machine.tunnels["wg-theirs"] == theirs
    assert route in machine.routes


# ---- failures -----------------------------------------------------------------------------------


def test_it_stops_at_a_failure_and_goes_on_from_there() -> None:
    machine, wanted = gateway(fails="^wg-quick"), wants(EXAMPLE)
    outcome = apply(machine, wanted)
    assert outcome.failed is not None
    assert outcome.failed.description == "bring up wg-acme"
    assert outcome.reason == "wg-quick: it does not want to"
    assert machine.settings["net/ipv4/ip_forward"] == "1"
    machine.fails = "(?!)"
    again = applied(machine, wanted)
    assert not {step.description for step in again.done} & {x.description for x in outcome.done}


def test_what_has_no_effect_is_said() -> None:
    machine, wanted = gateway(), wants(EXAMPLE)
    machine._sysctl = lambda *_: machine._systemctl(("daemon-reload",), "")  # type: ignore[method-assign]
    outcome = apply(machine, wanted)
    assert outcome.failed is not None
    assert outcome.failed.description == "set net/ipv4/ip_forward to 1 (it is 0)"
    assert "undone by something else" in outcome.reason


# ---- a change of keys ---------------------------------------------------------------------------


def test_a_route_moves_to_the_second_interface_when_its_session_is_alive() -> None:
    machine = gateway()
    network = without(EXAMPLE, "oslo")
    applied(machine, wants(network))
    machine.settings |= {
        f"net/ipv4/conf/{name}/rp_filter": "1" for name in ("wg-acme", "wg-acme-n")
    }
    begun = changed(network, "paris", next_public_key=NEW_KEY)
    wanted = wants(begun)
    applied(machine, wanted)
    spare = rotation.spare_interface("wg-acme")
    assert set(machine.tunnels) == {"wg-acme", spare}
    assert machine.settings[f"net/ipv4/conf/{spare}/rp_filter"] == "2"
    lan = ip_network("192.168.20.0/24")
    assert through(machine, lan) == {"wg-acme"}
    handshakes(machine, age_s=5)
    assert apply(machine, wanted, endpoints_only=True).is_good
    assert through(machine, lan) == {spare}
    applied(machine, wanted)
    applied(machine, wants(network))
    assert set(machine.tunnels) == {"wg-acme"}
    assert through(machine, lan) == {"wg-acme"}


# ---- any state ----------------------------------------------------------------------------------

OLD_KEYS = st.sampled_from([b64encode(bytes([number] * 32)).decode() for number in (1, 2, 3, 77)])
SUBNETS = st.sampled_from(
    [
        ip_network(text)
        for text in ("192.168.20.0/24", "192.168.30.0/24", "10.254.0.3/32", "10.99.0.0/16")
    ]
)
LIVE_PEERS = st.builds(
    LivePeer,
    public_key=OLD_KEYS,
    preshared_key=st.none() | st.just(NEW_KEY),
    endpoint=st.none() | st.just(Endpoint("203.0.113.99", 1)),
    allowed_ips=st.frozensets(SUBNETS, max_size=3),
    handshake_s=st.sampled_from([0, int(NOW_S) - 10, int(NOW_S) - 1000]),
    keepalive_s=st.sampled_from([0, 25]),
)


@st.composite
def states(draw: st.DrawFn) -> Simulated:
    """An interface of ours in any condition, perhaps one of an old name, and any routes."""
    machine = gateway(systemd=draw(st.booleans()))
    for name in draw(st.sets(st.sampled_from(["wg-acme", "wg-old"]))):
        peers = draw(st.lists(LIVE_PEERS, max_size=3, unique_by=lambda peer: peer.public_key))
        port = draw(st.sampled_from([51820, 1]))
        key = draw(st.sampled_from([OWN_KEY, NEW_KEY])) if name == "wg-acme" else None
        machine.tunnels[name] = LiveTunnel(name, key or OWN_KEY, port, tuple(peers))
        texts = st.sampled_from(["10.254.0.1/32", "10.254.0.9/24", "10.1.1.1/32"])
        addresses = draw(st.lists(texts.map(ip_interface), unique=True))
        if key != OWN_KEY:  # or it would be somebody else's
            addresses += [x for x in [ip_interface("10.254.0.8/32")] if x not in addresses]
        mtu = draw(st.sampled_from([1420, 1400]))
        machine.devices[name] = Device(name, draw(st.booleans()), mtu, tuple(addresses))
    found = st.builds(
        LiveRoute,
        subnet=SUBNETS,
        device=st.sampled_from(sorted(machine.devices.keys() - {"lo"})),
        protocol=st.sampled_from([3, 4, ROUTE_PROTOCOL]),
        metric=st.sampled_from([0, 5]),
    )
    machine.routes += draw(
        st.lists(found, max_size=6, unique_by=lambda route: (route.subnet, route.metric))
    )
    return machine


@settings(max_examples=60, deadline=None)
@given(states(), st.sampled_from(["both", "paris"]))
def test_from_any_state(machine: Simulated, others: str) -> None:
    network = EXAMPLE if others == "both" else without(EXAMPLE, "oslo")
    wanted = wants(network)
    foreign = [x for x in machine.routes if x.device == "eth0" and x.protocol != ROUTE_PROTOCOL]
    outcome = apply(machine, wanted)
    assert outcome.failed is None, outcome
    assert planned(machine, wanted).steps == ()
    live = machine.tunnels["wg-acme"]
    assert {peer.public_key for peer in live.peers} == {
        peer.public_key for peer in wanted.tunnels[0].peers
    }
    assert "wg-old" not in machine.tunnels
    assert [x for x in foreign if x not in machine.routes] == []
    blocked = {each.partition(" ")[0] for each in outcome.obstacles}
    assert refused(machine, wanted) == sorted(wanted.closed, key=str)
    for way in wanted.routes:
        ours = [x for x in machine.routes if x.subnet == way.subnet and x.device == "wg-acme"]
        assert ours or str(way.subnet) in blocked


@settings(max_examples=25, deadline=None)
@given(strategies.gateways(), st.booleans())
def test_any_network_is_reached_from_nothing(
    found: tuple[Network, Site, Host], systemd: bool
) -> None:
    network, site, _ = found
    known = [each.public_key for each in network.sites if each.public_key]
    assume(len(known) == len(set(known)))  # the checks of the file see to that
    machine = gateway(systemd=systemd)
    wanted = wants(network, site.name)
    outcome = apply(machine, wanted)
    assert outcome.failed is None, outcome
    assert planned(machine, wanted).steps == ()
    assert refused(machine, wanted) == sorted(wanted.closed, key=str)


@pytest.mark.parametrize("name", ["paris", "oslo"])
def test_a_link_over_ssh_that_is_gone_is_stopped_at_both_ends(name: str) -> None:
    machine = gateway(systemd=True)
    applied(machine, wants(EXAMPLE, name))
    unit = "cpythonplus-sites-acme-tun@7.service"
    assert machine.units[unit].enabled
    machine.units["cpythonplus-sites-acme2-tun@7.service"] = Unit(True, True)
    rest = replace(EXAMPLE, links=EXAMPLE.links[:2])
    applied(machine, wants(rest, name))
    left = {each for each in machine.units if "@7" in each}
    assert left == {"cpythonplus-sites-acme2-tun@7.service"}  # another network's
    assert "tun7" not in machine.devices
    keys = [text for path, (text, _) in machine.files.items() if path.endswith("/acme.keys")]
    assert len(keys) == (name == "oslo")
    assert not any("ssh-ed25519" in text for text in keys)


def test_units_are_enabled_before_anything_is_waited_for() -> None:
    """An interface that is not up in time comes later by itself, and has to after the next boot."""
    machine, wanted = gateway(systemd=True), wants(EXAMPLE)
    machine.fails = "^systemctl (re)?start "
    outcome = apply(machine, wanted)
    assert outcome.failed is not None
    assert all(machine.units[name].enabled for name in wanted.units)


def test_a_unit_that_failed_and_is_no_longer_enabled_is_left() -> None:
    machine = gateway(systemd=True)
    applied(machine, wants(EXAMPLE))
    machine.units["cpythonplus-sites-acme-ssh@7.service"] = Unit(False, False)
    assert planned(machine, wants(EXAMPLE)).steps == ()


def test_ssh_takes_the_place_of_wireguard_and_the_timer_is_stopped() -> None:
    machine = gateway(systemd=True)
    applied(machine, wants(EXAMPLE, "paris"))
    timer = names.endpoints_unit(EXAMPLE)
    assert machine.units[timer].active
    applied(machine, wants(replace(EXAMPLE, links=EXAMPLE.links[2:]), "paris"))
    assert timer not in machine.units
    assert "wg-acme" not in machine.devices


def test_who_lost_the_device_of_an_ssh_link_is_ended_when_it_is_made_anew() -> None:
    """It would keep the connection, and the client never call again."""
    machine = gateway()
    wanted = wants(EXAMPLE, "oslo")
    applied(machine, wanted)
    del machine.devices["tun7"]
    machine.ran.clear()
    applied(machine, wanted)
    assert ("sh", "-c", END_LOST_SESSIONS, "sites-acme") in machine.ran


@pytest.mark.parametrize(
    ("name", "address", "goes"),
    [
        ("wg-acme-n", "10.254.0.1/32", True),
        ("wg-acme-n", "10.254.0.9/32", False),
        ("wg-mine-n", "10.254.0.1/32", False),
    ],
)
def test_the_second_interface_of_an_aborted_change_is_removed(
    name: str, address: str, goes: bool
) -> None:
    """Its key has been deleted by then; it is ours by its name and its address."""
    machine = gateway()
    wanted = wants(EXAMPLE)
    applied(machine, wanted)
    machine.devices[name] = Device(name, True, 1420, (ip_interface(address),))
    machine.tunnels[name] = LiveTunnel(name, NEW_KEY, 51821)
    applied(machine, wanted)
    assert (name not in machine.tunnels) is goes
