"""The suite `sites`."""

from benchmarks.common.catalogue import Suite
from benchmarks.common.engine import Settings
from benchmarks.sites.scenario import check

SUITE = Suite(
    "sites",
    "a TCP stream between two sites: WireGuard, ssh, OpenVPN, no tunnel; needs root",
    full=Settings(3, 5.0),
    quick=Settings(1, 1.0),
    check=check,
)
