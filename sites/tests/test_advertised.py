"""Which interfaces have a default route from router advertisements."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpythonplus_sites.advertised import interfaces, setting
from cpythonplus_sites.machine import Machine, Output
from cpythonplus_sites.rendering import Host
from cpythonplus_sites.rendering.forwarding import sysctl, sysctl_path
from cpythonplus_sites.wanted import sysctl_path as path_of_key
from sites.tests import strategies

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.any_version

FILE = Path("/etc/sysctl.d/60-cpythonplus-sites-acme.conf")
ADVERTISED = {"dst": "default", "gateway": "fe80::1", "protocol": "9", "metric": 1024}


@dataclass
class Router(Machine):
    """Has default routes, and files."""

    routes: str
    files: dict[str, str] = field(default_factory=dict)

    def run(self, argv: Sequence[str], **_options: object) -> Output:
        assert list(argv) == ["ip", "-j", "-N", "-6", "route", "show", "default"]
        return Output(0, self.routes)

    def read(self, path: Path) -> str | None:
        return self.files.get(str(path))


def accepting(name: str, value: int) -> dict[str, str]:
    return {f"/proc/sys/net/ipv6/conf/{name}/accept_ra": f"{value}\n"}


def found(*routes: object, **files: str) -> tuple[str, ...]:
    return interfaces(Router(json.dumps(routes), files), FILE)


@pytest.mark.parametrize(
    ("route", "accept", "expected"),
    [
        ({**ADVERTISED, "dev": "eth0"}, 1, ("eth0",)),
        ({**ADVERTISED, "dev": "eth0"}, 2, ("eth0",)),
        ({**ADVERTISED, "dev": "eth0"}, 0, ()),  # NetworkManager reads them
        ({**ADVERTISED, "dev": "eth0", "protocol": "4"}, 1, ()),
        ({**ADVERTISED, "nexthops": [{"dev": "eth0"}, {"dev": "eth1"}, 3]}, 1, ("eth0",)),
        ({**ADVERTISED, "dev": "eth0 = 2"}, 1, ()),
    ],
)
def test_by_route_and_setting(
    route: dict[str, object], accept: int, expected: tuple[str, ...]
) -> None:
    assert found(route, **accepting("eth0", accept)) == expected


def test_what_an_earlier_run_wrote_stays_while_the_line_is_down() -> None:
    network = strategies.example()
    network_with_v6 = strategies.with_ipv6(network)
    for name in ("eth0", "eth0.7"):
        text = sysctl(network_with_v6, Host(advertised=(name,))).text
        assert f"-{setting(name)} = 2\n" in text
        assert text.index("accept_ra = 2") < text.index("all.forwarding")
        assert path_of_key(setting(name)) == setting(name)
        assert found(**{str(FILE): text}) == (name,)
    assert "accept_ra =" not in sysctl(network, Host(advertised=("eth0",))).text
    assert Path(sysctl_path(network)) == FILE


@given(st.text() | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(json.dumps))
def test_anything_is_survived(text: str) -> None:
    assert interfaces(Router(text), FILE) == ()
