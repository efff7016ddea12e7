"""The cases: near and far, with and without tuning, through each tunnel."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from benchmarks.common.catalogue import Scenario, Table
from benchmarks.common.children import Children, Commands
from benchmarks.common.engine import Case, Settings
from benchmarks.common.errors import MeasurementError, UsageError
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side
from benchmarks.common.targets import Target
from benchmarks.sites.bed import CONGESTION_CONTROL, ENCLOSED, can_be_private, queue_forwarded
from benchmarks.sites.tunnels import PROGRAMS

try:
    from cpythonplus_sites.tuning import LINUX, SETTINGS
except ModuleNotFoundError:  # a distribution of its own, that only these cases need
    LINUX, SETTINGS = {}, {}

SIDES: tuple[Side, ...] = ("direct", "wireguard", "ssh", "openvpn")

ONE_WAY_S = 0.04
"""In each direction: a round trip of 80 ms, as between Berlin and New York."""

OMIT_S = 3.0
"""At most so much of a stream's start is left out: with large buffers it takes seconds to fill."""

NEEDED = ("unshare", "mount", "ip", "sysctl", "ping", "iperf3")

_SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""Often not on PATH, and where sshd and openvpn are."""

UNTUNED = {**LINUX, CONGESTION_CONTROL: "cubic"}
"""Given explicitly: what the machine is set to must not make the difference."""
TUNED = {**UNTUNED, **SETTINGS}
BBR = {**UNTUNED, CONGESTION_CONTROL: "bbr"}


def cases() -> list[Case]:
    """Return the cases; `direct`, without a tunnel, is what the others are compared with."""
    return [
        _case("way-0", "No delay", delay_s=0),
        _case("way-80", "80 ms"),
        _case("tuned-80", "80 ms, tuned", on_hosts=TUNED, on_gateways=TUNED),
        _case("tuned-gateways-80", "80 ms, only gateways tuned", ("wireguard",), on_gateways=TUNED),
        _case("bbr-80", "80 ms, bbr", ("wireguard", "ssh"), on_hosts=BBR, on_gateways=BBR),
    ]


def _case(
    name: str,
    title: str,
    sides: tuple[Side, ...] = SIDES[1:],
    *,
    delay_s: float = ONE_WAY_S,
    on_hosts: Mapping[str, str] = UNTUNED,
    on_gateways: Mapping[str, str] = UNTUNED,
) -> Case:
    parameters = {"delay_s": delay_s, "on_hosts": on_hosts, "on_gateways": on_gateways}
    return Case(
        name,
        "line",
        title,
        "Mbit/s",
        partial(_measure, parameters),
        statistic="median",
        sides=("direct", *sides),
        base="direct",
        own="wireguard",
    )


def _path() -> str:
    return os.pathsep.join([os.environ.get("PATH", os.defpath), *_SBIN])


def _missing(programs: tuple[str, ...]) -> list[str]:
    return [name for name in programs if not shutil.which(name, path=_path())]


def check() -> None:
    """Raise UsageError where nothing at all can be measured here."""
    if not LINUX:
        raise UsageError("cpythonplus-sites is not installed: pip install ./sites")
    if os.geteuid() != 0:
        raise UsageError("needs root, for network namespaces")
    if missing := _missing(NEEDED):
        raise UsageError(f"{', '.join(missing)} not found")
    if not Path("/dev/net/tun").exists():
        raise UsageError("there is no /dev/net/tun")
    if not can_be_private(Path("/proc/self/mountinfo").read_text("utf-8", errors="replace")):
        raise UsageError("the root of this chroot is no mount; bind it to itself first")
    try:
        queue_forwarded(*ENCLOSED, "env", f"PATH={_path()}")
    except MeasurementError as error:
        raise UsageError(str(error)) from None


def _measure(
    parameters: Mapping[str, object], _commands: Commands, side: Side, settings: Settings
) -> Outcome:
    if missing := _missing(PROGRAMS[side]):
        raise MeasurementError(f"{', '.join(missing)} not found")
    omit_s = min(OMIT_S, settings.seconds)
    with Children() as children:
        result = children.worker(
            [*ENCLOSED, sys.executable],
            Path(__file__).with_name("worker.py"),
            {**parameters, "tunnel": side, "seconds": settings.seconds, "omit_s": omit_s},
            limit_s=settings.limit_s,
            env={"PATH": _path(), "LC_ALL": "C"},
        ).result()
    names = ("rtt_ms", "retransmits", "helper_percent") if parameters["delay_s"] else ("rtt_ms",)
    lost = [f"the delay lost {result['dropped']} packets"] if result["dropped"] else []
    return Outcome(
        rate=result["rate"],
        notes=(result["kind"], result["congestion"], *lost),
        figures={name: result[name] for name in names},
    )


SCENARIO = Scenario(
    cases={"sites": cases},
    tables={"line": Table("One TCP stream between two sites (median round)")},
    figures={"rtt_ms": "RTT ms", "retransmits": "sent again", "helper_percent": "% CPU for delay"},
    targets=(
        Target("way-80", "cost_to", 2, side="ssh"),
        Target("tuned-80", "times_case", 2, other="way-80"),
    ),
)
