"""Two sites and the internet between them, in network namespaces that vanish with their process.

    host-a -- gateway-a -- internet -- gateway-b -- host-b
    .10.2     .10.1   .1   .2     .6   .5    .20.1  .20.2

The LANs are 192.168.10.0/24 and 192.168.20.0/24, the lines to the internet 198.51.100.0/30 and
.4/30. Without a tunnel the internet forwards between the LANs as well: that is `direct`.

All of it is made in a mount and a process namespace of the worker's own (see ENCLOSED), so it
cannot be left behind: when the worker ends, however it does, the kernel ends every process in there
and takes the network namespaces, whose only names are in that mount namespace.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from benchmarks.common.errors import MeasurementError

LIMIT_S = 20.0
"""How long anything but the measurement itself may take."""

PREFIX = "cpp-bench-"
HOSTS = ("host-a", "host-b")
GATEWAYS = ("gateway-a", "gateway-b")
INTERNET = "internet"
WAN = {"gateway-a": "198.51.100.1", "gateway-b": "198.51.100.5"}
"""The gateways' addresses in the internet."""
LAN = {"gateway-a": "192.168.10.0/24", "gateway-b": "192.168.20.0/24"}
FAR_HOST = "192.168.20.2"

CONGESTION_CONTROL = "net.ipv4.tcp_congestion_control"

# From, its device and address, to, its device and address.
_LINES = (
    ("host-a", "eth0", "192.168.10.2/24", "gateway-a", "lan", "192.168.10.1/24"),
    ("host-b", "eth0", "192.168.20.2/24", "gateway-b", "lan", "192.168.20.1/24"),
    ("gateway-a", "wan", "198.51.100.1/30", INTERNET, "to-a", "198.51.100.2/30"),
    ("gateway-b", "wan", "198.51.100.5/30", INTERNET, "to-b", "198.51.100.6/30"),
)
_ROUTES = (
    ("host-a", "default", "192.168.10.1"),
    ("host-b", "default", "192.168.20.1"),
    ("gateway-a", "default", "198.51.100.2"),
    ("gateway-b", "default", "198.51.100.6"),
    (INTERNET, LAN["gateway-a"], WAN["gateway-a"]),
    (INTERNET, LAN["gateway-b"], WAN["gateway-b"]),
)


ENCLOSED = (
    *("unshare", "--mount", "--propagation", "private"),
    *("--net", "--pid", "--fork", "--kill-child", "--mount-proc"),
)
"""What stands before a command that gets namespaces of its own, and ends with them."""


def can_be_private(mountinfo: str) -> bool:
    """Return whether mounts can be kept to oneself: the root is one, which a chroot's is not.

    mountinfo: the text of /proc/self/mountinfo. In a chroot a mount might show up outside of it.
    """
    return any(line.split()[4:5] == ["/"] for line in mountinfo.splitlines())


def inside(namespace: str, *command: str) -> list[str]:
    """Return `command` as one that runs in a namespace of the bed."""
    return ["ip", "netns", "exec", PREFIX + namespace, *command]


def output(*command: str, stdin: str = "", timeout_s: float = LIMIT_S) -> str:
    """Run a command to its end and return what it prints. Raises MeasurementError."""
    try:
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise MeasurementError(f"{' '.join(command[:6])}: {error}") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise MeasurementError(f"{' '.join(command[:6])}: {last}")
    return done.stdout


def queue_forwarded(*inside_of: str) -> None:
    """Hand each forwarded packet to the program that listens to queue 0; `inside_of` stands before.

    Raises MeasurementError where the kernel, or what sets it up, has no such queue.
    """
    # Not every kernel has nftables' own queue statement; iptables' target is older.
    table = "table inet delay { chain c { type filter hook forward priority 0; queue num 0; } }"
    rule = ["iptables", "-A", "FORWARD", "-j", "NFQUEUE", "--queue-num", "0"]
    try:
        output(*inside_of, "nft", "-f", "-", stdin=table)
    except MeasurementError as error:
        try:
            output(*inside_of, *rule)
        except MeasurementError as second:
            raise MeasurementError(f"no packet queue: {error}; {second}") from None


