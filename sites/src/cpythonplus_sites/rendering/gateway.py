"""All files of one gateway, and which units have to run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cpythonplus_sites.rendering import (
    closed,
    forwarding,
    names,
    ssh,
    static_routes,
    systemd,
    wireguard,
)

if TYPE_CHECKING:
    from cpythonplus_sites.model import Network, Site
    from cpythonplus_sites.rendering.files import Host, RenderedFile


def render(network: Network, site: Site, host: Host) -> tuple[RenderedFile, ...]:
    """All files for the gateway of `site`, in the order of their paths.

    The plan finds which of them differ from the current files. Raises RenderingError for a network
    that has not passed the checks.
    """
    files = [
        forwarding.sysctl(network, host),
        forwarding.nftables(network, site, host),
        forwarding.unit(network, host),
        closed.batch(network, site, host),
        closed.unit(network, host),
        static_routes.instructions(network, site, host),
        *ssh.render_ssh(network, site, host),
    ]
    configuration = wireguard.configuration(network, site, host)
    if configuration is not None:
        files += [
            configuration,
            systemd.drop_in(site),
            systemd.endpoints_service(network, site, host),
            systemd.endpoints_timer(network, site),
        ]
    return tuple(sorted(files, key=lambda file: file.path))


def units(network: Network, site: Site) -> tuple[str, ...]:
    """The units to enable and start on the gateway of `site`, in this order."""
    found = [names.closed_unit(network), names.clamping_unit(network)]
    if wireguard.links_by_wireguard(network, site):
        found += [names.wireguard_unit(site), names.endpoints_unit(network)]
    for link in network.links_of(site.name):
        if link.has_ssh:
            found.append(names.tun_unit(network, link))
            if ssh.client(network, link) == site.name:
                found.append(names.ssh_unit(network, link))
    return tuple(found)
