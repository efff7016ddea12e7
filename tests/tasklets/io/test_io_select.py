"""select, poll, epoll and selectors that block only the tasklet; no test measures a time."""

import errno
import os
import resource
import select as stock
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest

from cpythonplus.tasklets import run, schedule, tasklet
from cpythonplus.tasklets.io import _readiness as readiness
from cpythonplus.tasklets.io import select, selectors
from tests.leaks import MEASURE
from tests.support import SANITIZED, run_child

SOON = 0.001

# Each waits for descriptors to be readable and returns those that are. Time-out: seconds or None.
Waiter = Callable[[list[int], float | None], list[int]]


def by_select(fds: list[int], timeout: float | None) -> list[int]:
    return select.select(fds, [], [], timeout)[0]


def by_poll(fds: list[int], timeout: float | None) -> list[int]:
    it = select.poll()
    for fd in fds:
        it.register(fd, stock.POLLIN)
    return sorted(fd for fd, _ in it.poll(None if timeout is None else timeout * 1000))


def by_epoll(fds: list[int], timeout: float | None) -> list[int]:
    with select.epoll() as it:
        for fd in fds:
            it.register(fd, stock.EPOLLIN)
        return sorted(fd for fd, _ in it.poll(timeout))


def by_selector(kind: str) -> Waiter:
    def wait(fds: list[int], timeout: float | None) -> list[int]:
        with getattr(selectors, kind)() as it:
            for fd in fds:
                it.register(fd, selectors.EVENT_READ)
            return sorted(key.fd for key, _ in it.select(timeout))

    wait.__name__ = kind
    return wait


WAITERS = [
    by_select,
    by_poll,
    by_epoll,
    *map(by_selector, ("DefaultSelector", "EpollSelector", "PollSelector", "SelectSelector")),
]


@pytest.fixture(params=WAITERS, ids=lambda waiter: waiter.__name__)
def wait(request: pytest.FixtureRequest) -> Waiter:
    waiter: Waiter = request.param
    return waiter


@contextmanager
def pipes(count: int) -> Iterator[list[tuple[int, int]]]:
    with ExitStack() as stack:
        made = [os.pipe() for _ in range(count)]
        for pair in made:
            for fd in pair:
                stack.callback(os.close, fd)
        yield made


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


