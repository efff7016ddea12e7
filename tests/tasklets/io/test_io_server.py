"""StreamServer: a tasklet for each connection, and what ends them."""

import math
import socket
from collections.abc import Callable
from typing import Any

import pytest

from tests.support import run_child

server: Any = pytest.importorskip("cpythonplus.tasklets.io._server", exc_type=ImportError)

PRELUDE = """
import errno, os, resource, socket as stock, sys, tempfile, threading
from cpythonplus.tasklets import channel, run, schedule, tasklet
from cpythonplus.tasklets.io import socket
from cpythonplus.tasklets.io._server import StreamServer

LOCAL = ("127.0.0.1", 0)

def echo(connection, address):
    while data := connection.recv(100):
        connection.sendall(data)

def ask(address, data=b"hello"):
    family = stock.AF_UNIX if isinstance(address, str) else stock.AF_INET
    if family == stock.AF_INET and ":" in address[0]: family = stock.AF_INET6
    with socket.socket(family) as own:
        own.settimeout(20)
        own.connect(address)
        own.sendall(data)
        return own.recv(100)

def until(condition):
    while not condition():
        schedule()
"""


def child(code: str) -> str:
    return run_child(PRELUDE + code, timeout=40).out


def test_a_server_needs_no_collector() -> None:
    child("""
import gc, weakref
gc.disable()
one = StreamServer(LOCAL, echo)
gone = weakref.ref(one)
one.stop(None)
del one
assert gone() is None
""")


def test_each_connection_has_a_tasklet() -> None:
    child("""
one = StreamServer(LOCAL, echo)
one.start(); one.start()
clients = [socket.create_connection(one.address) for _ in range(50)]
for i, client in enumerate(clients): client.sendall(b"%d" % i)
assert [int(client.recv(10)) for client in clients] == list(range(50))
assert one.connections == 50
for client in clients: client.close()
one.stop(None)
assert one.connections == 0
try:
    socket.create_connection
    one.start()
except RuntimeError as error:
    assert str(error) == "the server has been stopped"
else:
    raise AssertionError
run()
""")


def test_an_acceptor_that_runs_inside_of_close_reports_nothing() -> None:
    """The collector may switch tasklets before close() has given up the descriptor."""
    child("""
from cpythonplus import _native
from cpythonplus.tasklets import schedule
def forget(fd):
    _native.io_forget(fd)
    schedule()
errors = []
one = StreamServer(LOCAL, print, on_error=lambda *error: errors.append(error))
one.start()
schedule()
one._listener._real_close(forget)
run()
assert errors == []
""")


@pytest.mark.parametrize("who", ["tasklet", "thread", "handler"])
def test_serve_forever_returns_after_stop(who: str) -> None:
    child(f"""
def handle(connection, address):
    connection.sendall(connection.recv(10))
    if {who!r} == "handler":
        one.stop(0)
one = StreamServer(LOCAL, handle)
address = one.address
def client():
    assert ask(address) == b"hello"
    if {who!r} != "handler":
        one.stop(0)
if {who!r} == "thread":
    threading.Thread(target=client).start()
else:
    tasklet(client)()
one.serve_forever()
run()
""")


def test_listeners_of_all_kinds() -> None:
    child("""
with tempfile.TemporaryDirectory() as folder:
    path = folder + "/s"
    plain = stock.create_server(LOCAL)
    impatient = socket.create_server(LOCAL)
    impatient.setblocking(False)
    kinds = [LOCAL, path, plain, socket.create_server(LOCAL), impatient]
    try:
        stock.create_server(("::1", 0), family=stock.AF_INET6).close()
        kinds.append(("::1", 0))
    except OSError:
        pass  # a machine without
    for kind in kinds:
        one = StreamServer(kind, echo)
        one.start()
        assert ask(one.address) == b"hello"
        one.stop(None)
    assert plain.fileno() == -1
""")


