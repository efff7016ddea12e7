"""Makes a process listen by `sys.remote_exec`, which Python 3.14 has."""

import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from cpythonplus._doctor.agent.finding import Process, Unreachable, elsewhere, find

_SINCE_MINOR = 14
_LIMIT_S = 10.0
_LOOK_S = 0.005
_OWNERS = ("real", "effective", "saved", "file system")
_LONGEST = 4000
"""The most bytes that are read of the process's result."""
_IDLE_MS = 30_000
"""The process stops listening after this time without a client, if the doctor is gone."""
_PACKAGE = Path(__file__).resolve().parent.parent.parent

# Runs in the process: in a namespace of its own, in its main thread, between two instructions.
# sys.path is not touched, because other threads may be importing.
_SCRIPT = """\
def listen(package, tag, result):
    import sys
    try:
        if f"{{sys.implementation.cache_tag}}{{sys.abiflags}}" != tag:
            raise RuntimeError(f"it runs {{sys.implementation.cache_tag}}{{sys.abiflags}}, "
                               f"not {{tag}}")
        try:
            import cpythonplus
        except ImportError:
            from importlib.util import module_from_spec, spec_from_file_location
            spec = spec_from_file_location("cpythonplus", package + "/__init__.py",
                                           submodule_search_locations=[package])
            sys.modules["cpythonplus"] = module = module_from_spec(spec)
            spec.loader.exec_module(module)
        try:
            from cpythonplus._doctor import agent
        except ImportError:
            raise RuntimeError("it has another version of cpythonplus") from None
        error = agent.start({idle_ms})
        import os
        text = "" if error == 0 else f"its socket cannot be opened: {{os.strerror(error)}}"
    except BaseException as error:
        text = str(error) if type(error) is RuntimeError else f"{{type(error).__name__}}: {{error}}"
    with open(result, "w") as file:
        file.write("done " + text)
listen({package!r}, {tag!r}, {result!r})
"""

_CLEAN = """\
def clean(folder):
    import os
    try:
        for name in ("result", "listen.py"):
            os.unlink(f"{{folder}}/{{name}}")
        os.rmdir(folder)
    except OSError:
        pass  # root's, who asked
clean({folder!r})
"""


def check(process: Process) -> None:
    """Unreachable, with advice, if the process cannot be asked to listen, or must not be."""
    pid, minor = process.pid, process.minor
    if minor is not None and minor < _SINCE_MINOR:
        raise Unreachable(
            f"process {pid} (Python 3.{minor}) does not listen: start it with `cpythonplus run`"
            " (Python 3.14 and later can be asked to listen at any time); as it runs now, py-spy"
            " shows its stacks and `memray attach` what it allocates"
        )
    if minor not in (None, sys.version_info.minor):
        raise Unreachable(
            f"process {pid} runs Python 3.{minor} and does not listen: start it with"
            f" `cpythonplus run`, or use a doctor on Python 3.{minor}"
        )
    if not hasattr(sys, "remote_exec"):
        raise Unreachable(
            f"process {pid} does not listen: start it with `cpythonplus run`, or use a doctor on"
            " Python 3.14 or later, which can ask it to listen"
        )
    if elsewhere(pid):
        raise Unreachable(
            f"process {pid} has another root file system (a container?) and does"
            " not listen: start it with `cpythonplus run`, or run the doctor beside it"
        )
    _check_owners(process)


def _check_owners(process: Process) -> None:
    """Unreachable if the process belongs to more than one user, or group.

    The script runs with all rights of the process. A process can be of one user and have kept the
    way back to root; another process of that user could then influence the script. The kernel
    refuses the same to everybody but root: see ptrace(2), PTRACE_MODE_ATTACH.
    """
    for kind, numbers in (("user", process.uids), ("group", process.gids)):
        if len({*numbers}) > 1:
            named = ", ".join(
                f"{name} {number}" for name, number in zip(_OWNERS, numbers, strict=True)
            )
            raise Unreachable(
                f"process {process.pid} has more than one {kind} ({named}) and does not listen: it"
                " is not asked to, as code would run with the rights of all of them; start it with"
                " `cpythonplus run`"
            )


