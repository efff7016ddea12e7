"""Nothing stays behind, whatever of the sockets, names, servers and patches is called how often."""

import inspect
import json

import pytest

from cpythonplus.tasklets import io
from cpythonplus.tasklets.io import names
from tests.leaks import MEASURE
from tests.support import SANITIZED, run_child
from tests.tasklets import test_memleaks

CALLS = {
    "socket, close": "socket.socket().close(); refused(OSError, socket.socket, 99, 99)",
    "forgotten": "a, b = socket.socketpair(); a.send(b'x'); b.recv(1); del a, b",
    "fromfd, dup": "socket.fromfd(left.fileno(), AF_UNIX, STREAM).close(); left.dup().close()",
    "detach": "a, b = socket.socketpair(); os.close(a.detach()); b.close()",
    "settimeout": "a = socket.socket(); a.settimeout(1); refused(TypeError, a.settimeout, 'x')",
    "gettimeout, timeout": "left.gettimeout(), left.timeout, left.getblocking()",
    "setblocking, getblocking": "left.setblocking(False); left.getblocking(); left.setblocking(1)",
    "send, recv": "left.send(b'x' * 99); right.recv(99); refused(TypeError, left.recv, 'x')",
    "sendall, recv_into": "left.sendall(b'x' * 99); right.recv_into(bytearray(99))",
    "recv in vain": "with timed_out(right): refused(TimeoutError, right.recv, 1)",
    "recv waits": "t = waits(right.recv, 1); left.send(b'x'); run()",
    "recv killed": "waits(right.recv, 1).kill()",
    "recv closed": (
        "a, b = socket.socketpair(); t = waits(refused, OSError, a.recv, 1); a.close(); run()"
    ),
    "sendto, recvfrom": "udp.sendto(b'x', udp.getsockname()); udp.recvfrom(1)",
    "recvfrom_into": "udp.sendto(b'x', 0, udp.getsockname()); udp.recvfrom_into(bytearray(1))",
    "sendto refused": "refused(TypeError, udp.sendto, b'x', 5); refused(TypeError, udp.sendto)",
    "sendmsg, recvmsg": "left.sendmsg([b'x', b'y']); right.recvmsg(2, 100)",
    "sendmsg with a descriptor": (
        "left.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, bytes(fd))])\n"
        "os.close(int.from_bytes(right.recvmsg(1, 100)[1][0][2][:4], sys.byteorder))"
    ),
    "recvmsg_into": "left.send(b'x'); right.recvmsg_into([bytearray(1)])",
    "bind, connect, accept": (
        "a = socket.socket(); a.bind(LOCAL); a.listen(); b = socket.socket()\n"
        "b.connect(a.getsockname()); c, _ = a.accept(); a.close(); b.close(); c.close()"
    ),
    "connect_ex": "with socket.socket() as a: a.connect_ex(('127.0.0.1', 1))",
    "connect refused": "with socket.socket() as a: refused(OSError, a.connect, ('127.0.0.1', 1))",
    "accept killed": "with socket.create_server(LOCAL) as a: waits(a.accept).kill()",
    "create_connection": (
        "with socket.create_server(LOCAL) as a:\n"
        "    socket.create_connection(a.getsockname()).close(); a.accept()[0].close()"
    ),
    "makefile": "with left.makefile('rw') as a: a.write('x'); a.flush(); right.recv(1)",
    "sendfile": "file.seek(0); left.sendfile(file); right.recv(99)",
    "sendfile waits": "file.seek(0); t = waits(right.recv, 99); left.sendfile(file); run()",
    "getaddrinfo": "names.getaddrinfo('127.0.0.1', 80); names.getaddrinfo(None, 80)",
    "getaddrinfo in a thread": "refused(OSError, names.getaddrinfo, 'x', 'no such service')",
    "gethostbyname, gethostbyname_ex": (
        "names.gethostbyname('127.0.0.1'); names.gethostbyname_ex('127.0.0.1')"
    ),
    "gethostbyaddr, getfqdn": "names.gethostbyaddr('127.0.0.1'); names.getfqdn('127.0.0.1')",
    "getnameinfo": "names.getnameinfo(LOCAL, 3); refused(TypeError, names.getnameinfo, 5, 3)",
    "with_number": "names.with_number(LOCAL, socket.AF_INET)",
    "in_thread": "io.in_thread(list, [1]); refused(ValueError, io.in_thread, int, 'x')",
    "in_thread killed": "t = waits(io.in_thread, list); t.kill(); io.in_thread(list)",
    "set_thread_limit": "io.set_thread_limit(3); refused(ValueError, io.set_thread_limit, 0)",
    "set_loop_factory": "io.set_loop_factory(None); refused(TypeError, io.set_loop_factory, 5)",
    "StreamServer start, stop": (
        "one = io.StreamServer(LOCAL, print); one.start(); schedule(); one.stop(); run()"
    ),
    "StreamServer address, connections": (
        "one = io.StreamServer(LOCAL, lambda c, a: c.send(b'x')); one.start()\n"
        "with socket.create_connection(one.address) as a: a.recv(1)\n"
        "one.connections; one.stop(None)"
    ),
    "StreamServer stop kills": (
        "one = io.StreamServer(LOCAL, lambda c, a: c.recv(1), limit=1); one.start()\n"
        "with socket.create_connection(one.address) as a:\n"
        "    while not one.connections: schedule()\n"
        "    one.stop(0)"
    ),
    "StreamServer serve_forever": (
        "one = io.StreamServer(LOCAL, print); t = waits(one.serve_forever); one.stop(); run()"
    ),
    "StreamServer refused": "refused(TypeError, io.StreamServer, LOCAL, 5)",
    "patch, patched, unpatch": "io.patch(); io.patched(); io.unpatch()",
    "patch refused": "refused(TypeError, io.patch, 5)",
}

