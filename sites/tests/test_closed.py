"""What is refused while no tunnel leads there, and what becomes of a site that leaves."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_network
from typing import TYPE_CHECKING

import pytest

from cpythonplus_sites.applying import apply
from cpythonplus_sites.live import look
from cpythonplus_sites.live_route import LiveRoute
from cpythonplus_sites.planning import plan
from cpythonplus_sites.rendering import Host, closed, names, render
from cpythonplus_sites.sessions import Session, sessions, to_be_ended
from sites.tests import strategies
from sites.tests.test_plan_and_apply import (
    EXAMPLE,
    applied,
    changed,
    descriptions,
    gateway,
    planned,
    refused,
    wants,
    without,
)

if TYPE_CHECKING:
    from cpythonplus_sites.model import Network
    from cpythonplus_sites.wanted import Wanted
    from sites.tests.simulated import Simulated

pytestmark = pytest.mark.any_version

KEYS = "/etc/ssh/cpythonplus-sites/acme.keys"
PARIS, OSLO = ip_network("192.168.20.0/24"), ip_network("192.168.30.0/24")
BY_WIREGUARD = replace(EXAMPLE, links=EXAMPLE.links[:2])
BATCH = "acme-unreachable.batch"


def clear_text(machine: Simulated, network: Network, name: str) -> list[str]:
    """The subnets of other sites that the default route would take: no other one is there."""
    there = {route.subnet for route in machine.routes}
    lans = [lan for site in network.sites if site.name != name for lan in site.lans]
    return [str(lan) for lan in lans if lan not in there]


@pytest.mark.parametrize("name", ["berlin", "paris", "oslo"])
def test_every_lan_is_refused_without_a_way_to_it(name: str) -> None:
    machine, wanted = gateway(), wants(EXAMPLE, name)
    applied(machine, wanted)
    lans = [lan for site in EXAMPLE.sites for lan in site.lans]
    assert refused(machine, wanted) == sorted([*lans, EXAMPLE.tunnel], key=str)
    for device in ("wg-acme", "tun7"):
        if device in machine.devices:
            machine.run(("ip", "link", "delete", "dev", device))
    assert clear_text(machine, EXAMPLE, name) == []


def test_it_is_refused_before_anything_is_forwarded_and_before_a_peer_is_known() -> None:
    network = changed(EXAMPLE, "paris", public_key=None)
    found = descriptions(planned(gateway(), wants(network)))
    (forwarded,) = [n for n, x in enumerate(found) if "ip_forward" in x]
    assert found.index(f"refuse {PARIS} while no tunnel leads there") < forwarded


def test_a_site_that_leaves_goes_before_what_refuses_it() -> None:
    machine = gateway()
    applied(machine, wants(EXAMPLE))
    two = wants(without(EXAMPLE, "oslo"))
    steps = descriptions(planned(machine, two))
    (peer,) = [n for n, x in enumerate(steps) if "remove peer" in x]
    (route,) = [
        n for n, x in enumerate(steps) if x == f"remove the route to {OSLO} through wg-acme"
    ]
    assert peer < route < steps.index(f"no longer refuse {OSLO}")
    applied(machine, two)
    assert OSLO not in {route.subnet for route in machine.routes}


@pytest.mark.parametrize("failing", ["route del 192", "wg set"])
def test_a_site_that_leaves_is_never_sent_to_in_clear_text_on_the_way(failing: str) -> None:
    machine = gateway()
    applied(machine, wants(EXAMPLE))
    machine.fails = failing
    outcome = apply(machine, wants(without(EXAMPLE, "oslo")))
    assert outcome.failed is not None
    assert clear_text(machine, EXAMPLE, "berlin") == []


LAN0, WAN = "lan0", "wan0"
PART = ip_network("192.168.10.128/25")


@pytest.mark.parametrize(
    ("lan", "routes", "before", "expected"),
    [
        ("192.168.10.0/24", [("192.168.10.0/24", LAN0)], [], "192.168.10.0/24"),
        ("192.168.10.0/24", [("192.168.20.0/24", LAN0)], [], "192.168.10.0/24"),
        ("192.168.10.7/32", [("192.168.10.0/24", LAN0)], [], "192.168.10.0/24"),
        ("10.1.0.0/24", [("10.0.0.0/8", LAN0), ("10.1.0.0/16", LAN0)], [], "10.1.0.0/16"),
        ("10.1.0.0/24", [("10.0.0.0/8", "lan1")], [], "10.0.0.0/8"),
        ("10.1.0.0/24", [("0.0.0.0/1", WAN)], [], "10.1.0.0/24"),
        ("fd00:10::/64", [("2000::/3", WAN), ("fc00::/7", LAN0)], [], "fc00::/7"),
        # The LAN is off: what was found before stays, whatever the provider's network is.
        ("192.168.10.7/32", [], ["192.168.10.0/24"], "192.168.10.0/24"),
        ("192.168.10.0/24", [("192.168.0.0/16", WAN)], ["192.168.10.0/24"], "192.168.10.0/24"),
        # It was off when the file was applied first, and is on now.
        (
            "192.168.10.7/32",
            [("192.168.10.0/24", LAN0)],
            ["192.168.10.7/32", "192.168.20.0/24"],
            "192.168.10.0/24",
        ),
    ],
)
def test_the_whole_network_of_a_lan_is_refused(
    lan: str, routes: list[tuple[str, str]], before: list[str], expected: str
) -> None:
    """Of a part alone the refusal would win against the route to the whole."""
    site = replace(EXAMPLE.site("berlin"), lans=(ip_network(lan),))
    there = [LiveRoute(ip_network(subnet), device, 2) for subnet, device in routes]
    text = "".join(f"route replace {closed.route_arguments(ip_network(x), 7)}\n" for x in before)
    assert closed.own_subnets(site, there, LAN0, text) == (ip_network(expected),)


def test_a_refusal_that_hides_its_network_goes_by_the_timer() -> None:
    machine, wanted = gateway(), wants(changed(EXAMPLE, "berlin", lans=(PART,)))
    applied(machine, wanted)
    whole = ip_network("192.168.10.0/24")
    found = replace(wanted, closed=tuple(whole if x == PART else x for x in wanted.closed))
    assert apply(machine, found, endpoints_only=True).is_good
    assert whole in refused(machine, found)
    assert PART not in refused(machine, found)
    assert plan(found, look(machine, found), endpoints_only=True).steps == ()


def test_a_lan_that_is_not_connected_is_told_and_stops_nothing() -> None:
    machine, wanted = gateway(), wants(EXAMPLE)
    (note,) = applied(machine, wanted).notes
    assert note.startswith("192.168.10.0/24, a LAN of this site, is not connected")
    machine.routes.append(LiveRoute(ip_network("192.168.10.0/24"), "eth1", 2))
    assert planned(machine, wanted).notes == ()


def test_what_refuses_is_put_back_by_the_timer() -> None:
    machine, wanted = gateway(), wants(EXAMPLE)
    applied(machine, wanted)
    machine.routes = [route for route in machine.routes if route.kind == "unicast"]
    assert apply(machine, wanted, endpoints_only=True).is_good
    assert refused(machine, wanted) == sorted(wanted.closed, key=str)


def test_another_network_on_the_same_gateway_is_let_alone() -> None:
    machine, wanted = gateway(), wants(EXAMPLE)
    other = replace(EXAMPLE, name="acme2")
    theirs = LiveRoute(
        ip_network("10.9.0.0/16"), "", closed.PROTOCOL, closed.metric(other), "unreachable"
    )
    machine.routes.append(theirs)
    applied(machine, wanted)
    assert theirs in machine.routes


def test_a_route_of_other_software_that_leads_nowhere_is_told() -> None:
    theirs = LiveRoute(PARIS, "", 4, 0, "blackhole")
    machine = gateway()
    machine.routes.append(theirs)
    outcome = apply(machine, wants(EXAMPLE))
    text = f"{PARIS} is not reached: other software has set a route of type blackhole"
    assert outcome.obstacles == (text,)
    assert theirs in machine.routes


def test_the_routes_are_there_at_boot() -> None:
    site = EXAMPLE.site("paris")
    files = {file.path.name: file.text for file in render(EXAMPLE, site, Host())}
    metric = closed.metric(EXAMPLE)
    lines = files[BATCH].splitlines()
    assert f"route replace unreachable {OSLO} proto {closed.PROTOCOL} metric {metric}" in lines
    unit = files[names.closed_unit(EXAMPLE)]
    assert f"-batch /etc/cpythonplus/sites/{BATCH}\n" in unit
    assert "Before=network-pre.target" in unit
    assert "ExecStop" not in unit
    assert (
        f"PreUp = ip -force -batch /etc/cpythonplus/sites/{BATCH} || true" in files["wg-acme.conf"]
    )


# ---- links over ssh -----------------------------------------------------------------------------


def server(*, systemd: bool, devices: frozenset[str] = frozenset({"tun7"})) -> Simulated:
    """Oslo, whom Paris calls: sshd holds the device, and is logged in for somebody else, too."""
    machine = gateway(systemd=systemd)
    applied(machine, wants(EXAMPLE, "oslo"))
    machine.processes = {
        11: Session(11, "sshd-session", devices),
        12: Session(12, "sshd-session"),
        13: Session(13, "bash"),
    }
    return machine


def order(machine: Simulated, wanted: Wanted) -> list[str]:
    """The plan without its files."""
    return [
        step.description
        for step in planned(machine, wanted).steps
        if step.file is None or KEYS in str(step.file.path)
    ]


@pytest.mark.parametrize("systemd", [False, True])
def test_a_removed_site_is_cut_off_before_its_filter_goes(systemd: bool) -> None:
    machine, wanted = server(systemd=systemd), wants(BY_WIREGUARD, "oslo")
    found = order(machine, wanted)
    keys = found.index(f"change {KEYS}, and end 2 sessions")
    (device,) = [n for n, x in enumerate(found) if x.startswith("remove tun7, whose link over ssh")]
    (table,) = [n for n, x in enumerate(found) if "nftables" in x]
    assert keys < device < table
    applied(machine, wanted)
    assert "tun7" not in machine.devices
    assert set(machine.processes) == {13}
    assert "ssh-ed25519" not in machine.files[KEYS][0]


@pytest.mark.parametrize("systemd", [False, True])
def test_a_device_that_cannot_be_removed_is_told_and_its_filter_stays(systemd: bool) -> None:
    machine, wanted = server(systemd=systemd), wants(BY_WIREGUARD, "oslo")
    machine.fails = "^ip link delete"
    before = dict(machine.tables)
    if systemd:  # as an earlier version wrote it, whose ExecStop= fails while sshd holds the device
        del machine.units["cpythonplus-sites-acme-tun@7.service"]
    outcome = apply(machine, wanted)
    assert outcome.failed is not None
    assert outcome.failed.description.startswith("remove tun7")
    assert outcome.reason == "sh: tun7 is still there"
    assert machine.tables == before
    assert not outcome.is_good
    assert planned(machine, wanted).steps


def test_the_callers_end_is_removed_too() -> None:
    machine = gateway()
    applied(machine, wants(EXAMPLE, "paris"))
    machine.processes = {21: Session(21, "ssh", frozenset({"tun7"}))}
    applied(machine, wants(BY_WIREGUARD, "paris"))
    assert "tun7" not in machine.devices
    assert machine.processes == {}


def test_a_changed_key_ends_the_session_of_the_old_one() -> None:
    machine = server(systemd=False)
    machine.processes[14] = Session(14, "sshd-session", frozenset({"tun8"}))
    other = strategies.example().site("berlin").ssh_public_key
    applied(machine, wants(changed(EXAMPLE, "paris", ssh_public_key=other), "oslo"))
    assert 11 not in machine.processes
    assert "tun7" in machine.devices


def test_a_key_more_ends_no_session() -> None:
    machine = gateway()
    applied(machine, wants(changed(EXAMPLE, "paris", ssh_public_key=None), "oslo"))
    machine.processes = {11: Session(11, "sshd-session", frozenset({"tun7"}))}
    applied(machine, wants(EXAMPLE, "oslo"))
    assert set(machine.processes) == {11}


def test_a_tun_device_of_somebody_else_is_left() -> None:
    machine = gateway()
    applied(machine, wants(EXAMPLE, "oslo"))
    machine.devices["tun9"] = replace(machine.devices["tun7"], name="tun9", owner="openvpn")
    machine.devices["tap0"] = replace(machine.devices["tun7"], name="tap0", addresses=())
    applied(machine, wants(BY_WIREGUARD, "oslo"))
    assert {"tun9", "tap0"} <= set(machine.devices)


def test_the_queue_of_a_tun_device() -> None:
    machine, wanted = gateway(), wants(EXAMPLE, "oslo")
    applied(machine, wanted)
    machine.devices["tun7"] = replace(machine.devices["tun7"], queue=10_000)
    assert descriptions(planned(machine, wanted)) == ["set the queue of tun7 to 500 packets"]
    applied(machine, wanted)
    assert machine.devices["tun7"].queue == 500


def test_sessions_are_read_from_proc() -> None:
    machine = gateway()
    machine.processes = {
        1: Session(1, "sshd", frozenset({"tun7", "tun8"})),
        2: Session(2, "ssh"),
    }
    assert sessions(machine, "sites-acme") == tuple(machine.processes.values())
    one, two = machine.processes.values()
    assert to_be_ended((one, two), stays=frozenset({"tun7", "tun8"})) == ()
    assert to_be_ended((one, two), stays=frozenset({"tun8"})) == (one,)


# ---- settings that cannot be written ------------------------------------------------------------


def test_a_setting_that_cannot_be_written_does_not_stop_the_rest() -> None:
    machine, wanted = gateway(fails="^sysctl"), wants(EXAMPLE)
    outcome = apply(machine, wanted)
    assert outcome.failed is None
    ((step, reason),) = outcome.missed
    assert step.description == "set net/ipv4/ip_forward to 1 (it is 0)"
    assert reason == "sysctl: it does not want to"
    assert not outcome.is_good
    assert "wg-acme" in machine.tunnels
    machine.fails = "(?!)"
    assert apply(machine, wanted).is_good


# ---- router advertisements ----------------------------------------------------------------------

V6 = changed(EXAMPLE, "paris", lans=(PARIS, ip_network("fd00:20::/64")))
ACCEPT, FORWARD = "net/ipv6/conf/eth0/accept_ra", "net/ipv6/conf/all/forwarding"


def with_uplink(machine: Simulated, advertised: tuple[str, ...] = ("eth0",)) -> Wanted:
    machine.settings[ACCEPT] = "1"
    host = Host(advertised=advertised)
    files = [x for x in render(V6, V6.site("berlin"), host) if x.path.parent.name == "sysctl.d"]
    wanted = wants(V6)
    rest = [x for x in wanted.files if x.path != files[0].path]
    return replace(wanted, files=(*files, *rest))


def test_the_default_route_from_advertisements_is_kept_first() -> None:
    machine = gateway()
    wanted = with_uplink(machine)
    (step,) = [x for x in planned(machine, wanted).steps if FORWARD in x.description]
    assert step.interrupts
    assert step.description == f"set {ACCEPT} to 2 (it is 1), set {FORWARD} to 1 (it is 0)"
    assert [x.argv[-1] for x in step.commands] == [f"{ACCEPT}=2", f"{FORWARD}=1"]
    applied(machine, wanted)
    assert (machine.settings[ACCEPT], machine.settings[FORWARD]) == ("2", "1")


def test_without_advertisements_nothing_is_said_of_them() -> None:
    machine = gateway()
    wanted = with_uplink(machine, ())
    (step,) = [x for x in planned(machine, wanted).steps if FORWARD in x.description]
    assert not step.interrupts
    applied(machine, wanted)
    assert machine.settings[ACCEPT] == "1"


def test_there_is_no_forwarding_where_the_default_route_cannot_be_kept() -> None:
    machine = gateway()
    wanted = with_uplink(machine)
    machine.fails = "accept_ra=2"
    outcome = apply(machine, wanted)
    assert len(outcome.missed) == 1
    assert machine.settings[FORWARD] == "0"
    assert plan(wanted, look(machine, wanted)).steps
