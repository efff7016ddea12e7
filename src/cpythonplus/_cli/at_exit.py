"""Telling something when the process ends, whatever the program has done to it by then.

Whatever happens in here, the program's exit status stays what it is, and nothing is raised.
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

# Before the program changes them.
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
    """Have `report(*arguments)` called when the process ends the normal way; forked children, too.

    Registered before the program begins, so called last, after the program's own functions.
    what: how the line calls it that tells why there is none. at_sigterm: also before SIGTERM ends
    the process, unless the program handles that itself: containers and services are stopped by it.
    """
    # Now: at the end there may be no way to it (chroot, descriptors used up).
    import cpythonplus._base.files  # noqa: F401

    # Before the program changes it: its own folder may hold a json.py or a rich.py.
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
    except BaseException as error:  # a second Ctrl-C too
        tell(f"cannot make the {what}: {error!r}")
    finally:
        sys.path = saved
        _restore_interrupt()


def _restore_interrupt() -> None:
    """Have a program that an uncaught KeyboardInterrupt ended still die of SIGINT.

    CPython notes such an end in a flag and sends itself SIGINT at the very end; but each `exec` or
    `eval` of a string clears the flag, and the modules imported here do that (dataclasses). One
    that raises KeyboardInterrupt sets it again.
    """
    if getattr(sys, "last_type", None) is KeyboardInterrupt:
        try:
            exec("raise KeyboardInterrupt")  # noqa: S102
        except KeyboardInterrupt:
            pass


def file_of_this_process(file: str | None, program_pid: int) -> str | None:
    """Return the file that this process writes: `%p` in its name is the pid.

    Without `%p` only the program writes it, so that no child of it overwrites what it has told.
    """
    if file is None or ("%p" not in file and os.getpid() != program_pid):
        return None
    return file.replace("%p", str(os.getpid()))


def write_file(path: str, text: str) -> None:
    """Write `text` as `files.write_output` does; where that fails, one line tells it."""
    from cpythonplus._base.files import write_output

    flush_program_output()  # which may go to the same place
    try:
        write_output(path, text)
    except OSError as error:
        tell(f"cannot write {path!r}: {error.strerror}")


def json_text(content: "Mapping[str, object]") -> str:
    """Return `content` as JSON, with what tells which process it is about."""
    import json

    about = {"pid": os.getpid(), "argv": _ARGUMENTS, "python": sys.version}
    return json.dumps({**about, **content}, indent=2) + "\n"


def write_report(text: str, output: object, program_pid: int) -> None:
    """Write the report of a process: to the file that `output` names, without one to stderr."""
    if output is None:
        flush_program_output()
        write_to_stderr(text)
        return
    path = file_of_this_process(str(output), program_pid)
    if path is not None:
        write_file(path, text)


def command_line() -> str:
    """Return the command line of the process, cut to something that can stand in a heading."""
    text = visible(" ".join(" ".join(_ARGUMENTS[1:]).split()))
    return text if len(text) <= WIDTH_OF_A_COMMAND else text[: WIDTH_OF_A_COMMAND - 3] + "..."


def flush_program_output() -> None:
    """Have what the program printed come first, where both go to the same file.

    If this fails, it fails again, and is told, when the interpreter flushes.
    """
    for stream in (sys.__stdout__, sys.__stderr__):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError, RuntimeError):  # a signal has come in the middle of a write
            pass


def write_to_stderr(text: str) -> None:
    """Write `text` to standard error, or as much as it takes; a broken or closed one is survived.

    Past the stream object: data that it could not get rid of would make Python exit with 120. And
    with SIGPIPE held back: a program may have set it to end the process.
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
    """Write one line of ours on standard error, if that can be."""
    try:
        write_to_stderr(f"cpythonplus: {visible(' '.join(message.split()))}\n")
    except BaseException:
        pass
