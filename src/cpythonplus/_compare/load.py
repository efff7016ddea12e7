"""The load on a server: the requests, their results, and the process that makes them."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, field
from typing import Literal

from cpythonplus._compare.errors import ComparisonError
from cpythonplus._compare.processes import started

Loop = Literal["open", "closed"]

MOST_CONNECTIONS = 500
"""The generator sleeps in select(2), which knows 1,024 descriptors."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The request, its rate and the duration."""

    host: str
    port: int
    path: str
    rate: float
    """Requests per second in the open loop."""
    duration_s: float = 10.0
    """The duration of each loop."""
    connections: int = 50
    wait_s: float = 30.0
    """The limit for the first answer, from the start on."""
    loop: Loop = "open"

    @property
    def address(self) -> str:
        """Host and port, as in a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The URL of the request."""
        return f"http://{self.address}{self.path}"


@dataclass(slots=True)
class Load:
    """The results of the requests of one load: of the open or of the closed loop."""

    latencies_ns: list[int] = field(default_factory=list)
    """The latencies of answered requests, and as lower bounds the waits of unanswered ones."""
    answered: int = 0
    """Complete answers within the loop's duration."""
    errors: dict[str, int] = field(default_factory=dict)
    """How many failed, by kind."""
    late_ns: int = 0
    """How late the generator itself was, 99th percentile; its own waits for a connection aside."""


def run(settings: Settings) -> Load:
    """Run a loop in a process of its own. Raises ComparisonError if that fails."""
    # -P: no module in the user's folder may replace one of the standard library.
    generator = [sys.executable, "-P", "-m", "cpythonplus._compare.generator"]
    command = [*generator, json.dumps(asdict(settings))]
    with started(command, stdout=True) as program:
        if program.wait().status:
            raise ComparisonError(f"the load generator failed: {program.last_words()}")
        # The interpreter may have written warnings, too.
        lines = program.output().splitlines()
        found = next((line for line in lines if line.startswith(b"{")), None)
        if found is None:
            raise ComparisonError(f"the load generator gave no result: {program.last_words()}")
        return Load(**json.loads(found))
