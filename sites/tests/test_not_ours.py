"""What is not of this network, or cannot be read, is left as it is: nothing at all is done then."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import import_module
from ipaddress import ip_interface, ip_network
from typing import TYPE_CHECKING

import pytest

from cpythonplus_sites import health
from cpythonplus_sites.applying import apply
from cpythonplus_sites.commands import sites
from cpythonplus_sites.live import Device, LiveTunnel, devices, look
from cpythonplus_sites.live_route import LiveRoute
from cpythonplus_sites.machine import Machine, Output
from cpythonplus_sites.planning import plan
from cpythonplus_sites.rendering import ROUTE_PROTOCOL
from sites.tests.simulated import Simulated
from sites.tests.test_plan_and_apply import (
    EXAMPLE,
    NEW_KEY,
    OWN_KEY,
    applied,
    gateway,
    handshakes,
    planned,
    wants,
    without,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.any_version

LAN = ip_network("192.168.20.0/24")
LOCAL_ONLY = ip_interface("fe80::1/64")


def refused(machine: Simulated, name: str, obstacle: str) -> None:
    before = (dict(machine.devices), dict(machine.files), list(machine.routes), dict(machine.units))
    outcome = apply(machine, wants(EXAMPLE, name))
    assert any(obstacle in each for each in outcome.obstacles), outcome.obstacles
    assert not outcome.done
    assert before == (machine.devices, machine.files, machine.routes, machine.units)


@pytest.mark.parametrize("systemd", [False, True])
def test_a_start_of_the_interface_leaves_a_route_of_somebody_else(systemd: bool) -> None:
    theirs = LiveRoute(LAN, "eth0", 4)
    machine = gateway(routes=[theirs], systemd=systemd)
    outcome = apply(machine, wants(without(EXAMPLE, "oslo")))
    assert theirs in machine.routes
    assert len(outcome.obstacles) == 1
    assert "wg-acme" in machine.tunnels


@pytest.mark.parametrize("metric", [0, 100])
def test_a_network_of_this_host_is_not_hidden(metric: int) -> None:
    machine = gateway(routes=[LiveRoute(LAN, "eth1", 2, metric)])
    refused(machine, "berlin", "192.168.20.0/24 is reached through eth1")
    assert plan(wants(EXAMPLE), look(machine, wants(EXAMPLE)), endpoints_only=True).obstacles == ()


def ssh_device(name: str) -> str:
    (device,) = [x.device for x in wants(EXAMPLE, name).ssh]
    return device


def test_a_tun_device_of_another_program_is_left() -> None:
    device = ssh_device("oslo")
    openvpn = Device(device, True, 1500, (ip_interface("10.8.0.2/24"), LOCAL_ONLY))
    machine = gateway(systemd=True)
    machine.devices[device] = openvpn
    refused(machine, "oslo", f"{device} exists, but its addresses are not those of this network")
    machine.devices[device] = replace(openvpn, addresses=(LOCAL_ONLY,))
    applied(machine, wants(EXAMPLE, "oslo"))


def test_an_interface_of_the_user_with_the_same_name_is_left() -> None:
    machine = gateway(tunnels={"wg-acme": LiveTunnel("wg-acme", NEW_KEY, 1)})
    theirs = Device("wg-acme", True, 1420, (ip_interface("10.9.0.1/24"),))
    machine.devices["wg-acme"] = theirs
    refused(machine, "berlin", "wg-acme exists, but its key and addresses")
    machine.devices["wg-acme"] = replace(theirs, addresses=(ip_interface("10.254.0.1/32"),))
    applied(machine, wants(EXAMPLE))  # a new key of ours


def test_a_configuration_of_the_user_is_not_overwritten() -> None:
    path = "/etc/wireguard/wg-acme.conf"
    machine = gateway(systemd=True, files={path: ("[Interface]\nPrivateKey = theirs\n", 0o600)})
    refused(machine, "berlin", f"{path} exists, but was not written by cpythonplus")


def test_routes_of_another_network_over_ssh_are_left() -> None:
    machine = gateway()
    machine.devices["tun42"] = Device("tun42", True, 1420, (ip_interface("10.77.0.1/32"),))
    theirs = LiveRoute(ip_network("10.77.5.0/24"), "tun42", ROUTE_PROTOCOL)
    machine.routes.append(theirs)
    applied(machine, wants(EXAMPLE))
    assert theirs in machine.routes
    # Of this network, from a link that is no more.
    machine.devices["tun42"] = Device("tun42", True, 1420, (ip_interface("10.254.0.1/32"),))
    applied(machine, wants(EXAMPLE))
    assert theirs not in machine.routes


# ---- what cannot be read ------------------------------------------------------------------------


@pytest.mark.parametrize("fails", ["^ip -j .* address", "^ip -j .* -4 route"])
def test_what_cannot_be_read_is_not_set_up_anew(fails: str) -> None:
    """It would look as if nothing were there, and the links that are up be dropped."""
    machine = gateway(systemd=True)
    applied(machine, wants(EXAMPLE))
    machine.fails = fails
    with pytest.raises(OSError, match="it does not want to"):
        planned(machine, wants(EXAMPLE))
    machine.fails = "^ip -j .* -6 route"  # a kernel without IPv6
    assert planned(machine, wants(EXAMPLE)).steps == ()


class Answers(Machine):
    """Programs that all answer the same."""

    def __init__(self, output: Output) -> None:
        self.output = output

    def run(self, argv: Sequence[str], *, stdin: str = "", timeout_s: float = 30) -> Output:
        assert argv
        assert timeout_s > len(stdin)
        return self.output


def test_what_ip_of_busybox_prints_is_refused() -> None:
    with pytest.raises(OSError, match="is not JSON"):
        devices(Answers(Output(0, "1: lo: <LOOPBACK,UP>\n")))


@pytest.mark.parametrize("status", [124, 127])
def test_a_wg_that_is_not_there_is_told(status: int) -> None:
    machine, wanted = Answers(Output(status, err="wg: No such file")), wants(EXAMPLE)
    for examine in (look, lambda m, w: health.examine(m, EXAMPLE, w, ping_count=0)):
        with pytest.raises(OSError, match="wg: No such file"):
            examine(machine, wanted)


def test_output_is_read_where_the_disk_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file on a disk is needed; `wg show` prints keys, which would lie there."""

    def full() -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    assert Machine().run(["echo", json.dumps([1])]) == Output(0, "[1]\n")


