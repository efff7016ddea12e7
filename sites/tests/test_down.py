"""`cpythonplus-sites down`: links go and stay away, in an order in which nothing gets through."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from ipaddress import ip_interface
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cpythonplus_sites.applying import Outcome, carry_on
from cpythonplus_sites.commands import down as down_command
from cpythonplus_sites.commands.gateway import Gateway
from cpythonplus_sites.host_folder import HostFolder
from cpythonplus_sites.live import Device, LiveTunnel, Unit, look
from cpythonplus_sites.live_route import LiveRoute
from cpythonplus_sites.rendering import names
from cpythonplus_sites.taking_down import plan_down
from sites.tests import strategies
from sites.tests.simulated import Simulated, refused
from sites.tests.test_apply_command import FILE, PRIVATE, folder, sites  # noqa: F401
from sites.tests.test_plan_and_apply import FOREIGN, OWN_KEY, applied, gateway, planned, wants

if TYPE_CHECKING:
    from cpythonplus_sites.steps import Plan
    from cpythonplus_sites.wanted import Wanted

pytestmark = pytest.mark.any_version

EXAMPLE = strategies.example()
TABLE = "inet cpythonplus_sites_acme"
TIMER = names.endpoints_unit(EXAMPLE)


def taken_down(machine: Simulated, wanted: Wanted, *, routes_too: bool = False) -> Outcome:
    def planned() -> Plan:
        return plan_down(wanted, look(machine, wanted), routes_too=routes_too)

    return carry_on(machine, planned, lambda _: None)


def refused_routes(machine: Simulated) -> list[LiveRoute]:
    return [route for route in machine.routes if route.kind == "unreachable"]


@pytest.mark.parametrize("systemd", [False, True])
@pytest.mark.parametrize("name", ["berlin", "paris", "oslo"])
def test_nothing_of_a_link_is_left_and_apply_brings_it_back(name: str, systemd: bool) -> None:
    machine = gateway(systemd=systemd)
    wanted = wants(EXAMPLE, name)
    applied(machine, wanted)
    files, settings = dict(machine.files), dict(machine.settings)
    outcome = taken_down(machine, wanted)
    assert outcome.is_good, outcome
    assert set(machine.devices) == {"lo", "eth0"}
    assert machine.tunnels == {}
    assert [route.device for route in machine.routes if route.device in wanted.devices] == []
    assert FOREIGN in machine.routes
    assert machine.tables == {}
    assert set(machine.ended) == ({"sites-acme"} if wanted.ssh else set())
    running = {name for name, unit in machine.units.items() if unit.active or unit.enabled}
    assert running == ({names.closed_unit(EXAMPLE)} if systemd else set())
    assert (machine.files, machine.settings) == (files, settings)
    assert taken_down(machine, wanted).done == ()
    applied(machine, wanted)
    assert planned(machine, wanted).steps == ()


def test_the_order() -> None:
    """First what would bring a link back, then the links, and what holds packets back last."""
    machine = gateway(systemd=True)
    wanted = wants(EXAMPLE, "oslo")
    applied(machine, wanted)
    machine.ran.clear()
    assert taken_down(machine, wanted).is_good
    done = [" ".join(argv) for argv in machine.ran if argv[0] in ("systemctl", "ip", "nft")]
    changes = [each for each in done if "disable" in each or "delete" in each]
    assert changes[0] == f"systemctl disable --now {TIMER}"
    # One that it has begun waits for the lock until we are done.
    begun = f"systemctl stop {TIMER.removesuffix('.timer')}.service"
    assert done[done.index(changes[0]) + 1] == begun
    first_link, table = (
        next(i for i, each in enumerate(changes) if word in each)
        for word in ("wg-quick@", "clamping")
    )
    ssh = [i for i, each in enumerate(changes) if "-ssh@" in each or "-tun@" in each]
    assert ssh
    assert 0 < max(ssh) < first_link < table
    assert all(i < table for i, each in enumerate(changes) if "link delete" in each)


def test_an_interface_that_stays_keeps_the_table() -> None:
    machine = gateway()
    wanted = wants(EXAMPLE, "paris")
    applied(machine, wanted)
    machine.fails = "^ip link delete dev wg-acme"
    outcome = taken_down(machine, wanted)
    assert outcome.failed is not None
    assert (outcome.failed.description, outcome.reason) == (
        "remove wg-acme",
        "ip: it does not want to",
    )
    assert set(machine.tables) == {TABLE}
    assert "tun7" not in machine.devices
    machine.fails = "(?!)"
    assert taken_down(machine, wanted).is_good
    assert machine.tables == {}


def test_interfaces_of_an_old_name_go_too_and_others_stay() -> None:
    machine = gateway()
    wanted = wants(EXAMPLE)
    applied(machine, wanted)
    address = machine.devices["wg-acme"].addresses
    machine.devices["wg-old"] = Device("wg-old", True, 1420, address)
    machine.tunnels["wg-old"] = LiveTunnel("wg-old", OWN_KEY, 5)
    machine.devices["wg-home"] = Device("wg-home", True, 1420)
    machine.tunnels["wg-home"] = LiveTunnel("wg-home", "somebody's", 6)
    machine.units["wg-quick@wg-home.service"] = Unit(True, True)
    assert taken_down(machine, wanted).is_good
    assert set(machine.tunnels) == {"wg-home"}
    assert machine.units == {"wg-quick@wg-home.service": Unit(True, True)}


def test_an_interface_of_somebody_else_with_our_name_is_left() -> None:
    machine = gateway()
    wanted = wants(EXAMPLE)
    machine.devices["wg-acme"] = Device("wg-acme", True, 1500)
    outcome = taken_down(machine, wanted)
    assert (outcome.done, outcome.is_good) == ((), False)
    assert outcome.obstacles == ("wg-acme exists, but is not a WireGuard interface",)
    assert "wg-acme" in machine.devices


def test_no_name_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway without a resolver is to be taken down all the same."""
    machine = gateway()
    wanted = wants(EXAMPLE)
    asked: list[str] = []
    monkeypatch.setattr(machine, "resolve", asked.append)
    monkeypatch.setattr(down_command, "Machine", lambda: machine)
    found = Gateway(EXAMPLE, EXAMPLE.site("berlin"), wanted, HostFolder(Path("/nowhere")))
    down_command._planned(found, Namespace(no_systemd=False, clear_routes=False))
    assert asked == []


