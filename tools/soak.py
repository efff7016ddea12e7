#!/usr/bin/env python3
"""Lets one process do everything at once for long, and tells what it took and what it kept.

    python tools/soak.py [--side tasklets|gevent|stock] [--seconds S] [--json FILE]

The same program on each side: components of the standard library, several threads each.  Patched by
`tasklets.locks.patch(threads=True)` and `tasklets.io.patch()` its threads are tasklets, patched by
`gevent.monkey.patch_all()` greenlets.  A turn is one unit of a component's work: an echo, a
request, a process that ended.  Each minute one line tells the turns so far, resident memory,
descriptors and threads of the kernel.  Status 1 where an error came up, a component stood still for
a minute, or the last tenth of the time needs 2 % of memory more than the second one, or a dozen
descriptors.
"""

import argparse
import asyncio
import json
import os
import queue
import select
import socket
import socketserver
import subprocess
import sys
import threading
import time
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import urlopen

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from tools.compat.run import BY_GEVENT, patched  # found by the path above

SIDES = {
    "tasklets": patched(
        "from cpythonplus.tasklets import io, locks; locks.patch(threads=True); io.patch()"
    ),
    "gevent": patched(BY_GEVENT),
    "stock": (),
}
"""What comes between the interpreter and this script."""


def expect(found: int, wanted: int) -> None:
    """Complain of a wrong result."""
    if found != wanted:
        raise ValueError(f"{found} instead of {wanted}")


class Echo(socketserver.BaseRequestHandler):
    """Sends back what comes."""

    def handle(self) -> None:
        """Serve a connection."""
        while data := self.request.recv(4096):
            self.request.sendall(data)


class Echoes(socketserver.ThreadingTCPServer):
    """A thread for each connection."""

    daemon_threads = True


class Page(BaseHTTPRequestHandler):
    """Answers every request alike."""

    def do_GET(self) -> None:  # the standard name
        """Answer."""
        body = b"x" * 2000
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Soak:
    """The components, each a method that does one turn, and what came of them."""

    COPIES = 4
    """Threads of each component."""

    def __init__(self) -> None:
        """Start the servers."""
        self.turns: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.ends = False
        self.queue: queue.Queue[int] = queue.Queue(16)
        self.condition = threading.Condition()
        self.semaphore = threading.BoundedSemaphore(2)
        self.pool = ThreadPoolExecutor(4)
        self.local = threading.local()
        self.echo = Echoes(("127.0.0.1", 0), Echo)
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Page)
        self.address = ("127.0.0.1", int(self.echo.server_address[1]))
        self.page = f"http://127.0.0.1:{self.http.server_address[1]}/"
        for server in (self.echo, self.http):
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()

    def _echo(self) -> None:
        connection = getattr(self.local, "connection", None)
        if connection is None:
            connection = socket.create_connection(self.address)
            self.local.connection = connection
        connection.sendall(b"hello")
        left = 5
        while left:
            left -= len(connection.recv(left))

    def _connect(self) -> None:
        with socket.create_connection(self.address) as connection:
            connection.sendall(b"x" * 20000)
            left = 20000
            while left:
                left -= len(connection.recv(left))

    def _request(self) -> None:
        with urlopen(self.page) as answer:  # noqa: S310  # our own
            expect(len(answer.read()), 2000)

    def _queue(self) -> None:
        self.queue.put(1)
        self.queue.get()

    def _condition(self) -> None:
        with self.condition:
            self.condition.notify_all()
            self.condition.wait(0.01)

    def _semaphore(self) -> None:
        with self.semaphore:
            time.sleep(0.0005)

    def _pool(self) -> None:
        expect(self.pool.submit(sum, (1, 2)).result(), 3)

    def _process(self) -> None:
        found = subprocess.run(["cat"], input=b"y" * 100_000, capture_output=True, check=True)
        expect(len(found.stdout), 100_000)

    def _thread(self) -> None:
        thread = threading.Thread(target=sum, args=((1, 2),))
        thread.start()
        thread.join()

    def _asyncio(self) -> None:
        async def some() -> None:
            await asyncio.gather(*(asyncio.sleep(0.001) for _ in range(10)))

        asyncio.run(some())

    def _pipe(self) -> None:
        reading, writing = os.pipe()
        try:
            os.write(writing, b"x")
            poller = select.poll()
            poller.register(reading, select.POLLIN)
            expect(len(poller.poll(1000)), 1)
        finally:
            os.close(reading)
            os.close(writing)

    def _error(self) -> None:
        try:
            time.sleep(0)
            int("no number")
        except ValueError:
            time.sleep(0)

    def component(self, name: str, turn: Callable[[], None]) -> None:
        """Take turns until the end; nobody computes without ever waiting."""
        while not self.ends:
            try:
                turn()
                self.turns[name] += 1
            except Exception as error:  # noqa: BLE001  # each is told at the end
                self.errors[f"{name}: {error!r}"] += 1
            time.sleep(0.0005)

    def begin(self) -> dict[str, Callable[[], None]]:
        """Start all components; return them."""
        found: dict[str, Callable[[], None]] = {
            "echo": self._echo,
            "connect": self._connect,
            "request": self._request,
            "queue": self._queue,
            "condition": self._condition,
            "semaphore": self._semaphore,
            "pool": self._pool,
            "process": self._process,
            "thread": self._thread,
            "asyncio": self._asyncio,
            "pipe": self._pipe,
            "error": self._error,
        }
        for name, turn in found.items():
            for _ in range(self.COPIES):
                threading.Thread(target=self.component, args=(name, turn), daemon=True).start()
        return found


