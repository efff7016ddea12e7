"""Dumps on a signal: `kill -USR1 PID` shows what a program does, even a stuck one."""

import atexit
import os
import signal
import tokenize  # noqa: F401  # linecache needs it later, when a program may shadow the name
from contextlib import suppress
from functools import partial

from cpythonplus import _native
from cpythonplus.tasklets._dump import reporting
from cpythonplus.threads._waits import waits
from cpythonplus.threads._waits_text import deadlock_lines

# KILL and STOP cannot be handled; the signal of a faulty instruction would come again for ever.
REFUSED = {signal.Signals[f"SIG{name}"] for name in ("KILL", "STOP", "SEGV", "BUS", "FPE", "ILL")}

_files: dict[int, reporting.TextFile | None] = {}


def dump_on(signum: int, file: reporting.TextFile | None = None) -> None:
    """Call `dump` whenever this process gets the signal, until `dump_off`.

    signum: for example `signal.SIGUSR1`. file: default sys.stderr at the time of the dump. A thread
    of its own makes the dump, so it works while all of the program's threads wait in locks or in C
    calls, but not while C code holds the GIL. Signals that come during a dump cause one more dump.
    System calls of the program are restarted if Linux restarts them (SA_RESTART). After a fork by
    `os.fork` it works in parent and child; in a child that C code forks the signal is ignored, and
    a program that is executed has the default action again. `signal.signal` takes the signal back.

    Raises ValueError for an invalid signal number and for a signal that cannot be used for this,
    OSError if there can be no thread.
    """
    if signum not in signal.valid_signals() or signum in REFUSED:
        raise ValueError(f"stacks cannot be printed on signal {signum!r}")
    number = int(signum)
    before = _files.get(number)
    _files[number] = file
    try:
        _native.tasklets_dump_on(number, _dump)
    except BaseException:
        _files[number] = before
        raise


def dump_off(signum: int) -> bool:
    """Restore the handler that the signal had before `dump_on`, also one of `signal.signal`.

    Returns whether `dump_on` was in effect. A handler that was set since stays.
    """
    _files.pop(signum, None)
    return _native.tasklets_dump_off(signum)


def _dump(signum: int) -> None:
    """Runs in the thread of dump_signal.c, which the report leaves out."""
    if signum not in _files:
        return
    heading = f"cpythonplus: signal {signum} in process {os.getpid()}\n"
    report = reporting.text(reporting.taken(reporting.OTHERS))
    dead = deadlock_lines(waits().as_json())
    report += "".join(f"{line}\n" for line in ["", *dead] if dead)
    # If the terminal is gone or the file closed, there is no place to report it.
    with suppress(OSError, ValueError):
        reporting.write(heading + report + "\n", _files.get(signum))


# Python warns of a fork beside another thread; and the thread would not exist in the child.
os.register_at_fork(
    before=_native.tasklets_dump_pause,
    after_in_parent=partial(_native.tasklets_dump_resume, False),  # noqa: FBT003
    after_in_child=partial(_native.tasklets_dump_resume, True),  # noqa: FBT003
)
atexit.register(_native.tasklets_dump_pause)
