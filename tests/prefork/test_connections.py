"""A worker cuts or renews the descriptors that its parent has opened, and no others."""

import contextlib
import http.client
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from tests.prefork.serving import Server, running, until
from tests.support import run_child

pytestmark = pytest.mark.any_version

PREAMBLE = """
import os, select, signal, socket, sys, traceback
from cpythonplus.prefork._fork.connections import Connections

os.chdir(os.path.dirname(__file__))

class Log:
    '''What a Guard writes to.'''
    def __init__(self):
        self.lines = []
    def warning(self, text, *args):
        self.lines.append(text % args)
    info = error = warning

def in_worker(connections, body):
    '''Run body() in a forked child whose connections are cut, and end it; 0 is success.'''
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        assert os.waitpid(pid, 0)[1] == 0
        return
    try:
        connections.cut()
        body()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)

def raises(kind, call, *args):
    try:
        call(*args)
    except kind:
        return
    raise AssertionError(f"{call} raised no {kind}")

def is_dead(it):
    '''As a connection that the server has closed.'''
    assert select.select([it], [], [], 0)[0], "a pool does not see that it is lost"
    assert it.recv(1) == b""
    raises(BrokenPipeError, it.send, b"x")

def listen(family=socket.AF_INET, address=("127.0.0.1", 0), kind=socket.SOCK_STREAM):
    listener = socket.socket(family, kind)
    listener.bind(address)
    listener.listen()
    return listener

def connect(listener, **options):
    it = socket.socket(listener.family, listener.type)
    it.connect(listener.getsockname())
    return it, listener.accept()[0]

connections = Connections(whole=True)
"""


def run(body: str) -> str:
    return run_child(PREAMBLE + dedent(body)).out


ADDRESSES = {
    "TCP": "listen()",
    "TCP-IPv6": "listen(socket.AF_INET6, ('::1', 0))",
    "Unix": "listen(socket.AF_UNIX, 's')",
    "Unix-abstract": "listen(socket.AF_UNIX, b'\\0cpythonplus-%d' % os.getpid())",
    "Unix-seqpacket": "listen(socket.AF_UNIX, b'\\0cpp-%d' % os.getpid(), socket.SOCK_SEQPACKET)",
}


@pytest.mark.parametrize("listener", ADDRESSES.values(), ids=ADDRESSES)
def test_a_connection_is_dead_in_the_worker_and_whole_in_the_parent(listener: str) -> None:
    run(f"""
        listener = {listener}
        connections.begin()
        client, server = connect(listener)
        connections.look("the test")
        inheritable = True
        client.set_inheritable(inheritable)
        def body():
            assert os.get_inheritable(client.fileno()) is inheritable
            is_dead(client)
            is_dead(server)
            client.close()
            server.close()
            assert listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        in_worker(connections, body)
        client.send(b"parent")
        assert server.recv(9) == b"parent"
        server.setblocking(False)
        raises(BlockingIOError, server.recv, 1)  # nor has the worker sent or ended anything
    """)


def test_what_was_open_before_is_left_alone() -> None:
    run("""
        client, server = connect(listen())
        connections.begin()
        copy = client.dup()  # the same connection under another number
        connections.look("the test")
        def body():
            client.send(b"a")
            copy.send(b"b")
        in_worker(connections, body)
        assert server.recv(2, socket.MSG_WAITALL) == b"ab"
    """)


def test_sockets_that_are_not_connected_and_pipes_are_left_alone() -> None:
    run("""
        connections.begin()
        listener, free, bound = listen(), socket.socket(), socket.socket()
        bound.bind(("127.0.0.1", 0))
        datagrams = socket.socket(type=socket.SOCK_DGRAM)
        datagrams.bind(("127.0.0.1", 0))
        reading, writing = os.pipe()
        connections.look("the test")
        before = {each: os.fstat(each).st_ino for each in (
            reading, writing, *(it.fileno() for it in (listener, free, bound, datagrams)))}
        def body():
            assert before == {each: os.fstat(each).st_ino for each in before}
            free.connect(listener.getsockname())
        in_worker(connections, body)
    """)


