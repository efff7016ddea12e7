"""Links over ssh, for networks that block UDP: `ssh -w` with no root log-in at either end.

Both ends have a tun device that root has made and that belongs to a user without rights; ssh and
sshd run as that user, and only have to open the device.

The end with an ssh endpoint is the server. If both have one, the link may name the caller;
otherwise the first of the two names is the client. An endpoint of WireGuard does not count, as it
does not imply an sshd.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal

from cpythonplus_sites.rendering import names
from cpythonplus_sites.rendering.files import (
    Host,
    RenderedFile,
    RenderingError,
    public_ssh_key,
    word,
)
from cpythonplus_sites.rendering.wireguard import route_arguments

if TYPE_CHECKING:
    from cpythonplus_sites.model import Endpoint, Link, Network, Site

FOLDER = names.SSH / "cpythonplus-sites"
"""The folder for files that ssh and sshd read as the tunnel user; only root can enter the host
folder."""

KEY_OPTIONS = "no-agent-forwarding,no-X11-forwarding,no-pty,no-user-rc"
"""The options do not have `restrict`: sshd (10.6) then refuses tun devices as well, even with
`tunnel` or `port-forwarding` behind it. The drop-in for sshd_config refuses port forwarding."""

ALIVE_INTERVAL_S = 5
ALIVE_COUNT = 3
"""Both ends give up a silent far end after 15 to 30 s; otherwise a silent client would hold the
server's device, and its successor would be refused, until TCP gives up."""


QUEUE_PACKETS = 500
"""The length of a tun device's queue, in packets. While TCP makes ssh wait, packets wait here: 500
of them are 0.7 MB, 140 ms of a line of 40 Mbit/s. A longer queue adds delay for all, and streams
inside the tunnel notice losses later; a shorter one drops bursts that ssh would have carried. It is
Linux's default for a tun device (drivers/net/tun.c), set explicitly so that a rule of udev or
networkd for all devices, such as 10,000 packets for fast cards, does not apply here."""


def render_ssh(network: Network, site: Site, host: Host) -> tuple[RenderedFile, ...]:
    """All files for the site's links over ssh; none if it has no such link."""
    links = tuple(link for link in network.links_of(site.name) if link.has_ssh)
    if not links:
        return ()
    files = [_user(network), _tun_template(network, host)]
    files += [_batch(network, site, link, host) for link in links]
    out = [link for link in links if client(network, link) == site.name]
    if out:
        files += [
            _client_template(network, host),
            _client_config(network, site, out),
            _known_hosts(network, site, out),
        ]
    taken = _taken(network, site)
    if taken:
        files += [_server_config(network), _authorized_keys(network, site, taken)]
    return tuple(files)


def withdrawn(network: Network, site: Site) -> tuple[RenderedFile, ...]:
    """The empty file of keys that replaces an earlier one if no site calls this one any more.

    sshd would still read the keys of a link that is no longer in the site file.
    """
    if _taken(network, site):
        return ()
    return (RenderedFile(_keys_path(network), "# No site calls this one over ssh.\n"),)


def _taken(network: Network, site: Site) -> list[Link]:
    """The links over ssh that another site starts."""
    own = [link for link in network.links_of(site.name) if link.has_ssh]
    return [link for link in own if client(network, link) == link.other(site.name)]


By = Literal["endpoint", "name", "caller"]


@dataclass(frozen=True)
class Call:
    """The client and the server of a link over ssh.

    by: the reason: the server has the only ssh endpoint of the two, or both have one and the client
    has the first of the two names, or the file names the client.
    """

    link: Link
    client: str
    server: str
    endpoint: Endpoint
    by: By


