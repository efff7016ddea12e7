"""A headless Chromium for tests, spoken to through its debugging pipe."""

# ruff: noqa: ANN401 (JSON)
import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
TIMEOUT_S = 60
_OPTIONS = (
    "--headless",
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--no-default-browser-check",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)


def chromium() -> str | None:
    """Return the path of a Chromium, None: there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """One page; what it logs, throws and asks for is in `complaints` and `requests`."""

    def __init__(self, reader: int, writer: int) -> None:
        self._reader = reader
        self._writer = writer
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self._loaded = False
        self.complaints: list[str] = []
        self.requests: list[str] = []
        made = self.call("Target.createTarget", url="about:blank")
        attached = self.call("Target.attachToTarget", targetId=made["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Send a command, wait for its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": arguments}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._writer, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer)
                result: dict[str, Any] = answer["result"]
                return result
            self._event(answer)

    def _message(self) -> dict[str, Any]:
        end = time.monotonic() + TIMEOUT_S
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._reader], [], [], max(end - time.monotonic(), 0))
            assert ready, f"no answer from the browser within {TIMEOUT_S} s"
            piece = os.read(self._reader, 1 << 20)
            assert piece, "the browser ended"
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        return found

    def _event(self, event: dict[str, Any]) -> None:
        method, told = event.get("method", ""), event.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        elif method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            self.complaints.append(json.dumps(told))

    def open(self, file: Path) -> None:
        """Load a file, wait until it is there."""
        self._loaded = False
        self.call("Page.navigate", url=file.as_uri())
        while not self._loaded:
            self._event(self._message())

    def value(self, script: str) -> Any:
        """Return what an expression of JavaScript comes to; a promise is waited for."""
        done = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def screen(self, width: int, height: int, scheme: str = "light") -> None:
        """Make the window so large, in pixels; scheme: light or dark."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def picture(self, width: int, height: int, scale: float) -> list[bytes]:
        """Return the lines of a screenshot, made smaller, three bytes for a pixel."""
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": scale}
        taken = self.call("Page.captureScreenshot", format="png", clip=clip)
        return decoded(base64.b64decode(taken["data"]))


@contextlib.contextmanager
def page(executable: str, folder: Path) -> Iterator[Page]:
    """Start a browser whose files are in `folder`, and end it with all its processes."""
    ours, theirs = os.pipe(), os.pipe()
    # Above what the browser gets as 3 and 4.
    ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (theirs[0], ours[1])]
    for end in (theirs[0], ours[1]):
        os.close(end)
    arguments = [executable, *_OPTIONS, f"--user-data-dir={folder}"]
    if os.geteuid() == 0:
        arguments.append("--no-sandbox")
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"} | {"HOME": str(folder)}
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT, 0o600)
    pid = os.posix_spawn(
        executable,
        arguments,
        environment,
        file_actions=[
            # The log first: it may be what 3 or 4 was.
            (os.POSIX_SPAWN_DUP2, log, 1),
            (os.POSIX_SPAWN_DUP2, log, 2),
            (os.POSIX_SPAWN_DUP2, ends[0], 3),
            (os.POSIX_SPAWN_DUP2, ends[1], 4),
        ],
        setpgroup=0,
    )
    try:
        for end in (*ends, log):
            os.close(end)
        yield Page(ours[0], theirs[1])
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(ours[0])
        os.close(theirs[1])


def decoded(png: bytes) -> list[bytes]:
    """Return the lines of a PNG with 8 bits of red, green and blue, and perhaps an alpha."""
    at, data, width, channels = 8, b"", 0, 3
    while at < len(png):
        length, kind = int.from_bytes(png[at : at + 4]), png[at + 4 : at + 8]
        body = png[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width = int.from_bytes(body[:4])
            channels = {2: 3, 6: 4}[body[9]]
        elif kind == b"IDAT":
            data += body
        at += length + 12
    return [
        b"".join(line[n : n + 3] for n in range(0, len(line), channels))
        for line in _unfiltered(zlib.decompress(data), width * channels, channels)
    ]


def _unfiltered(data: bytes, length: int, step: int) -> Iterator[bytes]:
    above = bytes(length)
    for at in range(0, len(data), length + 1):
        kind, line = data[at], bytearray(data[at + 1 : at + 1 + length])
        for n in range(length):
            left, corner = (line[n - step], above[n - step]) if n >= step else (0, 0)
            up = above[n]
            near = min(
                (abs(up - corner), 0, left),
                (abs(left - corner), 1, up),
                (abs(left + up - 2 * corner), 2, corner),
            )[2]
            line[n] = (line[n] + (0, left, up, (left + up) // 2, near)[kind]) & 255
        above = bytes(line)
        yield above