def test_a_connection_that_is_just_being_made_is_cut() -> None:
    # A listen queue that is full does not answer.
    run("""
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(listener.getsockname())
        connections.begin()
        late = socket.socket()
        late.setblocking(False)
        late.connect_ex(listener.getsockname())
        raises(OSError, late.getpeername)
        connections.look("the test")
        in_worker(connections, lambda: is_dead(late))
    """)


def test_what_another_thread_opens_up_to_the_fork_is_cut() -> None:
    run("""
        listener = listen()
        connections.begin()
        first, first_server = connect(listener)
        connections.look("the test")
        number = first.detach()
        os.close(number)
        second, second_server = connect(listener)
        assert second.fileno() == number  # the same number, another connection
        in_worker(connections, lambda: is_dead(second))
    """)


def test_only_what_a_look_has_found_is_cut_in_other_parents() -> None:
    run("""
        listener = listen()
        connections = Connections()
        connections.begin()
        warmed, warmed_server = connect(listener)
        gone, gone_server = connect(listener)
        connections.look("the warm-up")
        number = gone.detach()
        os.close(number)
        own, server = connect(listener)
        assert own.fileno() == number
        def body():
            is_dead(warmed)
            own.send(b"x")
        in_worker(connections, body)
        assert server.recv(9) == b"x"
    """)


def test_nothing_is_cut_in_the_parent_or_twice() -> None:
    run("""
        listener = listen()
        connections.begin()
        client, server = connect(listener)
        connections.look("the test")
        connections.cut()
        client.send(b"x")
        assert server.recv(9) == b"x"
        def body():
            again, other = connect(listener)
            connections.cut()  # as in a child of the worker
            again.send(b"y")
            assert other.recv(9) == b"y"
        in_worker(connections, body)
    """)


def test_a_time_out_for_all_sockets_does_not_change_shared_ones() -> None:
    run("""
        socket.setdefaulttimeout(5)
        connections.begin()
        listener = listen()
        client, server = connect(listener)
        listener.setblocking(True)
        client.setblocking(True)
        connections.look("the test")
        assert os.get_blocking(client.fileno()) and os.get_blocking(listener.fileno())
        in_worker(connections, lambda: is_dead(client))
        assert os.get_blocking(client.fileno()) and os.get_blocking(listener.fileno())
        assert socket.getdefaulttimeout() == 5
    """)


def test_datagrams_go_on_with_a_socket_of_the_workers_own() -> None:
    run("""
        server = socket.socket(type=socket.SOCK_DGRAM)
        server.bind(("127.0.0.1", 0))
        log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        log.bind("log")
        connections.begin()
        client = socket.socket(type=socket.SOCK_DGRAM)
        client.connect(server.getsockname())
        syslog = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        syslog.connect("log")
        connections.look("the test")
        own = client.getsockname()
        def body():
            client.send(b"asked")
            asked, address = server.recvfrom(9)
            assert asked == b"asked" and address == client.getsockname() != own
            server.sendto(b"answered", address)
            assert client.recv(9) == b"answered"
            syslog.send(b"line")
        in_worker(connections, body)
        assert log.recv(9) == b"line"
        client.setblocking(False)
        raises(BlockingIOError, client.recv, 1)
    """)


def test_at_the_limit_of_descriptors_it_is_cut_all_the_same() -> None:
    run("""
        import resource
        listener = listen()
        connections.begin()
        client, server = connect(listener)
        wakes, woken = socket.socketpair()
        for each in wakes, woken:
            each.setblocking(False)
        watching = select.epoll()
        watching.register(woken, select.EPOLLIN)
        connections.look("the test")
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        try:
            while True:
                os.dup(0)
        except OSError:
            pass
        def body():
            is_dead(client)
            wakes.send(b"x")
            assert woken.recv(2) == b"x"
        in_worker(connections, body)
        woken.setblocking(False)
        raises(BlockingIOError, woken.recv, 1)
    """)


def test_the_kept_numbers_may_be_somebody_elses_by_now() -> None:
    run("""
        listener = listen()
        highest = max(map(int, os.listdir("/proc/self/fd")))
        connections.begin()
        os.closerange(highest, 64)  # as a daemon does
        client, server = connect(listener)
        files = [os.open("/dev/null", os.O_RDONLY) for _ in range(4)]
        connections.look("the test")
        def body():
            is_dead(client)
            for each in files:
                assert os.readlink(f"/proc/self/fd/{each}") == "/dev/null"
        in_worker(connections, body)
    """)