class TestWaiting:
    @pytest.mark.parametrize("count", [1, 2, 20])
    def test_only_the_tasklet_waits(self, wait: Waiter, count: int) -> None:
        with pipes(count) as made:
            log: list[object] = []
            task = tasklet(lambda: log.append(wait([r for r, _ in made], None)))()
            task.run()
            assert task.blocked
            os.write(made[-1][1], b"x")
            run()
            assert log == [[made[-1][0]]]

    @pytest.mark.parametrize("timeout", [None, 0, 5.0, -1])
    def test_what_is_ready_is_found_at_once(self, wait: Waiter, timeout: float | None) -> None:
        if wait is by_select and timeout == -1:
            timeout = 0
        with pipes(2) as made:
            for _, w in made:
                os.write(w, b"x")
            assert wait([r for r, _ in made], timeout) == sorted(r for r, _ in made)

    @pytest.mark.parametrize("count", [0, 1, 3])
    def test_the_time_is_over(self, wait: Waiter, count: int) -> None:
        log: list[int] = []
        with pipes(count) as made:
            tasklet(log.append)(1)
            assert wait([r for r, _ in made], SOON) == []
        assert log == [1]

    def test_a_part_of_a_millisecond_is_a_whole_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        # As the kernel's calls have it: a loop around such a call is no busy one.
        asked: list[float | None] = []

        class Limit(readiness.Limit):
            def __init__(self, seconds: float | None) -> None:
                asked.append(seconds)
                super().__init__(seconds)

        monkeypatch.setattr(readiness, "Limit", Limit)
        with pipes(1) as made:
            by_epoll([made[0][0]], 0.000001)
            by_poll([made[0][0]], 0.0011)
        assert asked == [0.001, 0.002]

    def test_no_time_lets_the_others_run(self, wait: Waiter) -> None:
        with pipes(1) as ((r, w),):
            tasklet(os.write)(w, b"x")
            assert wait([r], 0) == [r]

    def test_who_always_finds_something_lets_the_others_run(self) -> None:
        log: list[int] = []
        with pipes(1) as ((r, w),), selectors.DefaultSelector() as selector:
            selector.register(r, selectors.EVENT_READ)
            os.write(w, b"x")
            tasklet(log.append)(1)
            for _ in range(1_000_000):  # some milliseconds: it goes by a clock
                assert selector.select(1000)
                if log:
                    break
            assert log == [1]

    @pytest.mark.parametrize("count", [1, 2])
    def test_many_wait_for_the_same(self, wait: Waiter, count: int) -> None:
        """Together and with others; the kernel limits the ways from a descriptor to an epoll."""
        with pipes(count) as made:
            log: list[list[int]] = []
            fds = [r for r, _ in made]
            for _ in range(150):
                tasklet(lambda: log.append(wait(fds, None)))()
            for _ in range(3):
                schedule()
            os.write(made[0][1], b"x")
            run()
            assert log == [[fds[0]]] * 150

    def test_killed_ones_leave_nothing(self, wait: Waiter) -> None:
        with pipes(2) as made:
            tasklet(wait)([made[0][0]], SOON)
            run()  # the event loop is there
            before = descriptors()
            for count in (1, 2):
                task = tasklet(wait)([r for r, _ in made[:count]], None)
                task.run()
                assert task.blocked
                task.kill()
            assert descriptors() == before
            run()  # waits for nothing

    def test_a_time_out_of_somebody_else(self, wait: Waiter) -> None:
        """It goes through; only its own is an empty result."""
        with pipes(2) as made:
            for count in (1, 2):
                task = tasklet(wait)([r for r, _ in made[:count]], 1000)
                task.run()
                with pytest.raises(TimeoutError, match="mine"):
                    task.throw(TimeoutError("mine"))

    def test_descriptors_above_1024(self, wait: Waiter) -> None:
        with pipes(1) as ((r, _),):
            high = 1500
            limits = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(limits[0], high + 1), limits[1]))
            os.dup2(r, high)
            try:
                if wait in (by_select, WAITERS[-1]):
                    with pytest.raises(ValueError, match="filedescriptor out of range"):
                        wait([high], SOON)
                else:
                    assert wait([high], SOON) == []
            finally:
                os.close(high)
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)

    def test_regular_files_are_ready(self, wait: Waiter) -> None:
        with open(__file__, "rb") as file, pipes(1) as ((r, _),):  # noqa: PTH123
            fds = [file.fileno(), r]
            if wait is by_epoll or wait.__name__ in ("DefaultSelector", "EpollSelector"):
                with pytest.raises(PermissionError):
                    wait(fds, None)
            else:
                assert wait(fds, None) == [file.fileno()]


class TestSelect:
    def test_lists_and_what_is_in_them(self) -> None:
        left, right = socket.socketpair()
        with left, right:
            right.send(b"x")
            found = select.select(iter([left, left.fileno()]), (right,), [left], None)
            assert found == ([left, left.fileno()], [right], [])

    def test_the_same_twice(self) -> None:
        with pipes(1) as ((r, w),):
            tasklet(os.write)(w, b"x")
            assert select.select([r, r], [], [r], None) == ([r, r], [], [])

    def test_writing(self) -> None:
        left, right = socket.socketpair()
        with left, right:
            left.setblocking(False)
            with suppress(BlockingIOError):
                while True:
                    left.send(bytes(100_000))
            log: list[object] = []
            tasklet(lambda: log.append(select.select([], [left], [], None)))()
            schedule()
            assert log == []
            right.setblocking(False)
            with suppress(BlockingIOError):
                while True:
                    right.recv(100_000)
            run()
            assert log == [([], [left], [])]

    def test_urgent_data(self) -> None:
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            socket.create_connection(server.getsockname()) as left,
            server.accept()[0] as right,
        ):
            tasklet(left.send)(b"!", socket.MSG_OOB)
            assert select.select([], [], [right], None) == ([], [], [right])

    def test_what_nobody_asked_for_is_not_found(self) -> None:
        """A pipe that was hung up is readable, but has nothing exceptional."""
        r, w = os.pipe()
        os.close(w)
        try:
            assert select.select([], [], [r], SOON) == ([], [], [])
        finally:
            os.close(r)

    def test_a_list_that_changes_while_it_is_read(self) -> None:
        things: list[object] = []

        with open(os.devnull, "wb") as file:  # noqa: PTH123

            class Shrinking:
                def fileno(self) -> int:
                    del things[-1]
                    return file.fileno()

            things[:] = [Shrinking() for _ in range(10)]
            assert select.select([], things, []) == ([], things[:5], [])

    @pytest.mark.parametrize(
        "args",
        [
            (1, 2, 3),
            ([None], [], []),
            ([-1], [], []),
            ([9999999999], [], []),
            ([], [], [], "x"),
            ([], [], [], -1),
            ([], [], [], float("nan")),
            ([], [], [], 1e300),
            ([], [], [], 1, 2),
            ([],),
        ],
        ids=str,
    )
    def test_refused_as_the_standard_one_refuses(self, args: Any) -> None:  # noqa: ANN401
        with pytest.raises((TypeError, ValueError, OverflowError, OSError)) as standard:
            stock.select(*args)
        with pytest.raises(standard.type):
            select.select(*args)

    def test_closed(self) -> None:
        r, w = os.pipe()
        os.close(r)
        os.close(w)
        with pytest.raises(OSError, match="Bad file descriptor"):
            select.select([r], [], [], None)


