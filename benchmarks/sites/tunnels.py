"""The four ways between the sites: each sets its tunnel up in a bed, gateway to gateway.

Every one as a careful administrator would have it: today's ciphers as the programs choose them by
themselves, no compression, one stream's worth of everything. The routes into the tunnel are the
only ones that differ from `direct`.
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.common.errors import MeasurementError
from benchmarks.sites.bed import GATEWAYS, LAN, WAN, Bed

PORT = "51820"
_ENDS = {"gateway-a": "10.254.0.1", "gateway-b": "10.254.0.2"}


def _other(gateway: str) -> str:
    return next(each for each in GATEWAYS if each != gateway)


def direct(_bed: Bed) -> str:
    """Let the internet forward between the LANs."""
    return "no tunnel"


def wireguard(bed: Bed) -> str:
    """Set up WireGuard: the kernel's, or wireguard-go where the kernel has none."""
    kinds = {_wireguard_device(bed, name) for name in GATEWAYS}
    secrets = {name: bed.run(name, "wg", "genkey") for name in GATEWAYS}
    shown = {name: bed.run(name, "wg", "pubkey", stdin=secrets[name]) for name in GATEWAYS}
    for name in GATEWAYS:
        peer = ["peer", shown[_other(name)].strip(), "endpoint", f"{WAN[_other(name)]}:{PORT}"]
        key = bed.folder / f"{name}.key"
        key.touch(0o600)
        key.write_text(secrets[name])
        settings = ["listen-port", PORT, "private-key", str(key), *peer]
        bed.run(name, "wg", "set", _wireguard_name(name), *settings, "allowed-ips", "0.0.0.0/0")
        _route(bed, name, _wireguard_name(name), mtu=1420)
    return ", ".join(sorted(kinds))


def _wireguard_name(gateway: str) -> str:
    # The daemons' control sockets share one folder, whatever namespace they are in.
    return f"wg-{gateway[-1]}"


def _wireguard_device(bed: Bed, gateway: str) -> str:
    name = _wireguard_name(gateway)
    try:
        bed.run(gateway, "ip", "link", "add", name, "type", "wireguard")
    except MeasurementError:
        bed.start(gateway, "wireguard-go", "--foreground", name)
        bed.wait_for(partial(_answers, bed, gateway, "wg", "show", name), "wireguard-go")
        return "wireguard-go"
    return "kernel"


def ssh(bed: Bed) -> str:
    """Set up `ssh -w`: a tun device at both ends, packets inside one TCP connection."""
    _ssh_files(bed)
    (bed.folder.parent / "sshd").mkdir(exist_ok=True)  # where sshd leaves its privileges
    bed.start(
        "gateway-b",
        shutil.which("sshd") or "sshd",
        "-D",
        "-e",
        "-f",
        str(bed.folder / "sshd_config"),
    )
    client = ["ssh", "-F", str(bed.folder / "ssh_config"), "-N", "-w", "7:7", "far"]
    bed.wait_for(partial(_listens, bed, "gateway-b", ":22"), "sshd")
    bed.start("gateway-a", *client)
    for name in GATEWAYS:
        bed.wait_for(partial(_answers, bed, name, "ip", "link", "show", "tun7"), "tun7")
        _route(bed, name, "tun7", mtu=1500)
    return "ssh -w"


def _listens(bed: Bed, gateway: str, port: str) -> bool:
    return bool(bed.run(gateway, "ss", "-Hltn", "sport", "=", port))


def _ssh_files(bed: Bed) -> None:
    for key in ("host_key", "user_key"):
        bed.run(
            "gateway-a", "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{bed.folder}/{key}"
        )
    server = f"""\
        HostKey {bed.folder}/host_key
        AuthorizedKeysFile {bed.folder}/user_key.pub
        PermitRootLogin prohibit-password
        PermitTunnel point-to-point
        StrictModes no
        UsePAM no
        PidFile none
        """
    client = f"""\
        Host far
        HostName {WAN["gateway-b"]}
        User root
        IdentityFile {bed.folder}/user_key
        IdentitiesOnly yes
        StrictHostKeyChecking no
        UserKnownHostsFile /dev/null
        ExitOnForwardFailure yes
        Tunnel point-to-point
        """
    (bed.folder / "sshd_config").write_text(textwrap.dedent(server))
    (bed.folder / "ssh_config").write_text(textwrap.dedent(client))


def openvpn(bed: Bed) -> str:
    """Set up OpenVPN over UDP, each end knowing the other's certificate by its fingerprint."""
    prints = {name: _certificate(bed, name) for name in GATEWAYS}
    for name in GATEWAYS:
        server = name == "gateway-a"
        role = ["--tls-server", "--dh", "none"] if server else ["--tls-client"]
        bed.start(
            name,
            *("openvpn", "--dev", "tun0", "--dev-type", "tun", "--proto", "udp4"),
            *("--local", WAN[name], "--port", "1194", "--remote", WAN[_other(name)]),
            *("--ifconfig", _ENDS[name], _ENDS[_other(name)], *role),
            *("--cert", f"{bed.folder}/{name}.crt", "--key", f"{bed.folder}/{name}.pem"),
            *("--peer-fingerprint", prints[_other(name)], "--cipher", "AES-256-GCM"),
            *("--log", f"{bed.folder}/{name}.openvpn"),
        )
    for name in GATEWAYS:
        log = bed.folder / f"{name}.openvpn"
        bed.wait_for(partial(_says, log, "Initialization Sequence Completed"), "OpenVPN")
        bed.run(name, "ip", "route", "add", LAN[_other(name)], "dev", "tun0")
    return "OpenVPN"


def _says(log: Path, text: str) -> bool:
    return log.exists() and text in log.read_text("utf-8", errors="replace")


def _certificate(bed: Bed, gateway: str) -> str:
    """Make a key and a certificate of its own; return its SHA-256 fingerprint."""
    path = f"{bed.folder}/{gateway}"
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc"]
    subject = ["-subj", f"/CN={gateway}", "-days", "2"]
    files = ["-keyout", f"{path}.pem", "-out", f"{path}.crt"]
    bed.run(gateway, "openssl", "req", "-x509", *curve, *subject, *files)
    said = bed.run(
        gateway, "openssl", "x509", "-in", f"{path}.crt", "-noout", "-fingerprint", "-sha256"
    )
    return said.strip().partition("=")[2]


def _route(bed: Bed, gateway: str, device: str, *, mtu: int) -> None:
    far = _ENDS[_other(gateway)]
    bed.run(gateway, "ip", "address", "add", _ENDS[gateway], "peer", far, "dev", device)
    bed.run(gateway, "ip", "link", "set", device, "mtu", str(mtu), "up")
    bed.run(gateway, "ip", "route", "add", LAN[_other(gateway)], "dev", device)


def _answers(bed: Bed, gateway: str, *command: str) -> bool:
    try:
        bed.run(gateway, *command)
    except MeasurementError:
        return False
    return True


TUNNELS: dict[str, Callable[[Bed], str]] = {
    "direct": direct,
    "wireguard": wireguard,
    "ssh": ssh,
    "openvpn": openvpn,
}

PROGRAMS: dict[str, tuple[str, ...]] = {
    "direct": (),
    "wireguard": ("wg",),
    "ssh": ("ssh", "sshd", "ssh-keygen", "ss"),
    "openvpn": ("openvpn", "openssl"),
}
"""What each needs beside the bed's; without the kernel's WireGuard also wireguard-go."""