def test_what_a_handler_raises_ends_its_own_connection_only() -> None:
    child("""
told = []
def handle(connection, address):
    data = connection.recv(100)
    if data == b"bad": raise KeyError("why")
    if data == b"exit": sys.exit("why")
    connection.sendall(data)
one = StreamServer(LOCAL, handle, on_error=lambda *args: told.append(args))
one.start()
assert ask(one.address, b"bad") == b""
assert ask(one.address, b"exit") == b""
assert ask(one.address, b"good") == b"good"
assert [type(error) for error, _ in told] == [KeyError, SystemExit]
assert all(address[0] == "127.0.0.1" for _, address in told)
one.stop(None)
""")


def test_by_default_it_is_logged_with_its_traceback() -> None:
    child("""
import io, logging
text = io.StringIO()
logging.basicConfig(stream=text)
unraisable = []
sys.unraisablehook = unraisable.append
def handle(connection, address):
    connection.recv(100)
    raise KeyError("why")
one = StreamServer(LOCAL, handle)
one.start()
assert ask(one.address) == b""
one.stop(None)
assert text.getvalue().startswith("ERROR:cpythonplus.tasklets.io:<function handle at")
assert text.getvalue().rstrip().endswith("KeyError: 'why'")
def fails(error, address):
    raise error
one = StreamServer(LOCAL, handle, on_error=fails)
one.start()
assert ask(one.address) == b""
one.stop(None)
assert [(type(each.exc_value), each.object) for each in unraisable] == [(KeyError, fails)]
""")


def test_one_that_is_closed_lets_its_connections_go_on() -> None:
    child("""
one = StreamServer(LOCAL, echo)
one.start()
address = one.address
with socket.create_connection(address) as client:
    client.sendall(b"a")
    assert client.recv(1) == b"a"
    one.close()
    try:
        socket.create_connection(address)
        raise SystemExit("accepted")
    except ConnectionRefusedError:
        pass
    client.sendall(b"b")
    assert client.recv(1) == b"b"
until(lambda: one.connections == 0)
one.stop()
""")


def test_no_more_connections_than_the_limit() -> None:
    child("""
most = 0
def handle(connection, address):
    global most
    most = max(most, one.connections)
    echo(connection, address)
one = StreamServer(LOCAL, handle, limit=3)
one.start()
answers = []
for i in range(20): tasklet(lambda: answers.append(ask(one.address)))()
until(lambda: len(answers) == 20)
assert most == 3
held = [socket.create_connection(one.address) for _ in range(5)]
until(lambda: one.connections == 3)
one.stop(0)  # also while the listener waits for room
assert one.connections == 0
run()
""")


def test_stop_waits_and_then_kills() -> None:
    child("""
ended = []
def handle(connection, address):
    try:
        echo(connection, address)
    finally:
        ended.append(1)
for timeout in (None, 20.0):
    one = StreamServer(LOCAL, handle)
    one.start()
    client = socket.create_connection(one.address)
    until(lambda: one.connections == 1)
    tasklet(client.close)()
    one.stop(timeout)
    assert (one.connections, len(ended)) == (0, 1)
    ended.clear()
one = StreamServer(LOCAL, handle)
one.start()
client = socket.create_connection(one.address)
until(lambda: one.connections == 1)
one.stop(0.001)
assert (one.connections, len(ended), client.recv(1)) == (0, 1, b"")
""")


def test_a_server_without_descriptors_waits_for_some() -> None:
    child("""
told = []
tell = lambda error, address: told.append(error.errno if address is None else error)
one = StreamServer(LOCAL, echo, on_error=tell)
one.start()
assert ask(one.address) == b"hello"
client = socket.socket()
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (60, hard))
held = []
try:
    while True: held.append(os.dup(0))
except OSError:
    pass
client.connect(one.address)
client.sendall(b"late")
until(lambda: told)
assert told == [errno.EMFILE]
for fd in held: os.close(fd)
assert client.recv(10) == b"late"
client.close()
one.stop(None)
""")


def test_a_listener_that_somebody_shuts_down_stops_nobody_else() -> None:
    child("""
told = []
tell = lambda error, address: told.append(error.errno if address is None else error)
listener = socket.create_server(LOCAL)
one = StreamServer(listener, echo, on_error=tell)
one.start()
assert ask(one.address) == b"hello"
listener.shutdown(stock.SHUT_RDWR)
until(lambda: told)
assert told == [errno.EINVAL]
one.stop(None)
run()
""")


