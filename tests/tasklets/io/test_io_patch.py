"""patch(): the standard modules use what blocks only the tasklet, and go back."""

import pytest

from tests.support import run_child

pytest.importorskip("cpythonplus.tasklets.io._patching", exc_type=ImportError)

PRELUDE = """
import socket, sys
stock_class, stock_look_up = socket.socket, socket.getaddrinfo
from socket import create_connection, gethostbyname, socket as taken
stock_name = gethostbyname
from cpythonplus import tasklets
from cpythonplus.tasklets import io, run, schedule, tasklet
from cpythonplus.tasklets.io import names, socket as ours
ONLY = dict.fromkeys(("socket", "dns", "ssl", "select", "time", "subprocess"), False)
"""


def child(code: str) -> None:
    run_child(PRELUDE + code, timeout=40)


def test_patch_reaches_loaded_and_later_modules_and_unpatch_undoes_it() -> None:
    child("""
assert io.patched() == frozenset()
io.patch(**{**ONLY, "socket": True})
assert io.patched() == {"socket"}
assert socket.socket is taken is ours.socket
assert socket.getaddrinfo is stock_look_up
import http.client, socketserver
with socket.create_server(("127.0.0.1", 0)) as listener:
    assert type(listener) is ours.socket
    with create_connection(listener.getsockname()) as client:
        assert type(client) is ours.socket
assert isinstance(socket.socketpair()[0], stock_class)
io.patch(**{**ONLY, "dns": True})
assert io.patched() == {"socket", "dns"}
assert socket.getaddrinfo is names.getaddrinfo
assert gethostbyname is names.gethostbyname
io.unpatch()
assert io.patched() == frozenset()
assert socket.socket is taken is stock_class
assert socket.getaddrinfo is stock_look_up and gethostbyname is stock_name
io.unpatch()
io.patch(**ONLY)
assert io.patched() == frozenset()
assert socket.socket is stock_class
""")


def test_an_unmodified_server_and_client_block_only_their_tasklets() -> None:
    child("""
io.patch(**{**ONLY, "socket": True, "dns": True})
import http.client, http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = self.path.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
def serve(connection, address):
    with connection:
        Handler(connection, address, None)
def accept():
    while True:
        tasklet(serve)(*listener.accept())
acceptor = tasklet(accept)()
answers = []
def client(i):
    with socket.create_connection(("localhost", port)) as _:
        pass
    connection = http.client.HTTPConnection("localhost", port, timeout=20)
    connection.request("GET", f"/{i}")
    answers.append(connection.getresponse().read())
    connection.close()
clients = [tasklet(client)(i) for i in range(30)]
while any(each.alive for each in clients):
    schedule()
acceptor.kill()
assert sorted(answers) == sorted(b"/%d" % i for i in range(30))
""")


def test_threads_that_patch_and_unpatch_at_once() -> None:
    child("""
import os, select, ssl, threading, time
def now():
    return (socket.socket, socket.getaddrinfo, select.poll, time.sleep, ssl.SSLSocket,
            ssl.SSLContext.sslsocket_class, os.environ.get("PSYCOPG_WAIT_FUNC"))
before = now()
errors = []
def both():
    try:
        for _ in range(100):
            io.patch()
            io.unpatch()
    except BaseException as error:
        errors.append(error)
sys.setswitchinterval(1e-5)
threads = [threading.Thread(target=both) for _ in range(4)]
for each in threads: each.start()
for each in threads: each.join()
assert errors == [], errors
assert now() == before, now()
assert io.patched() == frozenset()
""")


def test_wrong_arguments() -> None:
    child("""
for call in (lambda: io.patch(1), lambda: io.patch(no_such_area=True)):
    try:
        call()
    except TypeError:
        pass
    else:
        raise AssertionError
assert not io.patched()
try:
    io.no_such_name
except AttributeError as error:
    assert "no_such_name" in str(error)
for name in (*io.__all__, "socket"):
    assert hasattr(io, name), name
""")


def test_a_coroutine_that_waits_as_a_tasklet_does_is_in_its_own_loop() -> None:
    run_child(
        """
        import asyncio, subprocess, threading, time
        from socket import socketpair
        from cpythonplus.tasklets import io, locks

        locks.patch(threads=True)
        io.patch()
        lock, log = threading.Lock(), []

        def receive():
            here, there = socketpair()
            with here, there:
                here.settimeout(0.005)
                try:
                    here.recv(1)
                except TimeoutError:
                    pass

        def hold():
            with lock:
                time.sleep(0.002)

        async def body():
            loop = asyncio.get_running_loop()
            for wait in (lambda: time.sleep(0.005), lambda: time.sleep(0), receive, hold,
                         lambda: subprocess.run(["true"])):
                wait()
                assert asyncio.get_running_loop() is loop
                assert asyncio.current_task() is not None
            await asyncio.to_thread(time.sleep, 0.005)
            log.append(asyncio.get_running_loop() is loop)

        threads = [threading.Thread(target=asyncio.run, args=(body(),)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert log == [True] * 3
        """,
        timeout=60,
    )


def test_a_signal_s_handler_may_wait_while_all_of_the_thread_does() -> None:
    run_child(
        """
        import signal, threading, time
        from socket import socketpair
        from cpythonplus.tasklets import io, locks, schedule

        locks.patch()
        io.patch()
        here, there = socketpair()
        here.settimeout(0.01)
        log = []

        def receive():
            try:
                here.recv(1)
            except TimeoutError:
                pass

        def refused():
            try:
                schedule()
            except RuntimeError as error:
                log.append(str(error))

        def join():
            thread = threading.Thread(target=time.sleep, args=(0.01,))
            thread.start()
            thread.join()

        waits = [lambda: time.sleep(0.01), receive, join, lambda: there.sendall(b"x"),
                 lambda: log.append(here.recv(1)), lambda: threading.Event().wait(0.01)]

        def handler(*_):
            refused()
            if told not in log:  # the signal came before the wait: the next one may be late enough
                signal.setitimer(signal.ITIMER_REAL, 0.01)
                return
            waits[turn]()
            log.append(True)  # it came back
            came.set()

        told = "a signal handler cannot switch tasklets while its whole thread waits"
        signal.signal(signal.SIGALRM, handler)
        for turn in range(len(waits)):
            log = [each for each in log if each != told]
            came = threading.Event()
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            came.wait()
        assert log.count(True) == len(waits), log
        assert b"x" in log
        """,
        timeout=60,
    )
