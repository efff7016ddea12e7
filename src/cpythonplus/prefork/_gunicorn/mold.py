"""The mold: a worker that has served for a while, and from then on only forks.

Objects that the application makes in its first requests, such as caches, compiled templates and
connections' classes, are in each worker's own memory.  If the next workers are forked from a worker
that has them, they share them.  Pitchfork does so for Ruby: https://github.com/Shopify/pitchfork,
docs/REFORKING.md.

    master            worker that was chosen      helper                 new worker
      | mold             |
      |----------------->| serves what it has begun; run() returns
      |          molding | SystemExit of class Molding, up to Overseer.spawn_worker
      |<-----------------|
      |                  | closes pools, looks for threads, prepares
      |             mold |
      |<-----------------| waits
      | fork AGE         |
      |----------------->| forks --------------------> |
      |       begun                                    | the user's pre_fork
      |<-----------------------------------------------|
      |       worker PID, descriptors                  | gunicorn's spawn_worker() forks -> |
      |<-----------------------------------------------| ends           waits for that <----|
      |           forked |                                                                  |
      |<-----------------| has waited for the helper                 now the master's child |

When the helper ends, the kernel makes the new worker a child of the master, which is a child
subreaper (prctl(2)).  So a worker is always the master's child, and gunicorn manages it as usual.

The first mold was no worker: see `loader`.

The mold ends when its line to the master does, or when the master is not its parent any more.

Rejected: clone(CLONE_PARENT), which makes a child of the master in one step.  It runs no fork
handlers, neither of the C library nor of Python.
"""

# gunicorn's classes differ from version to version.
# ruff: noqa: ANN401

from __future__ import annotations

import gc
import os
import signal
import time
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from cpythonplus import prefork
from cpythonplus._base.text.sizes import format_size
from cpythonplus.prefork._blame.sharing import process_memory
from cpythonplus.prefork._fork.lost_threads import lost
from cpythonplus.prefork._guarding import Guard, in_one_line, tell

if TYPE_CHECKING:
    from collections.abc import Callable

    from cpythonplus.prefork._gunicorn.service import Service

GROWN_SHARE = 0.5
"""The largest private memory of a later generation, as a share of its shared memory."""

_TURN_S = 1.0
_THREADS_END_S = 5.0
_PARENT_S = 5.0
_LEAVE_S = 10
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)


class Molding(SystemExit):
    """Ends the serving of a worker that becomes the mold.

    It is a SystemExit, which no version of gunicorn takes for a failure.
    """


class End(KeyboardInterrupt):
    """The mold has to end.  Like Ctrl-C, this passes through a Guard."""


class RefusedError(Exception):
    """This process may not be the mold; it reports the reason, and ends with `status`.

    told: the reason is on stderr already.
    """

    def __init__(self, why: str, status: int = 0, *, told: bool = False) -> None:
        super().__init__(why)
        self.status = status
        self.told = told


def serve_then_mold(run: Callable[[], object], is_chosen: Callable[[], bool]) -> None:
    """Let a worker serve by `run`; raise Molding at its end if the worker was chosen."""
    try:
        run()
    except SystemExit as error:
        if not is_chosen() or error.code not in {None, 0}:
            raise
    if is_chosen():
        raise Molding(0)


def keep_listeners(listeners: list[Any]) -> Callable[[], None]:
    """Return a function that reopens the listening sockets which a worker closes as it stops."""
    kept = [(each, each.sock.dup()) for each in listeners if getattr(each, "sock", None)]

    def reopen() -> None:
        for listener, copy in kept:
            with suppress(OSError):
                if listener.sock is not None:
                    listener.sock.close()
            listener.sock = copy

    return reopen


def close_listeners(listeners: list[Any]) -> None:
    """Close a worker's own listening sockets (reuse_port), as they are no longer accepted from."""
    for each in listeners:
        with suppress(OSError):
            if getattr(each, "sock", None) is not None:
                each.sock.close()


def wait_for_parent(worker: Any) -> None:
    """Wait, in a new worker, until the helper that has forked it is gone.

    gunicorn ends a worker whose parent is not the master.
    """
    end = time.monotonic() + _PARENT_S
    while os.getppid() != worker.ppid and time.monotonic() < end:
        time.sleep(0.001)


def become(service: Service, server: Any, prepare: Callable[[Service, Any], None]) -> None:
    """Be the mold, until the process ends.  Returns in each helper, which has to fork a worker.

    prepare: called before the first fork; raises RefusedError if there must be none.
    """
    status = 0
    try:
        try:
            ends: list[int] = []
            _handle_signals(server, ends)
            prepare(service, server)
            _handle_signals(server, ends)  # an application may set others while it is imported
            if not ends:
                service.say(server.pid, "mold", *_memory())
            while not ends and _fork_next(service, server):
                pass
            if not ends:
                return  # an end signal in `else` would be missed
        except RefusedError as error:
            _take_no_more_signals()
            status = error.status
            service.say(server.pid, "told" if error.told else "refused", error)
    except (KeyboardInterrupt, EOFError, ConnectionError):
        pass
    except BaseException as error:  # noqa: BLE001  # up the stack is the master's loop
        tell(server.log, "this mold ends", error)
    try:
        _take_no_more_signals()
    except End:  # of a signal that has come at its first instruction
        _take_no_more_signals()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_LEAVE_S)  # a thread or an exit function of the application may never end
    prefork.fast_exit(status)


