"""`cpythonplus-sites plan | apply | status`: wrong input is one line, and touches nothing."""

from __future__ import annotations

import json
from base64 import b64encode
from ipaddress import ip_interface
from typing import TYPE_CHECKING

import pytest

from cpythonplus_sites import keys
from cpythonplus_sites.commands import apply as apply_command
from cpythonplus_sites.commands import plan as plan_command
from cpythonplus_sites.commands import status as status_command
from cpythonplus_sites.commands.sites import main
from cpythonplus_sites.live import Device
from sites.tests.simulated import Simulated

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.any_version

PRIVATE = b64encode(bytes([8] + [1] * 30 + [65])).decode()
FILE = f"""\
[network]
name = "acme"
tunnel = "10.254.0.0/24"
topology = "mesh"
preshared = false

[sites.berlin]
lan = ["10.1.0.0/24"]
gateway = "10.1.0.1"
tunnel_address = "10.254.0.1"
endpoint = "203.0.113.1:51820"
public_key = "{keys.public_key(PRIVATE)}"

[sites.paris]
lan = ["10.2.0.0/24"]
gateway = "10.2.0.1"
tunnel_address = "10.254.0.2"
public_key = "{b64encode(bytes([7] * 32)).decode()}"
"""
ACTIONS = ("plan", "apply", "status")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Simulated:
    """Root on a gateway that only remembers."""
    found = Simulated(
        settings={"net/ipv4/ip_forward": "0"},
        devices={"eth1": Device("eth1", True, 1500, (ip_interface("10.1.0.1/24"),))},
    )
    for module in (apply_command, plan_command, status_command):
        monkeypatch.setattr(module, "Machine", lambda: found)
    for module in (apply_command, plan_command, status_command):
        monkeypatch.setattr(module, "need_root", lambda _: None)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "host"
    found.mkdir(mode=0o700)
    (found / "sites.toml").write_text(FILE)
    (found / "private.key").write_text(f"{PRIVATE}\n")
    (found / "private.key").chmod(0o600)
    return found


def sites(
    capsys: pytest.CaptureFixture[str], folder: Path, action: str, *more: str
) -> tuple[int, str, str]:
    file = ("--file", str(folder / "sites.toml"))
    status = main([action, *file, "--host-dir", str(folder), *more])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_plan_apply_plan(
    machine: Simulated, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = sites(capsys, folder, "plan")
    assert status == 1
    assert "bring up wg-acme" in out
    assert PRIVATE not in out
    status, out, _ = sites(capsys, folder, "plan", "--format", "json")
    steps = json.loads(out)["steps"]
    assert (status, {"description", "commands", "file", "interrupts"}) == (1, set(steps[0]))
    assert not machine.tunnels
    status, out, err = sites(capsys, folder, "apply")
    assert (status, err.count("\n")) == (2, 1)
    assert "--yes carries out the plan" in err
    assert not machine.tunnels
    status, out, _ = sites(capsys, folder, "apply", "--yes")
    assert status == 0
    *_, done, closing = out.splitlines()
    assert done.startswith("berlin: ")
    assert closing.startswith("  paris (between): there was never a handshake")
    assert sites(capsys, folder, "plan") == (0, "berlin: nothing to do\n", "")
    machine.answers = {"10.254.0.2", "10.2.0.1"}
    expected = "berlin: nothing to do\n  paris: reached, 1.5 ms\n"
    assert sites(capsys, folder, "apply", "--yes") == (0, expected, "")
    machine.settings["net/ipv4/ip_forward"] = "1"
    del machine.devices["eth1"]
    status, out, _ = sites(capsys, folder, "apply", "--yes")
    assert (status, "paris (here): no interface has 10.1.0.1" in out) == (1, True)
    assert sites(capsys, folder, "apply", "--endpoints-only")[0] == 0


def test_a_failure_says_what_was_not_done(
    machine: Simulated, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.fails = "^wg-quick"
    status, out, _ = sites(capsys, folder, "apply", "--yes")
    assert status == 1
    assert "! bring up wg-acme\n    wg-quick: it does not want to\n" in out
    assert "sites apply continues from here" in out


def test_status(machine: Simulated, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sites(capsys, folder, "apply", "--yes")
    status, out, _ = sites(capsys, folder, "status", "--ping-count", "0")
    assert status == 1
    assert "paris (between): there was never a handshake" in out
    out = sites(capsys, folder, "status", "--ping-count", "0", "--format", "json")[1]
    assert json.loads(out)["sites"][0]["verdict"] == "bad"
    out = sites(capsys, folder, "status", "--ping-count", "0", "--format", "prometheus")[1]
    assert 'cpythonplus_sites_up{network="acme",site="berlin",peer="paris"' in out
    assert machine.tunnels


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("10.2.0.0/24", "10.1.0.0/25"), "sites.toml:15: sites.paris"),
        (("[network]", "[network"), "sites.toml:1: "),
        (("preshared = false", "preshared = true"), "keygen --secret"),
        (("berlin", "bonn"), ""),
    ],
)
def test_a_wrong_file_touches_nothing(  # noqa: PLR0917
    machine: Simulated,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    action: str,
    change: tuple[str, str],
    message: str,
) -> None:
    path = folder / "sites.toml"
    path.write_text(FILE.replace(*change))
    more = ("--site", "berlin") if not message else ()
    status, out, err = sites(capsys, folder, action, *more)
    assert (status, out) == (2, "")
    assert message in err
    assert "Traceback" not in err
    assert machine.ran == []
    assert sorted(each.name for each in folder.iterdir()) == ["private.key", "sites.toml"]