class TestPoll:
    def test_events(self) -> None:
        r, w = os.pipe()
        it = select.poll()
        it.register(r)
        it.modify(r, stock.POLLIN)
        tasklet(os.close)(w)
        assert it.poll() == [(r, stock.POLLHUP)]
        os.close(r)
        assert it.poll() == [(r, stock.POLLNVAL)]
        it.unregister(r)
        assert it.poll(SOON) == []

    def test_only_one_at_a_time(self) -> None:
        with pipes(1) as ((r, _),):
            it = select.poll()
            it.register(r, stock.POLLIN)
            task = tasklet(it.poll)(None)
            task.run()
            with pytest.raises(RuntimeError, match="concurrent"):
                it.poll(0)
            task.kill()
            assert it.poll(0) == []

    @pytest.mark.parametrize(
        ("method", "args"),
        [
            ("register", (-1,)),
            ("register", (None,)),
            ("register", (0, -1)),
            ("register", (0, 1 << 16)),
            ("modify", (77, 1)),
            ("unregister", (77,)),
            ("poll", ("x",)),
            ("poll", (1 << 70,)),
            ("poll", (float("nan"),)),
        ],
    )
    def test_refused_as_the_standard_one_refuses(self, method: str, args: Any) -> None:  # noqa: ANN401
        with pytest.raises(Exception) as standard:  # noqa: PT011
            getattr(stock.poll(), method)(*args)
        with pytest.raises(standard.type):
            getattr(select.poll(), method)(*args)


class TestEpoll:
    def test_events(self) -> None:
        with pipes(2) as ((r, w), (_, idle)), select.epoll(sizehint=5) as it:
            it.register(r, stock.EPOLLIN | stock.EPOLLET)
            tasklet(os.write)(w, b"x")
            assert it.poll() == [(r, stock.EPOLLIN)]
            assert it.poll(SOON) == []  # an edge comes once
            it.modify(r, stock.EPOLLIN)
            it.register(idle, stock.EPOLLOUT)
            assert len(it.poll(maxevents=1)) == 1
            assert len(it.poll(timeout=1, maxevents=2)) == 2
            it.unregister(r)
            assert it.poll() == [(idle, stock.EPOLLOUT)]

    def test_closed_while_waited_for(self) -> None:
        it = select.epoll()
        log: list[int | None] = []

        def body() -> None:
            with pytest.raises(OSError) as caught:  # noqa: PT011
                it.poll()
            log.append(caught.value.errno)

        tasklet(body)()
        schedule()
        it.close()
        it.close()
        run()
        assert it.closed
        assert log == [errno.EBADF]
        with pytest.raises(ValueError, match="closed epoll"):
            it.poll()

    def test_fromfd(self) -> None:
        with select.epoll() as it, pipes(1) as ((r, w),):
            other = select.epoll.fromfd(os.dup(it.fileno()))
            it.register(r, stock.EPOLLIN)
            tasklet(os.write)(w, b"x")
            assert other.poll() == [(r, stock.EPOLLIN)]
            other.close()

    @pytest.mark.parametrize(
        ("method", "args"),
        [
            ("register", (-1,)),
            ("register", (None,)),
            ("modify", (77, 1)),
            ("unregister", (77,)),
            ("poll", ("x",)),
            ("poll", (0, -2)),
            ("poll", (0, 0)),
            ("poll", (float("nan"),)),
            ("poll", (1e300,)),
        ],
    )
    def test_refused_as_the_standard_one_refuses(self, method: str, args: Any) -> None:  # noqa: ANN401
        with stock.epoll() as theirs, pytest.raises(Exception) as standard:  # noqa: PT011
            getattr(theirs, method)(*args)
        with select.epoll() as ours, pytest.raises(standard.type):
            getattr(ours, method)(*args)


