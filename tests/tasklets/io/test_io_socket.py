"""Sockets: the same answers as the standard ones, and only the tasklet waits."""

# ruff: noqa: ANN401, BLE001, SIM117 (the module is either one; whatever a call raises)

import errno
import os
import pickle
import socket as stock
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import SANITIZED, run_child

ours: Any = pytest.importorskip("cpythonplus.tasklets.io.socket", exc_type=ImportError)

Log = list[Any]


def outcome(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return what a call gives or how it fails, but for what must differ: numbers and classes."""
    try:
        return call(*args, **kwargs)
    except Exception as error:  # whatever it is, both sides are to raise it
        return (type(error).__name__, getattr(error, "errno", None), str(error))


# ---- the same sequence of calls on both sides ---------------------------------------------------


def streams(module: Any, log: Log) -> None:
    one, other = module.socketpair()
    with one, other:
        log += [one.send(b"abc"), other.recv(2), other.recv(10)]
        log += [one.sendall(b"def"), other.recv(3, stock.MSG_PEEK), other.recv(3)]
        buffer = bytearray(5)
        one.sendall(b"ghijk")
        log += [other.recv_into(buffer, 2), bytes(buffer), other.recv_into(buffer), bytes(buffer)]
        one.sendall(b"lm")
        log += [other.recvfrom(1), other.recvfrom_into(buffer), bytes(buffer)]
        one.shutdown(stock.SHUT_WR)
        log += [other.recv(5), other.recv(5), other.recv_into(buffer)]
        other.sendall(b"n")
        log += [one.recv(5), outcome(one.send, b"x")]
    log += [outcome(one.recv, 1), outcome(one.send, b""), outcome(one.accept), one.fileno()]


def wrong_arguments(module: Any, log: Log) -> None:
    one, other = module.socketpair()
    with one, other:
        one.sendall(b"abc")
        log += [outcome(other.recv, -1)[0], outcome(other.recv_into, bytearray(2), 3)[0]]
        log += [outcome(other.recv, "1")[0], outcome(other.recv_into, b"12")[0]]
        log += [outcome(one.send, "text")[0], outcome(one.sendall, None)[0]]
        log += [outcome(one.sendto, b"x")[0], outcome(one.connect, 5)[0]]
        log += [outcome(one.recv, bufsize=1)[0], outcome(one.listen, "x")[0]]
        log += [other.recv(0), other.recv(10), other.recv(0), other.recv_into(bytearray())]
    log.append(outcome(module.socket, -5, 1)[:2])
    log.append(outcome(module.socket, fileno=-1))
    log.append(outcome(module.socket, fileno="x")[0])


def time_limits(module: Any, log: Log) -> None:
    one, other = module.socketpair()
    with one, other:
        value: Any
        for value in (None, 0, 0.0, 5, 2.5, True):
            one.settimeout(value)
            log += [one.gettimeout(), one.getblocking(), one.timeout]
        for value in (-1, -0.5, float("nan"), "5", 1j, 1e300, 2**40, 2**33):
            log.append((outcome(one.settimeout, value) or "?")[0])
        one.setblocking(False)
        log += [one.timeout, outcome(one.recv, 1), outcome(one.recvfrom, 1)]
        log += [outcome(one.recv_into, bytearray(1)), outcome(one.recvmsg, 1)]
        one.setblocking(True)
        log += [one.timeout, outcome(one.recv, 1, stock.MSG_DONTWAIT)]
        log.append(outcome(one.recvfrom, 1, stock.MSG_DONTWAIT))
        one.settimeout(0.002)
        log += [outcome(one.recv, 1), outcome(one.recvfrom, 1), outcome(one.recvmsg, 1)]
        log += [outcome(one.recv_into, bytearray(1)), outcome(one.sendall, bytes(10_000_000))]
    with module.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(0.002)
        log.append(outcome(listener.accept))
        listener.settimeout(0)
        log.append(outcome(listener.accept))


def default_time_limit(module: Any, log: Log) -> None:
    stock.setdefaulttimeout(0.003)
    try:
        log.append(module.getdefaulttimeout())
        one, other = module.socketpair()
        with one, other:
            log += [one.timeout, outcome(one.recv, 1)]
        with module.create_server(("127.0.0.1", 0)) as listener:
            with module.create_connection(listener.getsockname()) as client:
                with listener.accept()[0] as server:
                    log += [client.timeout, server.timeout]
    finally:
        stock.setdefaulttimeout(None)


def connections(module: Any, log: Log) -> None:
    with module.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        client = module.create_connection(address)
        server, peer = listener.accept()
        log += [peer == client.getsockname(), server.timeout, client.timeout]
        log += [client.connect_ex(address), outcome(client.connect, address)]
        # A reset: what was sent is lost, and both directions end.
        client.setsockopt(stock.SOL_SOCKET, stock.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
        log += [outcome(server.recv, 1), server.recv(1), outcome(server.send, b"x")]
        server.close()
    log.append(outcome(module.create_connection, address))
    with module.socket() as late:
        log.append(late.connect_ex(address))
    with module.socket() as late:
        late.setblocking(False)
        log.append(late.connect_ex(address) in {errno.EINPROGRESS, errno.ECONNREFUSED})
    log.append(outcome(module.create_connection, ("127.0.0.1", "no such service"))[0])
    six = module.has_dualstack_ipv6()
    log.append(six)
    if six:
        with module.create_server(("::1", 0), family=stock.AF_INET6) as listener:
            with module.create_connection(listener.getsockname()[:2]) as client:
                server, peer = listener.accept()
                with server:
                    log += [peer == client.getsockname(), server.family]


def unix_addresses(module: Any, log: Log) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, own = str(Path(folder, "listens")), str(Path(folder, "connects"))
        with module.socket(stock.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen()
            for name in (None, own, b"\0cpythonplus %d" % id(listener)):
                with module.socket(stock.AF_UNIX) as client:
                    if name is not None:
                        client.bind(name)
                    client.connect(path)
                    server, peer = listener.accept()
                    with server:
                        log.append(peer == (name if name is not None else ""))
    with module.socket(stock.AF_UNIX) as client:
        log += [outcome(client.connect, path), outcome(client.connect, b"x" * 200)[0]]


def datagrams(module: Any, log: Log) -> None:
    kind = stock.SOCK_DGRAM
    with module.socket(stock.AF_INET, kind) as one, module.socket(stock.AF_INET, kind) as other:
        other.bind(("localhost", 0))
        other.settimeout(5)
        there = other.getsockname()
        log += [
            one.sendto(b"abc", there),
            other.recv(2),
            one.sendto(b"", 0, ("localhost", there[1])),
        ]
        log.append(other.recvfrom(10) == (b"", ("127.0.0.1", one.getsockname()[1])))
        one.connect(there)
        log += [one.send(b"d"), one.sendmsg([b"e", b"f"]), other.recv(5), other.recvmsg(5)[0]]
        log += [one.sendmsg([b"g"], [], 0, there), other.recvmsg_into([bytearray(1)])[0]]
        other.settimeout(0.002)
        log.append(outcome(other.recvfrom, 1))


def descriptors(module: Any, log: Log) -> None:
    one, other = module.socketpair()
    with one, other, tempfile.TemporaryFile() as file:
        file.write(b"content")
        file.flush()
        log.append(module.send_fds(one, [b"x", b"y"], [file.fileno()]))
        data, fds, _, _ = module.recv_fds(other, 10, 1)
        log += [data, len(fds), os.pread(fds[0], 20, 0)]
        os.close(fds[0])
        log += [one.sendfile(file, 2), other.recv(50), file.tell()]
        log += [one.sendfile(file, 0, 3), other.recv(50), one.sendfile(file, 7)]
        log += [outcome(one.sendfile, file, 0, 0), outcome(one.sendfile, file, 0, "x")]
        one.setblocking(False)
        log.append(outcome(one.sendfile, file))
        with tempfile.TemporaryFile("w+") as text:
            log.append(outcome(one.sendfile, text))


def copies(module: Any, log: Log) -> None:
    one, other = module.socketpair()
    with one, other:
        one.settimeout(5)
        two = one.dup()
        log += [two.timeout, two.fileno() != one.fileno(), two.get_inheritable()]
        two.sendall(b"a")
        fd = two.detach()
        log += [two.fileno(), os.get_blocking(fd), outcome(two.send, b"x"), two.detach()]
        other.setblocking(False)
        log.append(os.get_blocking(other.fileno()))
        three = module.socket(fileno=fd)
        with three:
            log += [three.family, three.type, three.proto, three.timeout]
            three.sendall(b"b")
        four = module.fromfd(one.fileno(), stock.AF_UNIX, stock.SOCK_STREAM)
        with four:
            four.sendall(b"c")
        log.append(other.recv(10))
        plain = module.socket()
        fd = plain.detach()
        log.append(os.get_blocking(fd))
        os.close(fd)
        log += [outcome(pickle.dumps, one)[0], outcome(one.__getstate__)[0]]
        log += [isinstance(one, stock.socket), repr(one).partition("socket ")[2][:3]]


def files(module: Any, log: Log) -> None:
    one, other = module.socketpair()
    with one, other:
        with one.makefile("rw", encoding="utf-8") as text, other.makefile("rwb") as raw:
            text.write("first\nsecond\nth")
            text.flush()
            log += [raw.readline(), raw.readline(), raw.peek(1)]
            one.close()  # the file keeps it open
            text.write("ird\n")
            text.flush()
            log.append(raw.readline())
            other.settimeout(0.002)
            log += [outcome(raw.readline), outcome(raw.readline)]
        log += [one.fileno(), outcome(other.makefile, "x")[0]]
        with other.makefile("rb", buffering=0) as unbuffered:
            other.setblocking(False)
            log.append(unbuffered.read(1))


@pytest.mark.parametrize(
    "sequence",
    [
        streams,
        wrong_arguments,
        time_limits,
        default_time_limit,
        connections,
        unix_addresses,
        datagrams,
        descriptors,
        copies,
        files,
    ],
)
def test_answers_are_those_of_the_standard_sockets(
    sequence: Callable[[Any, Log], None],
) -> None:
    expected: Log = []
    answers: Log = []
    sequence(stock, expected)
    sequence(ours, answers)
    assert answers == expected
    assert len(expected) > 1


def test_the_module_has_every_public_name() -> None:
    assert [name for name in stock.__all__ if not hasattr(ours, name)] == []
    assert ours.AF_INET is stock.AF_INET
    assert ours.gaierror is stock.gaierror


# ---- tasklets: in programs of their own, since who waits for nothing hangs ----------------------

PRELUDE = """
import errno, gc, os, resource, socket as stock, sys, threading
from cpythonplus import tasklets
from cpythonplus.tasklets import channel, getcurrent, run, schedule, tasklet
from cpythonplus.tasklets.io import socket

def raised(call, *args):
    try:
        return call(*args)
    except BaseException as error:
        return error

log = []
def note(name, call, *args):
    result = raised(call, *args)
    log.append((name, result))

def until(*given):  # lets others run
    while any(each.alive for each in given):
        schedule()

def parked(task):
    while not task.blocked:
        schedule()
    return task
"""


def child(code: str) -> None:
    run_child(PRELUDE + code, timeout=40)


@pytest.mark.parametrize("connect", ["connect", "connect_ex"])
def test_what_ends_connect_for_good_closes_the_socket(connect: str) -> None:
    child(f"""
from cpythonplus.tasklets import io, TaskletExit
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(0)
fill = [stock.socket() for _ in range(3)]
for each in fill:
    each.setblocking(False)
    each.connect_ex(listener.getsockname())

def connects(ends, it):
    try:
        it.{connect}(listener.getsockname())
    finally:
        log.append((ends, it.fileno()))

def limited(it):
    with io.timeout(0.001):
        connects("time", it)

one, two, three = (socket.socket() for _ in range(3))
task = parked(tasklet(connects)("killed", one))
task.kill()
until(tasklet(note)("limited", limited, two))
three.settimeout(0.001)
until(tasklet(note)("timed out", connects, "stays", three))
assert log[0] == ("killed", -1), log
assert log[1] == ("time", -1) and type(log[2][1]) is TimeoutError, log
assert log[3][0] == "stays" and log[3][1] >= 0, log
three.close()
""")


def test_only_the_tasklet_waits() -> None:
    child("""
one, other = socket.socketpair()
tasklet(note)("received", one.recv, 10)
tasklet(note)("other", str)
def answer():
    log.append("sent"); other.sendall(b"abc")
tasklet(answer)()
run()
assert log == [("other", ""), "sent", ("received", b"abc")], log
""")


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("recv", "one.recv, 1"),
        ("recv_into", "one.recv_into, bytearray(1)"),
        ("recvfrom", "one.recvfrom, 1"),
        ("recvmsg", "one.recvmsg, 1"),
        ("accept", "listener.accept"),
        ("sendall", "one.sendall, bytes(10_000_000)"),
        ("readline", "one.makefile('rb').readline"),
    ],
)
def test_close_kill_and_throw_end_a_wait(call: str, code: str) -> None:
    child(f"""
for way in ("close", "detach", "throw", "kill", "elsewhere"):
    listener = socket.create_server(("127.0.0.1", 0))
    one, other = socket.socketpair()
    used = listener if {call!r} == "accept" else one
    task = parked(tasklet(note)(way, {code}))
    fd = used.fileno()
    if way == "close":
        used._real_close()  # whatever files there are
    elif way == "detach":
        os.close(used.detach())
    elif way == "throw":
        task.throw(KeyError("why"), pending=True)
    elif way == "kill":
        task.kill(pending=True)
    else:
        threading.Thread(target=used._real_close).start()
    until(task)
    # Nothing is left: the number's next owner starts afresh.
    used.close(); other.close(); listener.close()
    a, b = socket.socketpair()
    b.sendall(b"x")
    assert a.recv(2) == b"x"
    reader = parked(tasklet(note)("next", a.recv, 2))
    b.sendall(b"y")
    until(reader)
    assert log.pop() == ("next", b"y")
    a.close(); b.close()
kinds = [(way, type(error).__name__, getattr(error, "errno", None)) for way, error in log]
assert kinds == [("close", "OSError", errno.EBADF), ("detach", "OSError", errno.EBADF),
                 ("throw", "KeyError", None), ("kill", "TaskletExit", None),
                 ("elsewhere", "OSError", errno.EBADF)], kinds
run()
""")


def test_back_pressure_lets_the_reader_run() -> None:
    child("""
one, other = socket.socketpair()
data = os.urandom(3_000_000)
tasklet(one.sendall)(data)
got = bytearray()
def read():
    while len(got) < len(data):
        got.extend(other.recv(70_000))
tasklet(read)()
run()
assert got == data
one.setblocking(False)
sent = one.send(data)
assert 0 < sent < len(data)
assert raised(one.send, data).errno == errno.EAGAIN
""")


def test_reading_to_the_end_of_a_connection_that_was_drained() -> None:
    # A short read says that there is no more; the end, and a reset, must be seen all the same.
    child("""
listener = socket.create_server(("127.0.0.1", 0))
def serve(last):
    server, _ = listener.accept()
    got = []
    def read():
        for _ in range(2): got.append(server.recv(100))
    reader = parked(tasklet(read)())
    client.sendall(b"x")
    while not got: schedule()
    last(client)
    until(reader)
    log.append(got)
    server.close()
for last in (lambda c: (c.sendall(b"tail"), c.close()), lambda c: c.close(),
             lambda c: c.shutdown(stock.SHUT_WR)):
    client = socket.create_connection(listener.getsockname())
    task = tasklet(serve)(last)
    until(task)
assert log == [[b"x", b"tail"], [b"x", b""], [b"x", b""]], log
""")


def test_urgent_data_does_not_hide_what_follows() -> None:
    child("""
listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
server, _ = listener.accept()
first = parked(tasklet(server.recv)(100))
client.sendall(b"a"); until(first)
client.send(b"bcU", stock.MSG_OOB); client.sendall(b"def")
def read():
    got = b""
    while len(got) < 5: got += server.recv(100)
    log.append(got)
assert server.recv(1, stock.MSG_OOB) == b"U"
until(tasklet(read)())
assert log == [b"bcdef"], log
""")


def test_wait_all() -> None:
    child("""
one, other = socket.socketpair()
task = parked(tasklet(note)("all", one.recv, 6, stock.MSG_WAITALL))
other.sendall(b"abc"); schedule()
other.sendall(b"defg"); until(task)
assert log == [("all", b"abcdef")], log
other.close()
assert one.recv(6, stock.MSG_WAITALL) == b"g"
""")


def test_several_wait_in_one_socket_and_each_message_arrives_once() -> None:
    child("""
one, other = socket.socketpair(type=stock.SOCK_DGRAM)
readers = [tasklet(note)(i, one.recv, 10) for i in range(20)]
for reader in readers: parked(reader)
threads = []
for i in range(20):
    thread = threading.Thread(target=note, args=(20 + i, one.recv, 10))
    thread.start(); threads.append(thread)
for i in range(40): other.send(b"%d" % i)
until(*readers)
for thread in threads: thread.join()
assert sorted(int(data) for _, data in log) == list(range(40))
""")


def test_a_thousand_connections_at_once() -> None:
    child(
        """
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
listener = socket.create_server(("127.0.0.1", 0), backlog=2000)
def serve(connection):
    with connection:
        while data := connection.recv(100): connection.sendall(data)
def accept():
    while True: tasklet(serve)(listener.accept()[0])
acceptor = tasklet(accept)()
together = []
def client(i):
    with socket.create_connection(listener.getsockname()) as own:
        own.sendall(b"hello"); assert own.recv(100) == b"hello"
        together.append(i)
        while len(together) < 1000: schedule()
        own.sendall(b"%d" % i); log.append(int(own.recv(100)))
clients = [tasklet(client)(i) for i in range(1000)]
until(*clients)
acceptor.kill()
assert sorted(log) == list(range(1000))
"""
    )


def test_connecting_waits_for_room_at_a_unix_listener() -> None:
    child("""
import tempfile
with tempfile.TemporaryDirectory() as folder:
    listener = socket.socket(stock.AF_UNIX)
    listener.bind(folder + "/s"); listener.listen(0)
    first = socket.socket(stock.AF_UNIX); first.connect(folder + "/s")
    late = socket.socket(stock.AF_UNIX)
    late.settimeout(0.01)
    assert str(raised(late.connect, folder + "/s")) == "timed out"
    assert late.connect_ex(folder + "/s") == errno.EAGAIN
    late.settimeout(None)
    task = parked(tasklet(late.connect)(folder + "/s"))
    listener.accept(); until(task)
    listener.accept()
""")


def test_a_socket_that_is_only_forgotten_leaves_its_number_usable() -> None:
    child("""
import warnings
warnings.simplefilter("ignore", ResourceWarning)
for i in range(50):
    one, other = socket.socketpair()
    task = parked(tasklet(note)("read", one.recv, 10))
    other.sendall(b"abc"); until(task)
    assert log.pop() == ("read", b"abc")
    del one, other, task
    gc.collect()
""")


def test_fork_with_a_running_loop() -> None:
    child("""
one, other = socket.socketpair()
reader = parked(tasklet(note)("read", one.recv, 10))
pid = os.fork()
if pid == 0:
    # The copy waits for the same connection, and what is made here works too.
    a, b = socket.socketpair()
    mine = parked(tasklet(note)("mine", a.recv, 10))
    b.sendall(b"child"); until(mine)
    other.sendall(b"abc"); until(reader)
    os._exit(0 if log == [("mine", b"child"), ("read", b"abc")] else 1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
other.sendall(b"def"); until(reader)
assert log == [("read", b"def")], log
""")


def test_out_of_descriptors() -> None:
    child("""
listener = socket.create_server(("127.0.0.1", 0))
client = socket.socket()
acceptor = parked(tasklet(note)("accept", listener.accept))
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (50, hard))
held = []
while not isinstance(got := raised(os.dup, 0), OSError): held.append(got)
client.connect(listener.getsockname()); until(acceptor)
assert log[0][1].errno == errno.EMFILE, log
assert raised(socket.socket).errno == errno.EMFILE
os.close(held.pop())
server, _ = listener.accept()
""")


COME_AND_GO = """
listener = socket.create_server(("127.0.0.1", 0), backlog=100)
serving = []
def serve(connection):
    serving.append(connection)
    with connection:
        try:
            while data := connection.recv(100): connection.sendall(data)
        except ConnectionResetError:
            pass
    serving.remove(connection)
def accept():
    while True: tasklet(serve)(listener.accept()[0])
acceptor = tasklet(accept)()
def client(ways):
    for way in ways:
        own = socket.create_connection(listener.getsockname(), timeout=20)
        own.sendall(b"hello"); assert own.recv(100) == b"hello"
        if way == 1: own.setsockopt(stock.SOL_SOCKET, stock.SO_LINGER, b"\\1\\0\\0\\0\\0\\0\\0\\0")
        if way == 2: own.settimeout(0.0001); raised(own.recv, 1)
        own.close()
def round(count):
    until(*[tasklet(client)([i % 3 for i in range(count // 20)]) for _ in range(20)])
    while serving: schedule()
    gc.collect()
def state():
    with open("/proc/self/statm") as statm: pages = int(statm.read().split()[1])
    alive = sum(type(each) is tasklet for each in gc.get_objects())
    # A sanitizer's allocator keeps freed memory for a while.
    return len(os.listdir("/proc/self/fd")), alive, 0 if SANITIZED else pages
round(COUNT // 10)
before = state()
round(COUNT)
after = state()
assert after[:2] == before[:2], (before, after)
assert after[2] - before[2] < 500, (before, after)
acceptor.kill()
"""


def test_ten_thousand_connections_that_come_and_go_leave_nothing() -> None:
    child(f"COUNT, SANITIZED = 10_000, {SANITIZED}\n{COME_AND_GO}")


@pytest.fixture
def given() -> Iterator[Any]:
    with ours.socket() as made:
        yield made


def test_a_standard_socket_can_be_taken_over() -> None:
    one, other = stock.socketpair()
    with ours.socket(fileno=one.detach()) as mine, other:
        other.sendall(b"abc")
        assert mine.recv(5) == b"abc"


def test_a_subclass_accepts_our_class(given: Any) -> None:
    class Own(ours.socket):  # type: ignore[misc]
        pass

    with Own() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        given.connect(listener.getsockname())
        server, _ = listener.accept()
        with server, listener.dup() as second:
            assert type(server) is ours.socket
            assert type(second) is Own
