"""Everything of ours with an old name goes, whatever it was called; the rest stays."""

from __future__ import annotations

import json
from dataclasses import replace
from ipaddress import ip_network
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import pytest

from cpythonplus_sites.applying import apply
from cpythonplus_sites.live import Unit
from cpythonplus_sites.record import NOTHING, Record, parse
from cpythonplus_sites.rendering import closed
from cpythonplus_sites.wanted import PlainFile
from sites.tests.test_apply_command import folder, machine, sites
from sites.tests.test_plan_and_apply import (
    EXAMPLE,
    RECORD,
    applied,
    descriptions,
    gateway,
    planned,
    wants,
)

if TYPE_CHECKING:
    from pathlib import Path

    from cpythonplus_sites.model import Network
    from sites.tests.simulated import Simulated

__all__ = ["folder", "machine"]  # fixtures

pytestmark = pytest.mark.any_version

OLD_METRIC = closed.metric(EXAMPLE)


def renamed(network: Network, name: str) -> Network:
    """As a file has it in which nothing but the network's name is another one."""
    sites = (replace(x, interface=x.interface.replace("acme", name)) for x in network.sites)
    return replace(network, name=name, sites=tuple(sites))


NEW = renamed(EXAMPLE, "corp")


def left(machine: Simulated) -> list[str]:
    """Return everything that still has the old name, or belongs to something that has."""
    found = [*machine.files, *machine.units, *machine.tables, *machine.devices]
    found += [f"{x.name} of {x.owner}" for x in machine.devices.values() if x.owner]
    found += [f"metric of {x.subnet}: acme" for x in machine.routes if x.metric == OLD_METRIC]
    return [each for each in found if "acme" in each]


@pytest.mark.parametrize("systemd", [False, True])
@pytest.mark.parametrize("name", ["berlin", "paris", "oslo"])
def test_nothing_of_the_old_name_is_left(name: str, systemd: bool) -> None:
    machine = gateway(systemd=systemd)
    applied(machine, wants(EXAMPLE, name))
    assert left(machine)
    applied(machine, wants(NEW, name))
    assert left(machine) == []
    assert set(machine.devices) >= wants(NEW, name).devices
    assert "acme" not in machine.files[str(RECORD)][0]


def test_who_came_in_by_the_old_name_is_out_before_anything_else_is_made() -> None:
    machine = gateway(systemd=True)
    applied(machine, wants(EXAMPLE, "oslo"))
    found = descriptions(planned(machine, wants(NEW, "oslo")))
    assert found[1:3] == [
        "remove /etc/ssh/cpythonplus-sites/acme.keys",
        "end the sessions of sites-acme",
    ]
    assert found[-2:] == [
        "remove the user sites-acme",
        f"record in {RECORD} what is set up here",
    ]
    applied(machine, wants(NEW, "oslo"))
    assert "sites-acme" in machine.ended


@pytest.mark.parametrize(
    "fails",
    ["^rm -f /etc/ssh", "^rm -f /etc/wire", "disable --now cpy", "^nft -f", "enable", "^ip route"],
)
def test_what_was_broken_off_is_finished_by_the_next(fails: str) -> None:
    machine = gateway(systemd=True)
    applied(machine, wants(EXAMPLE, "oslo"))
    machine.fails = fails
    assert apply(machine, wants(NEW, "oslo")).failed is not None
    assert left(machine)
    machine.fails = "(?!)"
    applied(machine, wants(renamed(EXAMPLE, "third"), "oslo"))
    assert left(machine) == []
    assert not any("corp" in each for each in (*machine.files, *machine.units))


def test_another_network_with_a_record_of_its_own_is_left() -> None:
    machine = gateway(systemd=True)
    theirs = replace(
        renamed(EXAMPLE, "acme2"), tunnel=ip_network("10.7.0.0/24"), links=(), sites=EXAMPLE.sites
    )
    other = replace(wants(theirs), record=PurePosixPath("/etc/other/written.json"))
    applied(machine, other)
    before = left(machine)
    assert before
    applied(machine, wants(EXAMPLE))
    applied(machine, wants(NEW))
    assert left(machine) == before


def test_a_file_of_the_user_in_the_place_of_ours_is_left() -> None:
    path = "/etc/wireguard/wg-acme.conf"
    machine = gateway()
    applied(machine, wants(EXAMPLE))
    machine.files[path] = ("[Interface]\nPrivateKey = theirs\n", 0o600)
    applied(machine, wants(NEW))
    assert path in machine.files


