"""A key's change: which tunnels there are, that nothing is lost on the way, what is written."""

from collections.abc import Sequence
from dataclasses import replace
from ipaddress import ip_address, ip_network
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpythonplus_sites import key_change, keys
from cpythonplus_sites.host_folder import HostFolder, write_key
from cpythonplus_sites.key_change import KeyChangeError
from cpythonplus_sites.machine import Machine, Output
from cpythonplus_sites.model import Endpoint, Link, Network, Site
from cpythonplus_sites.rotation import (
    Stage,
    Tunnel,
    carrier,
    spare_interface,
    spare_port,
    stage_of,
    wanted_tunnels,
)

pytestmark = pytest.mark.any_version

NAMES = ("berlin", "paris", "rome")


def a_site(number: int, name: str) -> Site:
    return Site(
        name=name,
        lans=(ip_network(f"192.168.{number}.0/24"),),
        gateway=ip_address(f"192.168.{number}.1"),
        tunnel_address=ip_address(f"10.254.0.{number}"),
        interface=f"wg-{name}",
        listen_port=51820,
        endpoint=Endpoint(f"203.0.113.{number}", 51820),
        public_key=f"{name} 1",
    )


def a_network(*, hub: str | None = None) -> Network:
    pairs = [pair for pair in combinations(NAMES, 2) if hub is None or hub in pair]
    return Network(
        name="acme",
        tunnel=ip_network("10.254.0.0/24"),
        topology="hub" if hub else "mesh",
        hub=hub,
        preshared=True,
        sites=tuple(a_site(number, name) for number, name in enumerate(NAMES, 1)),
        links=tuple(Link(pair, "wireguard", 1420, 0) for pair in pairs),
    )


def changed(network: Network, name: str, **values: str | None) -> Network:
    sites = (replace(s, **values) if s.name == name else s for s in network.sites)  # type: ignore[arg-type]
    return replace(network, sites=tuple(sites))


class Gateway:
    """What one gateway has: interfaces with a key and peers, and a route to each site."""

    def __init__(self, name: str, private: str) -> None:
        self.name = name
        self.private, self.next = private, ""
        self.tunnels: tuple[Tunnel, ...] = ()
        self.keys: dict[str, str] = {}
        self.routes: dict[str, str] = {}


class World:
    """Gateways whose sessions come up at once where both ends agree, and end where they do not."""

    def __init__(self, network: Network) -> None:
        self.is_up = False
        self.gateways = {site.name: Gateway(site.name, f"{site.name} 1") for site in network.sites}
        for name in self.gateways:
            self.apply(name, network)
        self.is_up = True
        self.check()

    def session(self, one: str, other: str, *, spare: bool) -> bool:
        """Whether a packet from one to the other gets through that pair of interfaces."""
        return all(self._knows(*ends, spare=spare) for ends in ((one, other), (other, one)))

    def _knows(self, one: str, other: str, *, spare: bool) -> bool:
        far = self._tunnel(other, spare=spare)
        near = self._tunnel(one, spare=spare)
        if near is None or far is None:
            return False
        key = self.gateways[other].keys[far.interface]
        port = far.listen_port
        return any(
            p.public_key == key and p.endpoint is not None and p.endpoint.port == port
            for p in near.peers
        )

    def _tunnel(self, name: str, *, spare: bool) -> Tunnel | None:
        return next((t for t in self.gateways[name].tunnels if t.spare == spare), None)

    def alive(self, name: str) -> set[tuple[str, str]]:
        return {
            (tunnel.interface, peer.public_key)
            for tunnel in self.gateways[name].tunnels
            for peer in tunnel.peers
            if self.session(name, peer.site, spare=tunnel.spare)
        }

    def apply(self, name: str, network: Network, stage: Stage | None = None) -> None:
        """In the order of `sites apply`: new interfaces and keys, routes, old interfaces."""
        gateway = self.gateways[name]
        wanted = wanted_tunnels(network, name, stage)
        gone = [t for t in gateway.tunnels if t.interface not in {w.interface for w in wanted}]
        gateway.tunnels = (*wanted, *gone)
        for tunnel in wanted:
            gateway.keys[tunnel.interface] = (
                gateway.next if tunnel.key == "next" else gateway.private
            )
        self.check()
        alive = self.alive(name)
        for far in {peer.site for tunnel in wanted for peer in tunnel.peers}:
            gateway.routes[far] = carrier(wanted, far, alive, gateway.routes.get(far))
            self.check()
        gateway.tunnels = wanted
        self.check()

    def check(self) -> None:
        """No gateway sends where nobody listens."""
        for name, gateway in self.gateways.items() if self.is_up else ():
            for far, interface in gateway.routes.items():
                tunnel = next(t for t in gateway.tunnels if t.interface == interface)
                assert self.session(name, far, spare=tunnel.spare), (name, far, interface)

    def uses(self, name: str, *, spare: bool) -> bool:
        """Whether all others send to that site over its first or its second interface."""
        return all(
            gateway.routes[name].endswith("-n") == spare
            for gateway in self.gateways.values()
            if name in gateway.routes
        )


