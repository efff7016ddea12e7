"""Two gateways with different files are told so, and which of them is older."""

from __future__ import annotations

import json
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpythonplus_sites import agreement
from cpythonplus_sites.agreement import Agreement, Edition
from cpythonplus_sites.commands.gateway import Gateway, agreement_of
from cpythonplus_sites.host_folder import HostFolder
from cpythonplus_sites.rendering import Host, render
from cpythonplus_sites.rendering.forwarding import FIRST_PORT, HEARD_S
from cpythonplus_sites.wanted import Wanted
from sites.tests.simulated import NOW_S, Simulated
from sites.tests.site_texts import GOOD
from sites.tests.strategies import example

pytestmark = pytest.mark.any_version

NETWORK = example()
BERLIN, PARIS = (str(NETWORK.site(name).tunnel_address) for name in ("berlin", "paris"))
FLOOR = 1_700_000_000
FOLDER = HostFolder(Path("/etc/cpythonplus/sites"))
WORDS = st.integers(0, 2**32 - 1)


def elements(machine: Simulated, address: str, *, age_s: int = 0) -> list[dict[str, object]]:
    """What the far kernel has in the set after what the machine sent."""
    return [
        {"elem": {"val": {"concat": [address, own, far]}, "expires": HEARD_S - age_s}}
        for _, _, ports in machine.sent
        for own, far in ports
    ]


def receiver(*found: dict[str, object]) -> Simulated:
    machine = Simulated()
    machine.rulesets["heard"] = json.dumps({"nftables": [{"set": {"elem": found}}]})
    return machine


def told(edition: Edition, *, age_s: int = 0) -> list[dict[str, object]]:
    sender = Simulated()
    agreement.tell(sender, NETWORK, "berlin", edition, ["paris"])
    ((source, target, _),) = sender.sent
    assert (str(source), str(target)) == (BERLIN, PARIS)
    return elements(sender, BERLIN, age_s=age_s)


@given(WORDS, WORDS)
def test_what_is_told_is_heard(digest: int, since_s: int) -> None:
    edition = Edition(digest, since_s)
    assert agreement.heard(receiver(*told(edition)), NETWORK) == {"berlin": edition}


@pytest.fixture(autouse=True)
def _floor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before Simulated's time, whatever the next release sets it to."""
    monkeypatch.setattr(agreement, "FLOOR", FLOOR)


def test_the_last_telling_counts() -> None:
    old, new = Edition(0x11112222, 0x33334444), Edition(0x55552222, 0x66667777)
    machine = receiver(*told(old, age_s=900), *told(new, age_s=3))
    assert agreement.heard(machine, NETWORK) == {"berlin": new}
    at_once = receiver(*told(old, age_s=3), *told(new, age_s=3))
    assert agreement.heard(at_once, NETWORK) == {}
    half = receiver(*told(old, age_s=900)[:2], *told(new, age_s=3)[2:])
    assert agreement.heard(half, NETWORK) == {}


@pytest.mark.parametrize(
    "text",
    ["", "nonsense", "[]", '{"nftables": 3}', '{"nftables": [{"set": {"elem": [{"elem": {}}]}}]}'],
)
def test_what_is_no_such_list_tells_nothing(text: str) -> None:
    machine = Simulated()
    machine.rulesets["heard"] = text
    assert agreement.heard(machine, NETWORK) == {}


def test_a_stranger_is_not_heard() -> None:
    (first, *rest) = told(Edition(1, 2))
    strange = json.loads(json.dumps([first, *rest]).replace(BERLIN, "10.254.0.77"))
    assert agreement.heard(receiver(*strange), NETWORK) == {}


def test_comments_and_order_make_no_other_file() -> None:
    assert agreement.digest("# hello\n" + GOOD) == agreement.digest(GOOD)
    assert agreement.digest(GOOD + "[sites.lima]\nlan = []\n") != agreement.digest(GOOD)


