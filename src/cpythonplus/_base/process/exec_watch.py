"""Notification just before the process becomes another program: _base/process/exec_watch.h."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["watch"]


def watch(function: "Callable[..., object] | None") -> bool:
    """Call `function` with the arguments of each `os.exec*` before it works; None removes it.

    It gets the path, the arguments and, if the caller gives one, the environment, positional or as
    `os.execve` names them. Its exceptions are ignored. The change is invisible in `os`.

    Returns False if watching is impossible: without the extension module, or if the interpreter's
    functions are not as expected.
    """
    try:
        from cpythonplus._native import exec_watch
    except ImportError:
        return False
    return exec_watch(function)
