"""Tunnels as somebody sets them up without our commands: what the bed itself is tested with."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sites.tests.testbed.bed import Site

INTERFACE = "wg-hand"
CONFIGURATION = f"/etc/wireguard/{INTERFACE}.conf"


def mesh(sites: Sequence[Site]) -> None:
    """Link every pair of sites by WireGuard."""
    private = {site.name: site.gateway.run("wg", "genkey").strip() for site in sites}
    public = {
        site.name: site.gateway.run("wg", "pubkey", stdin=private[site.name]).strip()
        for site in sites
    }
    for site in sites:
        text = f"[Interface]\nPrivateKey = {private[site.name]}\nListenPort = 51820\n"
        text += f"Address = {site.tunnel_address}/32\nMTU = 1420\n"
        for peer in sites:
            if peer is not site:
                text += f"\n[Peer]\nPublicKey = {public[peer.name]}\nPersistentKeepalive = 25\n"
                text += f"Endpoint = {peer.public}:51820\n"
                text += f"AllowedIPs = {peer.lan}, {peer.tunnel_address}/32\n"
        site.gateway.write(CONFIGURATION, text, mode=0o600)
        site.gateway.run("sysctl", "-qw", "net.ipv4.ip_forward=1")
        site.gateway.run("wg-quick", "up", INTERFACE)
