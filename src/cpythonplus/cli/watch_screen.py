"""`cpythonplus doctor watch`: the screen that shows a process while it runs.

Elsewhere than on a terminal, one line for each look.
"""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from contextlib import contextmanager
from time import sleep
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from cpythonplus.base.sizes import format_size
from cpythonplus.base.visible import visible
from cpythonplus.cli.statistics_output import duration
from cpythonplus.cli.watched import Sample, Watched
from cpythonplus.memory.agent.finding import Unreachable
from cpythonplus.memory.page.reading import entries, known, size, words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import RenderableType

    from cpythonplus.memory.agent.client import Client

__all__ = ["line", "screen", "watch"]

_ENDING_KEYS = frozenset(b"qQ\x04")
_COLOURS = ("green", "cyan", "blue", "magenta", "yellow", "red", "white", "bright_black")
_BLOCK = "█"
_LEAST_WIDTH = 20


def watch(
    client: Client,
    interval_s: float,
    top: int,
    write: Callable[[dict[str, object]], object] | None,
) -> int:
    """Show the process until Ctrl-C, `q` or its end; returns the exit status.

    write: called at the end with the examination that has the whole time line.
    """
    watched = Watched(client)
    out = Console(highlight=False)
    watched.keep_target()
    end = ""
    try:
        if out.is_terminal:
            _on_terminal(watched, interval_s, top, out)
        else:
            _as_lines(watched, interval_s)
    except KeyboardInterrupt:
        pass
    except Unreachable as error:
        end = str(error)
    if write is not None and watched.samples:
        write(watched.examination())
    if end:
        print(visible(end))
    return 0


def _on_terminal(watched: Watched, interval_s: float, top: int, out: Console) -> None:
    # Not refreshed by a thread of its own: it draws when there is something new.
    with _keys() as ended, Live(console=out, auto_refresh=False, screen=True) as live:
        while True:
            watched.look()
            drawn = screen(watched.samples, client_line(watched), top, out.width)
            live.update(drawn, refresh=True)
            if ended(interval_s):
                return


def _as_lines(watched: Watched, interval_s: float) -> None:
    while True:
        watched.look()
        print(line(watched.samples), flush=True)
        sleep(interval_s)


@contextmanager
def _keys() -> Iterator[Callable[[float], bool]]:
    """Yield a function that waits so many seconds, and says whether a key has ended the watch."""
    if not sys.stdin.isatty():
        yield _sleep
        return
    saved = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield _wait_for_key
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, saved)


def _sleep(seconds: float) -> bool:
    sleep(seconds)
    return False


def _wait_for_key(seconds: float) -> bool:
    limit = time.monotonic() + seconds
    while (rest := limit - time.monotonic()) > 0:
        ready = select.select([sys.stdin], [], [], rest)[0]
        if ready and _ENDING_KEYS.intersection(os.read(sys.stdin.fileno(), 64)):
            return True
    return False


def client_line(watched: Watched) -> str:
    """Return what process is watched."""
    target = watched.examination().get("target")
    if not isinstance(target, dict):
        return ""
    pid = size(target, "pid") if known(target, "pid") else "?"
    return f"process {pid}: {words(target, 'command')}"


def line(samples: list[Sample]) -> str:
    """Return the last look as one line."""
    first, last = samples[0], samples[-1]
    words = [time.strftime("%H:%M:%S"), f"RSS {_size(last, 'rss_bytes')}"]
    words.append(f"({_difference(first, last, 'rss_bytes')})")
    if last.get("objects") is not None:
        words.append(f"objects {last['objects']:,} {_size(last, 'size_bytes')}")
    growth = last["growth"]
    if isinstance(growth, list) and growth:
        grown = ", ".join(f"{row['name']} +{format_size(row['size_bytes'])}" for row in growth[:3])
        words.append(f"grown: {grown}")
    waits = _waited(samples)
    if waits:
        words.append(f"GIL waits {waits}")
    workers = last["workers"]
    if isinstance(workers, list) and workers:
        words.append(f"children {len(workers)}")
    return "  ".join(words)


