"""An echo server thread beside 0, 1, 2 and 8 CPU threads, its client in another process."""

from functools import partial
from pathlib import Path

from benchmarks.common.catalogue import Scenario, Table
from benchmarks.common.children import Children, Commands, loopback_listener
from benchmarks.common.engine import Case, Settings, shares_of
from benchmarks.common.percentiles import summarise
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side
from benchmarks.common.targets import Target

_WORKER = Path(__file__).with_name("worker.py")
_CLIENT = Path(__file__).with_name("client.py")

POLICY_SHARE = 0.05
"""Least part of the GIL's time for all waiting CPU threads together: `gil.Policy.batch_share`."""


def cases() -> list[Case]:
    """Return the cases of this scenario."""
    found = []
    for n in (0, 1, 2, 8):
        title = f"echo beside {n or 'no'} CPU thread{'s' * (n != 1)}"
        case = Case(
            f"echo-beside-{n}",
            "echo",
            title,
            "requests/s",
            partial(_measure, n),
            statistic="median",
        )
        found.append(case)
    return found


def _measure(cpu_threads: int, commands: Commands, side: Side, settings: Settings) -> Outcome:
    listener = loopback_listener()
    port = listener.getsockname()[1]
    with Children() as children:
        server = children.worker(
            commands.prefix(side),
            _WORKER,
            {"cpu_threads": cpu_threads, "warmup_s": settings.warmup_s},
            limit_s=settings.limit_s,
            listener=listener,
        )
        client = children.worker(
            commands.prefix("stock"),
            _CLIENT,
            {"port": port, "seconds": settings.seconds, "warmup_s": settings.warmup_s},
            limit_s=settings.limit_s,
        )
        measured = client.result_from(server.child)
        served = server.result()
    return Outcome(
        rate=measured["rate"],
        latency=summarise(measured["latencies_ns"]),
        shares=shares_of(served["shares"]),
        scheduled=served["scheduled"],
    )


SCENARIO = Scenario(
    cases={"giltest": cases},
    tables={"echo": Table("Echo over a TCP socket, client in another process")},
    targets=(
        Target("echo-beside-1", "ratio", 200),
        Target("echo-beside-1", "rate_against", 1.0, other="echo-beside-0"),
        Target("echo-beside-1", "p99_ms", 0.1, at_least=False),
        Target("echo-beside-2", "ratio", 400),
        Target("echo-beside-2", "p99_ms", 0.2, at_least=False),
        Target("echo-beside-8", "ratio", 500),
        Target("echo-beside-8", "p99_ms", 1.0, at_least=False),
        *(Target(f"echo-beside-{n}", "min_share", POLICY_SHARE / n) for n in (1, 2, 8)),
    ),
    place=1,
)
