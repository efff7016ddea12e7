"""TLS that blocks only the tasklet: both ends in tasklets, or one in a plain thread."""

import errno
import os
import socket as stock_socket
import ssl as stock
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cpythonplus.tasklets import run, schedule, tasklet
from cpythonplus.tasklets.io import socket, ssl
from tests.leaks import MEASURE
from tests.support import SANITIZED, run_child
from tests.tasklets.io.certificates import Certificates, make

SOON = 0.001
MUCH = 3_000_000


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make(tmp_path_factory.mktemp("certificates"))


def server_context(path: Path, module: Any = ssl) -> Any:  # noqa: ANN401
    context = module.SSLContext(stock.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


def client_context(certificates: Certificates, module: Any = ssl) -> Any:  # noqa: ANN401
    return module.create_default_context(cafile=str(certificates.authority))


class Together:
    """Runs functions in tasklets, and raises what one of them raised."""

    def __init__(self, *functions: Callable[[], object]) -> None:
        self.failed: list[BaseException] = []
        for function in functions:
            tasklet(self._guarded)(function)
        run()
        for error in self.failed:
            raise error

    def _guarded(self, function: Callable[[], object]) -> None:
        try:
            function()
        except BaseException as error:  # noqa: BLE001
            self.failed.append(error)


class Ends:
    """Two ends of a connection in clear text, and their contexts."""

    def __init__(self, certificates: Certificates) -> None:
        self.certificates = certificates
        self.server_context = server_context(certificates.localhost)
        self.client_context = client_context(certificates)
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.client = socket.create_connection(server.getsockname())
            self.server, _ = server.accept()

    def wrap(self, **more: Any) -> None:  # noqa: ANN401
        """Do the handshakes, each in a tasklet."""
        Together(self.wrap_server, lambda: self.wrap_client(**more))

    def wrap_server(self) -> None:
        self.server = self.server_context.wrap_socket(self.server, server_side=True)

    def wrap_client(self, host: str = "localhost", **more: Any) -> None:  # noqa: ANN401
        self.client = self.client_context.wrap_socket(self.client, server_hostname=host, **more)

    def close(self) -> None:
        self.client.close()
        self.server.close()


@pytest.fixture
def ends(certificates: Certificates) -> Iterator[Any]:
    made = Ends(certificates)
    yield made
    made.close()


@pytest.fixture
def secure(ends: Any) -> Any:  # noqa: ANN401
    ends.wrap()
    return ends


def receive_all(end: Any, amount: int) -> bytes:  # noqa: ANN401
    parts = []
    while amount > 0:
        parts.append(end.recv(65536))
        amount -= len(parts[-1])
        assert parts[-1]
    return b"".join(parts)


def read_to_the_end(client: Any, call: str) -> list[object]:  # noqa: ANN401
    """Return what two calls give when the other end has gone: a ragged end, once let pass."""
    what: Any = bytearray(1) if call == "recv_into" else 1
    first = getattr(client, call)(what)
    client.suppress_ragged_eofs = False
    try:
        return [first, getattr(client, call)(what)]  # Debian 12's: the end again
    except stock.SSLError as error:
        return [first, type(error)]


def standard_answers(certificates: Certificates, call: str) -> list[object]:
    """Return the same of the standard module, in threads."""
    ends = stock_socket.socketpair()
    made: list[Any] = []
    server = threading.Thread(
        target=lambda: made.append(
            server_context(certificates.localhost, stock).wrap_socket(ends[0], server_side=True)
        )
    )
    server.start()
    with client_context(certificates, stock).wrap_socket(
        ends[1], server_hostname="localhost"
    ) as client:
        server.join()
        with made[0]:
            made[0].shutdown(stock_socket.SHUT_WR)
            return read_to_the_end(client, call)


def reset(end: Any) -> None:  # noqa: ANN401
    """Have the peer see a reset."""
    end.setsockopt(stock_socket.SOL_SOCKET, stock_socket.SO_LINGER, struct.pack("ii", 1, 0))
    stock_socket.socket.close(end)


class TestTalking:
    def test_types(self, secure: Any) -> None:  # noqa: ANN401
        end: object = secure.client
        for kind in (stock.SSLSocket, socket.socket, ssl.SSLSocket):
            assert isinstance(end, kind)
        assert isinstance(secure.client_context, stock.SSLContext)
        assert secure.client.version() == "TLSv1.3"
        assert secure.client.getpeercert()["subject"] == ((("commonName", "localhost"),),)
        assert secure.client.fileno() >= 0

    def test_each_way_to_read_and_write(self, secure: Any) -> None:  # noqa: ANN401
        buffer = bytearray(100)
        got: list[object] = []

        def reader() -> None:
            end = secure.server
            got.append(end.recv(3))
            got.append(end.recv_into(buffer))
            got.append(end.read(5))
            got.append(end.read(2, buffer))
            got.append(end.recv_into(buffer, 1))
            with end.makefile("rb") as file:
                got.append(file.readline())

        def writer() -> None:
            end = secure.client
            for call in (end.send, end.sendall, end.write, end.send, end.sendall):
                call(b"12345"[: {end.write: 5, end.send: 3}.get(call, 4)])
                schedule()
            with end.makefile("wb") as file:
                file.write(b"line\n")

        Together(reader, writer)
        assert got[:3] == [b"123", 4, b"12345"]
        assert got[3] == 2
        assert b"".join(part for part in got[4:] if isinstance(part, bytes)).endswith(b"line\n")

    def test_both_directions_at_once(self, secure: Any) -> None:  # noqa: ANN401
        """Four tasklets, more than any buffer takes."""
        data = os.urandom(MUCH)
        got: dict[str, bytes] = {}
        Together(
            lambda: secure.client.sendall(data),
            lambda: secure.server.sendall(data[::-1]),
            lambda: got.update(server=receive_all(secure.server, MUCH)),
            lambda: got.update(client=receive_all(secure.client, MUCH)),
        )
        assert got == {"server": data, "client": data[::-1]}

    def test_a_file(self, secure: Any) -> None:  # noqa: ANN401
        octets = Path(__file__).read_bytes()
        got: list[bytes] = []
        with open(__file__, "rb") as file:  # noqa: PTH123
            Together(
                lambda: secure.client.sendfile(file),
                lambda: got.append(receive_all(secure.server, len(octets))),
            )
        assert got == [octets]

    @pytest.mark.parametrize("flagged", ["recv", "recv_into", "send", "sendall"])
    def test_no_flags(self, secure: Any, flagged: str) -> None:  # noqa: ANN401
        what: Any = 1 if flagged == "recv" else bytearray(1)
        with pytest.raises(ValueError, match=f"non-zero flags not allowed in calls to {flagged}"):
            getattr(secure.client, flagged)(what, flags=1)

    def test_what_tls_has_not(self, secure: Any) -> None:  # noqa: ANN401
        for name in ("recvmsg", "recvmsg_into", "sendmsg", "dup"):
            with pytest.raises(NotImplementedError):
                getattr(secure.client, name)(*([b""] if name != "dup" else []))

    def test_two_hundred_at_once(self, certificates: Certificates) -> None:
        count = 200
        log: list[bytes] = []
        accepting, client = server_context(certificates.localhost), client_context(certificates)

        def serve(plain: Any) -> None:  # noqa: ANN401
            with accepting.wrap_socket(plain, server_side=True) as end:
                while data := end.recv(100):
                    end.sendall(data)

        def accept() -> None:
            for _ in range(count):
                tasklet(serve)(server.accept()[0])

        def talk(number: int) -> None:
            data = b"%d" % number
            with (
                socket.create_connection(server.getsockname()) as plain,
                client.wrap_socket(plain, server_hostname="localhost") as end,
            ):
                for _ in range(3):
                    end.sendall(data)
                    assert end.recv(100) == data
            log.append(data)

        with socket.create_server(("127.0.0.1", 0), backlog=count) as server:
            Together(accept, *(lambda n=n: talk(n) for n in range(count)))
        assert sorted(log) == sorted(b"%d" % number for number in range(count))

    @pytest.mark.parametrize("ours", ["client", "server"])
    def test_the_other_end_in_a_thread(self, ends: Any, ours: str) -> None:  # noqa: ANN401
        """It is the standard module's there."""
        its_context = (
            client_context(ends.certificates, stock)
            if ours == "server"
            else server_context(ends.certificates.localhost, stock)
        )
        fd = (ends.client if ours == "server" else ends.server).detach()
        log: list[bytes] = []

        def other() -> None:
            plain = stock_socket.socket(fileno=fd)
            hostname = "localhost" if ours == "server" else None
            with its_context.wrap_socket(
                plain, server_side=ours == "client", server_hostname=hostname
            ) as end:
                assert type(end) is stock.SSLSocket
                data = receive_all(end, MUCH)
                end.sendall(data[::-1])
                end.unwrap()

        def own() -> None:
            (ends.wrap_client if ours == "client" else ends.wrap_server)()
            end = getattr(ends, ours)
            end.sendall(bytes(MUCH - 1) + b"x")
            log.append(receive_all(end, MUCH))
            end.unwrap()

        thread = threading.Thread(target=other)
        thread.start()
        Together(own)
        thread.join()
        assert log == [b"x" + bytes(MUCH - 1)]


class TestHandshake:
    def test_listening_socket(self, certificates: Certificates) -> None:
        """It does the handshake where it accepts."""
        log: list[Any] = []
        context = server_context(certificates.localhost)
        with context.wrap_socket(socket.create_server(("127.0.0.1", 0)), server_side=True) as it:

            def accept() -> None:
                end, _ = it.accept()
                with end:
                    log.append(end.version())

            def connect() -> None:
                plain = socket.socket()
                with client_context(certificates).wrap_socket(
                    plain, server_hostname="localhost"
                ) as end:
                    end.connect(it.getsockname())
                    log.append(end.version())

            Together(accept, connect)
        assert log == ["TLSv1.3"] * 2

    def test_later(self, ends: Any) -> None:  # noqa: ANN401
        ends.client.settimeout(0)
        ends.wrap_client(do_handshake_on_connect=False)
        with pytest.raises(ssl.SSLWantReadError):
            ends.client.do_handshake()
        Together(ends.wrap_server, lambda: ends.client.do_handshake(block=True))
        assert ends.client.gettimeout() == 0
        with pytest.raises(ssl.SSLWantReadError):
            ends.client.recv(1)

    def test_not_where_it_may_not_wait(self, ends: Any) -> None:  # noqa: ANN401
        ends.client.settimeout(0)
        with pytest.raises(ValueError, match="do_handshake_on_connect"):
            ends.wrap_client()
        assert ends.server.recv(1) == b""  # closed

    @pytest.mark.parametrize("version", [stock.TLSVersion.TLSv1_2, stock.TLSVersion.TLSv1_3])
    def test_session(self, certificates: Certificates, version: stock.TLSVersion) -> None:
        first, second = Ends(certificates), Ends(certificates)
        second.client_context, second.server_context = first.client_context, first.server_context
        first.client_context.maximum_version = version
        first.wrap()
        Together(lambda: first.server.sendall(b"x"), lambda: first.client.recv(1))
        second.wrap(session=first.client.session)
        assert second.client.session_reused
        first.close()
        second.close()

    def test_sni(self, ends: Any) -> None:  # noqa: ANN401
        """The callback gets our socket, and may give it another context."""
        log: list[object] = []
        other = server_context(ends.certificates.other)

        def choose(end: Any, name: str, context: Any) -> None:  # noqa: ANN401
            log.append((name, type(end), context is ends.server_context))
            end.context = other

        ends.server_context.sni_callback = choose
        Together(ends.wrap_server, lambda: ends.wrap_client("other.test"))
        assert log == [("other.test", ssl.SSLSocket, True)]
        assert ends.client.getpeercert()["subjectAltName"] == (("DNS", "other.test"),)

    def test_client_certificate_afterwards(self, ends: Any) -> None:  # noqa: ANN401
        """The client answers in the middle of its reading."""
        ends.server_context.load_verify_locations(ends.certificates.authority)
        ends.server_context.verify_mode = stock.CERT_REQUIRED
        ends.client_context.load_cert_chain(ends.certificates.other)
        for context in (ends.server_context, ends.client_context):
            context.post_handshake_auth = True
        ends.wrap()
        assert ends.server.getpeercert() is None

        def ask() -> None:
            ends.server.verify_client_post_handshake()
            ends.server.sendall(b"who?")
            assert ends.server.recv(10) == b"me"

        def answer() -> None:
            assert ends.client.recv(10) == b"who?"
            ends.client.sendall(b"me")

        Together(ask, answer)
        assert ends.server.getpeercert()["subjectAltName"] == (("DNS", "other.test"),)

    def test_get_server_certificate(self, certificates: Certificates) -> None:
        log: list[str] = []
        context = server_context(certificates.localhost)
        with context.wrap_socket(socket.create_server(("127.0.0.1", 0)), server_side=True) as it:

            def accept() -> None:
                # The client leaves at once: perhaps before the server's tickets have reached it.
                with it.accept()[0] as end, suppress(OSError):
                    end.recv(1)

            Together(accept, lambda: log.append(ssl.get_server_certificate(it.getsockname()[:2])))
        assert log[0].strip() in certificates.localhost.read_text()


class TestErrors:
    @pytest.mark.parametrize(
        ("shown", "host", "reason"),
        [
            ("localhost", "elsewhere.test", "Hostname mismatch"),
            ("expired", "localhost", "certificate has expired"),
            ("foreign", "localhost", "unable to get local issuer"),
        ],
    )
    def test_bad_certificate(self, ends: Any, shown: str, host: str, reason: str) -> None:  # noqa: ANN401
        ends.server_context = server_context(getattr(ends.certificates, shown))
        seen: list[str] = []

        def serve() -> None:
            with pytest.raises(ssl.SSLError) as caught:  # noqa: PT012  # 1.3: the second
                ends.wrap_server()
                ends.server.recv(1)
            seen.append(caught.value.reason)

        def connect() -> None:
            with pytest.raises(stock.SSLCertVerificationError, match=reason):
                ends.wrap_client(host)

        Together(serve, connect)
        assert "ALERT" in seen[0]

    def test_clear_text(self, ends: Any) -> None:  # noqa: ANN401
        def serve() -> None:
            with pytest.raises(ssl.SSLError, match=r"(?i)http.request"):
                ends.wrap_server()

        Together(serve, lambda: ends.client.sendall(b"GET / HTTP/1.0\r\n\r\n"))

    def test_a_server_of_clear_text(self, ends: Any) -> None:  # noqa: ANN401
        def connect() -> None:
            with pytest.raises(ssl.SSLError, match=r"(?i)wrong.version"):
                ends.wrap_client()

        Together(connect, lambda: ends.server.sendall(b"220 welcome to a server of mail\r\n"))

    def test_reset_in_the_handshake(self, ends: Any) -> None:  # noqa: ANN401
        def connect() -> None:
            with pytest.raises(ConnectionResetError):
                ends.wrap_client()

        Together(connect, lambda: reset(ends.server))

    def test_reset_while_reading(self, secure: Any) -> None:  # noqa: ANN401
        def read() -> None:
            if sys.version_info < (3, 13):  # the standard one takes it for an end
                assert secure.client.recv(1) == b""
            else:
                with pytest.raises(ConnectionResetError):
                    secure.client.recv(1)

        Together(read, lambda: reset(secure.server))

    @pytest.mark.parametrize("call", ["recv", "recv_into", "read"])
    def test_end_without_a_word(self, secure: Any, call: str) -> None:  # noqa: ANN401
        log: list[object] = []
        Together(
            lambda: log.extend(read_to_the_end(secure.client, call)),
            lambda: secure.server.shutdown(stock_socket.SHUT_WR),
        )
        assert log == standard_answers(secure.certificates, call)
        assert log[0] == (0 if call == "recv_into" else b"")

    def test_time_outs(self, ends: Any) -> None:  # noqa: ANN401
        ends.client.settimeout(SOON)
        ends.wrap_client(do_handshake_on_connect=False)
        with pytest.raises(TimeoutError, match="The handshake operation timed out"):
            ends.client.do_handshake()
        ends.client.settimeout(None)
        Together(ends.wrap_server, ends.client.do_handshake)
        ends.client.settimeout(SOON)
        with pytest.raises(TimeoutError, match="The read operation timed out"):
            ends.client.recv(1)
        with pytest.raises(TimeoutError, match="The write operation timed out"):
            ends.client.sendall(bytes(10 * MUCH))

    def test_a_time_out_of_somebody_else(self, secure: Any) -> None:  # noqa: ANN401
        secure.client.settimeout(1000)
        task = tasklet(secure.client.recv)(1)
        task.run()
        with pytest.raises(TimeoutError, match="mine"):
            task.throw(TimeoutError("mine"))

    def test_unwrapped(self, secure: Any) -> None:  # noqa: ANN401
        """In clear text afterwards."""
        Together(secure.client.unwrap, secure.server.unwrap)
        for call in (secure.client.unwrap, secure.client.read, lambda: secure.client.write(b"x")):
            with pytest.raises(ValueError, match="SSL"):
                call()
        Together(lambda: secure.client.sendall(b"clear"), lambda: secure.server.recv(5))

    def test_half_closed(self, secure: Any) -> None:  # noqa: ANN401
        """One that has said its last word still hears the other."""
        secure.client.settimeout(0)
        with pytest.raises(ssl.SSLWantReadError):
            secure.client.unwrap()
        secure.client.settimeout(None)
        log: list[bytes] = []

        def serve() -> None:
            log.append(secure.server.recv(1))
            secure.server.sendall(b"and yet")

        Together(serve, lambda: log.append(secure.client.recv(10)))
        assert log == [b"", b"and yet"]

    def test_arguments_that_do_not_go_together(self, ends: Any) -> None:  # noqa: ANN401
        with pytest.raises(ValueError, match="check_hostname requires server_hostname"):
            ends.client_context.wrap_socket(ends.client)
        with (
            stock_socket.socket(type=stock_socket.SOCK_DGRAM) as datagram,
            pytest.raises(NotImplementedError),
        ):
            ends.client_context.wrap_socket(datagram, server_hostname="localhost")
        with pytest.raises(TypeError, match="public"):
            ssl.SSLSocket()


class TestEnds:
    @pytest.mark.parametrize("during", ["handshake", "recv", "sendall"])
    @pytest.mark.parametrize("how", ["closed", "killed"])
    def test_of_one_that_waits(self, ends: Any, during: str, how: str) -> None:  # noqa: ANN401
        """It gets to know, and nothing stays."""
        log: list[object] = []
        if during == "handshake":
            ends.wrap_client(do_handshake_on_connect=False)
            call = ends.client.do_handshake
        else:
            ends.wrap()
            call = ends.client.recv if during == "recv" else ends.client.sendall
        args: tuple[Any, ...] = {"handshake": (), "recv": (1,), "sendall": (bytes(MUCH * 3),)}[
            during
        ]

        def body() -> None:
            try:
                call(*args)
            except OSError as error:
                log.append(error.errno)
                raise
            finally:
                log.append("end")

        def guarded() -> None:
            with suppress(OSError):
                body()

        task = tasklet(guarded)()
        while not task.blocked:
            schedule()
        if how == "closed":
            ends.client.close()
        else:
            task.kill()
        run()  # would wait for ever
        assert log == [errno.EBADF, "end"] if how == "closed" else ["end"]
        ends.client.close()
        # The number means another file now, which is waited for anew.
        other = Ends(ends.certificates)
        other.wrap()
        Together(lambda: other.client.sendall(b"x"), lambda: other.server.recv(1))
        other.close()


PROGRAM = """
import http.client, socket, ssl, sys, threading, urllib.request

authority, localhost = sys.argv[1:]
stock = {"class": ssl.SSLSocket, "create": ssl.SSLSocket.__dict__["_create"]}  # no globals

class Early(ssl.SSLSocket):
    pass

before = ssl.create_default_context(cafile=authority)

from cpythonplus import tasklets
from cpythonplus.tasklets import io
io.patch()
after = ssl.create_default_context(cafile=authority)
assert ssl.SSLSocket is not stock["class"] and issubclass(ssl.SSLSocket, stock["class"])

import http.server

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = self.path.encode() * 1000
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass

class Server(http.server.HTTPServer):
    request_queue_size = 100

    def process_request(self, request, address):
        tasklets.tasklet(self.in_tasklet)(request, address)

    def in_tasklet(self, request, address):
        try:
            request.do_handshake()
            self.finish_request(request, address)
        finally:
            self.shutdown_request(request)

server = Server(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(localhost)
server.socket = context.wrap_socket(
    server.socket, server_side=True, do_handshake_on_connect=False
)
tasklets.tasklet(server.serve_forever)(0.01)
done = []

def fetch(number):
    context = (before, after)[number % 2]
    url = f"https://localhost:{server.server_port}/{number}"
    with urllib.request.urlopen(url, context=context) as response:
        assert response.read() == f"/{number}".encode() * 1000
    connection = http.client.HTTPSConnection("localhost", server.server_port, context=context)
    for _ in range(2):
        connection.request("GET", "/x")
        assert connection.getresponse().read() == b"/x" * 1000
        assert type(connection.sock) is ssl.SSLSocket
    connection.close()
    done.append(number)
    if len(done) == 20:
        server._BaseServer__shutdown_request = True

for number in range(20):
    tasklets.tasklet(fetch)(number)
tasklets.run()
server.server_close()
assert sorted(done) == list(range(20))

# Who has made a class of the standard one before goes on as it was.
early = ssl.create_default_context(cafile=authority)
early.sslsocket_class = Early
left, right = socket.socketpair()
end = early.wrap_socket(left, server_hostname="localhost", do_handshake_on_connect=False)
assert type(end) is Early
end.close(), right.close()

io.unpatch()
assert ssl.SSLSocket is stock["class"] is ssl.SSLContext.sslsocket_class
assert ssl.SSLSocket.__dict__["_create"] is stock["create"]
"""


def test_programs_of_the_standard_library(certificates: Certificates) -> None:
    """http.client, urllib and http.server as they are, with contexts from before and after."""
    run_child(PROGRAM, args=[str(certificates.authority), str(certificates.localhost)])


def test_the_other_names_are_the_standard_ones() -> None:
    assert ssl.MemoryBIO is stock.MemoryBIO
    assert ssl.SSLObject is stock.SSLObject
    assert ssl.CERT_REQUIRED is stock.CERT_REQUIRED
    assert ssl.create_default_context().sslsocket_class is ssl.SSLSocket
    assert stock.create_default_context().sslsocket_class is stock.SSLSocket


CALLS = {
    "handshake and words": "talk()",
    "wrong host": "refused(ssl.SSLError, talk, host='elsewhere.test')",
    "time-out": "refused(TimeoutError, talk, timeout=1e-9)",
    "closed while it waits": "talk(end=closing)",
    "killed while it waits": "talk(end=killing)",
    "want read": "talk(end=wanting)",
    "contexts": "ssl.create_default_context(); ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)",
    "switch": "ssl.switch(on=True); ssl.switch(on=False)",
}

LEAKS = """
import os
from cpythonplus.tasklets import run, tasklet
from cpythonplus.tasklets.io import socket, ssl

authority, localhost = sys.argv[1:]
accepting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
accepting.load_cert_chain(localhost)
connecting = ssl.create_default_context(cafile=authority)


def refused(kind, call, *arguments, **more):
    try:
        call(*arguments, **more)
    except kind:
        return
    raise AssertionError(kind)


def quietly(call, *arguments):
    try:
        call(*arguments)
    except OSError:
        pass


def closing(client, server):
    tasklet(quietly)(client.recv, 1).run()


def killing(client, server):
    task = tasklet(client.recv)(1)
    task.run()
    task.kill()


def wanting(client, server):
    client.settimeout(0)
    refused(ssl.SSLWantReadError, client.recv, 1)


def talk(host="localhost", timeout=None, end=None):
    left, right = socket.socketpair()
    made = []

    def serve():
        with accepting.wrap_socket(right, server_side=True) as server:
            made.append(server)
            server.sendall(server.recv(10))
            server.recv(10)

    def connect():
        try:
            left.settimeout(timeout)
            with connecting.wrap_socket(left, server_hostname=host) as client:
                client.sendall(b"x")
                assert client.recv(10) == b"x"
                if end is not None:
                    end(client, made[0])
        except Exception as error:
            made.append(error)

    tasklet(quietly)(serve)
    tasklet(connect)()
    run()
    left.close(), right.close()
    try:
        if isinstance(made[-1], Exception):
            raise made[-1]
    finally:
        made.clear()


fds = None
for name, line in CALLS.items():
    leak = leaks(line, {**globals()}, 10, spare_bytes=8192)
    if leak:
        print(name, leak)
    fds = fds or len(os.listdir("/proc/self/fd"))
    assert fds == len(os.listdir("/proc/self/fd")), name
"""


@pytest.mark.skipif(SANITIZED, reason="the sanitizer's allocator does not count like this")
def test_no_leak(certificates: Certificates) -> None:
    child = run_child(
        f"CALLS = {CALLS}\n{MEASURE}\n{LEAKS}",
        args=[str(certificates.authority), str(certificates.localhost)],
    )
    assert child.out == ""
