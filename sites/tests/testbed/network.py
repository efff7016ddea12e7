"""A bed's sites in one sites.toml, and what their users type on the gateways."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from sites.tests.testbed.bed import Site

HOST_DIR = "/etc/cpythonplus/sites"
FILE = f"{HOST_DIR}/sites.toml"
PORT = 51820
NETWORK = """\
[network]
name = "acme"
tunnel = "10.254.0.0/24"
topology = "{topology}"
{hub}mtu = 1420
keepalive = 25
preshared = {preshared}
"""
STANZA = """
[sites.{name}]
lan = ["{lan}"]
gateway = "{gateway}"
tunnel_address = "{tunnel}"
{endpoint}{more}public_key = "{key}"
"""


class Shared:
    """The file as all gateways have it, made of what each site is at the moment.

    sites: which of the bed's are in it.  endpoints: where it is not the public address; None: the
    site has none.  more: lines for a site's stanza.  names: what a site is called, if not as the
    bed calls it.  after: lines for the end of the file.
    """

    def __init__(
        self,
        sites: Sequence[Site],
        *,
        hub: Site | None = None,
        preshared: bool = False,
        endpoints: dict[str, str | None] | None = None,
        after: str = "",
    ) -> None:
        self.sites = list(sites)
        self.hub = hub
        self.preshared = preshared
        self.endpoints = endpoints or {}
        self.after = after
        self.keys: dict[str, str] = {}
        self.more: dict[str, str] = {}
        self.names: dict[str, str] = {}

    def text(self) -> str:
        """The file."""
        hub = f'hub = "{self.hub.name}"\n' if self.hub else ""
        text = NETWORK.format(
            topology="hub" if self.hub else "mesh",
            hub=hub,
            preshared=str(self.preshared).lower(),
        )
        return text + "".join(map(self._stanza, self.sites)) + self.after

    def _stanza(self, site: Site) -> str:
        endpoint = self.endpoints.get(site.name, f"{site.public}:{PORT}")
        return STANZA.format(
            name=self.names.get(site.name, site.name),
            lan=site.lan,
            gateway=site.gateway_address,
            tunnel=site.tunnel_address,
            endpoint=f'endpoint = "{endpoint}"\n' if endpoint else "",
            more=self.more.get(site.name, ""),
            key=self.keys.get(site.name, ""),
        )

    def make_keys(self) -> None:
        """A key for each gateway that has none, as `sites keygen` leaves it, but at once."""
        for site in self.sites:
            if site.name not in self.keys:
                private = site.gateway.run("wg", "genkey")
                site.gateway.write(f"{HOST_DIR}/private.key", private, mode=0o600)
                site.gateway.run("chmod", "0700", HOST_DIR)
                self.keys[site.name] = site.gateway.run("wg", "pubkey", stdin=private).strip()

    def make_ssh_keys(self, server: Site) -> None:
        """Keys of both kinds, by `sites keygen --ssh`; server: the one that can be called."""
        for site in self.sites:
            printed = must(site, "keygen", "--ssh").splitlines()
            values = dict(line.replace('"', "").split(" = ") for line in printed)
            self.keys[site.name] = values["public_key"]
            host_key = site.gateway.read("/etc/ssh/ssh_host_ed25519_key.pub").strip()
            more = f'ssh_public_key = "{values["ssh_public_key"]}"\nssh_host_key = "{host_key}"\n'
            self.more[site.name] = more
        self.more[server.name] += f'ssh_endpoint = "{server.public}:22"\n'

    def carry(self) -> None:
        """Bring the file to every gateway."""
        for site in self.sites:
            site.gateway.write(FILE, self.text())

    def apply(self, *more: str) -> None:
        """Bring the file to every gateway and apply it there."""
        self.make_keys()
        self.carry()
        everywhere(self.sites, lambda site: must(site, "apply", "--yes", *more))


def everywhere(sites: Sequence[Site], work: Callable[[Site], object]) -> None:
    """The same on several gateways at once; fails where it fails on one."""
    with ThreadPoolExecutor(len(sites)) as pool:
        list(pool.map(work, sites))


def typed(site: Site, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """What a user types on a gateway: `cpythonplus-sites ...`."""
    return site.gateway.try_run(sys.executable, "-m", "cpythonplus_sites", *words)


def must(site: Site, *words: str | Path, status: int = 0) -> str:
    """The same, and it has to end with `status`; returns what it printed."""
    done = typed(site, *words)
    if done.returncode != status:
        text = f"{site.name}: sites {' '.join(map(str, words))}: status {done.returncode}"
        pytest.fail(f"{text}\n{done.stdout}{done.stderr}")
    return done.stdout


def parsed(site: Site, *words: str, status: int = 0) -> dict[str, Any]:
    """What an action with --format json printed."""
    found: dict[str, Any] = json.loads(must(site, *words, "--format", "json", status=status))
    return found


def live_state(site: Site) -> str:
    """All that an action could have changed on a gateway; counters and ages are left out."""
    run = site.gateway.run
    script = "wg show all endpoints; wg show all allowed-ips; wg show all persistent-keepalive"
    files = 'find /etc -xdev -type f -printf "%p %s %T@ %m\\n" | sort'
    return "\n".join(
        [
            run("sh", "-c", script),
            # IPv6 gives its interfaces addresses by itself, some time later.
            run("ip", "-4", "-br", "address"),
            run("ip", "-4", "route", "show", "table", "all"),
            run("nft", "-s", "list", "ruleset"),
            run("sysctl", "-n", "net.ipv4.ip_forward"),
            run("sh", "-c", files),
        ]
    )


def reach_each_other(sites: Sequence[Site]) -> bool:
    """Whether a ping gets from each LAN to each other one."""
    pairs = [(a, b) for a in sites for b in sites if a is not b]
    return all(one.reaches(other) for one, other in pairs)
