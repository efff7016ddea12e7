"""`cpythonplus bench sites`: what it sends to the kernel and reads, and one real bed."""

import json
import os
import struct
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from cpythonplus.benchmarks.common import targets
from cpythonplus.benchmarks.common.children import Children, Commands
from cpythonplus.benchmarks.common.engine import Settings
from cpythonplus.benchmarks.common.errors import MeasurementError, UsageError
from cpythonplus.benchmarks.common.results import Outcome, Round, Side
from cpythonplus.benchmarks.sites import bed, delay, iperf, nfqueue, scenario, tunnels
from cpythonplus.benchmarks.suites import SUITES
from cpythonplus.cli.arguments import UsageError as CommandUsageError
from cpythonplus.cli.commands import bench
from tests.benchmarks import canned

COMMANDS = Commands.of(sys.executable)
CASES = {case.name: case for case in SUITES["sites"]()}


# ---- the packet queue's messages ----------------------------------------------------------------


def from_kernel(kind: int, body: bytes) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body


def packet(number: int) -> bytes:
    """A packet's message as the kernel sends it, another attribute in front of the header."""
    mark = nfqueue.attribute(3, b"\0\0\0\7\0\0")
    header = nfqueue.attribute(nfqueue.NFQA_PACKET_HDR, struct.pack(">IHB", number, 0x0800, 2))
    return from_kernel(nfqueue.PACKET, b"\2\0\0\0" + mark + header)


@pytest.mark.any_version
def test_a_verdict_is_one_message() -> None:
    found = nfqueue.acceptance(5, 0x01020304)
    head, rest = found[:16], found[16:]
    assert struct.unpack("=IHHII", head) == (32, 0x0303, 1, 0, 0)
    assert rest == b"\0\0\0\5" + struct.pack("=HH", 12, 2) + b"\0\0\0\1\1\2\3\4"


@pytest.mark.any_version
def test_binding_leaves_the_contents_in_the_kernel() -> None:
    command, settings = nfqueue.binding(0, 1000)
    assert struct.unpack("=IHHII", command[:16]) == (28, 0x0302, 5, 0, 0)
    assert command[16:] == b"\0\0\0\0" + struct.pack("=HH", 8, 1) + b"\1\0\0\0"
    # Copies of no bytes, of what is known about them: mode 1, and padding.
    assert struct.pack("=HH", 9, 2) + b"\0\0\0\0\1\0\0\0" in settings
    assert struct.pack("=HH", 8, 3) + b"\0\0\3\xe8" in settings
    for kind in (4, 5):
        assert struct.pack("=HH", 8, kind) + b"\0\0\0\4" in settings


@pytest.mark.any_version
def test_packets_are_told_apart() -> None:
    acknowledged = from_kernel(2, struct.pack("=i", 0) + bytes(16))
    assert list(nfqueue.packet_ids(packet(7))) == [7]
    assert list(nfqueue.packet_ids(packet(7) + acknowledged + packet(1 << 31))) == [7, 1 << 31]
    with pytest.raises(PermissionError):
        list(nfqueue.packet_ids(from_kernel(2, struct.pack("=i", -1) + bytes(16))))


@pytest.mark.any_version
@pytest.mark.parametrize(
    "received",
    [
        b"",
        b"\0" * 40,
        packet(3)[:20],
        from_kernel(nfqueue.PACKET, b"\2\0\0\0" + b"\0" * 8),
        from_kernel(nfqueue.PACKET, b"\2\0\0\0"),
    ],
    ids=["empty", "zeros", "cut", "length 0", "no attribute"],
)
def test_a_message_without_a_packet_tells_of_none(received: bytes) -> None:
    assert list(nfqueue.packet_ids(received)) == []