@settings(max_examples=30, deadline=None)
@given(st.data(), st.sampled_from([None, "berlin", "paris"]), st.booleans())
def test_nothing_is_lost_in_whatever_order_the_gateways_follow(
    data: st.DataObject, hub: str | None, aborted: bool
) -> None:
    old = a_network(hub=hub)
    world = World(old)
    name = data.draw(st.sampled_from(NAMES))
    own = world.gateways[name]
    others = [other for other in NAMES if other != name]
    orders = st.lists(st.sampled_from(NAMES), max_size=4)

    def follow(network: Network, stage: Stage) -> None:
        for other in [*data.draw(orders), *data.draw(st.permutations(others)), name]:
            world.apply(other, network, stage if other == name else None)

    own.next = f"{name} 2"
    begun = changed(old, name, next_public_key=own.next)
    world.apply(name, begun, "begun")
    follow(begun, "begun")
    assert world.uses(name, spare=True)
    if aborted:
        world.apply(name, old, "aborted")
        follow(old, "aborted")
        final = old
    else:
        own.private = own.next
        switched = changed(begun, name, public_key=own.next)
        world.apply(name, switched, "switched")
        follow(switched, "switched")
        final = changed(switched, name, next_public_key=None)
    assert world.uses(name, spare=False)
    follow(final, "idle")
    assert all(len(gateway.tunnels) == 1 for gateway in world.gateways.values())


def test_outside_of_a_change_there_is_one_interface() -> None:
    (tunnel,) = wanted_tunnels(a_network(), "paris")
    assert (tunnel.interface, tunnel.listen_port, tunnel.key) == ("wg-paris", 51820, "current")
    assert [peer.site for peer in tunnel.peers] == ["berlin", "rome"]
    assert {peer.keepalive_s for peer in tunnel.peers} == {0}


def test_the_second_interface_has_the_changing_peers_and_a_port_of_its_own() -> None:
    network = changed(a_network(), "berlin", next_public_key="new")
    first, second = wanted_tunnels(network, "paris")
    assert [peer.site for peer in first.peers] == ["berlin", "rome"]
    (peer,) = second.peers
    assert (second.interface, second.listen_port, second.key) == ("wg-paris-n", 51821, "current")
    assert (peer.public_key, str(peer.endpoint)) == ("new", "203.0.113.1:51821")
    assert peer.keepalive_s > 0
    assert peer.allowed_ips == first.peers[0].allowed_ips
    _, own = wanted_tunnels(network, "berlin")
    assert [peer.site for peer in own.peers] == ["paris", "rome"]
    assert own.key == "next"


def test_links_over_ssh_and_sites_without_a_key_are_left_out() -> None:
    network = changed(a_network(), "rome", public_key=None)
    (tunnel,) = wanted_tunnels(network, "paris")
    assert [peer.site for peer in tunnel.peers] == ["berlin"]
    links = tuple(replace(link, via="ssh", tunnel_number=7) for link in network.links)
    assert wanted_tunnels(replace(network, links=links), "paris") == ()


@pytest.mark.parametrize("name", ["wg0", "a" * 13, "a" * 15])
def test_names_and_ports_stay_within_their_limits(name: str) -> None:
    assert len(spare_interface(name)) <= 15
    assert spare_interface(name) != name
    assert spare_port(65535) == 65534


def test_the_carrier_of_an_unknown_site() -> None:
    with pytest.raises(KeyError):
        carrier(wanted_tunnels(a_network(), "paris"), "oslo", set())


