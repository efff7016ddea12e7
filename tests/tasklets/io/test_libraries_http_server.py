"""http.server, socketserver, wsgiref, as they are: each connection in a tasklet, or a thread."""

import pytest

from tests.support import Child
from tests.tasklets.io.http_sites import SITE
from tests.tasklets.io.libraries import run_patched


def run_with_site(code: str) -> Child:
    return run_patched(SITE + "\nimport http.client\n" + code)


@pytest.mark.slow
def test_a_thousand_connections_that_say_nothing() -> None:
    """They hold nobody up, and end by the time-out of their handler or when they are closed."""
    run_with_site("""
COUNT = 1_000

SILENT = ("127.0.0.2", 0)

class Impatient(Handler):
    def setup(self):
        self.timeout = 0.2 if self.client_address[0] == SILENT[0] else None
        super().setup()

site, url = serving(handler=Impatient)
silent = [socket.create_connection(site.server_address, 60, SILENT) for _ in range(COUNT)]
for each in silent[::2]:
    each.close()

def work(number):
    connection = http.client.HTTPConnection(*site.server_address)
    connection.request("GET", f"/echo/{number}")
    body = connection.getresponse().read().decode()
    connection.close()
    return body

assert Together(work, 20).answers() == list(map(str, range(20)))
wait_until(lambda: site.connections == COUNT + 20 and site.now == 0)
for each in silent[1::2]:
    assert each.recv(1) == b""  # the server has closed it
    each.close()
assert not hasattr(site, "errors"), site.errors
over(site)
print("fine")
""")


def test_an_exception_ends_one_connection() -> None:
    run_with_site("""
class Odd(Handler):
    def odd(self, rest):
        raise LookupError(rest)

site, url = serving(handler=Odd)

def work(number):
    connection = http.client.HTTPConnection(*site.server_address)
    try:
        connection.request("GET", f"/{'odd' if number % 2 else 'echo'}/{number}")
        return connection.getresponse().read().decode()
    except http.client.RemoteDisconnected:
        return "gone"
    finally:
        connection.close()

expected = ["gone" if n % 2 else str(n) for n in range(40)]
assert Together(work, 40).answers() == expected
assert site.errors == ["LookupError"] * 20
over(site)
print("fine")
""")


def test_who_closes_its_half_is_answered() -> None:
    run_with_site("""
site, url = serving()

def work(number):
    with socket.create_connection(site.server_address) as client:
        client.sendall(b"GET /echo/%d HTTP/1.0\\r\\n\\r\\n" % number)
        client.shutdown(socket.SHUT_WR)
        return client.makefile("rb").read().rpartition(b"\\r\\n")[2].decode()

assert Together(work, 50).answers() == list(map(str, range(50)))
over(site)
print("fine")
""")


def test_the_ready_made_server_has_threads() -> None:
    """Nothing but patched: threads stay threads, and its clients' tasklets go on."""
    run_with_site("""
from http.server import ThreadingHTTPServer
COUNT = Handler.crowd = 20
ThreadingHTTPServer.request_queue_size = COUNT  # in its queue of 5 some wait for seconds
names = set()

class InThreads(Handler):
    def together(self, rest):
        names.add(threading.current_thread().name)
        with guard:
            Handler.waiting += 1
            if Handler.waiting == Handler.crowd:
                Handler.everybody.set()
        Handler.everybody.wait()
        self.answer(rest.encode())

guard = threading.Lock()
site = ThreadingHTTPServer(("127.0.0.1", 0), InThreads)
thread = threading.Thread(target=site.serve_forever, args=(0.01,), daemon=True)
thread.start()

def work(number):
    connection = http.client.HTTPConnection(*site.server_address)
    connection.request("GET", f"/together/{number}")
    body = connection.getresponse().read().decode()
    connection.close()
    return body

# Nobody is answered before all have asked: none of them kept the others from it.
assert Together(work, COUNT).answers() == list(map(str, range(COUNT)))
assert len(names) == COUNT
site.shutdown()
thread.join()
site.server_close()
print("fine")
""")


def test_socketserver_over_all_that_it_knows() -> None:
    run_with_site("""
import socketserver, tempfile

class Stream(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(line.upper())

class Datagram(socketserver.DatagramRequestHandler):
    def handle(self):
        self.wfile.write(self.rfile.read().upper())

class Tcp(InTasklets, socketserver.TCPServer): pass
class Unix(InTasklets, socketserver.UnixStreamServer): pass
class Udp(InTasklets, socketserver.UDPServer): pass

folder = tempfile.TemporaryDirectory()
sites = [
    Tcp(("127.0.0.1", 0), Stream),
    Unix(f"{folder.name}/socket", Stream),
    Udp(("127.0.0.1", 0), Datagram),
]
for site in sites:
    tasklet(site.serve_forever)(0.01)

def work(number):
    site = sites[number % 3]
    with socket.socket(site.address_family, site.socket_type) as client:
        client.settimeout(60)
        client.connect(site.server_address)
        client.sendall(b"line %d\\n" % number)
        return client.recv(100).decode()

assert Together(work, 60).answers() == [f"LINE {n}\\n" for n in range(60)]
for site in sites:
    site.shutdown()
    site.server_close()
folder.cleanup()
print("fine")
""")


def test_wsgiref() -> None:
    run_with_site("""
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
COUNT = 50
waiting, everybody = 0, threading.Event()

def application(environ, start_response):
    global waiting
    waiting += 1
    if waiting == COUNT:
        everybody.set()
    everybody.wait()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [environ["PATH_INFO"].encode(), b"?", environ["QUERY_STRING"].encode()]

class Quiet(WSGIRequestHandler):
    def log_message(self, *args):
        pass

class Site(InTasklets, WSGIServer): pass

site = Site(("127.0.0.1", 0), Quiet)
site.set_app(application)
tasklet(site.serve_forever)(0.01)

def work(number):
    connection = http.client.HTTPConnection(*site.server_address)
    connection.request("GET", f"/{number}?a=b")
    body = connection.getresponse().read().decode()
    connection.close()
    return body

assert Together(work, COUNT).answers() == [f"/{n}?a=b" for n in range(COUNT)]
over(site)
print("fine")
""")


def test_nothing_is_left_of_a_server() -> None:
    run_with_site("""
def work(number):
    connection = http.client.HTTPConnection(*site.server_address)
    for _ in range(2):
        connection.request("GET", f"/echo/{number}")
        assert connection.getresponse().read() == str(number).encode()
    connection.close()

counts = []
for repeat in range(4):
    site, url = serving()
    Together(work, 50)
    wait_until(lambda: site.now == 0)
    over(site)
    del site
    gc.collect()
    alive = sum(isinstance(each, tasklet) and each.alive for each in gc.get_objects())
    counts.append((descriptors(), alive))
assert counts[3] <= counts[1], counts
print("fine")
""")
