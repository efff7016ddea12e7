"""The names of a network's things on a gateway: units, the nftables table, the tunnel user.

Each name contains the network's, so that a gateway may belong to two networks.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from cpythonplus_sites.rendering.files import word

if TYPE_CHECKING:
    from cpythonplus_sites.model import Link, Network, Site

UNITS = PurePosixPath("/etc/systemd/system")
SSH = PurePosixPath("/etc/ssh")


def wireguard_unit(site: Site) -> str:
    """The unit of wireguard-tools that brings the site's interface up."""
    return f"wg-quick@{word(site.interface)}.service"


def endpoints_unit(network: Network, suffix: str = "timer") -> str:
    """The unit that checks every minute whether an endpoint moved; `suffix`: timer or service."""
    return f"cpythonplus-sites-{word(network.name)}-endpoints.{suffix}"


def clamping_unit(network: Network) -> str:
    """The unit that loads the nftables file."""
    return f"cpythonplus-sites-{word(network.name)}-clamping.service"


def closed_unit(network: Network) -> str:
    """The unit that sets the `unreachable` routes."""
    return f"cpythonplus-sites-{word(network.name)}-unreachable.service"


def tun_unit(network: Network, link: Link | None = None) -> str:
    """The unit that makes the tun device of a link over ssh; without a link, the template."""
    return f"cpythonplus-sites-{word(network.name)}-tun@{_number(link)}.service"


def ssh_unit(network: Network, link: Link | None = None) -> str:
    """The unit that keeps ssh running at the client's end; without a link, the template."""
    return f"cpythonplus-sites-{word(network.name)}-ssh@{_number(link)}.service"


def changing_units(network: Network) -> tuple[str, ...]:
    """Patterns of the units that come and go with links; for `systemctl list-units`.

    The units of ssh come first: they are stopped before the devices that they hold.
    """
    templates = (ssh_unit(network), tun_unit(network))
    instances = (template.replace("@.", "@*.") for template in templates)
    return (endpoints_unit(network), *instances)


def tun_device(link: Link) -> str:
    """The device of a link over ssh, called the same at both ends."""
    return f"tun{_number(link)}"


def table(network: Network) -> str:
    """The table of family inet that is ours in nftables."""
    return "cpythonplus_sites_" + word(network.name).replace("-", "_").replace(".", "_")


def tunnel_user(network: Network) -> str:
    """The user without rights as which ssh runs at both ends."""
    return f"sites-{word(network.name)}"


def _number(link: Link | None) -> str:
    return "" if link is None or link.tunnel_number is None else str(link.tunnel_number)