def call(network: Network, link: Link) -> Call | None:
    """The client and the server of this link; None if neither end has an ssh endpoint."""
    found = [name for name in link.ends if network.site(name).ssh_endpoint is not None]
    if not found:
        return None
    server = found[-1]  # the ends are sorted by their names
    if link.caller is not None:
        server = link.other(link.caller)
    endpoint = network.site(server).ssh_endpoint
    assert endpoint is not None  # noqa: S101
    by: By = "endpoint" if len(found) == 1 else "name"
    by = by if link.caller is None else "caller"
    return Call(link, link.other(server), server, endpoint, by)


def calls(network: Network) -> tuple[Call, ...]:
    """All links over ssh of a network that has passed the checks, in the order of its links."""
    found = (call(network, link) for link in network.links if link.via == "ssh")
    return tuple(each for each in found if each is not None)


def client(network: Network, link: Link) -> str | None:
    """The site that starts ssh for this link; None if neither end can be reached by ssh."""
    found = call(network, link)
    return None if found is None else found.client


def batch_path(link: Link, host: Host) -> PurePosixPath:
    """The file for `ip -batch` that gives a link's tun device its addresses and routes."""
    return host.folder / f"{names.tun_device(link)}.batch"


# ---- both ends ----------------------------------------------------------------------------------


def _user(network: Network) -> RenderedFile:
    user = names.tunnel_user(network)
    text = f'u {user} - "Tunnels over ssh for the sites of {word(network.name)}" /\n'
    return RenderedFile(PurePosixPath(f"/etc/sysusers.d/cpythonplus-{user}.conf"), text)


def _tun_template(network: Network, host: Host) -> RenderedFile:
    """The unit of a tun device. `add` fails if the device exists, perhaps used by ssh: ignored.

    The stop does not use `ip tuntap del`, which fails while ssh or sshd holds the device.

    A single route of the batch fails if somebody else has set it; the others are still set.
    """
    user = names.tunnel_user(network)
    batch = host.folder / "tun%i.batch"
    text = f"""\
[Unit]
Description=Device tun%i for the sites of {word(network.name)}
After=network-pre.target systemd-sysusers.service
StartLimitIntervalSec=0

[Service]
Type=oneshot
RemainAfterExit=yes
Restart=on-failure
RestartSec=5
ExecStart=-ip tuntap add dev tun%i mode tun user {user}
ExecStart=ip link set dev tun%i up
ExecStart=-ip -force -batch {batch}
ExecReload=-ip -force -batch {batch}
ExecStop=-ip link delete dev tun%i

[Install]
WantedBy=multi-user.target
"""
    return RenderedFile(names.UNITS / names.tun_unit(network), text)


def _batch(network: Network, site: Site, link: Link, host: Host) -> RenderedFile:
    device = names.tun_device(link)
    own = f"{site.tunnel_address}/{site.tunnel_address.max_prefixlen}"
    # If the tunnel is a fallback for WireGuard, WireGuard's interface has the routes at first.
    routes = [x for x in network.routes_from(site.name) if x.link == link and link.via == "ssh"]
    lines = [
        f"link set dev {device} mtu {link.mtu} txqueuelen {QUEUE_PACKETS} up",
        f"address replace {own} dev {device}",
        *(f"route add {route_arguments(route.subnet, device)}" for route in routes),
    ]
    return RenderedFile(batch_path(link, host), "\n".join(lines) + "\n")


# ---- the client's end ---------------------------------------------------------------------------


def _client_template(network: Network, host: Host) -> RenderedFile:
    """The client's unit. The key is a credential: the tunnel user cannot enter the host folder."""
    text = f"""\
[Unit]
Description=Tunnel %i over ssh for the sites of {word(network.name)}
Requires={names.tun_unit(network).replace("@.", "@%i.")}
After={names.tun_unit(network).replace("@.", "@%i.")} network-online.target nss-lookup.target
Wants=network-online.target
StartLimitIntervalSec=0

[Service]
User={names.tunnel_user(network)}
LoadCredential=ssh_key:{host.folder / "ssh_key"}
ExecStart=ssh -F {_config_path(network)} -i ${{CREDENTIALS_DIRECTORY}}/ssh_key -N -w %i:%i tunnel-%i
Restart=always
RestartSec=5
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes

[Install]
WantedBy=multi-user.target
"""
    return RenderedFile(names.UNITS / names.ssh_unit(network), text)


