"""`cpythonplus doctor watch`: the loop that shows a process while it runs.

Without a terminal, it prints one line for each look.
"""

import signal
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from time import sleep

from rich.console import Console
from rich.live import Live

from cpythonplus._base.text.visible import visible
from cpythonplus._cli.screens import ended_by_signals, read_keys, single_keys
from cpythonplus._doctor.agent.client import Client
from cpythonplus._doctor.agent.finding import Unreachable
from cpythonplus._doctor.agent.watched import Watched
from cpythonplus._doctor.report.live import line, screen
from cpythonplus._doctor.report.sections import lacks_something, losses


def watch(
    client: Client, interval_s: float, top: int, write: Callable[[dict[str, object]], object] | None
) -> int:
    """Show the process until Ctrl-C, `q` or its end; returns the exit status.

    write: called at the end with the examination that has the whole time line.
    """
    watched = Watched(client)
    out = Console(highlight=False)
    watched.keep_target()
    target = watched.examination()
    end = ""
    with ended_by_signals() as again:
        try:
            if out.is_terminal:
                _on_terminal(watched, interval_s, top, out)
            else:
                for sentence in losses(target):
                    print(f"! {sentence}", flush=True)
                while True:
                    watched.look()
                    print(line(watched.samples), flush=True)
                    sleep(interval_s)
        except Unreachable as error:
            end = str(error)
        finally:
            watched.forget()
    if write is not None and watched.samples:
        write(watched.examination())
    for signum in again:  # die as the sender of SIGTERM expects
        signal.raise_signal(signum)
    if end:
        print(visible(end))
    return int(lacks_something(target))


def _on_terminal(watched: Watched, interval_s: float, top: int, out: Console) -> None:
    # auto_refresh=False: no thread redraws the screen; draw after each look.
    keys = single_keys() if sys.stdin.isatty() else nullcontext()
    with keys, Live(console=out, auto_refresh=False, screen=True) as live:
        while True:
            watched.look()
            live.update(screen(watched.examination(), top, out.width), refresh=True)
            if _is_ended(interval_s):
                return


def _is_ended(seconds: float) -> bool:
    """Wait some seconds, and return whether a key has ended the watch."""
    if not sys.stdin.isatty():
        sleep(seconds)
        return False
    limit = time.monotonic() + seconds
    while (rest := limit - time.monotonic()) > 0:
        if not {"q", "Q"}.isdisjoint(read_keys(rest)):
            return True
    return False
