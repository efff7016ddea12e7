"""An echo server thread beside 0, 1, 2 and 8 CPU threads, its client in another process."""

from functools import partial
from pathlib import Path

from benchmarks.common.children import Children, Commands, loopback_listener
from benchmarks.common.engine import Case, Settings, shares_of
from benchmarks.common.percentiles import summarise
from benchmarks.common.results import Outcome, Side

_WORKER = Path(__file__).with_name("worker.py")
_CLIENT = Path(__file__).with_name("client.py")


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
