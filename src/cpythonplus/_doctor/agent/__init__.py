"""The agent, which answers `cpythonplus doctor PID` inside a live process, and its clients."""

# On the start-up path of every program under `cpythonplus run`: import nothing else.
import atexit
import os

from cpythonplus import _native

__all__ = ["start", "stop"]

_registered = False


def start(idle_ms: int = -1) -> int:
    """Open the private socket of this process for doctors; returns 0, or an errno.

    idle_ms: close the socket after so long without a client; negative: it stays, and forked
    children have their own.  Nothing is examined before a client asks.
    """
    global _registered  # noqa: PLW0603
    error = _native.memory_agent_start(idle_ms)
    if not error and not _registered:
        _registered = True
        # Not pthread_atfork: its handlers run before CPython counts threads for its warning.
        os.register_at_fork(
            before=_native.memory_agent_before_fork,
            after_in_parent=_native.memory_agent_after_fork_parent,
            after_in_child=_native.memory_agent_after_fork_child,
        )
        # A thread that still waits for the GIL would not survive the interpreter's end.
        atexit.register(_native.memory_agent_stop)
    return error


def stop() -> None:
    """Close the socket, after the current answer is done."""
    _native.memory_agent_stop()
