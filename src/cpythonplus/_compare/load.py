"""The load on a server: the requests, their results, and the process that makes them."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Literal
from urllib.parse import urlsplit

from cpythonplus._base.requests import Request
from cpythonplus._compare.errors import ComparisonError
from cpythonplus._compare.processes import started

Loop = Literal["open", "closed"]

MOST_CONNECTIONS = 500
"""The generator sleeps in select(2), which knows 1,024 descriptors."""


MOST_SENT = 100_000
"""The largest sum of weights."""
_MOST_BYTES, _ARGUMENT_BYTES = 1 << 20, 100_000
"""An argument of a program may have 128 KiB, and all together 2 MiB."""
_MOST_TITLE = 40


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as it is sent, as Latin-1, and how often beside the others."""

    title: str
    text: str
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Settings:
    """The requests, their rate and the duration."""

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
    requests: tuple[Sent, ...] = ()
    """Instead of the path, which then only tells when the server answers."""

    @property
    def address(self) -> str:
        """Host and port, as in a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The URL of the request."""
        return f"http://{self.address}{self.path}"


def sent(requests: Sequence[Request], settings: Settings) -> tuple[Sent, ...]:
    """Return requests as they are sent to a server.  Raises ComparisonError."""
    found = []
    for each in requests:
        whole = each
        if each.target.startswith("/"):
            whole = replace(each, target=f"http://{settings.address}{each.target}")
        parts = urlsplit(whole.target)
        path = parts.path or "/"
        headers = "".join(f"{n}: {v}\r\n" for n, v in whole.all_headers("cpythonplus-compare"))
        query = f"?{parts.query}" if parts.query else ""
        head = f"{each.method} {path}{query} HTTP/1.1\r\n{headers}\r\n"
        # A query may contain secrets, which a report must not show.
        title = f"{each.method} {path}"
        if len(title) > _MOST_TITLE:
            title = f"{title[: _MOST_TITLE - 3]}..."
        found.append(Sent(title, head + each.body.decode("latin-1"), each.weight))
    if sum(each.weight for each in found) > MOST_SENT:
        raise ComparisonError(f"expected weights whose sum is up to {MOST_SENT:,}")
    if sum(len(each.text) for each in found) > _MOST_BYTES:
        raise ComparisonError(f"expected requests of up to {_MOST_BYTES >> 10:,} KiB together")
    return tuple(found)


@dataclass(slots=True)
class Load:
    """The results of the requests of one load: of the open or of the closed loop."""

    latencies_ns: list[int] = field(default_factory=list)
    """The latencies of answered requests, and as lower bounds the waits of unanswered ones."""
    which: list[int] = field(default_factory=list)
    """The place of the request of each of them in the settings."""
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
    text = json.dumps(asdict(settings))
    parts = [text[at : at + _ARGUMENT_BYTES] for at in range(0, len(text), _ARGUMENT_BYTES)]
    command = [*generator, *parts]
    with started(command, stdout=True) as program:
        if program.wait().status:
            raise ComparisonError(f"the load generator failed: {program.last_words()}")
        # The interpreter may have written warnings, too.
        lines = program.output().splitlines()
        found = next((line for line in lines if line.startswith(b"{")), None)
        if found is None:
            raise ComparisonError(f"the load generator gave no result: {program.last_words()}")
        return Load(**json.loads(found))
