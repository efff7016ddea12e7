"""`cpythonplus doctor watch`: the loop that shows a process while it runs.

Without a terminal, it prints one line for each look.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import time
import tty
from contextlib import contextmanager
from time import sleep
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live

from cpythonplus._base.text.visible import visible
from cpythonplus._doctor.agent.finding import Unreachable
from cpythonplus._doctor.agent.watched import Watched
from cpythonplus._doctor.report.live import line, screen
from cpythonplus._doctor.report.sections import lacks_something, losses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cpythonplus._doctor.agent.client import Client

_ENDING_KEYS = frozenset(b"qQ\x04")


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
    target = watched.examination()
    end, terminated = "", False
    before = signal.signal(signal.SIGTERM, _raise_terminated)
    try:
        if out.is_terminal:
            _on_terminal(watched, interval_s, top, out)
        else:
            for sentence in losses(target):
                print(f"! {sentence}", flush=True)
            _as_lines(watched, interval_s)
    except KeyboardInterrupt:
        pass
    except _TerminatedError:
        terminated = True
    except Unreachable as error:
        end = str(error)
    finally:
        signal.signal(signal.SIGTERM, before)
        watched.forget()
    if write is not None and watched.samples:
        write(watched.examination())
    if terminated:  # die as the sender of SIGTERM expects
        signal.raise_signal(signal.SIGTERM)
    if end:
        print(visible(end))
    return int(lacks_something(target))


class _TerminatedError(Exception):
    """SIGTERM has come: the samples are written first."""


def _raise_terminated(*_: object) -> None:
    raise _TerminatedError


def _on_terminal(watched: Watched, interval_s: float, top: int, out: Console) -> None:
    # auto_refresh=False: no thread redraws the screen; draw after each look.
    with _keys() as ended, Live(console=out, auto_refresh=False, screen=True) as live:
        while True:
            watched.look()
            live.update(screen(watched.examination(), top, out.width), refresh=True)
            if ended(interval_s):
                return


def _as_lines(watched: Watched, interval_s: float) -> None:
    while True:
        watched.look()
        print(line(watched.samples), flush=True)
        sleep(interval_s)


@contextmanager
def _keys() -> Iterator[Callable[[float], bool]]:
    """Yield a function that waits some seconds, and returns whether a key has ended the watch."""
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