# ---- what has no peer ---------------------------------------------------------------------------


def test_an_event_loop_of_the_parent_wakes_and_hears_of_lost_connections() -> None:
    run("""
        import asyncio
        listener = listen()
        connections.begin()
        loop = asyncio.new_event_loop()
        reader, writer = loop.run_until_complete(
            asyncio.open_connection(*listener.getsockname()))
        server = listener.accept()[0]
        connections.look("the test")

        async def use():
            assert await asyncio.wait_for(reader.read(), 60) == b""
            fresh_reader, fresh_writer = await asyncio.open_connection(*listener.getsockname())
            other = listener.accept()[0]
            other.send(b"fresh")
            assert await fresh_reader.read(5) == b"fresh"
            woken = asyncio.Event()
            await loop.run_in_executor(None, loop.call_soon_threadsafe, woken.set)
            await asyncio.wait_for(woken.wait(), 60)

        in_worker(connections, lambda: loop.run_until_complete(use()))
        server.setblocking(False)
        raises(BlockingIOError, server.recv, 1)
        server.send(b"parent's")
        server.setblocking(True)
        assert loop.run_until_complete(reader.read(8)) == b"parent's"
    """)


def test_wake_ups_of_one_worker_do_not_reach_another() -> None:
    run("""
        connections.begin()
        reading, writing = socket.socketpair()
        for each in reading, writing:
            each.setblocking(False)
        signal.signal(signal.SIGUSR1, lambda *_: None)
        signal.set_wakeup_fd(writing.fileno())
        connections.look("the test")
        def body():
            signal.raise_signal(signal.SIGUSR1)
            assert reading.recv(9) == bytes([signal.SIGUSR1])
            signal.raise_signal(signal.SIGUSR1)  # not read here: nobody else may
        in_worker(connections, body)
        raises(BlockingIOError, reading.recv, 1)
    """)


def test_a_channel_to_a_helper_is_a_connection() -> None:
    run("""
        connections.begin()
        mine, helpers = socket.socketpair()  # blocking: it carries questions
        connections.look("the test")
        in_worker(connections, lambda: is_dead(mine))
        mine.send(b"x")
        assert helpers.recv(2) == b"x"
    """)


def test_a_file_that_is_read_has_a_position_in_each_worker() -> None:
    run("""
        with open("table", "w") as file:
            file.write("0123456789")
        connections.begin()
        table, both = open("table", "rb", buffering=0), open("table", "r+b", buffering=0)
        gone = open("gone", "w+b", buffering=0)
        gone.write(b"abc")
        os.unlink("gone")
        log, new = open("log", "w"), open("new", "w+")
        new.write("parent ")
        new.flush()
        table.seek(4)
        gone.seek(1)
        connections.look("the test")
        def body():
            assert table.read(2) == b"45" and gone.read(1) == b"b"
            both.seek(7)
            both.write(b"x")
            for each in (log, new):  # written at their end: one position, or lines were lost
                each.write("worker ")
                each.flush()
        in_worker(connections, body)
        assert table.read(2) == b"45" and gone.tell() == 1 and both.tell() == 0
        assert both.read() == b"0123456x89"
        for each in (log, new):
            each.write("parent")
            each.close()
        assert open("log").read() == "worker parent"
        assert open("new").read() == "parent worker parent"
    """)


def test_an_flock_on_a_file_that_is_read_is_that_of_one_worker() -> None:
    run("""
        import fcntl
        connections.begin()
        with open("lock", "a+") as file:
            connections.look("the test")
            fcntl.flock(file, fcntl.LOCK_EX)
            def body():
                raises(BlockingIOError, fcntl.flock, file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            in_worker(connections, body)
    """)