class Bed:
    """The namespaces and what runs in them; made once, in an enclosed process."""

    def __init__(self, on_hosts: Mapping[str, str], on_gateways: Mapping[str, str]) -> None:
        """Make everything, with kernel parameters as given. Raises MeasurementError."""
        output("mount", "-t", "tmpfs", "tmpfs", "/run")
        self.folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir="/run"))
        self._running: list[tuple[subprocess.Popen[str], str, IO[str]]] = []
        for name in (*HOSTS, *GATEWAYS, INTERNET):
            output("ip", "netns", "add", PREFIX + name)
            self.run(name, "ip", "link", "set", "lo", "up")
        for line in _LINES:
            self._draw(line[:3], line[3:])
        for name in (*GATEWAYS, INTERNET):
            self.set(name, {"net.ipv4.ip_forward": "1"})
        sysctls = {name: dict(on_hosts) for name in HOSTS}
        sysctls |= {name: dict(on_gateways) for name in GATEWAYS}
        for name, subnet, via in _ROUTES:
            # As a parameter, a namespace gets only what the whole machine allows everybody.
            congestion = sysctls.get(name, {}).pop(CONGESTION_CONTROL, "")
            control = ["congctl", congestion] if congestion else []
            self.run(name, "ip", "route", "add", subnet, "via", via, *control)
        for name, values in sysctls.items():
            self.set(name, values)

    def _draw(self, one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
        far = ["peer", "name", other[1], "netns", PREFIX + other[0]]
        output("ip", "-n", PREFIX + one[0], "link", "add", one[1], "type", "veth", *far)
        for name, device, address in (one, other):
            self.run(name, "ip", "address", "add", address, "dev", device)
            self.run(name, "ip", "link", "set", "dev", device, "up")

    def run(self, namespace: str, *command: str, stdin: str = "") -> str:
        """Run a command in a namespace and return what it prints. Raises MeasurementError."""
        return output(*inside(namespace, *command), stdin=stdin)

    def set(self, namespace: str, sysctls: Mapping[str, str]) -> None:
        """Set kernel parameters of a namespace. Raises MeasurementError."""
        for name, value in sysctls.items():
            self.run(namespace, "sysctl", "-q", "-w", f"{name}={value}")

    def start(
        self, namespace: str, *command: str, until: str | None = None
    ) -> subprocess.Popen[str]:
        """Start a command that stays; with `until`, wait until it prints a line with that text.

        Raises MeasurementError where it ends without.
        """
        log = (self.folder / f"{len(self._running)}.log").open("w+")
        process = subprocess.Popen(
            inside(namespace, *command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if until else log,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._running.append((process, command[0], log))
        if until:
            _read_until(process, until, command[0])
        return process

    def delay(self, one_way_s: float, limit_s: float) -> subprocess.Popen[str]:
        """Hold what the internet forwards for so long in each direction; returns the helper."""
        ready = self.folder / "delaying"
        parameters = (
            f'{{"queue": 0, "delay_s": {one_way_s}, "limit_s": {limit_s}, "ready": "{ready}"}}'
        )
        script = Path(__file__).with_name("delay.py")
        process = self.start(INTERNET, sys.executable, str(script), parameters)
        self.wait_for(ready.exists, "the delay helper")
        queue_forwarded(*inside(INTERNET))
        return process

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until `condition()` holds; every 10 ms, and not when something has ended.

        Raises MeasurementError with the last words of what ended, or after LIMIT_S.
        """
        end = time.monotonic() + LIMIT_S
        while not condition():
            self.check()
            if time.monotonic() > end:
                raise MeasurementError(f"{what} was not there in {LIMIT_S:.0f} s")
            time.sleep(0.01)

    def check(self) -> None:
        """Raise MeasurementError where something that was started has ended badly."""
        for process, name, log in self._running:
            if process.poll():
                log.seek(0)
                words = log.read().strip().splitlines() or [f"status {process.returncode}"]
                raise MeasurementError(f"{name} ended: {words[-1]}")


def _read_until(process: subprocess.Popen[str], text: str, name: str) -> None:
    # The worker's alarm ends a wait that does not end.
    said = ""
    while text not in said:
        line = process.stdout.readline() if process.stdout else ""
        if not line:
            raise MeasurementError(f"{name} ended: {said.strip() or process.wait()}")
        said = line
