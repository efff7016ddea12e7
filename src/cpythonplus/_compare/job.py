"""A run of a program that ends by itself."""

from collections.abc import Sequence

from cpythonplus._compare.processes import PeakMemory, started
from cpythonplus._compare.samples import Sample
from cpythonplus._compare.sides import Side


def measure(side: Side, number: int, command: Sequence[str], *, any_status: bool) -> Sample:
    """Run `command` to its end. Raises ComparisonError for a status other than 0.

    any_status: allow any status.
    """
    with started(command) as program:
        with PeakMemory(program.pid) as memory:
            ended = program.wait()
        if ended.status and not any_status:
            raise program.failure(side)
    values = {"wall_s": ended.wall_s, "cpu_s": ended.cpu_s}
    if memory.peak_bytes:
        values["peak_bytes"] = memory.peak_bytes
    return Sample(side, number, ended.status, values)