def test_nobody_but_the_parent_talks_with_its_helper_processes() -> None:
    run("""
        import pty, subprocess
        connections.begin()
        PIPE, NULL = subprocess.PIPE, subprocess.DEVNULL
        helper = subprocess.Popen(["cat"], stdin=PIPE, stdout=PIPE, bufsize=0)
        sink = subprocess.Popen(["cat"], stdin=PIPE, stdout=NULL, bufsize=0)
        terminal, other = pty.openpty()
        connections.look("the application")
        log = Log()
        connections.tell(log)
        assert any("pipe to a helper process (opened by the application)" in line
                   for line in log.lines), log.lines
        assert any("pseudo-terminal" in line for line in log.lines), log.lines
        def body():
            raises(BrokenPipeError, helper.stdin.write, b"worker")
            assert helper.stdout.read() == b""
            sink.stdin.write(b"worker")  # nobody answers there
            raises(BrokenPipeError, os.write, terminal, b"worker")
            line = socket.socket()
            connections.begin_again(line.fileno())
            connections.look("a worker that will fork")
            again = Log()
            connections.tell(again)
            assert again.lines == [], "what is dead need not be cut"
        in_worker(connections, body)
        assert helper.communicate(b"parent")[0] == b"parent"
        sink.communicate()
        os.close(terminal), os.close(other)
    """)


def test_an_epoll_keeps_what_it_watches_with_events_and_data() -> None:
    run("""
        import ctypes, struct
        libc = ctypes.CDLL(None)
        shape = "=IQ" if os.uname().machine == "x86_64" else "=I4xQ"
        connections.begin()
        reading, writing = os.pipe()
        watching = select.epoll()
        event = struct.pack(shape, select.EPOLLIN | select.EPOLLET, 0xFEDCBA9876543210)
        assert libc.epoll_ctl(watching.fileno(), 1, reading, event) == 0
        outer = select.epoll()
        outer.register(watching, select.EPOLLIN)
        closed, _ = os.pipe()
        left = os.dup(closed)
        watching.register(closed)
        os.close(closed)
        connections.look("the test")
        text = open(f"/proc/self/fdinfo/{watching.fileno()}").read()
        assert "fedcba9876543210" in text
        def body():
            inside = open(f"/proc/self/fdinfo/{watching.fileno()}").read().splitlines()
            tfd = [line.split() for line in inside if line.startswith("tfd")]
            assert [(each[1], each[5]) for each in tfd] == [(str(reading), "data:")] or tfd, tfd
            assert len(tfd) == 1 and "fedcba9876543210" in " ".join(tfd[0]), tfd
            assert not outer.poll(0)
            os.write(writing, b"x")
            assert [number for number, _ in outer.poll(60)] == [watching.fileno()]
            # The parent's epoll does not have what this one watches from now on.
            own = socket.socketpair()
            watching.register(own[0])
        in_worker(connections, body)
        assert open(f"/proc/self/fdinfo/{watching.fileno()}").read() == text
    """)


def test_what_a_fork_handler_has_made_in_the_worker_stays() -> None:
    # As gRPC does: the same numbers, and its threads wait already.
    run("""
        connections.whole = True
        connections.begin()
        event = os.eventfd(0, os.EFD_NONBLOCK)
        connections.look("the test")
        made = []
        def handler():
            new = os.eventfd(0, os.EFD_NONBLOCK)
            os.dup2(new, event)
            made.extend([new, *socket.socketpair()])
        os.register_at_fork(after_in_child=handler)
        def body():
            new, one, other = made
            os.eventfd_write(event, 3)
            assert os.eventfd_read(new) == 3
            one.send(b"x")
            assert other.recv(2) == b"x"
        in_worker(connections, body)
    """)