def test_what_an_option_made_stays_without_it_and_goes_with_the_name() -> None:
    machine = gateway()
    tuning = PlainFile(PurePosixPath("/etc/sysctl.d/61-cpythonplus-acme-tune.conf"), "")
    wanted = replace(wants(EXAMPLE), kept=(tuning.path,))
    applied(machine, replace(wanted, files=(*wanted.files, tuning)))
    applied(machine, wanted)
    assert str(tuning.path) in machine.files
    applied(machine, wants(NEW))
    assert str(tuning.path) not in machine.files


def test_units_that_lie_where_no_systemd_runs_go() -> None:
    machine = gateway(systemd=True)
    applied(machine, wants(EXAMPLE))
    machine.systemd = False
    machine.fails = "^systemctl"
    applied(machine, wants(NEW))
    assert not any("/systemd/" in path for path in left(machine))


def test_files_of_a_link_that_is_no_more_go() -> None:
    machine = gateway(systemd=True)
    applied(machine, wants(EXAMPLE, "paris"))
    config = "/etc/ssh/cpythonplus-sites/acme.config"
    assert config in machine.files
    applied(machine, wants(replace(EXAMPLE, links=EXAMPLE.links[:2]), "paris"))
    assert config not in machine.files


@pytest.mark.parametrize("name", ["berlin", "paris"])
@pytest.mark.parametrize("network_name", ["acme", "corp"])
def test_the_old_end_of_the_tunnels_goes_with_its_range(name: str, network_name: str) -> None:
    machine = gateway(systemd=True)
    applied(machine, wants(EXAMPLE, name))
    moved = renamed(EXAMPLE, network_name)
    sites = (replace(x, tunnel_address=x.tunnel_address + 2**16) for x in moved.sites)
    moved = replace(moved, tunnel=ip_network("10.255.0.0/24"), sites=tuple(sites))
    applied(machine, wants(moved, name))
    addresses = [str(x) for device in machine.devices.values() for x in device.addresses]
    assert addresses
    assert not any(each.startswith("10.254.") for each in addresses)


def test_a_version_without_a_record_is_known_by_its_copy_of_the_file(
    machine: Simulated,
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    sites(capsys, folder, "apply", "--yes")
    record = str(folder / "written.json")
    del machine.files[record]
    new = tmp_path / "new.toml"
    new.write_text((folder / "sites.toml").read_text().replace('"acme"', '"corp"'))
    status, out, _ = sites(capsys, folder, "plan", "--file", str(new))
    assert status == 1
    assert f"record in {record} what is set up here" in out
    assert "remove /etc/wireguard/wg-acme.conf" in out


def test_an_odd_record_takes_nothing_away() -> None:
    assert parse("[]") == parse("{") == parse('{"files": 7, "users": [1, "root"]}') == NOTHING
    machine = gateway(systemd=True)
    applied(machine, wants(EXAMPLE))
    machine.files[str(RECORD)] = ('{"metrics": ["x"]}', 0o600)
    machine.units["cpythonplus-sites-acme2-tun@7.service"] = Unit(True, True)
    before = set(machine.files)
    applied(machine, wants(EXAMPLE))
    assert set(machine.files) == before


def test_a_record_is_what_it_was_when_it_is_read_again() -> None:
    found = wants(EXAMPLE, "oslo").written
    assert parse(found.text()) == found
    assert json.loads(found.text())["users"] == ["sites-acme"]
    assert found.without(found) == NOTHING
    assert found.joined(Record(users=("other",))).without(found) == Record(users=("other",))


def test_keys_of_nobody_that_is_known_are_told_and_stay() -> None:
    """As a version without a record leaves them behind a rename; or another network has them."""
    machine = gateway()
    applied(machine, wants(EXAMPLE))
    left = "/etc/ssh/cpythonplus-sites/old.keys"
    machine.files[left] = ('tunnel="7" ssh-ed25519 AAAA paris\n', 0o644)
    found = planned(machine, wants(EXAMPLE))
    assert found.steps == ()
    (note,) = (note for note in found.notes if left in note)
    assert note.startswith(f"{left} lets sites in over ssh")
    del machine.files[left]
    assert not [note for note in planned(machine, wants(EXAMPLE)).notes if "lets sites in" in note]