@contextlib.contextmanager
def listening(process: Process) -> Iterator[None]:
    """Make the process listen; Unreachable if it does not begin within some seconds."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="cpythonplus-doctor-"))
    except OSError as error:  # without a number if tempfile has tried a list of folders
        raise _unwritable(process, error) from None
    script, result = folder / "listen.py", folder / "result"
    try:
        with _new(script) as script_file, _new(result) as result_file:
            try:
                _write(script_file, _script(result))
            except OSError as error:
                raise _unwritable(process, error) from None
            if process.uid != os.geteuid():
                _let_use(process, folder, script_file, result_file)
            _execute(process.pid, str(script))
            try:
                _wait(process.pid, result_file)
            except _StillToRun as error:
                # The process may read the file later, and would complain if it were missing.
                _write(script_file, _CLEAN.format(folder=str(folder)))
                raise Unreachable(str(error)) from error
    except BaseException as error:
        if not isinstance(error.__cause__, _StillToRun):
            shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)
    yield


def _new(path: Path) -> BinaryIO:
    return open(path, "x+b", buffering=0, opener=lambda name, flags: os.open(name, flags, 0o600))


def _write(file: BinaryIO, text: str) -> None:
    """Replace the contents of the file."""
    file.seek(0)
    file.write(text.encode("utf-8", "surrogateescape"))
    file.truncate()


def _unwritable(process: Process, error: OSError) -> Unreachable:
    return Unreachable(
        f"process {process.pid} cannot be asked to listen: no temporary folder is writable"
        f" ({error.strerror or 'see TMPDIR'})"
    )


def _let_use(process: Process, folder: Path, script: BinaryIO, result: BinaryIO) -> None:
    """Let the user of the process read the script and write the result, when root looks.

    The script and its name stay root's. The process may have rights that other processes of its
    user lack (capabilities, a namespace); they must not influence the code that it executes.
    """
    os.fchmod(script.fileno(), 0o644)
    os.fchown(result.fileno(), process.uid, -1)
    os.chmod(folder, 0o711)  # noqa: PTH101, S103  # others may pass through it


class _StillToRun(Exception):  # noqa: N818  # it names a state
    """The process has not read the script yet."""


def _script(result: Path) -> str:
    tag = f"{sys.implementation.cache_tag}{sys.abiflags}"
    return _SCRIPT.format(package=str(_PACKAGE), tag=tag, result=str(result), idle_ms=_IDLE_MS)


def _execute(pid: int, script: str) -> None:
    try:
        sys.remote_exec(pid, script)  # type: ignore[attr-defined,unused-ignore]
    except PermissionError as error:
        raise Unreachable(
            f"process {pid} cannot be asked to listen: {error.strerror or error}"
            " (run the doctor as its user or as root;"
            " a /proc/sys/kernel/yama/ptrace_scope above 0 requires root)"
        ) from None
    except ProcessLookupError:
        raise Unreachable(f"process {pid} has ended") from None
    except (OSError, RuntimeError) as error:
        # The process has another Python version, PYTHON_DISABLE_REMOTE_DEBUG or -X
        # disable-remote-debug.
        text = " ".join(str(error).split())
        raise Unreachable(f"process {pid} cannot be asked to listen: {text}") from None


def _wait(pid: int, result: BinaryIO) -> None:
    limit = time.monotonic() + _LIMIT_S
    while time.monotonic() < limit:
        text = os.pread(result.fileno(), _LONGEST, 0).decode(errors="backslashreplace")
        if text.startswith("done"):
            if text != "done ":
                why = " ".join(text.removeprefix("done ").split())
                raise Unreachable(f"process {pid} cannot be examined: {why}")
            return
        find(pid)  # raises Unreachable if the process has ended
        time.sleep(_LOOK_S)
    raise _StillToRun(
        f"process {pid} was asked to listen, but its main thread has executed no Python code for"
        f" {_LIMIT_S:g} s: it waits in a system call or runs C code"
    )