def test_unreachable_routes_stay_until_somebody_says_otherwise() -> None:
    """Without them a packet for another site would take the default route, unencrypted."""
    unit = names.closed_unit(EXAMPLE)
    machine = gateway(systemd=True)
    wanted = wants(EXAMPLE)
    applied(machine, wanted)
    paris = EXAMPLE.site("paris").lans[0]
    ours = refused_routes(machine)
    assert {route.subnet for route in ours} == set(wanted.closed)
    beside = str(wanted.closed_metric + 1)  # another network's
    others = [refused("172.16.9.0/24", "2", "9"), refused(str(paris), "2", beside)]
    machine.routes += others
    assert taken_down(machine, wanted).is_good
    assert machine.units == {unit: Unit(True, True)}
    assert refused_routes(machine) == [*ours, *others]
    outcome = taken_down(machine, wanted, routes_too=True)
    first, *rest = (step.description for step in outcome.done)
    assert first == f"disable and stop {unit}"
    assert set(rest) == {f"no longer refuse {x}" for x in wanted.closed}
    assert machine.units == {}
    assert refused_routes(machine) == others  # another network's, and the user's
    assert taken_down(machine, wanted, routes_too=True).done == ()


def test_unreachable_routes_that_are_missing_are_set_before_a_link_goes() -> None:
    """Of a gateway that an older version set up, or where somebody flushed them."""
    machine = gateway()
    wanted = wants(EXAMPLE)
    applied(machine, wanted)
    machine.routes = [route for route in machine.routes if route.kind == "unicast"]
    done = [step.description for step in taken_down(machine, wanted).done]
    assert done[0].startswith("refuse ")
    assert done.index("remove wg-acme") >= len(wanted.closed)
    assert {route.subnet for route in refused_routes(machine)} == set(wanted.closed)