@pytest.mark.parametrize("action", ACTIONS)
def test_a_key_that_is_not_right(
    machine: Simulated, folder: Path, capsys: pytest.CaptureFixture[str], action: str
) -> None:
    for text, message in (("nonsense", "not a key"), (None, "no site in "), ("", "keygen")):
        path = folder / "private.key"
        path.write_text(b64encode(bytes(32)).decode() if text is None else text)
        more = ("--site", "berlin") if text == "" else ()
        if text == "":
            path.unlink()
        status, _, err = sites(capsys, folder, action, *more)
        assert (status, err.count("\n")) == (2, 1)
        assert message in err
    assert machine.ran == []


@pytest.mark.parametrize("count", ["-1", "101", "x", "1.5", "٣"])
def test_a_wrong_count(folder: Path, capsys: pytest.CaptureFixture[str], count: str) -> None:
    status, _, err = sites(capsys, folder, "status", f"--ping-count={count}")
    assert status == 2
    assert "expected a number from 0 to 100, got" in err


def test_status_tells_a_file_that_is_not_applied(
    machine: Simulated, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sites(capsys, folder, "apply", "--yes")
    machine.answers = {"10.254.0.2", "10.2.0.1"}
    assert "is not the file that is applied" not in sites(capsys, folder, "status")[1]
    (folder / "sites.toml").write_text(
        FILE.replace("10.2.0.0/24", "10.3.0.0/24").replace("10.2.0.1", "10.3.0.1")
    )
    text = sites(capsys, folder, "status")[1]
    assert f"{folder}/sites.toml is not the file that is applied here" in text


def test_without_a_timer_apply_tries_each_address_once(
    machine: Simulated, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = b64encode(bytes([7] * 32)).decode()
    more = 'endpoint = "hub.example:51820"\nmore_endpoints = ["203.0.113.9:4000"]\npublic_key'
    (folder / "sites.toml").write_text(FILE.replace(f'public_key = "{key}"', f'{more} = "{key}"'))
    machine.names = {"hub.example": ("2001:db8::7", "198.51.100.7")}
    tunnel: list[str] = []
    machine.paused = lambda: tunnel.append(str(machine.tunnels["wg-acme"].peers[0].endpoint))
    sites(capsys, folder, "apply", "--yes")
    assert tunnel == ["[2001:db8::7]:51820", "198.51.100.7:51820"]
    assert str(machine.tunnels["wg-acme"].peers[0].endpoint) == "203.0.113.9:4000"
