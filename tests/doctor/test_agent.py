"""The agent of a live process: its socket, who may ask what, forks, ends, lost descriptors."""

import contextlib
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cpythonplus import _native
from cpythonplus._base.proc import resident_bytes
from cpythonplus._doctor.agent import client, finding, remote
from cpythonplus._doctor.agent.answering import answer
from cpythonplus._doctor.agent.examining import examine
from cpythonplus._doctor.agent.finding import Unreachable
from cpythonplus._doctor.questions import EXAMINATIONS, Examination, asked, taken
from tests.leaks import MEASURE
from tests.support import SANITIZED, compile_c, run_child

NAMES = ["hello", *asked("pid"), "trim", "leave"]
# Functions of the programs below.
HELPERS = """
import errno, json, os, socket, struct, sys, threading, time, warnings
from cpythonplus import _native
from cpythonplus._doctor import agent


def connected(path=None):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(30)
    s.connect(path or _native.memory_agent_path())
    return s


def read(s, length):
    data = b""
    while len(data) < length:
        got = s.recv(length - len(data))
        if not got:
            raise EOFError(data)
        data += got
    return data


def answer_of(s):
    failed, length = struct.unpack(">cI", read(s, 5))
    return failed == b"1", json.loads(read(s, length))


def asked(line, path=None):
    with connected(path) as s:
        s.sendall(line)
        return answer_of(s)


def hello(path=None):
    failed, answer = asked(b"cpythonplus 1 hello\\n", path)
    assert not failed, answer
    return answer["pid"]


def tasks():
    return len(os.listdir("/proc/self/task"))
"""


@pytest.fixture
def runtime() -> Iterator[Path]:
    """An XDG_RUNTIME_DIR whose path is short enough for sockets."""
    folder = Path(tempfile.mkdtemp(prefix="cpp-"))
    yield folder
    shutil.rmtree(folder)


def run(code: str, runtime: Path, *, status: int | None = 0, preload: str = "") -> str:
    env = {"XDG_RUNTIME_DIR": str(runtime), **({"LD_PRELOAD": preload} if preload else {})}
    return run_child(HELPERS + code, env=env, status=status).out


# What a container does that does not know close_range, and an emulator that ignores its flag.
SYSCALL = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>