# ---- the command --------------------------------------------------------------------------------


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Simulated:
    from cpythonplus_sites.commands import apply as apply_command

    found = Simulated(
        settings={"net/ipv4/ip_forward": "0"},
        devices={"eth1": Device("eth1", True, 1500, (ip_interface("10.1.0.1/24"),))},
    )
    for module in (apply_command, down_command):
        monkeypatch.setattr(module, "Machine", lambda: found)
        monkeypatch.setattr(module, "need_root", lambda _: None)
    return found


def test_it_asks_and_says_what_stays(
    machine: Simulated,
    folder: Path,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sites(capsys, folder, "apply", "--yes")
    status, out, err = sites(capsys, folder, "down")
    assert (status, err.count("\n")) == (2, 1)
    assert "--yes carries out the plan" in err
    assert out.startswith("berlin: 1 step\n  1. remove wg-acme (interrupts traffic)\n")
    assert f"- when the interfaces are gone: remove the nftables table {TABLE}\n" in out
    assert "wg-acme" in machine.devices
    for answer, kept in ((False, True), (True, False)):
        monkeypatch.setattr(down_command, "agreed", lambda answer=answer: answer)
        status, out, _ = sites(capsys, folder, "down")
        assert (status == 0, "wg-acme" in machine.devices) == (answer, kept)
    assert out.endswith(f"  - {down_command.STAYS}\n  - {down_command.CLOSED}\n")
    status, out, _ = sites(capsys, folder, "down", "--yes")
    assert (status, out.splitlines()[0]) == (0, "berlin: nothing to do")
    assert refused_routes(machine)
    status, out, _ = sites(capsys, folder, "down", "--yes", "--clear-routes")
    assert status == 0
    assert out.endswith(f"  - {down_command.STAYS}\n  - {down_command.OPEN}\n")
    assert refused_routes(machine) == []
    assert sites(capsys, folder, "apply", "--yes")[0] == 0
    assert "wg-acme" in machine.devices


def test_without_a_file_it_goes_by_what_was_applied(
    machine: Simulated,
    folder: Path,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Not by the one that lies here and is being edited."""
    sites(capsys, folder, "apply", "--yes")
    (tmp_path / "sites.toml").write_text("not yet right")
    monkeypatch.chdir(tmp_path)
    from cpythonplus_sites.commands.sites import main

    assert main(["down", "--yes", "--host-dir", str(folder)]) == 0
    assert machine.tunnels == {}
    assert (folder / "sites.toml").read_text() == FILE
    assert PRIVATE not in capsys.readouterr().out


def test_what_fails_is_said(
    machine: Simulated,
    folder: Path,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    sites(capsys, folder, "apply", "--yes")
    machine.fails = "^ip link delete"
    status, out, _ = sites(capsys, folder, "down", "--yes")
    assert status == 1
    assert "! remove wg-acme\n" in out
    assert "  cpythonplus-sites down continues from here.\n" in out
    assert down_command.STAYS not in out


def test_a_removed_table_is_not_the_others() -> None:
    machine = gateway(tables={"inet filter": "mine"})
    wanted = replace(wants(EXAMPLE), tunnels=(), ssh=())
    taken_down(machine, wanted)
    assert machine.tables == {"inet filter": "mine"}


def test_a_unit_that_leaves_its_device_behind() -> None:
    """`ip tuntap del` fails while an sshd holds the device; `ip link delete` does not."""
    machine = gateway(systemd=True)
    wanted = wants(EXAMPLE, "paris")
    applied(machine, wanted)
    machine.holds = {"tun7"}
    outcome = taken_down(machine, wanted)
    assert outcome.is_good
    done = [step.description for step in outcome.done]
    assert done.index("disable and stop cpythonplus-sites-acme-tun@7.service") < done.index(
        "remove tun7"
    )
    assert "remove wg-acme" not in done
    assert done[-1].endswith("-clamping.service")
    assert "tun7" not in machine.devices
