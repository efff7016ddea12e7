"""Tunnels as somebody sets them up without our commands: by wg-quick(8), as its manual shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sites.tests.testbed.bed import Site

INTERFACE = "wg-hand"
CONFIGURATION = f"/etc/wireguard/{INTERFACE}.conf"
_RELOAD = f"wg-quick strip {INTERFACE} > /run/stripped && wg syncconf {INTERFACE} /run/stripped"


class ByHand:
    """Every pair of sites, linked by WireGuard.

    endpoints: where it is not the public address and the usual port; None: the site has none.
    """

    def __init__(
        self, sites: Sequence[Site], *, endpoints: Mapping[str, str | None] | None = None
    ) -> None:
        self.sites = list(sites)
        self._endpoints = endpoints or {}
        self._private: dict[str, str] = {}
        self._public: dict[str, str] = {}

    def write(self) -> None:
        """Bring each gateway its file."""
        for site in self.sites:
            if site.name not in self._private:
                private = site.gateway.run("wg", "genkey").strip()
                self._private[site.name] = private
                self._public[site.name] = site.gateway.run("wg", "pubkey", stdin=private).strip()
        for site in self.sites:
            site.gateway.write(CONFIGURATION, self._text(site), mode=0o600)

    def up(self, *sites: Site) -> None:
        """Link these, or all."""
        self.write()
        for site in sites or self.sites:
            site.gateway.run("sysctl", "-qw", "net.ipv4.ip_forward=1")
            site.gateway.run("wg-quick", "up", INTERFACE)

    @staticmethod
    def reload(site: Site, new: Sequence[Site] = ()) -> None:
        """Take over a changed file without an interruption; routes to new peers are set apart."""
        site.gateway.run("sh", "-c", _RELOAD)
        for peer in new:
            for subnet in (peer.lan, f"{peer.tunnel_address}/32"):
                site.gateway.run("ip", "route", "add", subnet, "dev", INTERFACE)

    def _text(self, site: Site) -> str:
        text = f"[Interface]\nPrivateKey = {self._private[site.name]}\nListenPort = 51820\n"
        text += f"Address = {site.tunnel_address}/32\nMTU = 1420\n"
        for peer in self.sites:
            if peer is not site:
                text += f"\n[Peer]\nPublicKey = {self._public[peer.name]}\n"
                text += "PersistentKeepalive = 25\n"
                text += f"AllowedIPs = {peer.lan}, {peer.tunnel_address}/32\n"
                endpoint = self._endpoints.get(peer.name, f"{peer.public}:51820")
                text += f"Endpoint = {endpoint}\n" if endpoint else ""
        return text