long
syscall(long number, ...)
{
    long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    long a[6];
    va_list given;

    va_start(given, number);
    for (int i = 0; i < 6; i++) {
        a[i] = va_arg(given, long);
    }
    va_end(given);
    if (number == SYS_close_range && REFUSES) {
        errno = EPERM;
        return -1;
    }
    if (number == SYS_close_range) {
        a[2] = 0;
    }
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
"""


@pytest.fixture(params=["own", "refused", "ignored"])
def preload(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A library that makes a thread's own table of descriptors work, or not."""
    if request.param == "own":
        return ""
    (tmp_path / "syscall.c").write_text(SYSCALL)
    flags = ("-shared", "-fPIC", f"-DREFUSES={int(request.param == 'refused')}")
    return str(compile_c(tmp_path / "syscall.so", [tmp_path / "syscall.c"], *flags))


# ---- what is asked ------------------------------------------------------------------------------


@pytest.mark.any_version
@given(st.sampled_from(NAMES), st.binary())
def test_a_whole_request_is_read_and_no_more(name: str, rest: bytes) -> None:
    line = f"cpythonplus 1 {name}\n".encode()
    assert _native.memory_agent_parse(line + rest) == (name, "", len(line))


@pytest.mark.any_version
@given(st.text(st.characters(exclude_categories=("Cs", "Cc", "Zs")), min_size=1, max_size=100))
def test_the_name_of_a_type(name: str) -> None:
    line = f"cpythonplus 1 path {name}\n".encode()
    found = _native.memory_agent_parse(line)
    assert found == ("path", name, len(line))


@pytest.mark.any_version
@given(st.binary(max_size=600))
@example(b"cpythonplus 1 path \xed\xa0\x80\n")
@example(b"cpythonplus 1 path \xc0\x80\n")
@example(b"cpythonplus 1 path \xf5\x80\x80\x80\n")
@example(b"cpythonplus 1 path a b\n")
@example(b"cpythonplus 1 path \n")
@example(b"cpythonplus 1 path\n")
@example(b"cpythonplus 1 census now\n")
@example(b"cpythonplus 1 exec\n")
@example(b"cpythonplus 2 hello\n")
@example(b"cpythonplus \n")
@example(b"\n")
@example(b"cpythonplus 1 path " + b"x" * 600 + b"\n")
def test_anything_else_is_refused_or_goes_on(data: bytes) -> None:
    try:
        found = _native.memory_agent_parse(data)
    except ValueError:
        return
    if found is None:
        assert b"\n" not in data
        assert len(data) < 512
        assert data[:12] == b"cpythonplus "[: len(data)]
    else:
        line = data[: found[2]]
        assert line.split() == [b"cpythonplus", b"1", *" ".join(found[:2]).encode().split()]


@pytest.mark.any_version
def test_each_part_of_a_request_may_come_alone() -> None:
    line = b"cpythonplus 1 referrers app.models.Order\n"
    for length in range(len(line)):
        assert _native.memory_agent_parse(line[:length]) is None
    for message, reason in (
        (b"GET / HTTP/1.1\n", "not a request"),
        (b"cpythonplus 1 Eval()\n", "name consists"),
        (b"cpythonplus 2 hello\n", "version 1"),
        (b"cpythonplus 1 hello " + b"x" * 600, "too long"),
        (b"cpythonplus 1 path \n", "name of a type"),
    ):
        with pytest.raises(ValueError, match=reason):
            _native.memory_agent_parse(message)


# ---- what is answered ---------------------------------------------------------------------------


def test_parts_are_json_and_a_part_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> dict[str, object]:
        raise KeyError("two\nlines")

    monkeypatch.setitem(EXAMINATIONS, "gil", Examination("The GIL", fails, ()))
    found = examine(["threads", "workers", "gil"])
    assert found["gil"] == {"error": "KeyError: 'two\\nlines'"}
    assert json.loads(json.dumps(found)) == found
    assert found["target"]["pid"] == os.getpid()  # type: ignore[index]
    threads = taken("threads")["threads"]
    assert isinstance(threads, list)
    [main] = [each for each in threads if each["name"] == "MainThread"]
    assert main["function"] == "threads"
    assert answer("gil", "") == (True, b'{"error": "KeyError: \'two\\\\nlines\'"}')
    assert answer("eval", "") == (True, b'{"error": "no examination has the name \'eval\'"}')
    assert b"unexpected name of a type" in answer("census", "app.Order")[1]
    assert b"expected the name of a type" in answer("path", "")[1]
    failed, text = answer("hello", "")
    assert not failed
    assert json.loads(text)["version"] == 1


@pytest.mark.any_version
def test_properties_of_a_threads_class_are_not_asked() -> None:
    class Odd(threading.Thread):
        asked = 0

        @property
        def _name(self) -> str:
            Odd.asked += 1
            return "odd"

        @_name.setter
        def _name(self, value: str) -> None:
            pass

    ready, done = threading.Event(), threading.Event()

    def wait() -> None:
        ready.set()
        done.wait()

    threads = Odd(target=wait), threading.Thread(target=wait, name="even")
    for thread in threads:
        ready.clear()
        thread.start()
        ready.wait()
    Odd.asked = 0
    found = str(taken("threads"))
    assert ("even" in found, "odd" in found, Odd.asked) == (True, False, 0)
    done.set()
    for thread in threads:
        thread.join()


def test_the_socket_is_private_and_answers_one_after_the_other(runtime: Path) -> None:
    run(
        """
assert agent.start() == 0 == agent.start()
path = _native.memory_agent_path()
folder = os.path.dirname(path)
assert path == f"{os.environ['XDG_RUNTIME_DIR']}/cpythonplus/{os.getpid()}.sock", path
assert os.stat(folder).st_mode & 0o777 == 0o700
assert os.stat(path).st_mode & 0o777 == 0o600
assert os.listdir(folder) == [os.path.basename(path)]
assert hello() == os.getpid()
# Several requests of one client, the second in pieces.
with connected() as s:
    s.sendall(b"cpythonplus 1 hello\\ncpythonplus 1 thr")
    assert answer_of(s)[1]["pid"] == os.getpid()
    s.sendall(b"eads\\n")
    failed, threads = answer_of(s)
    assert [each["name"] for each in threads["threads"]] == ["MainThread"], threads
    # Nothing but leaves by itself: the agent was started for good.
    s.sendall(b"cpythonplus 1 leave\\n")
    assert answer_of(s) == (False, {})
    # A name that nothing is registered under is looked up, and that is all.
    s.sendall(b"cpythonplus 1 eval 1+1\\n")
    failed, answer = answer_of(s)
    assert failed and "no examination has the name" in answer["error"], answer
    s.sendall(b"cpythonplus 1 hello\\n")
    assert not answer_of(s)[0]
# What is not a request ends the connection, after one answer.
for line, reason in (
    (b"GET / HTTP/1.1\\r\\n", "not a request"),
    (b"cpythonplus 1 Eval(1)\\n", "name consists"),
    (b"cpythonplus 9 hello\\n", "version 1"),
    (b"cpythonplus 1 path " + b"x" * 1000, "too long"),
):
    with connected() as s:
        s.sendall(line)
        failed, answer = answer_of(s)
        assert failed and reason in answer["error"], answer
        try:
            assert s.recv(1) == b""
        except ConnectionResetError:
            pass  # the same, where some of the request was not read
# Clients that end in the middle, or do not read, harm nothing.
for line in (b"", b"cpythonplus 1", b"cpythonplus 1 hello\\n"):
    with connected() as s:
        s.sendall(line)
first, second = connected(), connected()
first.close()
second.sendall(b"cpythonplus 1 hello\\n")
assert answer_of(second)[1]["pid"] == os.getpid()
second.close()
# A collection does not run in the agent's thread, and is not kept off.
import gc
assert gc.isenabled()
gc.disable()
hello()
assert not gc.isenabled()
agent.stop()
agent.stop()
assert os.listdir(folder) == [] and tasks() == 1
assert agent.start() == 0 and hello() == os.getpid()
""",
        runtime,
    )
    # The end of the interpreter removes it, too.
    assert list((runtime / "cpythonplus").iterdir()) == []


def test_an_answer_that_cannot_be_made_says_so(runtime: Path) -> None:
    run(
        """
assert agent.start() == 0
sys.modules["json"] = None  # as a module of the program's with this name may fail
failed, answer = asked(b"cpythonplus 1 hello\\n")
assert failed and "cannot make the answer: ModuleNotFoundError" in answer["error"], answer
del sys.modules["json"]
assert hello() == os.getpid()
""",
        runtime,
    )


def test_forks(runtime: Path) -> None:
    """Each process has its own; and none of them is warned about our thread."""
    run(
        """
warnings.simplefilter("error")
def hook():
    for _ in range(100):  # where pending calls are made
        len([])
os.register_at_fork(before=hook, after_in_parent=hook, after_in_child=hook)
assert agent.start() == 0
folder = os.path.dirname(_native.memory_agent_path())
for ending in (sys.exit, os._exit):
    to_parent, to_child = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        assert hello() == os.getpid() != os.getppid()
        os.write(to_parent[1], b"x")
        os.read(to_child[0], 1)
        ending(0)
    assert os.read(to_parent[0], 1) == b"x"
    assert hello() == os.getpid()
    assert hello(f"{folder}/{child}.sock") == child
    os.write(to_child[1], b"x")
    assert os.waitpid(child, 0)[1] == 0
# os._exit left a file; the next one that opens a socket removes it.
left = f"{folder}/{child}.sock"
assert os.path.exists(left)
agent.stop()
agent.start()
hello()
assert not os.path.exists(left)
# A child of a child, and many at once.
for _ in range(10):
    child = os.fork()
    if child == 0:
        grandchild = os.fork()
        if grandchild == 0:
            assert hello() == os.getpid()
            os._exit(0)
        assert os.waitpid(grandchild, 0)[1] == 0
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
assert hello() == os.getpid()
while tasks() != 3:  # the one that answered ends
    time.sleep(0.001)
""",
        runtime,
    )


def test_forks_of_threads_and_under_a_client(runtime: Path) -> None:
    """One connection lasts: a request comes in two parts, and an answer is larger than a socket."""
    run(
        """
from cpythonplus._doctor.agent import answering
warnings.simplefilter("ignore")
assert agent.start() == 0
stop = threading.Event()
forked, wrong, path = [0], [], _native.memory_agent_path()
large = json.dumps({"pid": "x" * 3_000_000}).encode()
answering.answer = lambda name, argument: (False, large)
def asks():
    try:
        with connected(path) as s:
            while not stop.is_set():
                s.sendall(b"cpythonplus 1 ")
                wait_for_forks()
                s.sendall(b"hello\\n")
                wait_for_forks()  # the answer is larger than what a socket holds
                assert answer_of(s) == (False, {"pid": "x" * 3_000_000})
    except BaseException as error:
        wrong.append(error)
def wait_for_forks():
    seen = forked[0]
    while forked[0] < seen + 2 and not stop.is_set():
        time.sleep(0.001)
asking = threading.Thread(target=asks)
asking.start()
def forks():
    for _ in range(20):
        child = os.fork()
        if child == 0:
            os._exit(_native.memory_agent_path() != "")
        assert os.waitpid(child, 0)[1] == 0
        forked[0] += 1
threads = [threading.Thread(target=forks) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
stop.set()
asking.join()
assert not wrong, wrong
agent.stop()
while tasks() != 1:  # Python's own threads
    time.sleep(0.001)
""",
        runtime,
    )


def test_a_program_that_only_forks_is_answered(runtime: Path) -> None:
    """Each listener is to end when it begins: it makes a step all the same."""
    run(
        """
warnings.simplefilter("ignore")
assert agent.start() == 0
path, said = _native.memory_agent_path(), []
asking = threading.Thread(target=lambda: said.append([hello(path) for _ in range(5)]))
asking.start()
while asking.is_alive():
    _native.memory_agent_before_fork()
    _native.memory_agent_after_fork_parent()
assert said == [[os.getpid()] * 5]
assert hello() == os.getpid()
""",
        runtime,
    )


def test_a_child_does_not_keep_the_connection(runtime: Path) -> None:
    run(
        """
assert agent.start() == 0
s, (waits, ends) = connected(), os.pipe()
s.sendall(b"cpythonplus 1 hello\\n")
assert answer_of(s)[1]["pid"] == os.getpid()
child = os.fork()
if child == 0:
    s.close()
    os.close(ends)
    os.read(waits, 1)
    os._exit(hello() != os.getpid())
s.sendall(b"cpythonplus 1 hello\\n")
assert answer_of(s)[1]["pid"] == os.getpid()
path = _native.memory_agent_path()
_native.memory_agent_before_fork()
agent.stop()  # while the socket waits for the end of the fork
assert s.recv(1) == b"" and not os.path.exists(path)
_native.memory_agent_after_fork_parent()
assert _native.memory_agent_path() == ""
os.close(ends)
assert os.waitpid(child, 0)[1] == 0
""",
        runtime,
    )


def test_an_answer_may_fork(runtime: Path) -> None:
    """A finalizer that runs in it, say.  Its thread would wait for its own end."""
    run(
        """
import gc
from cpythonplus._doctor.agent import answering
warnings.simplefilter("ignore")
assert agent.start() == 0
def forks(name, argument):
    child = os.fork()
    if child == 0:
        os._exit(1 if _native.memory_agent_path() or not gc.isenabled() else 0)
    return False, json.dumps({"pid": os.waitpid(child, 0)[1]}).encode()
def leaves(name, argument):
    if os.fork() == 0:
        return False, b"{}"  # to a thread that is not there
    return False, json.dumps({"pid": os.wait()[1]}).encode()
for answering.answer in (forks, leaves, forks):
    assert hello() == 0
assert os.waitpid(os.fork() or os._exit(0), 0)[1] == 0
assert hello() == 0
""",
        runtime,
    )


def test_a_child_of_a_thread_ends_with_its_last_thread(runtime: Path) -> None:
    """Nothing returns from main() there, so a thread of ours would keep it for ever."""
    run(
        """
warnings.simplefilter("ignore")
assert agent.start() == 0
def forks():
    child = os.fork()
    if child != 0:
        assert os.waitpid(child, 0)[1] == 0
        return
    grandchild = os.fork()
    assert _native.memory_agent_path() == ""
    if grandchild != 0:
        assert os.waitpid(grandchild, 0)[1] == 0
thread = threading.Thread(target=forks)
thread.start()
thread.join()
assert hello() == os.getpid()
""",
        runtime,
    )


def test_forks_of_c_code_leave_the_parents_socket_alone(runtime: Path) -> None:
    """Python's hooks are not called, neither around the fork nor before the child's stop()."""
    run(
        """
import ctypes
assert agent.start() == 0
for ends in (agent.stop, agent.start, lambda: os.waitpid(os.fork() or os._exit(0), 0)):
    child = ctypes.PyDLL(None).fork()
    if child == 0:
        assert _native.memory_agent_path() == ""
        ends()
        agent.stop()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert hello() == os.getpid()
""",
        runtime,
    )


def test_the_program_sees_no_descriptor(runtime: Path) -> None:
    """Nor does a child of it, whatever it inherits; not even while somebody asks."""
    run(
        """
import subprocess
def seen():
    with os.scandir("/proc/self/fd") as found:
        return sorted(int(each.name) for each in found)
COUNT = "import os; print(len(os.listdir('/proc/self/fd')))"
def inherited():
    return subprocess.check_output([sys.executable, "-c", COUNT], close_fds=False)
before, children = seen(), inherited()
assert agent.start() == 0
assert seen() == before
assert inherited() == children
with connected() as s:
    s.sendall(b"cpythonplus 1 hello\\n")
    assert answer_of(s)[1]["pid"] == os.getpid()
    assert len(seen()) == len(before) + 1  # the client's own end
for _ in range(3):
    child = os.fork()
    if child == 0:
        assert hello() == os.getpid() and seen() == before
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
assert hello() == os.getpid() and seen() == before
""",
        runtime,
    )


def test_a_table_that_others_share_is_seen(runtime: Path, preload: str) -> None:
    """All is as usual, and nothing of the program's is closed."""
    run(
        """
kept = [os.open("/dev/null", os.O_RDONLY) for _ in range(5)]
assert agent.start() == 0
assert [os.fstat(fd).st_rdev for fd in kept] == [os.stat("/dev/null").st_rdev] * 5
assert hello() == os.getpid()
child = os.fork()
if child == 0:
    assert hello() == os.getpid()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert hello() == os.getpid()
agent.stop()
assert tasks() == 1
""",
        runtime,
        preload=preload,
    )


def test_a_program_that_closes_all_descriptors(runtime: Path, preload: str) -> None:
    """Neither is what it opens afterwards taken for ours, nor is the process out of reach."""
    run(
        """
assert agent.start() == 0
path = _native.memory_agent_path()
os.closerange(3, 4096)
pairs = [socket.socketpair() for _ in range(20)]
# The first client wakes the agent, which finds its socket gone and opens another.
for _ in range(100):
    try:
        assert hello(path) == os.getpid()
        break
    except (OSError, EOFError):
        time.sleep(0.01)
else:
    raise AssertionError
agent.stop()
assert tasks() == 1
agent.start()
os.closerange(3, 4096)
os.set_blocking(os.dup2(os.open("/dev/null", os.O_RDONLY), 900), True)
agent.stop()
assert tasks() == 1 and not os.path.exists(path)
agent.start()
os.closerange(3, 4096)
try:
    os.unlink(path)
except FileNotFoundError:
    pass  # it has found its socket gone, and is about to open another
agent.stop()  # there may be no way to wake that thread, if it sleeps already; it does no harm
assert agent.start() in (0, errno.EBUSY)
""",
        runtime,
        preload=preload,
    )


def test_folders_that_others_could_change_are_not_used(runtime: Path) -> None:
    code = """
error = agent.start()
print(error, _native.memory_agent_path())
"""
    own = runtime / "cpythonplus"
    own.mkdir(mode=0o755)
    fallback = f"/tmp/cpythonplus-{os.geteuid()}/"
    assert run(code, runtime).startswith(f"0 {fallback}")
    own.rmdir()
    elsewhere = runtime / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    own.symlink_to(elsewhere)
    assert run(code, runtime).startswith(f"0 {fallback}")
    own.unlink()
    runtime.chmod(0o777)
    assert run(code, runtime).startswith(f"0 {fallback}")
    runtime.chmod(0o700)
    # Whatever umask the program has, and however few descriptors.
    assert run("os.umask(0o777)\n" + code, runtime).startswith(f"0 {own}")
    limits = "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))\n"
    assert run(limits + code, runtime).startswith("24 ")
    long = runtime / ("x" * 100)
    long.mkdir(mode=0o700)
    assert run(code, long).startswith(f"0 {fallback}")
    assert stat.S_IMODE(own.stat().st_mode) == 0o700


def test_it_leaves_by_itself_when_it_was_asked_for_a_while(runtime: Path) -> None:
    run(
        """
assert agent.start(60_000) == 0
path = _native.memory_agent_path()
child = os.fork()
if child == 0:
    os._exit(_native.memory_agent_path() != "")
assert os.waitpid(child, 0)[1] == 0
assert hello() == os.getpid()
assert asked(b"cpythonplus 1 leave\\n") == (False, {})
while _native.memory_agent_path() or tasks() > 1:
    time.sleep(0.001)
assert not os.path.exists(path)
assert agent.start(1) == 0
while _native.memory_agent_path() or tasks() > 1:
    time.sleep(0.001)
assert not os.path.exists(path)
""",
        runtime,
    )


def test_interpreters_that_end_while_somebody_asks(runtime: Path) -> None:
    out = run(
        """
assert agent.start() == 0
clients = [connected() for _ in range(3)]
clients[0].sendall(b"cpythonplus 1 threads\\n" * 10)
print("done")
""",
        runtime,
    )
    assert out == "done\n"
    assert list((runtime / "cpythonplus").iterdir()) == []


@pytest.mark.skipif(SANITIZED, reason="the sanitizer's allocator does not count like this")
def test_answers_leave_nothing_behind(runtime: Path) -> None:
    code = (
        MEASURE
        + """
agent.start()
names = {**globals()}
for name in ("hello", "threads", "gil", "workers"):
    found = leaks(f"asked(b'cpythonplus 1 {name}\\\\n')", names, 20)
    assert found is None, (name, found)
"""
    )
    run(code, runtime)


# ---- who can be asked ---------------------------------------------------------------------------


def test_processes_that_cannot_be_looked_at() -> None:
    with subprocess.Popen(["sleep", "60"]) as sleeping:
        while Path(f"/proc/{sleeping.pid}/comm").read_text() != "sleep\n":
            pass
        with pytest.raises(Unreachable, match=r"\(sleep\) is not a Python program"):
            finding.find(sleeping.pid)
        sleeping.kill()
        # Not waited for: a zombie.
        while resident_bytes(sleeping.pid):
            pass
        with pytest.raises(Unreachable, match="has ended"):
            finding.find(sleeping.pid)
    with pytest.raises(Unreachable, match="there is no process"):
        finding.find(sleeping.pid)
    with pytest.raises(Unreachable, match="is this doctor itself"), client.connect(os.getpid()):
        pass


@pytest.mark.any_version
def test_processes_that_cannot_be_asked_to_listen() -> None:
    own = finding.find(os.getpid())
    for minor, why in (
        (11, "start it with `cpythonplus run`"),
        (99, "use a doctor on Python 3.99"),
    ):
        process = finding.Process(own.pid, own.uids, own.inner_pid, minor)
        with pytest.raises(Unreachable, match=why):
            remote.check(process)
    assert finding.socket_paths(own)[0].endswith(f"/cpythonplus/{os.getpid()}.sock")
    # What began as root and became another user's altogether.
    assert f"/tmp/cpythonplus-0/{os.getpid()}.sock" in finding.socket_paths(own)


@pytest.mark.any_version
def test_a_stopped_process_is_told_at_once() -> None:
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as child:
        os.kill(child.pid, signal.SIGSTOP)
        os.waitpid(child.pid, os.WUNTRACED)
        with pytest.raises(Unreachable, match="is stopped"), client.connect(child.pid):
            pass
        child.kill()


@pytest.mark.any_version
def test_a_doctor_waits_where_many_ask(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"{runtime}/x.sock"
    own = finding.find(os.getpid())
    with socket.socket(socket.AF_UNIX) as listening, contextlib.ExitStack() as stack:
        listening.bind(path)
        listening.listen(0)

        def accept(_seconds: float) -> None:
            stack.enter_context(listening.accept()[0])

        monkeypatch.setattr("time.sleep", accept)
        for _ in range(5):
            stack.enter_context(client._open(path, own))
        monkeypatch.setattr("time.sleep", lambda _seconds: None)
        monkeypatch.setattr(client, "_CONNECT_TIMEOUT_S", 0.0)
        monkeypatch.setattr(client, "socket_paths", lambda _process: [path])
        monkeypatch.setattr(client, "may_be_its", lambda *_: True)
        with pytest.raises(Unreachable, match="does not answer"):
            client._listening(own)


@pytest.mark.any_version
def test_what_root_has_a_process_execute_stays_roots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other processes of that user may be allowed less than this one (capabilities)."""
    given: dict[str, int] = {}
    scripts: list[str] = []

    def execute(_pid: int, script: str) -> None:
        folder = Path(script).parent
        assert stat.S_IMODE(folder.stat().st_mode) == 0o711  # it is passed through, that is all
        assert stat.S_IMODE(Path(script).stat().st_mode) == 0o644
        assert stat.S_IMODE((folder / "result").stat().st_mode) == 0o600
        scripts.append(script)

    def fchown(file: int, uid: int, _gid: int) -> None:
        given[Path(f"/proc/self/fd/{file}").readlink().name] = uid

    own = finding.find(os.getpid())
    other = os.geteuid() + 1
    theirs = finding.Process(own.pid, (other,) * 4, own.inner_pid, own.minor, own.gids)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(os, "fchown", fchown)
    monkeypatch.setattr(os, "chown", lambda *_, **__: pytest.fail("the folder was given away"))
    monkeypatch.setattr(sys, "remote_exec", execute, raising=False)
    monkeypatch.setattr(remote, "_LIMIT_S", 0.01)
    with pytest.raises(Unreachable, match="was asked to listen"), remote.listening(theirs):
        pass
    assert given == {"result": other}
    # It comes to the script at last, and cannot remove it.
    script = Path(scripts[0])
    (script.parent / "result").unlink()
    exec(compile(script.read_text(), script, "exec"), {})
    assert script.exists()


@pytest.mark.any_version
@pytest.mark.parametrize(
    ("uids", "gids", "why"),
    [
        ((1000, 0, 0, 0), (0,) * 4, "user (real 1000, effective 0, saved 0, file system 0)"),
        ((33, 33, 0, 33), (33,) * 4, "user (real 33, effective 33, saved 0, file system 33)"),
        ((0, 33, 0, 33), (0,) * 4, "user (real 0, effective 33, saved 0, file system 33)"),
        ((5,) * 4, (5, 8, 8, 8), "group (real 5, effective 8, saved 8, file system 8)"),
        ((5,) * 4, (5, 5, 8, 5), "group (real 5, effective 5, saved 8, file system 5)"),
        ((5,) * 4, (8,) * 4, ""),
    ],
)
def test_a_process_of_several_users_is_not_asked_to_listen(
    uids: tuple[int, ...], gids: tuple[int, ...], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it executes runs with all their rights, and one of them could change it."""
    monkeypatch.setattr(sys, "remote_exec", lambda *_: None, raising=False)
    own = finding.find(os.getpid())
    process = finding.Process(own.pid, uids, own.inner_pid, own.minor and sys.version_info[1], gids)
    monkeypatch.setattr(remote, "_SINCE_MINOR", 11)
    if not why:
        remote.check(process)
        return
    with pytest.raises(Unreachable) as refused:
        remote.check(process)
    told = str(refused.value)
    assert told.startswith(f"process {own.pid} has more than one {why} and does not listen")
    assert "\n" not in told


@pytest.mark.any_version
def test_users_and_groups_of_a_process_are_seen() -> None:
    own = finding.find(os.getpid())
    assert own.uids[:3] == os.getresuid()
    assert own.gids[:3] == os.getresgid()


@pytest.mark.any_version
def test_without_a_temporary_folder_no_process_is_asked_to_listen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = finding.find(os.getpid())
    monkeypatch.setattr(sys, "remote_exec", lambda *_: pytest.fail("it was asked"), raising=False)
    monkeypatch.setattr("tempfile.tempdir", f"{tmp_path}/none")
    with pytest.raises(Unreachable, match="no temporary folder is writable"):
        remote.listening(own).__enter__()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(remote, "_write", full)
    with pytest.raises(Unreachable, match="No space left on device"):
        remote.listening(own).__enter__()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.any_version
@pytest.mark.parametrize(("says", "why"), [("done ", ""), ("done it\nfails", "it fails")])
def test_what_the_process_says_is_read(
    says: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def execute(_pid: int, script: str) -> None:
        compile(Path(script).read_text(), script, "exec")
        Path(script).with_name("result").write_text(says)

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "remote_exec", execute, raising=False)
    with contextlib.ExitStack() as stack:
        if why:
            stack.enter_context(pytest.raises(Unreachable, match=why))
        stack.enter_context(remote.listening(finding.find(os.getpid())))
    assert list(tmp_path.iterdir()) == []