def _client_config(network: Network, site: Site, links: list[Link]) -> RenderedFile:
    blocks = []
    for link in links:
        peer = network.site(link.other(site.name))
        endpoint = peer.ssh_endpoint
        if endpoint is None or link.tunnel_number is None:
            raise RenderingError(f"no ssh endpoint or no tunnel number for {' - '.join(link.ends)}")
        blocks.append(f"""\
# {word(peer.name)}
Host tunnel-{link.tunnel_number}
    HostName {word(endpoint.host)}
    Port {endpoint.port}
    HostKeyAlias {_alias(network, peer)}
""")
    return RenderedFile(_config_path(network), "\n".join(blocks) + _for_all(network))


def _for_all(network: Network) -> str:
    return f"""
Host *
    User {names.tunnel_user(network)}
    Tunnel point-to-point
    BatchMode yes
    IdentitiesOnly yes
    PreferredAuthentications publickey
    ExitOnForwardFailure yes
    ConnectTimeout 10
    ServerAliveInterval {ALIVE_INTERVAL_S}
    ServerAliveCountMax {ALIVE_COUNT}
    StrictHostKeyChecking yes
    UserKnownHostsFile {_known_hosts_path(network)}
    GlobalKnownHostsFile /dev/null
    UpdateHostKeys no
    ControlPath none
"""


def _known_hosts(network: Network, site: Site, links: list[Link]) -> RenderedFile:
    lines = []
    for link in links:
        peer = network.site(link.other(site.name))
        if peer.ssh_host_key:
            lines.append(f"{_alias(network, peer)} {public_ssh_key(peer.ssh_host_key)}")
        else:
            lines.append(f"# {word(peer.name)} has no ssh_host_key in the file: it is refused.")
    return RenderedFile(_known_hosts_path(network), "\n".join(lines) + "\n")


def _alias(network: Network, peer: Site) -> str:
    return f"{word(peer.name)}.{word(network.name)}"


def _config_path(network: Network) -> PurePosixPath:
    return FOLDER / f"{word(network.name)}.config"


def _known_hosts_path(network: Network) -> PurePosixPath:
    return FOLDER / f"{word(network.name)}.known_hosts"


# ---- the server's end ---------------------------------------------------------------------------


def _server_config(network: Network) -> RenderedFile:
    user = names.tunnel_user(network)
    text = f"""\
Match User {user}
    AuthorizedKeysFile {_keys_path(network)}
    AuthenticationMethods publickey
    PermitTunnel point-to-point
    AllowTcpForwarding no
    AllowStreamLocalForwarding no
    AllowAgentForwarding no
    X11Forwarding no
    PermitTTY no
    PermitUserRC no
    MaxSessions 0
    ForceCommand /bin/false
    ClientAliveInterval {ALIVE_INTERVAL_S}
    ClientAliveCountMax {ALIVE_COUNT}
"""
    path = names.SSH / "sshd_config.d" / f"50-cpythonplus-{user}.conf"
    return RenderedFile(path, text)


def _authorized_keys(network: Network, site: Site, links: list[Link]) -> RenderedFile:
    lines = []
    for link in links:
        peer = network.site(link.other(site.name))
        if peer.ssh_public_key:
            options = f'{KEY_OPTIONS},tunnel="{link.tunnel_number}",command="/bin/false"'
            lines.append(f"{options} {public_ssh_key(peer.ssh_public_key)} {word(peer.name)}")
        else:
            lines.append(f"# {word(peer.name)} has no ssh_public_key in the file yet.")
    return RenderedFile(_keys_path(network), "\n".join(lines) + "\n")


def _keys_path(network: Network) -> PurePosixPath:
    return FOLDER / f"{word(network.name)}.keys"
