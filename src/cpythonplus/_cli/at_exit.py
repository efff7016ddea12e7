"""Reports at the end of the process, whatever the program has done to it by then.

The program's exit status is never changed, and nothing is raised.
"""

# Nothing may be raised, and the module is on the start-up path, so pathlib and contextlib are not
# imported.
# ruff: noqa: BLE001, PTH120, S110, SIM105

import atexit
import os
import sys

from cpythonplus._base.text.visible import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# read before the program changes it
_ARGUMENTS = tuple(sys.orig_argv)
WIDTH_OF_A_COMMAND = 60
"""Columns of the program's command line in a heading."""


_at_sigterm: "list[tuple[Callable[..., None], tuple[object, ...], str, list[str]]]" = []


def register(
    report: "Callable[..., None]",
    arguments: tuple[object, ...],
    what: str,
    *,
    at_sigterm: bool = False,
) -> None:
    """Call `report(*arguments)` when the process ends the normal way; forked children do, too.

    Registered before the program begins, so called last, after the program's own functions. what:
    the name of the report in the line that tells why there is none. at_sigterm: also before SIGTERM
    ends the process, unless the program handles that itself: containers and services are stopped by
    it.
    """
    # Import it now: at the end it may be out of reach (chroot, descriptors used up).
    import cpythonplus._base.files  # noqa: F401

    # Read it before the program changes it: its own folder may hold a json.py or a rich.py.
    path = [*sys.path, os.path.dirname(os.path.dirname(os.path.dirname(__file__)))]
    atexit.register(_at_exit, report, arguments, what, path)
    if at_sigterm:
        _at_sigterm.append((report, arguments, what, path))
        _handle_sigterm()


def _handle_sigterm() -> None:
    import signal

    if len(_at_sigterm) == 1 and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _on_sigterm)


def _on_sigterm(number: int, _frame: object) -> None:
    import signal

    signal.signal(number, signal.SIG_DFL)
    for each in reversed(_at_sigterm):
        _at_exit(*each)
    signal.raise_signal(number)


def _at_exit(
    report: "Callable[..., None]", arguments: tuple[object, ...], what: str, path: list[str]
) -> None:
    saved = sys.path
    sys.path = path
    try:
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            report(*arguments)
    except BaseException as error:  # a second Ctrl-C, too
        tell(f"cannot make the {what}: {error!r}")
    finally:
        sys.path = saved
        _restore_interrupt()


def _restore_interrupt() -> None:
    """Make a program that an uncaught KeyboardInterrupt ended still die of SIGINT.

    CPython notes such an end in a flag and sends itself SIGINT at the very end; but each `exec` or
    `eval` of a string clears the flag, and the modules imported here do that (dataclasses). An
    `exec` that raises KeyboardInterrupt sets the flag again.
    """
    if getattr(sys, "last_type", None) is KeyboardInterrupt:
        try:
            exec("raise KeyboardInterrupt")  # noqa: S102
        except KeyboardInterrupt:
            pass


def file_of_this_process(file: str | None, program_pid: int) -> str | None:
    """Return the file that this process writes: `%p` in its name is the pid.

    Without `%p` only the program writes it, so that no child overwrites the program's report.
    """
    if file is None or ("%p" not in file and os.getpid() != program_pid):
        return None
    return file.replace("%p", str(os.getpid()))


def write_file(path: str, text: str) -> None:
    """Write `text` as `files.write_output` does; if that fails, tell it in one line."""
    from cpythonplus._base.files import write_output

    flush_program_output()  # the program's output may go to the same file
    try:
        write_output(path, text)
    except OSError as error:
        tell(f"cannot write {path!r}: {error.strerror}")


def json_text(content: "Mapping[str, object]") -> str:
    """Return `content` as JSON, with the identity of the process."""
    import json

    about = {"pid": os.getpid(), "argv": _ARGUMENTS, "python": sys.version}
    return json.dumps({**about, **content}, indent=2) + "\n"


def write_report(text: str, output: object, program_pid: int) -> None:
    """Write the report of a process to the file `output`, or to stderr if it is None."""
    if output is None:
        flush_program_output()
        write_to_stderr(text)
        return
    path = file_of_this_process(str(output), program_pid)
    if path is not None:
        write_file(path, text)


def command_line() -> str:
    """Return the command line of the process, cut to the length of a heading."""
    text = visible(" ".join(" ".join(_ARGUMENTS[1:]).split()))
    return text if len(text) <= WIDTH_OF_A_COMMAND else text[: WIDTH_OF_A_COMMAND - 3] + "..."


def flush_program_output() -> None:
    """Flush the program's output, so that it comes first if both go to the same file.

    If this fails, it fails again, and is reported, when the interpreter flushes.
    """
    for stream in (sys.__stdout__, sys.__stderr__):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError, RuntimeError):  # a signal came in the middle of a write
            pass


def write_to_stderr(text: str) -> None:
    """Write as much of `text` to standard error as it takes; ignore a broken or closed one.

    Not through the stream object: if it could not write all data, Python would exit with 120.
    SIGPIPE is held back, because a program may have set it to end the process.
    """
    import signal

    stream = sys.__stderr__
    if stream is None or stream.closed:
        return
    data = text.encode(stream.encoding, "backslashreplace")
    held_back = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})
    try:
        descriptor = stream.fileno()
        while data:
            data = data[os.write(descriptor, data) :]
    except (OSError, ValueError):
        if signal.SIGPIPE not in held_back:
            signal.sigtimedwait({signal.SIGPIPE}, 0)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held_back)


def tell(message: str) -> None:
    """Write `cpythonplus: message` on standard error, if possible."""
    try:
        write_to_stderr(f"cpythonplus: {visible(' '.join(message.split()))}\n")
    except BaseException:
        pass