def test_eventfds_timers_and_inotify_are_the_workers_own() -> None:
    run("""
        import ctypes, struct
        libc = ctypes.CDLL(None)
        connections.begin()
        event = os.eventfd(3, os.EFD_SEMAPHORE | os.EFD_NONBLOCK)
        timer = libc.timerfd_create(1, os.O_NONBLOCK)
        libc.timerfd_settime(timer, 0, struct.pack("=4q", 0, 0, 0, 1), None)
        select.select([timer], [], [])
        slow = libc.timerfd_create(1, os.O_NONBLOCK)
        libc.timerfd_settime(slow, 0, struct.pack("=4q", 7, 5, 1000, 0), None)
        files = libc.inotify_init1(os.O_NONBLOCK)
        libc.inotify_add_watch(files, b".", 0x100)  # IN_CREATE
        connections.look("the test")
        def body():
            assert os.eventfd_read(event) == 1
            select.select([timer], [], [])
            assert os.read(timer, 8) == struct.pack("=Q", 1)
            text = open(f"/proc/self/fdinfo/{slow}").read()
            assert "it_interval: (7, 5)" in text and "it_value: (9" in text, text
            open("new", "w").close()
            raises(BlockingIOError, os.read, files, 4096)
            assert libc.inotify_add_watch(files, b".", 0x100) > 0
            open("newer", "w").close()
            assert b"newer" in os.read(files, 4096)
        in_worker(connections, body)
        assert [os.eventfd_read(event) for _ in range(3)] == [1, 1, 1]
        assert os.read(timer, 8) == struct.pack("=Q", 1)
        assert b"new" in os.read(files, 4096)
    """)


# ---- what is said -------------------------------------------------------------------------------


def test_the_log_says_once_for_each_peer_who_opened_it() -> None:
    said = run("""
        listener, other = listen(), listen(socket.AF_UNIX, b"\\0cpp-%d" % os.getpid())
        connections.begin()
        log = Log()
        kept = [connect(listener)[0] for _ in range(3)] + [socket.create_connection]
        connections.look("the warm-up /user/0")
        kept.append(connect(other)[0])
        gone = connect(listener)[0]
        connections.look("the warm-up /user/1")
        gone.close()
        connections.tell(log)
        connections.tell(log)
        port = listener.getsockname()[1]
        text = "\\n".join(log.lines)
        assert text.count(f"TCP 127.0.0.1:{port} (opened by the warm-up /user/0)") == 1, text
        assert text.count("Unix socket @cpp-") == 1, text
        assert f"TCP 127.0.0.1:{port} (opened by the warm-up /user/1)" not in text, text
        print(len(log.lines))
    """)
    assert int(said)


def test_without_proc_nothing_is_cut_and_the_reason_is_raised() -> None:
    run("""
        from cpythonplus.prefork._fork import connections as module
        module._FOLDER = "/no-such-folder"
        raises(FileNotFoundError, connections.begin)
        connections.look("the test")
        connections.tell(Log())
        connections.cut()
    """)


# ---- a server -----------------------------------------------------------------------------------

APP = """
    import socket
    pool = []
    def ask(line):
        stream = pool.pop() if pool else None
        if stream is None:
            stream = socket.create_connection(("127.0.0.1", PORT)).makefile("rwb")
        stream.write(line + b"\\n")
        stream.flush()
        answer = stream.readline().strip()
        pool.append(stream)
        return answer
    def app(environ, start_response):
        path = environ["PATH_INFO"].encode()
        body = ask(path) if path.startswith(b"/user/") else b"ok"
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]
"""


