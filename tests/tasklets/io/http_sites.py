"""A site that counts: the standard library's server, each of its connections a tasklet."""

SITE = '''
import json, socket, struct, threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import ThreadingMixIn

for name in [*os.environ]:  # what would lead requests somewhere else
    if name.lower().endswith(("_proxy", "_ca_bundle")):
        del os.environ[name]

class InTasklets(ThreadingMixIn):
    request_queue_size = 1024

    connections = now = 0  # all that there were, and those that there are

    def process_request(self, request, address):
        self.connections += 1
        self.now += 1
        tasklet(self.process_request_thread)(request, address)

    def process_request_thread(self, request, address):
        try:
            super().process_request_thread(request, address)
        finally:
            self.now -= 1


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one segment for each answer
    waiting = most_waiting = 0
    crowd = 1  # how many have to come before /together answers
    everybody = threading.Event()

    def log_message(self, *args):
        pass

    def answer(self, body, status=200):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        kind, _, rest = self.path[1:].partition("/")
        getattr(self, kind)(rest)

    def do_POST(self):
        self.answer(self.rfile.read(int(self.headers["Content-Length"])))

    def echo(self, rest):
        self.answer(rest.encode())

    def together(self, rest):
        """Nobody is answered before everybody has come."""
        Handler.waiting += 1
        Handler.most_waiting = max(Handler.most_waiting, Handler.waiting)
        if Handler.waiting == Handler.crowd:
            Handler.everybody.set()
        Handler.everybody.wait()
        Handler.waiting -= 1
        self.answer(rest.encode())

    def slowly(self, rest):
        """The most that come at once are counted."""
        Handler.waiting += 1
        Handler.most_waiting = max(Handler.most_waiting, Handler.waiting)
        time.sleep(0.001)
        Handler.waiting -= 1
        self.answer(rest.encode())

    def parts(self, rest):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in rest.split("-"):
            self.wfile.write(b"%x\\r\\n%s\\r\\n" % (len(part), part.encode()))
            self.wfile.flush()
            time.sleep(0)
        self.wfile.write(b"0\\r\\n\\r\\n")

    def never(self, rest):
        Handler.waiting += 1
        self.connection.recv(1)  # until the client goes
        Handler.waiting -= 1
        self.close_connection = True

    def hangs_up(self, rest):
        self.close_connection = True

    def half(self, rest):
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"half of it")
        self.close_connection = True

    def reset(self, rest):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        for each in (self.rfile, self.wfile, self.connection):
            each.close()


class Server(InTasklets, HTTPServer):
    def handle_error(self, request, address):
        self.errors = [*getattr(self, "errors", []), type(sys.exception()).__name__]


def serving(kind=Server, handler=Handler, wrap=None):
    """Start a site; return it and its URL."""
    site = kind(("127.0.0.1", 0), handler)
    if wrap is not None:
        site.socket = wrap(site.socket)
    tasklet(site.serve_forever)(0.01)
    return site, f"http{'s' if wrap else ''}://127.0.0.1:{site.server_port}"


def over(site):
    """Stop it: its tasklet has ended then."""
    site.shutdown()
    site.server_close()
'''
