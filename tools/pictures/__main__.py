"""Makes docs/pictures: what the doctor shows of a service that runs.

    python -m tools.pictures

The services are in example/, the commands are the real ones.  The terminal's pictures are what the
commands print into a terminal, drawn by rich; that of `top` is a screen of tmux.  The page's are
screenshots by headless Chromium.  `python -m tools.pictures top` makes that of `top` alone.
"""

import base64
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tests.doctor import browser

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLE = Path(__file__).resolve().parent / "example"
PICTURES = ROOT / "docs" / "pictures"
COLUMNS, LINES = 100, 30
WAIT_S = 60
TOP_LINES, TOP_S = 22, 8.0
LOOKS = 3  # of `watch`, at growth
WIDTH, MARGIN = 840, 16
# What is on each picture of the page: from one element's upper end to another's lower end.
PARTS = {
    "doctor-page": ("h1", ".arenas + .legend"),
    "doctor-heap": ("section:has(.views)", ".views .legend"),
}
_RECTANGLE = """
(() => {
  const [first, last] = %s.map((name) => document.querySelector(name).getBoundingClientRect());
  return [first.top + scrollY, last.bottom + scrollY];
})()
"""
_HOME = b"\x1b[H"  # before each look that `watch` draws
# The font would be asked for from the web.
_FONT = re.compile(r"@font-face \{.*?\}", re.DOTALL)


@contextlib.contextmanager
def service(folder: Path, *words: str) -> Iterator[int]:
    """Run an example in `folder`; yield its PID. words: options of `run` and the file."""
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True)
    (folder / "venv").symlink_to(sys.prefix)
    command = ["venv/bin/python", "-m", "cpythonplus", "run", *words]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE) as process:
        try:
            if process.stdout is None or not process.stdout.readline():
                sys.exit("pictures: the example did not start")
            yield process.pid
        finally:
            process.kill()


def printed(*arguments: str, looks: int = 0) -> bytes:
    """Return what `cpythonplus` prints into a terminal; after that many looks it gets a `q`."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    environment = os.environ | {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
    command = [sys.executable, "-m", "cpythonplus", *arguments]
    seen = b""
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        end = time.monotonic() + WAIT_S
        with contextlib.suppress(OSError):  # EIO: it has ended
            while select.select([ours], [], [], max(end - time.monotonic(), 0))[0]:
                seen += os.read(ours, 1 << 16)
                if looks and seen.count(_HOME) > looks:
                    os.write(ours, b"q")
                    looks = 0
        process.kill()
    os.close(ours)
    if process.returncode != 0:
        sys.exit(f"pictures: {' '.join(arguments)}: {seen.decode(errors='replace')}")
    return seen


def last_look(seen: bytes) -> bytes:
    """Return the last whole look of `watch`."""
    return seen.split(_HOME)[-2]


def screen(command: list[str]) -> bytes:
    """Return the screen of a command in tmux after some looks."""
    tmux = ["tmux", "-L", "cpythonplus-pictures"]
    size = ["-x", str(COLUMNS), "-y", str(TOP_LINES)]
    subprocess.run([*tmux, "new-session", "-d", *size, shlex.join(command)], check=True)
    try:
        time.sleep(TOP_S)
        done = subprocess.run([*tmux, "capture-pane", "-e", "-p"], check=True, capture_output=True)
    finally:
        subprocess.run([*tmux, "kill-server"], check=True)
    return done.stdout


def draw_top() -> None:
    """Draw the screen of `top`."""
    with tempfile.TemporaryDirectory() as name, service(Path(name), "--stalls", "pay.py") as pid:
        seen = screen([sys.executable, "-m", "cpythonplus", "top", str(pid)])
        drawn(seen, f"cpythonplus top {pid}", "top")


def drawn(seen: bytes, command: str, name: str) -> None:
    """Draw what was printed as a terminal with the command above it."""
    text = Text.assemble((f"$ {command}\n", "bold"))
    output = seen.decode().replace("\r\n", "\n").rstrip()
    text.append_text(Text.from_ansi("\n".join(output.splitlines()[:LINES])))
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere)
        console.print(text)
    svg = console.export_svg(title=" ".join(command.split()[:2]), unique_id=name)
    (PICTURES / f"{name}.svg").write_text(_FONT.sub("", svg), "utf-8")


def shoot(executable: str, page: Path) -> None:
    """Write the parts of a page as PNG."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        browser.page(executable, Path(folder)) as shown,
    ):
        shown.screen(WIDTH, 1000)
        shown.call("Emulation.setScrollbarsHidden", hidden=True)
        shown.open(page)
        for name, elements in PARTS.items():
            top, bottom = shown.value(_RECTANGLE % json.dumps(elements))
            top, bottom = max(top - MARGIN, 0), bottom + MARGIN
            clip = {"x": 0, "y": top, "width": WIDTH, "height": bottom - top, "scale": 1}
            taken = shown.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
            (PICTURES / f"{name}.png").write_bytes(base64.b64decode(taken["data"]))


def main(names: list[str]) -> int:
    """Make them, or that of `top` alone; return the exit status."""
    if names == ["top"]:
        draw_top()
        return 0
    executable = browser.chromium()
    if executable is None:
        print("pictures: Chromium is missing (Debian: chromium-headless-shell)", file=sys.stderr)
        return 1
    PICTURES.mkdir(exist_ok=True)
    draw_top()
    with tempfile.TemporaryDirectory() as name, service(Path(name), "service.py") as pid:
        page = Path(name) / "page.html"
        watched = printed("doctor", "watch", str(pid), looks=LOOKS)
        printed("doctor", "attach", str(pid), "--format", "html", "--output", str(page))
        report = printed("doctor", "attach", str(pid))
        drawn(report, f"cpythonplus doctor attach {pid}", "doctor-attach")
        drawn(last_look(watched), f"cpythonplus doctor watch {pid}", "doctor-watch")
        shoot(executable, page)
        sys.stdout.write(report.decode())
    for path in sorted(PICTURES.iterdir()):
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} KB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
