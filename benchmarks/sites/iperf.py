"""What iperf3 and ping print, as numbers."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from benchmarks.common.errors import MeasurementError

_RTT = re.compile(r"^rtt min/avg/max/mdev = [\d.]+/([\d.]+)/", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Stream:
    """One TCP stream."""

    mbit_per_s: float
    """What arrived, without the omitted start."""
    retransmits: int
    """Segments that the sender sent again in that time."""
    congestion: str
    """The sender's congestion control."""


def stream(printed: str) -> Stream:
    """Read what `iperf3 --client --json` printed. Raises MeasurementError with its own reason."""
    try:
        found = json.loads(printed)
        if "error" in found:
            raise MeasurementError(f"iperf3: {found['error']}")
        end = found["end"]
        return Stream(
            mbit_per_s=float(end["sum_received"]["bits_per_second"]) / 1e6,
            retransmits=int(end["sum_sent"].get("retransmits", 0)),
            congestion=str(end.get("sender_tcp_congestion", "")),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise MeasurementError(f"iperf3 printed no result: {error!r}") from None


def rtt_ms(printed: str) -> float:
    """Return the mean round trip that `ping -q` printed. Raises MeasurementError."""
    found = _RTT.search(printed)
    if found is None:
        raise MeasurementError("ping got no answer")
    return float(found[1])
