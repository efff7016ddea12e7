"""Being told just before the process becomes another program: _base/process/exec_watch.h."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["watch"]


def watch(function: "Callable[..., object] | None") -> bool:
    """Have `function` called with the arguments of each `os.exec*` before it works; None: nobody.

    It gets the path, the arguments and, where the caller gives one, the environment, positional or
    as `os.execve` names them. What it raises is ignored. Nothing of it can be seen in `os`.

    Returns False where there is nothing to watch with: without the extension module, or where the
    interpreter's functions are not as they are known.
    """
    try:
        from cpythonplus._native import exec_watch
    except ImportError:
        return False
    return exec_watch(function)