@pytest.mark.any_version
def test_each_packet_is_held_as_long() -> None:
    holding = delay.Holding(0.04)
    assert holding.wait_s(0.0) is None
    assert holding.due(9.0) is None
    holding.add(3, 1.0)
    holding.add(5, 1.01)
    assert holding.wait_s(1.02) == pytest.approx(0.02)
    assert holding.due(1.03) is None
    assert holding.due(1.04) == 3
    holding.add(9, 1.045)
    assert holding.due(1.2) == 9, "one verdict for all that are due"
    assert holding.wait_s(1.2) is None


# ---- what programs print ------------------------------------------------------------------------


@pytest.mark.any_version
def test_a_stream_is_read() -> None:
    end = {
        "sum_sent": {"bits_per_second": 4e8, "retransmits": 12},
        "sum_received": {"bits_per_second": 3.5e8},
        "sender_tcp_congestion": "cubic",
    }
    assert iperf.stream(json.dumps({"end": end})) == iperf.Stream(350.0, 12, "cubic")


@pytest.mark.any_version
@pytest.mark.parametrize(
    ("printed", "message"),
    [
        ('{"error": "unable to connect"}', "iperf3: unable to connect"),
        ('{"end": {}}', "printed no result"),
        ("[]", "printed no result"),
        ("", "printed no result"),
    ],
)
def test_a_stream_that_failed_says_why(printed: str, message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        iperf.stream(printed)


@pytest.mark.any_version
def test_the_round_trip_is_read() -> None:
    assert iperf.rtt_ms("x\nrtt min/avg/max/mdev = 80.1/80.345/81.2/0.4 ms\n") == 80.345
    with pytest.raises(MeasurementError, match="no answer"):
        iperf.rtt_ms("5 packets transmitted, 0 received, 100% packet loss\n")


# ---- what has to be there -----------------------------------------------------------------------


@pytest.mark.any_version
def test_without_root_it_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(CommandUsageError, match="sites: needs root"):
        bench.main(["sites", "--quick"])


@pytest.mark.any_version
def test_a_missing_program_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(scenario, "_missing", lambda programs: programs[-1:])
    with pytest.raises(UsageError, match="sites: iperf3 not found"):
        scenario.check()
    with pytest.raises(MeasurementError, match="openssl not found"):
        CASES["way-0"].measure(COMMANDS, "openvpn", Settings(1, 1.0))


@pytest.mark.any_version
def test_a_chroot_s_mounts_are_not_its_own() -> None:
    line = "22 27 0:21 / {} rw,relatime shared:5 - ext4 /dev/vda rw\n"
    assert bed.can_be_private(line.format("/proc") + line.format("/"))
    assert not bed.can_be_private(line.format("/proc") + line.format("/run"))
    assert not bed.can_be_private("")


class Recording:
    """A bed that only notes what is run, and has kernel WireGuard or not."""

    def __init__(self, folder: Path, *, kernel: bool) -> None:
        self.folder = folder
        self.kernel = kernel
        self.ran: list[tuple[str, ...]] = []

    def run(self, namespace: str, *command: str, stdin: str = "") -> str:
        self.ran.append((namespace, *command))
        if not self.kernel and command[:3] == ("ip", "link", "add"):
            raise MeasurementError("Unknown device type")
        return {"genkey": f"SECRET-{namespace}\n", "pubkey": stdin.replace("SECRET", "shown")}.get(
            command[1], ""
        )

    def start(self, namespace: str, *command: str) -> None:
        self.ran.append((namespace, *command))

    def wait_for(self, condition: Callable[[], bool], _what: str) -> None:
        assert condition()


@pytest.mark.any_version
@pytest.mark.parametrize(("kernel", "kind"), [(True, "kernel"), (False, "wireguard-go")])
def test_wireguard_is_the_kernel_s_where_it_is(tmp_path: Path, kernel: bool, kind: str) -> None:
    recording = Recording(tmp_path, kernel=kernel)
    assert tunnels.wireguard(cast("bed.Bed", recording)) == kind
    started = [command[1:] for command in recording.ran if command[1] == "wireguard-go"]
    names = [] if kernel else ["wg-a", "wg-b"]
    assert started == [("wireguard-go", "--foreground", name) for name in names]
    peers = [c[c.index("peer") + 1] for c in recording.ran if c[1:3] == ("wg", "set")]
    assert peers == ["shown-gateway-b", "shown-gateway-a"]
    assert not any("SECRET" in word for command in recording.ran for word in command)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


# ---- cases and targets --------------------------------------------------------------------------


@pytest.mark.any_version
def test_only_what_is_tuned_differs() -> None:
    names = {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}
    assert {n for n in scenario.TUNED if scenario.TUNED[n] != scenario.UNTUNED[n]} == names
    assert set(scenario.BBR.items()) - set(scenario.UNTUNED.items()) == {
        (bed.CONGESTION_CONTROL, "bbr")
    }


@pytest.mark.any_version
def test_the_targets_are_ratios_of_one_run() -> None:
    report = canned.report("sites")
    for case, side, rate in (
        ("way-80", "wireguard", 300.0),
        ("way-80", "ssh", 120.0),
        ("tuned-80", "wireguard", 900.0),
    ):
        found = report.case(case)
        assert found is not None
        found.rounds = [
            Round(r.side, r.number, r.position, Outcome(rate)) if r.side == side else r
            for r in found.rounds
        ]
    verdicts = {v.case: v for v in targets.verdicts(report)}
    assert (verdicts["way-80"].target, verdicts["way-80"].value) == (">= 2 x ssh", 2.5)
    assert (verdicts["tuned-80"].target, verdicts["tuned-80"].value) == (">= 2 x way-80", 3.0)
    assert verdicts["tuned-80"].reached


# ---- a real bed ---------------------------------------------------------------------------------


@pytest.fixture
def possible() -> None:
    try:
        scenario.check()
    except UsageError as error:
        pytest.skip(str(error))


def in_process_namespace(inode: int) -> Iterator[int]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "ns" / "pid_for_children").stat().st_ino == inode:
                yield int(folder.name)
        except OSError:
            continue  # it ended meanwhile


