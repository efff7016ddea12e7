"""A README for a folder of rendered files: what goes where, and what to do with it by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cpythonplus_sites.rendering import names, ssh, wireguard
from cpythonplus_sites.rendering.files import word
from cpythonplus_sites.rendering.gateway import units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cpythonplus_sites.model import Network, Site
    from cpythonplus_sites.rendering.files import RenderedFile

NAME = "README.md"


def readme(network: Network, site: Site, files: Sequence[RenderedFile]) -> str:
    """The text for one site's files. It carries no secret."""
    rows = "".join(
        f"| `{file.path}` | {file.mode:04o} | {'yes' if file.secret else ''} |\n" for file in files
    )
    return (
        f"# Gateway of {word(site.name)} in {word(network.name)}\n\n"
        "The files are laid out here as under `/`. On the gateway, `cpythonplus-sites\n"
        "apply` installs them and starts the services; by hand, follow these steps.\n\n"
        f"| file | mode | secret |\n|---|---|---|\n{rows}\n"
        f"{_missing(network, site, files)}{_by_hand(network, site)}"
    )


def _missing(network: Network, site: Site, files: Sequence[RenderedFile]) -> str:
    """The values that are missing in the files, and that a person has to add."""
    found = []
    if wireguard.links_by_wireguard(network, site) and not any(file.secret for file in files):
        found.append("The private key and the preshared keys are not in these files.")
    for peer in (network.site(link.other(site.name)) for link in network.links_of(site.name)):
        link = network.link(site.name, peer.name)
        if link is None:
            continue
        if link.via == "wireguard" and not peer.public_key:
            found.append(f"{word(peer.name)} has no `public_key` yet.")
        if link.has_ssh and ssh.client(network, link) == site.name and not peer.ssh_host_key:
            found.append(f"{word(peer.name)} has no `ssh_host_key`, so ssh refuses to connect.")
        if link.has_ssh and ssh.client(network, link) == peer.name and not peer.ssh_public_key:
            found.append(f"{word(peer.name)} has no `ssh_public_key` yet.")
    return "".join(f"- {line}\n" for line in found) + ("\n" if found else "")


def _by_hand(network: Network, site: Site) -> str:
    by_ssh = any(link.has_ssh for link in network.links_of(site.name))
    taken = any(
        link.has_ssh and ssh.client(network, link) == link.other(site.name)
        for link in network.links_of(site.name)
    )
    lines = ["sysctl --system"]
    if by_ssh:
        lines.append(f"systemd-sysusers cpythonplus-{names.tunnel_user(network)}.conf")
    lines.append("systemctl daemon-reload")
    if taken:
        lines.append("sshd -t && systemctl reload ssh    # sshd on some systems")
    lines += [f"systemctl enable --now {unit}" for unit in units(network, site)]
    return "As root, in this order:\n\n" + "".join(f"    {line}\n" for line in lines)