PROGRAM = """
import array, contextlib, json, os, tempfile
from cpythonplus.tasklets import io, run, schedule, tasklet
from cpythonplus.tasklets.io import names, socket

CALLS = {calls}
LOCAL, AF_UNIX, STREAM = ("127.0.0.1", 0), socket.AF_UNIX, socket.SOCK_STREAM
left, right = socket.socketpair()
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(LOCAL)
file = tempfile.TemporaryFile()
file.write(b"x" * 99)
file.flush()
fd = array.array("i", [left.fileno()])


def waits(call, *args):
    made = tasklet(call)(*args)
    made.run()
    return made


def refused(error, call, *args):
    try:
        call(*args)
    except error:
        return
    raise AssertionError(call)


@contextlib.contextmanager
def timed_out(which):
    which.settimeout(0.00001)
    try:
        yield
    finally:
        which.settimeout(None)


# Those of in_thread() end when they have had nothing to do: they are not waited for.
def used_beside_threads():
    clear_caches()
    gc.collect()
    info = mallinfo2()
    return sys.getallocatedblocks(), info.uordblks + info.hblkhd


result = {{}}
waits(right.recv, 1)
left.send(b"x")
run()  # the event loop has some descriptors
descriptors = len(os.listdir("/proc/self/fd"))
for name, line in CALLS.items():
    try:
        leak = leaks(line, {{**globals()}}, 30, used=used_beside_threads)
    except BaseException as error:
        leak = repr(error)
    if leak:
        result[name] = leak
run()
more = len(os.listdir("/proc/self/fd")) - descriptors
if more:
    result["descriptors"] = more
print(json.dumps(result))
"""


@pytest.mark.skipif(SANITIZED, reason="the sanitizer's allocator does not count like this")
def test_no_leak() -> None:
    child = run_child(MEASURE + PROGRAM.format(calls=CALLS), timeout=60)
    assert json.loads(child.out) == {}, "calls, blocks, bytes of each"


LINES = " ".join(f"{name} {line}" for name, line in CALLS.items())


def test_each_public_name_is_in_the_list() -> None:
    elsewhere = " ".join(test_memleaks.CALLS["waiting"].values())
    public = set(io.__all__) - {"Timer"}  # made by call_later()
    assert {name for name in public if name not in LINES and name not in elsewhere} == set()


@pytest.mark.parametrize("kind", [io.socket.socket, io.StreamServer, names])
def test_each_public_method_is_in_the_list(kind: object) -> None:
    own = {
        name
        for name, value in vars(kind).items()
        if not name.startswith("_") and (inspect.isroutine(value) or isinstance(value, property))
    }
    assert {name for name in own - {"in_thread"} if name not in LINES} == set()