def _not_listening(kind: socket.SocketKind) -> None:
    with socket.socket(type=kind) as plain:
        server.StreamServer(plain, print)


@pytest.mark.parametrize("free", [1, 2, 5])
def test_a_server_begins_without_descriptors_for_the_event_loop(free: int) -> None:
    child(f"""
from cpythonplus.tasklets.io import _hub as hub, sleep
told = []
tell = lambda error, address: told.append(error.errno if address is None else error)
one = StreamServer(LOCAL, echo, on_error=tell)
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (60, hard))
held = []
try:
    while True: held.append(os.dup(0))
except OSError:
    pass
for _ in range({free}): os.close(held.pop())
one.start()
until(lambda: told)
assert set(told) == {{errno.EMFILE}}, told
for fd in held: os.close(fd)
assert ask(one.address) == b"hello"
one.stop(None)
""")


def test_stop_ends_also_those_that_have_not_begun() -> None:
    child("""
handled, stopped = [], threading.Event()
def handle(connection, address):
    handled.append(connection)
    if len(handled) == 1:
        thread.start()
        stopped.wait()  # the whole thread: the next two do not begin
one = StreamServer(LOCAL, handle)
def stop():
    one.stop(0)
    stopped.set()
thread = threading.Thread(target=stop)
clients = [socket.create_connection(one.address) for _ in range(3)]
one.start()
run()
thread.join()
assert (len(handled), one.connections) == (1, 0), (handled, one.connections)
one.stop(None)
""")


def test_a_listener_that_listens_no_more_ends_the_server() -> None:
    child("""
told = []
tell = lambda error, address: told.append(error.errno if address is None else error)
listener = stock.create_server(LOCAL)
one = StreamServer(listener, echo, on_error=tell)
one.start()
schedule()
with stock.socket(fileno=os.dup(one._listener.fileno())) as same:
    same.shutdown(stock.SHUT_RDWR)
one.serve_forever()
assert told == [errno.EINVAL], told
one.stop()
""")


def test_a_listener_of_the_callers_own_time_out() -> None:
    child("""
for timeout in (0.0, 0.001):
    for module in (stock, socket):
        listener = module.create_server(LOCAL)
        listener.settimeout(timeout)
        one = StreamServer(listener, echo)
        one.start()
        schedule()
        assert ask(one.address) == b"hello"
        one.stop(None)
""")


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: server.StreamServer(("127.0.0.1", 0), 5), TypeError),
        (lambda: server.StreamServer(("127.0.0.1", 0), print, limit=0), ValueError),
        (lambda: server.StreamServer(("127.0.0.1", 0), print, limit="1"), TypeError),
        (lambda: server.StreamServer(("127.0.0.1", 0), print, ssl_context=True), TypeError),
        (lambda: server.StreamServer(("127.0.0.1", "http"), print), TypeError),
        (lambda: server.StreamServer(("127.0.0.1",), print), TypeError),
        (lambda: server.StreamServer(8080, print), TypeError),
        (lambda: _not_listening(socket.SOCK_STREAM), ValueError),
        (lambda: _not_listening(socket.SOCK_DGRAM), ValueError),
        (lambda: server.StreamServer(("127.0.0.1", 0), print, limit=1.5), TypeError),
        (lambda: server.StreamServer(("127.0.0.1", 0), print, limit=math.nan), TypeError),
        (lambda: server.StreamServer(None, print), TypeError),
        (lambda: server.StreamServer((), print), TypeError),
        (lambda: server.StreamServer((None, 0), print), TypeError),
        (lambda: server.StreamServer(("192.0.2.1", 0), print), OSError),
        (lambda: server.StreamServer("/no/such/folder/s", print), OSError),
    ],
)
def test_refused(make: Callable[[], object], error: type[Exception]) -> None:
    with pytest.raises(error):
        make()


def test_a_socket_that_does_not_listen_is_refused() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(ValueError, match="does not listen"):
            server.StreamServer(bound, print)
    with pytest.raises(ValueError, match="closed"):
        server.StreamServer(bound, print)
