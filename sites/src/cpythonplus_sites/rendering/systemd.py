"""Units around WireGuard: a drop-in for wg-quick@, and a timer that follows endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cpythonplus_sites.rendering import names
from cpythonplus_sites.rendering.files import Host, RenderedFile, unit_argument, word
from cpythonplus_sites.rendering.wireguard import is_dns_name

if TYPE_CHECKING:
    from cpythonplus_sites.model import Network, Site

INTERVAL_S = 60
"""The interval at which endpoints are looked up. A name's time to live is rarely shorter."""

WATCH_INTERVAL_S = 10
"""The interval at which other ends are pinged, if the timer can act when they are silent."""


def drop_in(site: Site) -> RenderedFile:
    """The drop-in for the unit of wireguard-tools.

    The unit starts after the clock is set: peers refuse a handshake that is older than the last one
    they saw. Without the drop-in, it waits for names without end, and gives up after five failed
    starts.
    """
    text = """\
[Unit]
After=time-set.target
StartLimitIntervalSec=0

[Service]
Restart=on-failure
RestartSec=5
"""
    folder = names.UNITS / f"{names.wireguard_unit(site)}.d"
    return RenderedFile(folder / "10-cpythonplus-sites.conf", text)


def endpoints_service(network: Network, site: Site, host: Host) -> RenderedFile:
    """The unit that follows changed DNS names of endpoints, and restores a missing interface.

    wg-quick@ is a oneshot unit: if the kernel has no WireGuard, systemd does not see when
    wireguard-go, which holds the interface, is killed. try-restart leaves a stopped unit stopped.
    Only changes and failures get into the journal: otherwise systemd would add two lines for each
    start, every few seconds.
    """
    unit, device = names.wireguard_unit(site), word(site.interface)
    options = ["--endpoints-only", "--yes"]  # the key identifies the site, not its name
    places = ["--file", host.folder / "sites.toml", "--host-dir", host.folder]
    words = [*host.program, "apply", *options, *places]
    back = f"ip link show dev {device} >/dev/null 2>&1 || systemctl try-restart {unit}"
    text = f"""\
[Unit]
Description=Endpoints of the sites of {word(network.name)}
After=network-online.target {unit}
StartLimitIntervalSec=0

[Service]
Type=oneshot
StandardOutput=null
StandardError=journal
SyslogLevel=notice
LogLevelMax=notice
ExecStartPre=-/bin/sh -c "{back}"
ExecStart={" ".join(map(unit_argument, words))}
"""
    return RenderedFile(names.UNITS / names.endpoints_unit(network, "service"), text)


def has_watched_links(network: Network, site: str) -> bool:
    """Whether a site has links that the timer can help within seconds."""
    return any(
        link.fallback is not None or follows_name(network, link.other(site))
        for link in network.links_of(site)
        if link.via == "wireguard"
    )


def follows_name(network: Network, far: str) -> bool:
    """Whether the endpoint of a site may move to another address."""
    found = network.site(far).endpoints
    return len(found) > 1 or any(map(is_dns_name, found))


def endpoints_timer(network: Network, site: Site) -> RenderedFile:
    """The timer. It is monotonic, so that setting the clock does not stop it."""
    is_watched = has_watched_links(network, site.name)
    interval_s, accuracy_s = (WATCH_INTERVAL_S, 1) if is_watched else (INTERVAL_S, 5)
    text = f"""\
[Unit]
Description=Endpoints of the sites of {word(network.name)}, every {interval_s} seconds

[Timer]
OnActiveSec={min(interval_s, 15)}
OnUnitInactiveSec={interval_s}
AccuracySec={accuracy_s}

[Install]
WantedBy=timers.target
"""
    return RenderedFile(names.UNITS / names.endpoints_unit(network), text)