class TestExchange:
    def machine(self, text: str) -> Simulated:
        machine = receiver()
        machine.write(FOLDER.sites_path, text, mode=0o644)
        return machine

    def test_a_file_is_known_since_it_was_applied(self) -> None:
        machine = self.machine(GOOD)
        assert agreement.here(machine, FOLDER) is None
        agreement.note(machine, FOLDER)
        assert agreement.here(machine, FOLDER) == Edition(agreement.digest(GOOD), int(NOW_S))

    def test_the_earliest_moment_counts_of_the_same_file_only(self) -> None:
        machine = self.machine(GOOD)
        agreement.note(machine, FOLDER)
        own = agreement.here(machine, FOLDER)
        assert own is not None
        earlier = replace(own, since_s=own.since_s - 500)
        machine.rulesets["heard"] = receiver(*told(earlier)).rulesets["heard"]
        found = agreement.exchange(machine, NETWORK, "paris", FOLDER, ["berlin"])
        assert found.own == earlier == agreement.here(machine, FOLDER)
        assert (found.is_same("berlin"), found.note("berlin")) == (True, "")
        strange = Edition(own.digest ^ 1, 5)
        machine.rulesets["heard"] = receiver(*told(strange)).rulesets["heard"]
        found = agreement.exchange(machine, NETWORK, "paris", FOLDER, ["berlin"])
        assert found.own == earlier
        assert "older than the one that is applied here" in found.note("berlin")
        assert found.is_same("berlin") is False

    def test_a_new_file_is_newer_though_the_clock_went_back(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        machine = self.machine(GOOD)
        agreement.note(machine, FOLDER)
        before = agreement.here(machine, FOLDER)
        machine.write(FOLDER.sites_path, GOOD.replace("acme", "other"), mode=0o644)
        monkeypatch.setattr(machine, "now_s", lambda: 1000.0)
        agreement.note(machine, FOLDER)
        after = agreement.here(machine, FOLDER)
        assert before is not None
        assert after is not None
        assert after.digest != before.digest
        assert after.since_s > before.since_s

    def test_a_moment_before_this_release_is_that_of_a_wrong_clock(self) -> None:
        right, wrong = Edition(7, FLOOR + 100), Edition(7, 1000)
        assert agreement.learnt({7: right.since_s}, [wrong]) == {7: right.since_s}
        assert agreement.learnt({7: wrong.since_s}, [right]) == {7: right.since_s}
        assert agreement.learnt({7: right.since_s}, [Edition(7, FLOOR)]) == {7: FLOOR}
        assert agreement.learnt({7: 1000}, [Edition(7, 999)]) == {7: 1000}

    def test_nothing_is_told_before_an_apply(self) -> None:
        machine = self.machine(GOOD)
        assert agreement.exchange(machine, NETWORK, "paris", FOLDER, ["berlin"]) == Agreement()
        assert machine.sent == []

    def test_an_old_file_that_is_restored_is_told(self) -> None:
        machine = self.machine(GOOD)
        agreement.note(machine, FOLDER)
        known = agreement.read_known(machine.read(FOLDER.editions_path))
        newer = Edition(7, int(NOW_S) + 100)
        assert "this file is older" in agreement.is_restored(newer, GOOD, known)
        assert agreement.is_restored(newer, GOOD + "\n[sites.x]\n", known) == ""
        assert agreement.is_restored(None, GOOD, known) == ""


@pytest.mark.parametrize(
    ("far", "expected"),
    [
        (None, None),
        (Edition(1, 100), None),
        (Edition(1, 999), None),
        (Edition(2, 101), "newer than"),
        (Edition(2, 99), "older than"),
        (Edition(2, 100), "another one than"),
    ],
)
def test_words(far: Edition | None, expected: str | None) -> None:
    text = agreement.difference(Edition(1, 100), far)
    assert expected in text if expected else text == ""


def test_what_was_kept_by_another_program_is_nothing() -> None:
    for text in (None, "", "[]", '{"zz": 1}', '{"ff": null}', "{" * 5000):
        assert agreement.read_known(text) == {}
    known = {number: number for number in range(300)}
    kept = agreement.read_known(agreement.written_known(known))
    assert set(kept) == set(range(100, 300))


def test_packets_are_kept_and_dropped_from_our_devices_alone() -> None:
    files = {f.path.name: f.text for f in render(NETWORK, NETWORK.site("paris"), Host())}
    (rule,) = (line for line in files["acme.nft"].splitlines() if "update @heard" in line)
    assert f"ip saddr 10.254.0.0/24 ip daddr {PARIS}" in rule
    assert f"udp sport {FIRST_PORT}-{FIRST_PORT + 3}" in rule
    assert 'iifname { "tun7", "wg-acme", "wg-acme-n" } ip' in rule
    assert rule.endswith(" drop")


def test_ipv6_has_a_set_of_its_own_type() -> None:
    sites = tuple(
        replace(site, tunnel_address=ip_address(f"fd00::{number}"))
        for number, site in enumerate(NETWORK.sites, 1)
    )
    files = render(replace(NETWORK, sites=sites), sites[0], Host())
    (text,) = (file.text for file in files if file.path.name == "acme.nft")
    assert "type ipv6_addr . inet_service . inet_service" in text
    assert "ip6 daddr fd00::1 udp sport" in text


def test_a_folder_that_cannot_be_written_fails_no_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = TestExchange().machine(GOOD)
    agreement.note(machine, FOLDER)
    own = agreement.here(machine, FOLDER)
    assert own is not None
    earlier = replace(own, since_s=own.since_s - 500)
    machine.rulesets["heard"] = receiver(*told(earlier)).rulesets["heard"]

    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(machine, "write", refuse)
    gateway = Gateway(NETWORK, NETWORK.site("paris"), Wanted("paris", NETWORK.tunnel), FOLDER)
    assert agreement_of(machine, gateway) == Agreement()