@pytest.mark.slow  # a bed of five machines, daemons, a stream of two seconds
@pytest.mark.usefixtures("possible")
@pytest.mark.parametrize("side", scenario.SIDES)
def test_a_stream_goes_over_a_long_way(side: Side) -> None:
    if missing := scenario._missing(tunnels.PROGRAMS[side]):
        pytest.skip(f"{missing} not found")
    outcome = CASES["tuned-80"].measure(COMMANDS, side, Settings(1, 1.0))
    assert outcome.rate > 0
    assert outcome.figures["rtt_ms"] >= 79.5
    assert outcome.notes[1:] == ("cubic",), "nothing was lost by the delay itself"


@pytest.mark.slow
@pytest.mark.usefixtures("possible")
def test_a_bed_that_is_killed_leaves_nothing(tmp_path: Path) -> None:
    script = tmp_path / "killed.py"
    script.write_text(
        "import os, pathlib, signal, sys\n"
        "from cpythonplus.benchmarks.sites.bed import Bed\n"
        "bed = Bed({}, {})\n"
        "bed.start('gateway-a', 'sleep', '86403')\n"
        "bed.start('gateway-b', 'setsid', '--fork', 'sleep', '86403')\n"
        "inode = os.stat('/proc/self/ns/pid').st_ino\n"
        "pathlib.Path(sys.argv[1]).write_text(str(inode))\n"
        "signal.pause()\n"
    )
    told = tmp_path / "inode"
    with Children() as children:
        command = [*bed.ENCLOSED, sys.executable, str(script), str(told)]
        child = children.start(command, "the bed", env={"PATH": scenario._path()})
        while not (told.exists() and told.read_text()):
            child.check()
            time.sleep(0.01)
        inode = int(told.read_text())
        assert list(in_process_namespace(inode)), "it can be seen from here"
    while list(in_process_namespace(inode)):
        time.sleep(0.01)  # the watchdog of the whole run ends this where something stays