def test_the_other_names_are_the_standard_ones() -> None:
    assert select.POLLIN == stock.POLLIN
    assert "EPOLLONESHOT" in dir(select)
    assert selectors.EVENT_READ == 1
    with pytest.raises(AttributeError):
        _ = select.nonsense


# ---- programs -----------------------------------------------------------------------------------

PATCHED = """
import os, sys, threading
from cpythonplus import tasklets
from cpythonplus.tasklets import io
io.patch()

def together(*bodies):
    def guarded(body):
        try:
            body()
        except BaseException as error:
            failures.append(error)
            raise
    failures = []
    for body in bodies:
        tasklets.tasklet(guarded)(body)
    tasklets.run()
    assert not failures
"""


def test_event_loops_in_several_tasklets() -> None:
    """Each of them is the running one in its tasklet, none is outside; over each selector."""
    run_child(
        PATCHED
        + """
import asyncio, select, selectors

silent, other_end = os.pipe()

async def numbers(count):
    for number in range(count):
        await asyncio.sleep(0.001)
        yield number

async def main(name):
    loop = asyncio.get_running_loop()
    seen = [number async for number in numbers(5)]
    results = await asyncio.gather(*(asyncio.sleep(0.001, number) for number in seen))
    left, right = await asyncio.open_connection(*address)
    right.write(name)
    assert await left.readexactly(len(name)) == name
    right.close()
    await right.wait_closed()
    assert await asyncio.to_thread(threading.get_ident) != threading.get_ident()
    task = asyncio.current_task()
    select.select([silent], [], [], 0.002)  # in the middle of a step
    assert asyncio.get_running_loop() is loop and asyncio.current_task() is task
    done.append((name, results))

def outside():
    while not served.done():
        assert asyncio._get_running_loop() is None
        assert sys.get_asyncgen_hooks() == (None, None)
        io.sleep(0.001)

async def serve():
    global address, served
    served = asyncio.get_running_loop().create_future()
    async def echo(reader, writer):
        writer.write(await reader.read(100))
        writer.close()
        echoed.append(1)
        if len(echoed) == COUNT:
            served.set_result(None)
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    address = server.sockets[0].getsockname()
    tasklets.tasklet(outside)()
    await served

KINDS = [selectors.DefaultSelector, selectors.PollSelector, selectors.SelectSelector]
COUNT, done, echoed, address = 9, [], [], None

def client(number):
    while address is None:
        io.sleep(0.001)
    kind = KINDS[number % len(KINDS)]
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(kind())) as runner:
        runner.run(main(b"%d" % number))

together(lambda: asyncio.run(serve()), *(lambda n=n: client(n) for n in range(COUNT)))
assert sorted(done) == [(b"%d" % number, [0, 1, 2, 3, 4]) for number in range(COUNT)]
asyncio.run(asyncio.sleep(0))
"""
    )


def test_a_loop_of_the_programs_gives_tasklets_their_turns() -> None:
    """It is the hub then, and waits for the whole thread: it cannot wait in itself."""
    run_child(
        PATCHED
        + """
import asyncio, selectors
from cpythonplus.tasklets import aio

def body():
    io.sleep(0.001)
    r, w = os.pipe()
    tasklets.tasklet(os.write)(w, b"x")
    import select
    assert select.select([r], [], []) == ([r], [], [])
    os.close(r), os.close(w)
    return 5

async def main():
    assert await asyncio.gather(*(aio.spawn(body) for _ in range(10))) == [5] * 10

for kind in (selectors.DefaultSelector, selectors.PollSelector, selectors.SelectSelector):
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(kind())) as runner:
        runner.run(main())
"""
    )