def kept() -> dict[str, int]:
    """Return what this process has now: KB of memory, descriptors, threads of the kernel."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {
        "rss_kb": int(status["VmRSS"].split()[0]),
        "descriptors": len(os.listdir("/proc/self/fd")),  # noqa: PTH208
        "kernel_threads": int(status["Threads"]),
    }


OPEN_AT_ONCE = 3 * Soak.COPIES
"""Descriptors that components have open for a moment: as many more mean nothing."""


def verdict(samples: Mapping[str, Sequence[int]]) -> list[str]:
    """Return what grew: the least of the last tenth against that of the second."""
    tenth = max(len(samples["rss_kb"]) // 10, 1)
    grown = []
    for key, share, room in (("rss_kb", 1.02, 0), ("descriptors", 1, OPEN_AT_ONCE)):
        found = samples[key]
        before, after = min(found[tenth : 2 * tenth] or found[:1]), min(found[-tenth:])
        if after > before * share + room:
            grown.append(f"{key} grew from {before} to {after}")
    return grown


def run(side: str, seconds: float) -> dict[str, Any]:
    """Run it all; return turns, samples and complaints."""
    soak = Soak()
    names = list(soak.begin())
    begun, still = time.monotonic(), Counter[str]()
    samples = {key: array("q") for key in kept()}  # an hour of objects would look like a leak
    told, before = 0, Counter[str]()
    while (past := time.monotonic() - begun) < seconds:
        time.sleep(1)
        now = kept()
        for key, found in samples.items():
            found.append(now[key])
        if int(past) // 60 > told:
            told = int(past) // 60
            still.update(name for name in names if soak.turns[name] == before[name])
            before = Counter(soak.turns)
            print(f"soak: {side}: {told} min: {dict(soak.turns)} {now}", flush=True)
    soak.ends = True
    complaints = [f"{name} stood still for {count} min" for name, count in still.items()]
    complaints += [f"{count} x {error}" for error, count in soak.errors.items()]
    return {
        "side": side,
        "python": sys.version.split()[0],
        "seconds": seconds,
        "turns": {name: soak.turns[name] for name in names},
        "first": {key: found[0] for key, found in samples.items()},
        "last": {key: found[-1] for key, found in samples.items()},
        "complaints": complaints + verdict(samples),
    }


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="soak", description="Everything at once, for long")
    parser.add_argument("--side", choices=SIDES, default="tasklets")
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--patched", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.patched:
        command = [sys.executable, *SIDES[options.side], __file__, "--patched", *sys.argv[1:]]
        os.execv(sys.executable, command)
    found = run(options.side, options.seconds)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    print(json.dumps(found, indent=1))
    sys.stdout.flush()
    os._exit(bool(found["complaints"]))  # its threads never end


if __name__ == "__main__":
    sys.exit(main())
