"""Each address of each endpoint of a silent site is tried in turn, and none that leads nowhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cpythonplus_sites import watching
from cpythonplus_sites.applying import apply
from cpythonplus_sites.live import look
from cpythonplus_sites.model import Endpoint, Network
from cpythonplus_sites.planning import plan
from cpythonplus_sites.rendering import render
from cpythonplus_sites.rendering.files import Host
from cpythonplus_sites.rotation import wanted_tunnels
from sites.tests.simulated import Simulated
from sites.tests.test_plan_and_apply import EXAMPLE, applied, changed, gateway, handshakes, wants

pytestmark = pytest.mark.any_version

NAME = "vpn.example.org"
ADDRESSES = ("2001:db8::7", "198.51.100.7", "198.51.100.8")
SECOND = Endpoint("203.0.113.99", 4000)
LOOK_S = 10
NETWORK = changed(EXAMPLE, "berlin", more_endpoints=(SECOND,))


def at_paris(network: Network = NETWORK) -> Simulated:
    machine = gateway(names={NAME: ADDRESSES})
    applied(machine, wants(network, "paris"))
    return machine


def endpoint(machine: Simulated) -> str:
    (peer,) = machine.tunnels["wg-acme"].peers
    return str(peer.endpoint)


def looked(machine: Simulated, *answers: str, network: Network = NETWORK) -> str:
    """One run of the timer; returns the endpoint that berlin has then."""
    machine.answers = set(answers)
    machine.since_boot_s += LOOK_S
    wanted = wants(network, "paris")
    heard = watching.watch(machine, network, wanted)
    outcome = apply(machine, wanted, endpoints_only=True, heard=heard)
    assert outcome.failed is None
    watching.remember(machine, network, heard.remembered)
    return endpoint(machine)


def test_all_in_turn_and_in_order() -> None:
    machine = at_paris()
    assert endpoint(machine) == "[2001:db8::7]:51820"
    tried = [looked(machine) for _ in range(5)]
    assert tried == [
        "198.51.100.7:51820",
        "198.51.100.8:51820",
        "203.0.113.99:4000",
        "[2001:db8::7]:51820",
        "198.51.100.7:51820",
    ]


def test_one_that_answers_stays() -> None:
    machine = at_paris()
    assert looked(machine) == "198.51.100.7:51820"
    handshakes(machine, age_s=3)
    tunnel = str(NETWORK.site("berlin").tunnel_address)
    for _ in range(3):
        assert looked(machine, f"{tunnel}@wg-acme") == "198.51.100.7:51820"
    # The session is alive still, by the clock, but nothing comes back any more.
    assert looked(machine) == "198.51.100.8:51820"


def test_a_look_takes_one_step_and_a_plan_takes_none() -> None:
    machine = at_paris()
    wanted = wants(NETWORK, "paris")
    assert plan(wanted, look(machine, wanted)).steps == ()
    heard = watching.watch(machine, NETWORK, wanted)
    (step,) = apply(machine, wanted, endpoints_only=True, heard=heard).done
    assert step.is_quiet


def test_one_address_is_not_set_again_and_again() -> None:
    network = changed(EXAMPLE, "berlin", endpoint=Endpoint("198.51.100.7", 51820))
    machine = gateway()
    applied(machine, wants(network, "paris"))
    wanted = wants(network, "paris")
    heard = watching.watch(machine, network, wanted)
    assert apply(machine, wanted, endpoints_only=True, heard=heard).done == ()


@pytest.mark.parametrize("address", ["192.168.20.9", "127.0.0.1", "::", "224.0.0.1", "10.254.0.3"])
def test_an_address_that_reaches_no_other_gateway_is_passed_over(address: str) -> None:
    machine = gateway(names={NAME: (address, "198.51.100.7")})
    applied(machine, wants(EXAMPLE, "paris"))
    assert endpoint(machine) == "198.51.100.7:51820"
    alone = gateway(names={NAME: (address,)})
    outcome = apply(alone, wants(EXAMPLE, "paris"))
    (obstacle,) = outcome.obstacles
    assert obstacle.startswith(f"berlin: {NAME} resolves to {address}, in a LAN")


def test_a_second_endpoint_is_used_where_the_first_does_not_resolve() -> None:
    machine = gateway(names={})
    outcome = apply(machine, wants(NETWORK, "paris"))
    assert (outcome.failed, outcome.obstacles) == (None, ())
    assert f"berlin: {NAME} does not resolve" in outcome.notes
    assert endpoint(machine) == str(SECOND)


def test_a_site_with_two_addresses_is_looked_at_every_few_seconds() -> None:
    plain = changed(EXAMPLE, "berlin", endpoint=Endpoint("198.51.100.7", 51820))
    for network, interval in (
        (plain, 60),
        (changed(plain, "berlin", more_endpoints=(SECOND,)), 10),
    ):
        files = render(network, network.site("paris"), Host())
        (timer,) = (x.text for x in files if x.path.name.endswith("-endpoints.timer"))
        assert f"OnUnitInactiveSec={interval}\n" in timer


def test_the_second_interface_has_the_ports_of_the_file() -> None:
    changing = replace(
        changed(NETWORK, "berlin", next_public_key=EXAMPLE.site("oslo").public_key),
    )
    (_, spare) = wanted_tunnels(changing, "paris")
    assert [str(x) for x in (spare.peers[0].endpoint, *spare.peers[0].more_endpoints)] == [
        "vpn.example.org:51821",
        "203.0.113.99:4001",
    ]
    named = changed(changing, "berlin", second_port=6000)
    (_, spare) = wanted_tunnels(named, "paris")
    assert {x.port for x in (spare.peers[0].endpoint, *spare.peers[0].more_endpoints) if x} == {
        6000
    }
    assert wanted_tunnels(named, "berlin")[1].listen_port == 6000
