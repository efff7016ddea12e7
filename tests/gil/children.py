"""Programs in child processes: whatever may crash or hang runs there."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

TIMEOUT_S = 60

# What most programs need.
PRELUDE = """
import os, sys, threading, time
from cpythonplus import atomic, gil

def burn(stop, work=None):
    count = 0
    while not stop.is_set():
        for _ in range(500):
            count += 1
    if work is not None:
        work.append(count)

def burners(count, stop, daemon=False):
    threads = [threading.Thread(target=burn, args=(stop,), daemon=daemon) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads

def until(condition, limit=30.0):
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            raise SystemExit("waited too long")
        time.sleep(0.001)
"""


def environment() -> dict[str, str]:
    """Return this process's environment without what changes the interpreter."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "CPYTHONPLUS_RUN"))}


def start(code: str, *arguments: str) -> "subprocess.Popen[str]":
    """Start a program; the caller communicates with it."""
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(code), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
        env=environment(),
    )


def finish(child: "subprocess.Popen[str]", *, status: int = 0) -> str:
    """Wait for the end of a child, check its status and return what it printed."""
    try:
        out, err = child.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGABRT)
        child.kill()
        out, err = child.communicate()
        raise AssertionError(f"hangs; it printed {out!r} {err!r}") from None
    assert child.returncode == status, f"status {child.returncode}: {out}{err}"
    return out


def run(code: str, *arguments: str, status: int = 0) -> str:
    """Run a program after the prelude; return what it printed."""
    return finish(start(code, *arguments), status=status)


def run_file(path: Path, *, status: int = 0) -> str:
    """Run a program that must be a file, as multiprocessing's children import it."""
    child = subprocess.Popen(
        [sys.executable, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    return finish(child, status=status)