def test_a_changed_preshared_key_interrupts() -> None:
    machine = gateway()
    applied(machine, wants(EXAMPLE))
    plain = replace(EXAMPLE, preshared=False)
    assert [x.interrupts for x in planned(machine, wants(plain)).steps if "wg-acme:" in str(x)] == [
        True
    ]


# ---- half-done states ---------------------------------------------------------------------------


def server() -> str:
    """The site whose sshd takes a link."""
    return next(
        site.name
        for site in EXAMPLE.sites
        if any("sshd_config.d" in str(file.path) for file in wants(EXAMPLE, site.name).files)
    )


@pytest.mark.parametrize("before", [None, "# an older one\n"])
def test_a_file_that_sshd_refuses_is_put_back(before: str | None) -> None:
    machine, wanted = gateway(systemd=True, fails="sshd -t"), wants(EXAMPLE, server())
    path = next(str(x.path) for x in wanted.files if "sshd_config.d" in str(x.path))
    if before is not None:
        machine.files[path] = (before, 0o640)
    outcome = apply(machine, wanted)
    assert outcome.failed is not None
    assert path in outcome.failed.description
    assert not any("try-reload-or-restart" in words for words in machine.ran)
    assert machine.files.get(path) == (None if before is None else (before, 0o640))
    machine.fails = "(?!)"
    applied(machine, wanted)
    assert any("try-reload-or-restart" in words for words in machine.ran)


def test_the_tunnel_user_is_made_where_an_earlier_run_did_not() -> None:
    machine, wanted = gateway(), wants(EXAMPLE, server())
    machine.files |= {str(x.path): (x.text, x.mode) for x in wanted.files}
    applied(machine, wanted)
    assert any(words[0] == "systemd-sysusers" for words in machine.ran)


def test_an_interface_of_another_network_with_the_same_key_stays() -> None:
    theirs = LiveTunnel("wg-theirs", OWN_KEY, 51999)
    machine = gateway(tunnels={"wg-theirs": theirs})
    address = ip_interface("10.77.0.1/32")
    machine.devices["wg-theirs"] = Device("wg-theirs", True, 1420, (address,))
    applied(machine, wants(EXAMPLE))
    assert "wg-theirs" in machine.tunnels


def test_a_clock_that_went_back_makes_no_session() -> None:
    machine, wanted = gateway(), wants(EXAMPLE, "paris")
    applied(machine, wanted)
    handshakes(machine, age_s=-3600)
    machine.names["vpn.example.org"] = ("198.51.100.9",)
    found = plan(wanted, look(machine, wanted), endpoints_only=True)
    assert [step.description for step in found.steps] == [
        "wg-acme: set the endpoint of berlin to 198.51.100.9:51820"
    ]
    reaches = health.examine(machine, EXAMPLE, wanted, ping_count=0)
    causes = {reach.cause for reach in reaches if reach.via == "wireguard"}
    assert causes == {health.CLOCK_WENT_BACK}


@pytest.mark.parametrize("action", ["plan", "apply"])
def test_an_interruption_is_one_line(
    action: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    module = import_module(f"cpythonplus_sites.commands.{action}")
    monkeypatch.setattr(module, "find", interrupted)
    assert sites.main([action]) == 130
    assert capsys.readouterr().err.startswith(f"cpythonplus-sites {action}: interrupted")