@contextlib.contextmanager
def echo_server() -> Iterator[int]:
    """Answer each line with itself, on any number of connections; gives the port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def echo(connection: socket.socket) -> None:
            with contextlib.suppress(OSError), connection, connection.makefile("rwb") as stream:
                for line in stream:
                    stream.write(line)
                    stream.flush()

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    it, _ = listener.accept()
                    threading.Thread(target=echo, args=(it,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def connecting(tmp_path: Path, app: str, *words: str) -> Iterator[tuple[Server, int]]:
    """Serve an application that connects to PORT, where a line is answered; gives the port."""
    with (
        echo_server() as port,
        running(tmp_path, *words, app=app.replace("PORT", str(port))) as server,
    ):
        yield server, port


def ask_as_many_users(server: Server, turns: int = 50) -> tuple[int, list[tuple[str, str]]]:
    """Return how many answers of 8 x turns were right, and those that belong to somebody else.

    gunicorn takes an EPIPE of the application for one of its client's, and sends nothing.
    """
    right: list[tuple[str, str]] = []
    wrong: list[tuple[str, str]] = []

    def ask(path: str) -> None:
        with contextlib.closing(server.connection()) as connection:
            connection.request("GET", path)
            with contextlib.suppress(http.client.RemoteDisconnected):
                answer = connection.getresponse()
                body = answer.read().decode()
                if answer.status == 200:
                    (right if body == path else wrong).append((path, body))

    def user(number: int) -> None:
        for turn in range(turns):
            ask(f"/user/{number}-{turn}")

    users = [threading.Thread(target=user, args=(number,)) for number in range(8)]
    for each in users:
        each.start()
    for each in users:
        each.join()
    return len(right), wrong


@pytest.mark.parametrize("worker", ["sync", "gthread"])
def test_a_warmed_page_gives_nobody_anybody_elses_data(tmp_path: Path, worker: str) -> None:
    words = ("--workers", "4", "--worker-class", worker, "--threads", "2")
    with connecting(tmp_path, APP, *words, "--warm-up", "/user/0") as (server, port):
        right, wrong = ask_as_many_users(server)
        assert wrong == []
        assert right >= 396  # the first one that meets the dead connection, in each worker
        told = f"TCP 127.0.0.1:{port} (opened by the warm-up /user/0)"
        assert server.output().count(told) == 1


FORKING_APP = """
    import os, multiprocessing, socket, subprocess, sys
    connection = socket.create_connection(("127.0.0.1", PORT))

    def serves_still():
        connection.sendall(b"line\\n")
        return connection.recv(9) == b"line\\n"

    def check():
        assert serves_still()

    def warm():
        assert serves_still()
        pid = os.fork()
        if pid == 0:
            os._exit(0 if serves_still() else 1)
        assert os.waitpid(pid, 0)[1] == 0
        child = multiprocessing.get_context("fork").Process(target=check)
        child.start()
        child.join()
        assert child.exitcode == 0
        code = f"import socket; s = socket.socket(fileno={connection.fileno()}); s.getpeername()"
        subprocess.run([sys.executable, "-c", code], pass_fds=[connection.fileno()], check=True,
                       preexec_fn=lambda: None)
        print("other children share it", flush=True)

    def app(environ, start_response):
        try:
            body = b"shared" if serves_still() else b"lost"
        except OSError:
            body = b"cut"
        if environ["PATH_INFO"] == "/child":
            pid = os.fork()
            if pid == 0:
                os._exit(len(connection.recv(1)))
            body = b"%d" % os.waitpid(pid, 0)[1]
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]
"""


def test_other_forks_of_the_application_are_not_touched(tmp_path: Path) -> None:
    with connecting(tmp_path, FORKING_APP, "--warm-up", "app:warm") as (server, port):
        assert "other children share it" in server.output()
        assert server.get() == "cut"
        assert server.get("/child") == "0"
        told = f"TCP 127.0.0.1:{port} (opened by the application while it was loaded)"
        assert server.output().count(told) == 1


HOOKED_APP = """
    import socket
    from cpythonplus import prefork
    connection = None

    def warm():
        global connection
        connection = socket.create_connection(("127.0.0.1", PORT))

    @prefork.before_fork
    def fails():
        raise LookupError("on purpose")

    @prefork.before_fork
    def close():
        global connection
        if connection is not None:
            connection.close()
            connection = None
        print("closed", flush=True)

    def app(environ, start_response):
        body = str(connection).encode()
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]
"""


def test_functions_are_called_before_each_worker_is_forked(tmp_path: Path) -> None:
    words = ("--workers", "2", "--warm-up", "app:warm")
    with connecting(tmp_path, HOOKED_APP, *words) as (server, _):
        assert server.get() == "None"
        until(lambda: server.output().count("closed") == 2, "both workers")
        assert "before_fork, failed: LookupError: on purpose" in server.output()
        assert "cannot share" not in server.output()  # nothing was left to be cut


def test_a_failed_warm_up_leaves_no_connection_to_other_parents_children() -> None:
    with echo_server() as port:
        run(f"""
            import logging
            from cpythonplus import prefork
            logging.basicConfig()
            connections = []
            own = socket.create_connection(("127.0.0.1", {port}))
            def warm():
                connections.append(socket.create_connection(("127.0.0.1", {port})))
                raise LookupError("on purpose")
            prefork.install(warm_up=warm)
            in_worker(Connections(), lambda: (is_dead(connections[0]), own.send(b"x\\n")))
            connections[0].send(b"line\\n")
            assert connections[0].recv(9) == b"line\\n"
        """)
