"""The doctor's side of the socket: asks the agent of another process."""

import contextlib
import os
import socket
import struct
import time
from collections.abc import Iterator
from typing import Self

from cpythonplus._base.reading import offered
from cpythonplus._doctor.agent import remote
from cpythonplus._doctor.agent.decoding import NoAnswerError, decoded, reason
from cpythonplus._doctor.agent.finding import (
    Process,
    Unreachable,
    find,
    is_stopped,
    may_be_its,
    socket_paths,
    why_without_socket,
)
from cpythonplus._doctor.questions import asked

_HEAD = struct.Struct(">cI")
_CREDENTIALS = struct.Struct("iII")
_CONNECT_TIMEOUT_S = 30.0
"""A process answers one client at a time, so another doctor may come first."""
_ANSWER_TIMEOUT_S = 120.0
"""For a whole answer: a census of twenty million objects takes seconds, and the GIL may be long in
coming."""
_ABSENCE_S = 2.0
"""The longest time without a socket, around a fork."""
_LOOK_S = 0.01
_LARGEST = 64 << 20
"""The most bytes of an answer; answers of large programs have a tenth of it."""


class AskError(RuntimeError):
    """The process is there, but has no answer to this; the text gives the reason, in one line."""


def own_name() -> str:
    """Return a unique name for this doctor: several may compare looks at one process."""
    return f"{os.getpid()}-{time.time_ns()}"


class Client:
    """A process that answers. Each request may open a connection of its own: no state is kept."""

    def __init__(self, process: Process, path: str) -> None:
        """Ask `process` through the socket at `path`."""
        self.process = process
        self._path = path
        self._socket: socket.socket | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the process answer others."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def ask(self, name: str, argument: str = "", *, takes_s: float = 0.0) -> dict[str, object]:
        """Return the answer; AskError if there is none, Unreachable if the process is gone.

        takes_s: the time that the process is asked to take for it.
        """
        limit = None  # counted from the first failure: the answer itself may take long
        while True:
            try:
                if self._socket is None:
                    self._socket = _open(self._path, self.process)
                return self._ask(self._socket, name, argument, takes_s)
            except (ConnectionError, FileNotFoundError, EOFError):
                # The process opens its socket anew after a fork, or if the program has closed it.
                self.close()
                limit = limit or time.monotonic() + _ABSENCE_S
                if time.monotonic() > limit or not _is_there(self.process):
                    raise _gone(self.process) from None
                time.sleep(_LOOK_S)
            except TimeoutError:
                self.close()
                raise _silent(self.process) from None
            except OSError as error:
                self.close()
                raise Unreachable(f"process {self.process.pid}: {error.strerror}") from None
            except NoAnswerError as error:
                self.close()  # drop the rest of the answer
                raise Unreachable(
                    f"process {self.process.pid} does not give a valid answer, unlike a program"
                    f" under cpythonplus ({name}: {error})"
                ) from None

    def _ask(
        self, connection: socket.socket, name: str, argument: str, takes_s: float
    ) -> dict[str, object]:
        words = ["cpythonplus", "1", name, *([argument] if argument else [])]
        deadline = time.monotonic() + _ANSWER_TIMEOUT_S + takes_s
        connection.settimeout(_ANSWER_TIMEOUT_S)
        connection.sendall(f"{' '.join(words)}\n".encode())
        failed, length = _HEAD.unpack(_read(connection, _HEAD.size, deadline))
        if failed not in (b"0", b"1"):
            raise NoAnswerError("not the header of an answer")
        if length > _LARGEST:
            self.close()  # the answer is not read
            raise AskError(f"its answer to {name} is larger than {_LARGEST >> 20} MiB")
        answer = decoded(_read(connection, length, deadline))
        if failed == b"1":
            raise AskError(reason(answer))
        return answer


def _is_there(process: Process) -> bool:
    try:
        find(process.pid)
    except Unreachable:
        return False
    return True


def _gone(process: Process) -> Unreachable:
    if not _is_there(process):
        return Unreachable(f"process {process.pid} has ended")
    return Unreachable(f"process {process.pid} does not listen any longer")


def _silent(process: Process) -> Unreachable:
    return Unreachable(
        f"process {process.pid} does not answer: it is stopped, another doctor examines it, or"
        " it holds the GIL"
    )


def _read(connection: socket.socket, length: int, deadline: float) -> bytes:
    """Read so many bytes; TimeoutError at the deadline, even if some bytes have come."""
    parts = []
    while length:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        connection.settimeout(left)
        got = connection.recv(min(length, 1 << 20))
        if not got:
            raise EOFError
        parts.append(got)
        length -= len(got)
    return b"".join(parts)


def _open(path: str, process: Process) -> socket.socket:
    """Return a connection to the process itself; ConnectionError if another process listens."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _connect(connection, path)
        peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    except BaseException:
        connection.close()
        raise
    if _CREDENTIALS.unpack(peer)[0] != process.pid:
        connection.close()
        raise ConnectionRefusedError
    return connection


def _connect(connection: socket.socket, path: str) -> None:
    """Connect when there is room in the queue; if there is none, Linux fails at once."""
    limit = time.monotonic() + _CONNECT_TIMEOUT_S
    connection.setblocking(False)  # noqa: FBT003
    while True:
        try:
            return connection.connect(path)
        except BlockingIOError:
            if time.monotonic() > limit:
                raise TimeoutError from None
            time.sleep(_LOOK_S)


def _listening(process: Process) -> Client | None:
    for path in socket_paths(process):
        if not may_be_its(process, path):
            continue
        try:
            _open(path, process).close()
            return Client(process, path)
        except TimeoutError:
            raise _silent(process) from None
        except OSError:
            continue  # as for a path that is too long for a socket
    return None


def reach(process: Process) -> Client | None:
    """Return the client of a process that listens; None if the process can be asked to listen.

    Unreachable, with advice, if it can do neither.
    """
    pid = process.pid
    if is_stopped(pid):
        raise Unreachable(
            f"process {pid} is stopped by a signal or a debugger: resume it (kill -CONT {pid})"
        )
    client = _listening(process)
    if client is None:
        if why := why_without_socket(process):
            raise Unreachable(
                f"process {pid} does not listen because it has no folder for its socket: {why}; set"
                " its XDG_RUNTIME_DIR to a private folder of its user"
            )
        remote.check(process)
    return client


@contextlib.contextmanager
def connect(pid: int) -> Iterator[Client]:
    """Yield the client of a process; Unreachable, with advice, if it cannot be looked at.

    If the process does not listen, it is asked to listen for a while, if its Python can be asked.
    """
    if pid == os.getpid():
        raise Unreachable(f"process {pid} is this doctor itself")
    process = find(pid)
    client = reach(process)
    if client is not None:
        with client:
            yield client
        return
    with remote.listening(process):
        client = _listening(process)
        if client is None:
            raise _gone(process)
        with client:
            yield client
            with contextlib.suppress(AskError, Unreachable):
                client.ask("leave")


def examine(client: Client) -> dict[str, object]:
    """Examine the process as `examining.examine` examines its own."""
    target = client.ask("hello")
    parts: dict[str, object] = {"target": target}
    for name in offered(target, "pid") or asked("pid"):
        try:
            parts[name] = client.ask(name)
        except AskError as error:
            parts[name] = {"error": str(error)}
    return parts