class Case:
    """A host folder and what the site file says, as berlin's gateway has them."""

    def __init__(self, path: Path) -> None:
        self.folder = HostFolder(path / "host")
        self.folder.create()
        write_key(self.folder.private_key_path, keys.new_private_key())
        self.old = self.folder.public_key()
        self.site = replace(a_site(1, "berlin"), public_key=self.old)
        self.fails = False

    def set_keys(self, values: object) -> None:
        if self.fails:
            raise OSError("full")
        self.site = replace(self.site, **values)  # type: ignore[arg-type]

    def do(self, step: str) -> None:
        getattr(key_change, step)(self.folder, self.site, self.set_keys)

    def interrupted(self, step: str) -> None:
        self.fails = True
        with pytest.raises(OSError, match="full"):
            self.do(step)
        self.fails = False

    @property
    def stage(self) -> Stage:
        return key_change.stage_here(self.folder, self.site)

    @property
    def files(self) -> set[str]:
        return {one.name for one in self.folder.path.iterdir()}


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


class TestSteps:
    def test_through_all_of_them_twice_each(self, case: Case) -> None:
        for step, stage in (("begin", "begun"), ("switch", "switched"), ("finish", "idle")):
            case.do(step)
            assert case.stage == stage
            after = (case.site, case.files, case.folder.public_key())
            case.do(step)
            assert after == (case.site, case.files, case.folder.public_key())
        assert case.files == {"private.key"}
        assert case.site.public_key == case.folder.public_key() != case.old
        assert case.site.next_public_key is None

    def test_each_interrupted_before_the_file_is_written(self, case: Case) -> None:
        for step in ("begin", "switch", "finish"):
            case.interrupted(step)
            network = replace(a_network(), sites=(case.site, *a_network().sites[1:]))
            assert case.folder.site_in(network) == case.site
            case.do(step)
        assert case.files == {"private.key"}
        assert case.site.public_key == case.folder.public_key() != case.old

    def test_abort(self, case: Case) -> None:
        case.do("begin")
        case.interrupted("abort")
        case.do("abort")
        case.do("abort")
        assert case.stage == "aborted"
        with pytest.raises(KeyChangeError, match="aborted and is not finished"):
            case.do("begin")
        with pytest.raises(KeyChangeError, match="rotate begin"):
            case.do("switch")
        case.do("finish")
        assert case.files == {"private.key"}
        assert case.site.public_key == case.folder.public_key() == case.old

    def test_steps_out_of_order(self, case: Case) -> None:
        for step, message in (("switch", "rotate begin"), ("abort", "no key is being changed")):
            with pytest.raises(KeyChangeError, match=message):
                case.do(step)
        case.do("begin")
        with pytest.raises(KeyChangeError, match="not in use yet"):
            case.do("finish")
        case.do("switch")
        for step in ("begin", "abort"):
            with pytest.raises(KeyChangeError, match="rotate finish"):
                case.do(step)

    def test_a_file_with_another_key_is_not_followed(self, case: Case) -> None:
        case.do("begin")
        case.site = replace(case.site, next_public_key=keys.public_key(keys.new_private_key()))
        with pytest.raises(KeyChangeError, match="is not the next_public_key"):
            case.do("switch")
        assert case.folder.public_key() == case.old

    def test_another_gateway_goes_by_the_file(self, case: Case) -> None:
        case.do("begin")
        assert stage_of(case.site) == "begun"
        case.do("abort")
        assert stage_of(case.site) == "idle"


class Counters(Machine):
    """Answers pings over the interfaces that each address is told to use."""

    def __init__(self, ways: dict[str, tuple[str, str]]) -> None:
        self.ways = ways
        self.received = dict.fromkeys(ways.values(), 32)

    def run(self, argv: Sequence[str], **_: object) -> Output:
        words = list(argv)
        if words[0] == "ping" and words[-1] in self.ways:
            self.received[self.ways[words[-1]]] += 3 * 1060
        lines = (f"{name}\t{key}\t{count}\t9" for (name, key), count in self.received.items())
        return Output(0, "\n".join([*lines, "odd line"]))


def test_who_sends_over_which_interface() -> None:
    network = a_network()
    site = network.site("berlin")
    machine = Counters({"10.254.0.2": ("wg-berlin-n", "paris 1")})
    used = key_change.used_interfaces(machine, network, site)
    assert used == {"paris": {"wg-berlin-n"}, "rome": frozenset()}
    assert key_change.not_moved(used, site, spare=True) == {"rome": "does not answer"}
    assert key_change.not_moved(used, site, spare=False) == {
        "paris": "sends over wg-berlin-n",
        "rome": "does not answer",
    }
