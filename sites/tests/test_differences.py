"""What a new file means for those who have the old one is said in words."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_address, ip_network

import pytest

from cpythonplus_sites.differences import told
from cpythonplus_sites.model import Network
from sites.tests.strategies import example

pytestmark = pytest.mark.any_version

BEFORE = example()
NEW_KEY = "NEW0NEW0NEW0NEW0NEW0NEW0NEW0NEW0NEW0NEW0NEA="


def changed(site: str, network: Network = BEFORE, /, **values: object) -> Network:
    sites = tuple(
        replace(x, **values) if x.name == site else x  # type: ignore[arg-type]
        for x in network.sites
    )
    return replace(network, sites=sites)


def lines(after: Network) -> list[str]:
    return list(told(BEFORE, after, "berlin"))


def test_the_same_file_is_no_operation() -> None:
    assert lines(BEFORE) == []


def test_another_name_of_the_network_and_another_range() -> None:
    (text,) = lines(replace(BEFORE, name="other"))
    assert text.startswith("the network is called other, it was acme")
    (text,) = lines(replace(BEFORE, tunnel=ip_network("10.99.0.0/24")))
    assert "changes from 10.254.0.0/24 to 10.99.0.0/24" in text


@pytest.mark.parametrize(("of_names", "expected"), [(False, "its links stay"), (True, "is down")])
def test_a_site_with_its_key_and_another_name_is_renamed(of_names: bool, expected: str) -> None:
    after = changed("paris", name="lyon")
    (text,) = told(BEFORE, replace(after, preshared_of_names=of_names), "berlin")
    assert text.startswith("paris is called lyon")
    assert expected in text


def test_two_sites_that_swap_their_names_are_both_renamed() -> None:
    swapped = changed("paris", name="x")
    swapped = changed("oslo", swapped, name="paris")
    swapped = changed("x", swapped, name="oslo")
    assert [text.split(" from now")[0] for text in lines(swapped)] == [
        "paris is called oslo",
        "oslo is called paris",
    ]


def test_another_key_is_another_machine_but_in_a_change_of_keys() -> None:
    (text,) = lines(changed("paris", public_key=NEW_KEY))
    assert text.startswith("paris has another key")
    rotating = changed("paris", next_public_key=NEW_KEY)
    assert lines(rotating) == []
    assert list(told(rotating, changed("paris", public_key=NEW_KEY), "berlin")) == []


def test_sites_that_come_and_go() -> None:
    without = replace(BEFORE, sites=tuple(x for x in BEFORE.sites if x.name != "paris"))
    assert lines(without) == ["paris is no longer in the file: it gets in no more"]
    assert list(told(without, BEFORE, "berlin")) == ["paris is new"]


def test_lans_that_move_and_come() -> None:
    lan = BEFORE.site("paris").lans[0]
    moved = changed("paris", lans=(ip_network("192.168.99.0/24"),))
    moved = changed("oslo", moved, lans=(*BEFORE.site("oslo").lans, lan))
    texts = lines(moved)
    assert any(text.startswith(f"{lan} moves from paris to oslo") for text in texts)
    assert any(text.startswith("paris gets the LAN 192.168.99.0/24") for text in texts)
    assert len(texts) == 2


def test_another_end_of_the_tunnels() -> None:
    (text,) = lines(changed("paris", tunnel_address=ip_address("10.254.0.99")))
    assert text.startswith("the end of the tunnels of paris changes from")
