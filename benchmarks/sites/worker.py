"""One measurement: a bed, one way between its sites, one TCP stream through it.

Parameters: `tunnel` (a name of TUNNELS), `delay_s` (in each direction), `on_hosts` and
`on_gateways` (kernel parameters), `seconds`, `omit_s` (of the stream's start, not counted). It is
process 1 of a process namespace: see bed.ENCLOSED.
"""

from __future__ import annotations

import os
import signal
from math import ceil
from pathlib import Path
from typing import Any

from benchmarks.common import worker
from benchmarks.common.errors import MeasurementError
from benchmarks.sites import iperf
from benchmarks.sites.bed import FAR_HOST, INTERNET, LIMIT_S, Bed, inside, output
from benchmarks.sites.tunnels import TUNNELS

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure, and leave the result behind."""
    # What ends other processes by default does nothing to process 1.
    for number in (signal.SIGALRM, signal.SIGTERM):
        signal.signal(number, lambda number, _frame: os._exit(128 + number))
    parameters = worker.begin()
    try:
        worker.finish(parameters, measure(parameters))
    except MeasurementError as error:
        raise SystemExit(str(error)) from None


def measure(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return rate, round trip and what else is worth knowing of one stream."""
    bed = Bed(parameters["on_hosts"], parameters["on_gateways"])
    kind = TUNNELS[parameters["tunnel"]](bed)
    helper = None
    if parameters["delay_s"]:
        helper = bed.delay(parameters["delay_s"], parameters["limit_s"])
    # The first packets bring up keys and neighbours: they are not what a stream meets.
    bed.run("host-a", "ping", "-c", "1", "-w", "10", FAR_HOST)
    rtt_ms = iperf.rtt_ms(bed.run("host-a", "ping", "-q", "-c", "5", "-i", "0.1", FAR_HOST))
    busy_s = _cpu_s(helper.pid) if helper else 0.0
    found = _stream(bed, parameters["seconds"], parameters["omit_s"])
    bed.check()
    helper_s = _cpu_s(helper.pid) - busy_s if helper else 0.0
    length_s = ceil(parameters["seconds"]) + ceil(parameters["omit_s"])
    return {
        "kind": kind,
        "rate": found.mbit_per_s,
        "retransmits": found.retransmits,
        "congestion": found.congestion,
        "rtt_ms": rtt_ms,
        "helper_percent": 100 * helper_s / length_s,
        "dropped": _dropped(bed) if helper else 0,
    }


def _stream(bed: Bed, seconds: float, omit_s: float) -> iperf.Stream:
    bed.start("host-b", "iperf3", "--server", "--one-off", "--forceflush", until="listening")
    # It counts in whole seconds, and 0 of them are without end.
    length = ["--time", f"{ceil(seconds)}", "--omit", f"{ceil(omit_s)}"]
    command = ["iperf3", "--client", FAR_HOST, "--json", *length]
    return iperf.stream(output(*inside("host-a", *command), timeout_s=seconds + omit_s + LIMIT_S))


def _cpu_s(pid: int) -> float:
    # Behind the program's name, which may hold anything, come state and 10 more before utime.
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def _dropped(bed: Bed) -> int:
    """Return how many packets the delay lost, because its queue or its socket was full."""
    fields = bed.run(INTERNET, "cat", "/proc/net/netfilter/nfnetlink_queue").split()
    return int(fields[5]) + int(fields[6])


if __name__ == "__main__":
    main()