def test_programs_of_the_standard_library() -> None:
    run_child(
        PATCHED
        + """
import multiprocessing.connection, select, selectors, socket, socketserver, subprocess

assert issubclass(subprocess._PopenSelector, selectors.PollSelector)
assert subprocess._PopenSelector.__module__.startswith("cpythonplus")

class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(self.rfile.readline())

def client():
    with socket.create_connection(server.server_address) as connection:
        connection.sendall(b"hello\\n")
        assert connection.makefile("rb").readline() == b"hello\\n"
    server.shutdown_asked = True
    server._BaseServer__shutdown_request = True

def serve():
    with server:
        server.serve_forever(poll_interval=0.001)

server = socketserver.TCPServer(("127.0.0.1", 0), Echo)
together(serve, client)

# A child that talks to the parent through a pipe of its own while it is waited for.
r, w = os.pipe()

def communicate():
    code = f"import os; print(os.read({r}, 9).decode())"
    child = subprocess.run(
        [sys.executable, "-c", code], pass_fds=[r], capture_output=True, text=True, input="x"
    )
    assert child.stdout == "go\\n", child

together(communicate, lambda: os.write(w, b"go"))

left, right = multiprocessing.Pipe()
together(
    lambda: multiprocessing.connection.wait([left]) == [left] and left.recv(),
    lambda: right.send(5),
)

io.unpatch()
assert select.select.__module__ == "select" and subprocess._PopenSelector is selectors.PollSelector
"""
    )


def test_signals() -> None:
    """A handler that returns has the wait go on; one that raises ends it in the main tasklet."""
    run_child(
        PATCHED
        + """
import select, signal

class Interrupted(Exception):
    pass

def interrupt(number, frame):
    raise Interrupted

r, w = os.pipe()
r2, w2 = os.pipe()
for fds in ([r], [r, r2]):
    signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        select.select(fds, [], [])
    except Interrupted:
        pass
    else:
        raise AssertionError
    signal.signal(signal.SIGALRM, lambda number, frame: os.write(w, b"x"))
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    assert select.select(fds, [], []) == ([r], [], [])
    os.read(r, 1)
"""
    )


def test_fork_with_one_that_waits() -> None:
    """The child's tasklet waits in an epoll of the child's."""
    run_child(
        PATCHED
        + """
import select
r, w = os.pipe()
r2, w2 = os.pipe()
log = []
tasklets.tasklet(lambda: log.append(select.select([r], [], [])))()
tasklets.schedule()
pid = os.fork()
os.write(w, b"x")
tasklets.run()
assert log == [([r], [], [])]
if pid == 0:
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""
    )


CALLS = {
    "select": "select.select([r], [], [], 0); select.select([r], [], [], 1e-9)",
    "select of several": "select.select([r], [r2], [r], 1e-9)",
    "select refused": "refused(ValueError, select.select, [r], [], [], -1)",
    "select, killed": "t = tasklet(select.select)([r, r2], [], []); t.run(); t.kill()",
    "poll": "p = select.poll(); p.register(r, 1); p.modify(r, 1); p.poll(0); p.poll(1e-9)",
    "poll of several": "p = select.poll(); p.register(r, 1); p.register(r2, 1); p.poll(1e-9)",
    "poll refused": "refused(TypeError, select.poll().poll, 'x')",
    "epoll": "p = select.epoll(); p.register(r, 1); p.poll(0); p.poll(1e-9); p.close()",
    "epoll with": "with select.epoll() as p: p.modify\nselect.epoll.fromfd(os.dup(e.fileno()))",
    "selectors": (
        "for kind in KINDS:\n    with kind() as s: s.register(r, 1); s.select(0); s.select(1e-9)"
    ),
    "event loop": "tasklet(asyncio.run)(asyncio.sleep(0)); run()",
}


@pytest.mark.skipif(SANITIZED, reason="the sanitizer's allocator does not count like this")
def test_no_leak() -> None:
    child = run_child(
        MEASURE
        + f"""
import asyncio, os
from cpythonplus.tasklets import run, tasklet
from cpythonplus.tasklets.io import _readiness as readiness, select, selectors
CALLS = {CALLS}
KINDS = [selectors.EpollSelector, selectors.PollSelector, selectors.SelectSelector]
r, w = os.pipe()
r2, w2 = os.pipe()
e = select.epoll()


def refused(kind, call, *arguments):
    try:
        call(*arguments)
    except kind:
        return
    raise AssertionError(kind)


fds = None
for name, line in CALLS.items():
    leak = leaks(line, {{**globals()}}, 20 if "loop" in name else 100, spare_bytes=4096)
    if leak:
        print(name, leak)
    fds = fds or len(os.listdir("/proc/self/fd"))
    assert fds == len(os.listdir("/proc/self/fd")), name
"""
    )
    assert child.out == ""
