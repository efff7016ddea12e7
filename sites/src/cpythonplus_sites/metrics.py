"""The state of links as text for Prometheus (text exposition format 0.0.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cpythonplus_sites.health import Reach
    from cpythonplus_sites.probing import Ping

_VERDICTS = {"good": 1, "bad": 0}


def prometheus(network: str, site: str, reaches: Sequence[Reach]) -> str:
    """The metrics for each other site; an unknown value has no sample."""
    lines: list[str] = []
    for name, kind, text, value in _METRICS:
        samples = [(reach, value(reach)) for reach in reaches]
        known = [(reach, number) for reach, number in samples if number is not None]
        full = f"cpythonplus_sites_{name}"
        if known:
            lines += [f"# HELP {full} {text}", f"# TYPE {full} {kind}"]
        for reach, number in known:
            labels = {"network": network, "site": site, "peer": reach.site, "via": reach.via}
            inside = ",".join(f'{key}="{_escaped(label)}"' for key, label in labels.items())
            lines.append(f"{full}{{{inside}}} {number:.15g}")
    return "".join(f"{line}\n" for line in lines)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _seconds(ping: Ping | None) -> float | None:
    return None if ping is None or ping.time_ms is None else ping.time_ms / 1000


def _loss(ping: Ping | None) -> float | None:
    return None if ping is None else 1 - ping.received / ping.sent


_METRICS: tuple[tuple[str, str, str, Callable[[Reach], float | None]], ...] = (
    (
        "up",
        "gauge",
        "Whether the site is reachable (1) or not (0); no sample: not known.",
        lambda reach: _VERDICTS.get(reach.verdict),
    ),
    (
        "handshake_age_seconds",
        "gauge",
        "Seconds since the last WireGuard handshake; no sample: never.",
        lambda reach: reach.handshake_age_s,
    ),
    (
        "tunnel_ping_seconds",
        "gauge",
        "Mean round trip to the far end of the tunnel.",
        lambda reach: _seconds(reach.tunnel),
    ),
    (
        "lan_ping_seconds",
        "gauge",
        "Mean round trip to the far gateway's LAN address.",
        lambda reach: _seconds(reach.lan),
    ),
    (
        "tunnel_ping_loss_ratio",
        "gauge",
        "Share of the pings to the far end of the tunnel without an answer.",
        lambda reach: _loss(reach.tunnel),
    ),
    (
        "lan_ping_loss_ratio",
        "gauge",
        "Share of the pings to the far gateway's LAN address without an answer.",
        lambda reach: _loss(reach.lan),
    ),
    (
        "large_ping_loss_ratio",
        "gauge",
        "Share of the pings of the tunnel's full size without an answer.",
        lambda reach: None if reach.large and reach.large.told else _loss(reach.large),
    ),
    (
        "host_ping_loss_ratio",
        "gauge",
        "Share of the pings to the host that the site file names without an answer.",
        lambda reach: _loss(reach.host),
    ),
    (
        "fallback_active",
        "gauge",
        "Whether packets go over ssh (1) or WireGuard (0); no sample: no fallback.",
        lambda reach: float(reach.way == "ssh") if reach.way else None,
    ),
    (
        "switches_to_ssh_total",
        "counter",
        "How often the link switched over to ssh since the boot.",
        lambda reach: reach.to_ssh,
    ),
    (
        "switches_to_wireguard_total",
        "counter",
        "How often the link switched back to WireGuard since the boot.",
        lambda reach: reach.to_wireguard,
    ),
    (
        "same_file",
        "gauge",
        "Whether the site has the site file of this gateway (1) or not (0); no sample: not known.",
        lambda reach: None if reach.same_file is None else float(reach.same_file),
    ),
    (
        "received_bytes_total",
        "counter",
        "Bytes received from the peer since its interface came up.",
        lambda reach: reach.received_bytes,
    ),
    (
        "sent_bytes_total",
        "counter",
        "Bytes sent to the peer since its interface came up.",
        lambda reach: reach.sent_bytes,
    ),
)