def _number(sample: Sample, name: str) -> int:
    value = sample.get(name)
    return value if isinstance(value, int) else 0


def _size(sample: Sample, name: str) -> str:
    return format_size(_number(sample, name))


def _difference(first: Sample, last: Sample, name: str) -> str:
    grown = _number(last, name) - _number(first, name)
    return f"{'+' if grown >= 0 else ''}{format_size(grown)}"


def _waited(samples: list[Sample]) -> str:
    """Return how much of a second threads waited for the GIL since the look before."""
    if len(samples) < 2:  # noqa: PLR2004
        return ""
    before, last = samples[-2], samples[-1]
    old, new = before["gil"], last["gil"]
    seconds = float(str(last["t_s"])) - float(str(before["t_s"]))
    if not isinstance(old, dict) or not isinstance(new, dict) or not new or not old or not seconds:
        return ""
    waited = max(new["wait_ns"] - old["wait_ns"], 0) / seconds
    count = max(new["waits"] - old["waits"], 0) / seconds
    return f"{duration(int(waited))}/s in {count:,.0f} waits/s"


def screen(samples: list[Sample], heading: str, top: int, width: int) -> RenderableType:
    """Return the screen for the last look, of so many columns."""
    first, last = samples[0], samples[-1]
    facts = f"RSS {_size(last, 'rss_bytes')} ({_difference(first, last, 'rss_bytes')}"
    facts += f" in {last['t_s']} s)"
    if last.get("objects") is not None:
        facts += f"   {last['objects']:,} objects, {_size(last, 'size_bytes')}"
    if last.get("pause_ns") is not None:
        facts += f"   stopped for {duration(_number(last, 'pause_ns'))}"
    parts: list[RenderableType] = [Text(heading, style="bold"), Text(facts)]
    parts += _resident(last, width)
    growth = last["growth"]
    if isinstance(growth, list):
        parts += [Text("grown since the beginning:"), _growth(growth[:top])]
    if last["gil"]:
        parts.append(Text(f"waiting for the GIL: {_waited(samples) or '-'}"))
    else:
        parts.append(Text("waiting for the GIL: not known, it is not scheduled"))
    workers = last["workers"]
    if isinstance(workers, list) and workers:
        parts += [Text(f"{len(workers)} children:"), _workers(workers[:top])]
    parts.append(Text("q or Ctrl-C ends", style="dim"))
    return Group(*parts)


def _resident(sample: Sample, width: int) -> list[RenderableType]:
    """Return the map of resident memory: a bar, and what its colours mean."""
    found = [row for row in entries(sample, "parts") if size(row, "resident_bytes") > 0]
    found.sort(key=lambda row: -size(row, "resident_bytes"))
    whole = sum(size(row, "resident_bytes") for row in found)
    if not whole:
        return []
    shown = found[: len(_COLOURS)]
    bar, legend = Text(), Text()
    for row, colour in zip(shown, _COLOURS, strict=False):
        cells = round(size(row, "resident_bytes") / whole * max(width - 1, _LEAST_WIDTH))
        bar.append(_BLOCK * cells, style=colour)
        name = words(row, "name").replace("_", " ")
        legend.append(f"{_BLOCK} ", style=colour)
        legend.append(f"{name} {format_size(size(row, 'resident_bytes'))}   ")
    return [bar, legend]


def _growth(rows: list[dict[str, object]]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("bytes", justify="right")
    table.add_column("objects", justify="right")
    table.add_column("type")
    for row in rows:
        name = Text(str(row["name"]))
        table.add_row(f"+{_size(row, 'size_bytes')}", f"{_number(row, 'objects'):+,}", name)
    if not rows:
        table.add_row("-", "-", "nothing")
    return table


def _workers(rows: list[dict[str, object]]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("pid", justify="right")
    table.add_column("RSS", justify="right")
    table.add_column("command", no_wrap=True)
    for row in rows:
        table.add_row(str(row["pid"]), _size(row, "rss_bytes"), Text(visible(str(row["command"]))))
    return table
