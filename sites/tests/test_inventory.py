"""The Ansible inventory: valid in all its forms, the same in all, without secrets."""

import json

import pytest
from hypothesis import HealthCheck, given, settings

from cpythonplus_sites.model import Network
from cpythonplus_sites.rendering import inventory
from sites.tests.strategies import example, networks

pytestmark = pytest.mark.any_version

FEW = settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow], deadline=None)


def read_block_yaml(text: str) -> object:
    """Reads what as_yaml writes: mappings by indentation, all else as JSON."""
    lines = [line for line in text.splitlines() if line != "---"]

    def mapping(depth: int) -> dict[str, object]:
        found: dict[str, object] = {}
        while lines and lines[0].startswith(" " * depth):
            line = lines.pop(0)[depth:]
            assert not line.startswith(" "), line
            key, _, value = line.partition(":")
            name = json.loads(key) if key.startswith('"') else key
            assert name not in found
            found[name] = json.loads(value) if value else mapping(depth + 2)
        return found

    return mapping(0)


@FEW
@given(networks())
def test_yaml_and_json_say_the_same(network: Network) -> None:
    static = json.loads(inventory.as_json(network))
    assert read_block_yaml(inventory.as_yaml(network)) == static
    group = static["all"]["children"][inventory.group(network)]
    assert set(group["hosts"]) == {site.name for site in network.sites}


@FEW
@given(networks())
def test_a_dynamic_inventory_has_what_ansible_asks(network: Network) -> None:
    found = json.loads(inventory.dynamic(network))
    hostvars = found["_meta"]["hostvars"]
    for name in found["all"]["children"]:
        assert name.isidentifier()
        assert set(found[name]["hosts"]) <= set(hostvars)
    for site in network.sites:
        assert json.loads(inventory.host(network, site)) == hostvars[site.name]
        assert hostvars[site.name]["ansible_host"] == str(site.gateway)


def test_groups_tell_what_a_gateway_is() -> None:
    assert inventory.groups(example()) == {
        "sites_acme": ["berlin", "paris", "oslo"],
        "sites_acme_behind_nat": ["paris"],
        "sites_acme_ssh": ["paris", "oslo"],
    }