def _take_no_more_signals() -> None:
    with suppress(End):  # of a signal that has come already
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    for number in _ENDING:
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)


def prepare_worker(service: Service, server: Any) -> None:
    """Make a mold of a worker that no longer serves."""
    service.say(server.pid, "molding")
    why = "it could not be prepared"
    with Guard(server.log, "making this process a mold"):
        why = _prepare(service, server)
    if why:
        raise RefusedError(why)


def _prepare(service: Service, server: Any) -> str:
    """Forget the worker, close unshareable descriptors, prepare; return why not to fork, or ""."""
    server.WORKERS.clear()
    service.forget_worker()
    why = service.problem_again(server)
    service.note_opened("the requests that this worker has served")  # told here, not in each helper
    service.close_connections(known=True)
    service.end_threads(tell=False)  # here, for each helper is forked from this process
    why = why or _unfit(service.generation)
    if not why:
        service.prepare_anew()
        service.prepare()
    return why


def _unfit(generation: int) -> str:
    end = time.monotonic() + _THREADS_END_S
    while (threads := lost()) and time.monotonic() < end:
        time.sleep(0.05)
    if threads:
        return f"it has threads that a fork would lose: {', '.join(map(str, threads))}"
    resident, private = _memory()
    shared = max(resident - private, 1)
    if generation > 1 and private > GROWN_SHARE * shared:
        kinds = Counter(map(type, gc.get_objects())).most_common(4)
        most = ", ".join(f"{count:,} {kind.__qualname__}" for kind, count in kinds)
        return (
            f"it has {format_size(private)} of its own beside {format_size(shared)} that are"
            f" shared; most of its new objects: {most}"
        )
    return ""


def _memory() -> tuple[int, int]:
    """Return resident and private bytes of this process; zeros if they are unknown."""
    with suppress(OSError, RuntimeError):
        memory = process_memory(os.getpid())
        return memory.resident_bytes, memory.private_bytes
    return 0, 0


def _handle_signals(server: Any, ends: list[int]) -> None:
    """Handle the signals that the master sends to all its workers; see `Reforking.signal`.

    An ending signal is also added to `ends`: its exception may be lost in a destructor, or in code
    that catches everything.
    """

    def end(number: int, _: object) -> NoReturn:
        ends.append(number)
        raise End

    def reopen(*_: object) -> None:
        server.log.reopen_files()

    signal.set_wakeup_fd(-1)
    for number in _ENDING:
        signal.signal(number, end)
    signal.signal(signal.SIGUSR1, reopen)
    for number in (signal.SIGHUP, signal.SIGWINCH):
        signal.signal(number, lambda *_: None)  # SIG_IGN would be inherited over an exec
    for number in (signal.SIGCHLD, signal.SIGABRT, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)  # a loader's are blocked until here


def _fork_next(service: Service, server: Any) -> bool:
    """Wait for the master and obey it; False in a helper.  EOFError: the master is gone."""
    channel = service.channel
    message = channel.receive(_TURN_S) if channel is not None else None
    if channel is None or message is None:
        if os.getppid() != server.pid:
            raise EOFError
        return True
    words, descriptors = message
    if words[0] == "sockets":
        service.take_sockets(server, descriptors, has_port=words[1] == "port")
    if words[0] != "fork":
        return True
    age = int(words[1])
    try:
        pid = os.fork()
    except OSError as error:  # memory or processes: there may be more of them soon
        channel.send("later", age, in_one_line(error))
        return True
    if pid == 0:
        service.helper_pid = os.getpid()
        server.worker_age = age - 1
        channel.send("begun", age)  # a hook may take longer than a fork
        return False
    _wait_for(pid, server.pid)
    channel.send("forked", age)
    service.describe()
    return True


def _wait_for(pid: int, master: int) -> None:
    """Wait until a helper has ended; kill it if this mold has to end meanwhile."""
    with suppress(ChildProcessError):  # another thread has reaped it
        try:
            while os.getppid() == master:
                if os.waitpid(pid, os.WNOHANG)[0]:
                    return
                time.sleep(0.001)
        except End:
            _kill(pid)
            raise
        _kill(pid)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def deliver(service: Service, server: Any, error: BaseException | None = None) -> NoReturn:
    """End a helper: hand the worker over to the master, or say why there is none."""
    try:
        _deliver(service, server, error)
    except Exception as problem:  # noqa: BLE001  # this process may not go on in any case
        for pid in server.WORKERS:  # it would serve without being managed
            os.kill(pid, signal.SIGKILL)
        server.log.error("a new worker is lost: %s", in_one_line(problem))  # noqa: TRY400
    finally:
        os._exit(0)


def _deliver(service: Service, server: Any, error: BaseException | None) -> None:
    channel = service.channel
    if channel is None:
        return
    if error is not None:
        channel.send("failed", in_one_line(error))
        return
    ((pid, worker),) = server.WORKERS.items()
    line = service.lines[worker.age]
    channel.send("worker", pid, descriptors=(worker.tmp.fileno(), line.fileno()))
