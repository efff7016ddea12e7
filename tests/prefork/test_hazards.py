"""What a prepared heap may do to a program: one hazard a test, each in a process of its own.

Every program prepares, forks, and does in the child what the hazard is about.  What differs from
stock CPython is in docs/reference/prefork.md.
"""

import importlib.util
from pathlib import Path
from textwrap import dedent

import pytest

from tests.support import SANITIZED, compile_c, run_child

PRELUDE = '''
import gc, os, sys
from cpythonplus import prefork

IMMORTAL = sys.version_info >= (3, 12) and "t" not in sys.abiflags


def in_child(body):
    """Run body() in a forked child that ends fast; fail unless its status is 0."""
    pid = os.fork()
    if pid == 0:
        prefork.child()
        status = 1
        try:
            body()
            status = 0
        except BaseException:
            import traceback
            traceback.print_exc()
        prefork.fast_exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def is_immortal(op):
    return sys.getrefcount(op) == sys.getrefcount(None)
# It asserts that strings are mortal unless they are interned.
DEBUG = hasattr(sys, "gettotalrefcount")
'''


def check(program: str, *args: str) -> None:
    run_child(PRELUDE + dedent(program), args=args)


def test_an_open_file_with_unflushed_data(tmp_path: Path) -> None:
    # Stock writes the buffer once in the parent and once more in the child.
    check(
        """
        path = sys.argv[1]
        class Log:
            def __init__(self):
                self.file = open(path, "w")
        log = Log()
        log.file.write("before ")
        prefork.prepare()
        def body():
            log.file.write("child ")
        in_child(body)
        log.file.write("parent")
        log.file.close()
        assert open(path).read() == "before child parent", open(path).read()
        """,
        str(tmp_path / "log"),
    )


def test_a_dropped_file_is_closed(tmp_path: Path) -> None:
    check(
        """
        holder = [open(sys.argv[1], "w")]
        descriptor = holder[0].fileno()
        prefork.prepare()
        def body():
            import warnings
            warnings.simplefilter("ignore")
            holder[0].write("x")
            holder.clear()
            try:
                os.fstat(descriptor)
            except OSError:
                pass
            else:
                raise AssertionError("still open")
            assert open(sys.argv[1]).read() == "x"
        in_child(body)
        """,
        str(tmp_path / "log"),
    )


def test_a_file_that_an_immortal_object_holds_at_a_normal_end(tmp_path: Path) -> None:
    # Nothing drops it any more, and so nobody but prepare's exit function would write it out.
    path = tmp_path / "log"
    check(
        """
        class Log:
            def __init__(self):
                self.file = open(sys.argv[1], "w")
        log = Log()
        prefork.prepare()
        log.file.write("written after prepare")
        """,
        str(path),
    )
    assert path.read_text() == "written after prepare"


@pytest.mark.parametrize("name", ["detached", "broken"])
def test_files_that_refuse_to_be_asked(name: str) -> None:
    run_child(
        PRELUDE
        + dedent("""
        import io
        class Broken(io.RawIOBase):
            def __getattribute__(self, name):
                raise LookupError(name)
        if sys.argv[1] == "broken":
            file = Broken()
        prefork.prepare()
        if sys.argv[1] == "detached":
            sys.stdout = io.TextIOWrapper(sys.stdout.detach())  # sys.__stdout__ is the old one
        prefork.prepare()
        prefork.fast_exit(3)
        """),
        args=[name],
        status=3,
    )


def test_a_dropped_socket_is_closed() -> None:
    check("""
        import socket, warnings
        warnings.simplefilter("ignore")
        here, there = socket.socketpair()
        holder = [there]
        del there
        prefork.prepare()
        def body():
            here.send(b"ping")
            assert holder[0].recv(4) == b"ping"
            number = holder[0].fileno()
            holder.clear()
            try:
                os.fstat(number)
            except OSError:
                return
            raise AssertionError("still open")
        in_child(body)
    """)


def test_a_view_of_a_buffer_that_is_dropped_lets_it_be_resized() -> None:
    check("""
        import io, struct
        buffer, other, third = bytearray(b"12345678"), bytearray(b"12345678"), io.BytesIO(b"1234")
        holder = [memoryview(buffer), memoryview(buffer)[2:4], third.getbuffer()]
        holder.append(struct.iter_unpack("i", other))
        next(holder[-1])
        prefork.prepare()
        def body():
            for grow in (lambda: buffer.append(1), lambda: third.write(b"12345")):
                try:
                    grow()
                except BufferError:
                    pass
                else:
                    raise AssertionError("there is a view")
            holder.clear()
            buffer.append(1)
            other.append(1)
            third.write(b"12345")
        in_child(body)
    """)


def test_what_holds_a_buffer_in_its_own_way() -> None:
    # Documented: these are immortal.
    check("""
        import ctypes, re
        buffers = [bytearray(b"12345678") for _ in range(3)]
        holder = [(ctypes.c_char * 8).from_buffer(buffers[0]), re.finditer(b"1", buffers[1])]
        try:
            import numpy
        except ImportError:
            del buffers[2]
        else:
            holder.append(numpy.frombuffer(buffers[2], dtype="u1"))
        prefork.prepare()
        holder.clear()
        gc.collect()
        for buffer in buffers:
            try:
                buffer.append(1)
            except BufferError:
                assert IMMORTAL
            else:
                assert not IMMORTAL
    """)


def test_what_an_object_of_before_holds() -> None:
    # Documented: an immortal object lets go of nothing, one that was kept mortal does.
    check("""
        import mmap, weakref
        class Store:
            def __init__(self):
                self.pages = mmap.mmap(-1, 4096)
        class Kept(Store):
            pass
        holder = [Store(), Kept()]
        store, kept = (weakref.ref(each.pages) for each in holder)
        prefork.prepare(keep_mortal=lambda kind: kind is Kept)
        def body():
            holder.clear()
            assert (store() is not None) is IMMORTAL and kept() is None
        in_child(body)
    """)


@pytest.mark.needs_gil
def test_the_frozen_heap_is_listed_by_our_tools_and_by_others_after_unfreeze() -> None:
    check("""
        from cpythonplus import memory
        table = {number: [number] for number in range(50_000)}
        prefork.prepare()
        def body():
            assert len(gc.get_objects()) < 1000
            leak = [[number] for number in range(2000)]
            assert 2000 < len(gc.get_objects()) < 4000  # what grows is listed
            assert memory.census().objects > 50_000
            gc.unfreeze()
            assert len(gc.get_objects()) > 50_000
        in_child(body)
    """)


def test_a_dropped_mmap_is_closed(tmp_path: Path) -> None:
    check(
        """
        import mmap, select
        class Own(mmap.mmap):
            pass
        def opened():
            return len(os.listdir("/proc/self/fd"))
        def mapped():
            return open("/proc/self/maps").read().count(path)
        path = sys.argv[1]
        before = opened()
        with open(path, "wb+") as file:
            file.truncate(100_000)
            holder = [mmap.mmap(file.fileno(), 0), Own(file.fileno(), 0), select.epoll()]
        report = prefork.prepare()
        if IMMORTAL:
            assert report.kept_mortal["type mmap.mmap"] == 1, report.kept_mortal
            assert report.kept_mortal["type __main__.Own"] == 1, report.kept_mortal
        def body():
            assert opened() == before + 3 and mapped() == 2
            holder.clear()
            assert opened() == before and mapped() == 0
        in_child(body)
        """,
        str(tmp_path / "mapped"),
    )


SQLITE = """
    import sqlite3, warnings
    warnings.simplefilter("ignore")
    def opened():
        found = 0
        for descriptor in os.listdir("/proc/self/fd"):
            try:
                found += os.readlink(f"/proc/self/fd/{descriptor}") == sys.argv[1]
            except FileNotFoundError:
                pass
        return found
    def connect():
        connection = sqlite3.connect(sys.argv[1], timeout=0)
        connection.execute("create table if not exists t (n)")
        return connection
    connection = connect()
    connection.executemany("insert into t values (?)", [(n,) for n in range(10)])
    connection.commit()
    cursor = connection.execute("select n from t")  # locks the table until it has come to its end
    assert cursor.fetchone() == (0,) and opened() == 1
    prefork.prepare()
    prefork.prepare()
"""


@pytest.mark.needs_gil
@pytest.mark.parametrize("how", ["dropped", "closed", "used"])
def test_a_sqlite_connection(how: str, tmp_path: Path) -> None:
    pytest.importorskip("sqlite3")
    check(
        SQLITE
        + """
    if sys.argv[2] == "used":
        assert [n for n, in cursor] == list(range(1, 10))
        for number in range(500):  # more statements than are kept
            assert connection.execute(f"select {number}").fetchone() == (number,)
    if sys.argv[2] != "dropped":
        cursor.close()
        connection.close()
    del connection, cursor
    gc.collect()  # as on stock: a connection is in a cycle
    assert opened() == 0
    fresh = connect()
    fresh.execute("insert into t values (5)")
    fresh.execute("drop table t")
        """,
        str(tmp_path / "data"),
        how,
    )


def test_finalisers() -> None:
    check("""
        calls = []
        class Guard:
            def __del__(self):
                calls.append(os.getpid())
        holder = {"guard": Guard()}
        report = prefork.prepare()
        if IMMORTAL:
            assert report.kept_mortal["finaliser (__del__)"] == 1, report.kept_mortal
        def body():
            del holder["guard"]
            assert calls == [os.getpid()], calls
        in_child(body)
        assert calls == []
    """)


def test_a_generator_suspended_in_finally() -> None:
    check("""
        done = []
        def steps():
            try:
                yield 1
            finally:
                done.append(True)
        holder = [steps()]
        next(holder[0])
        prefork.prepare()
        def body():
            holder.clear()
            assert done == [True]
        in_child(body)
    """)


def test_weakref_finalize_and_callbacks() -> None:
    check("""
        import weakref
        calls = []
        class Thing:
            pass
        holder = [Thing(), Thing(), Thing()]
        weakref.finalize(holder[0], calls.append, "finalize")
        plain = weakref.ref(holder[1], lambda ref: calls.append("callback"))
        values = weakref.WeakValueDictionary(key=holder[2])
        prefork.prepare()
        def body():
            holder.clear()
            assert sorted(calls) == ["callback", "finalize"], calls
            assert plain() is None and not values
        in_child(body)
    """)


def test_a_weak_reference_without_a_callback_keeps_working() -> None:
    check("""
        import weakref
        class Thing:
            pass
        thing = Thing()
        ref = weakref.ref(thing)
        prefork.prepare()
        def body():
            assert ref() is thing and weakref.ref(thing) is ref
        in_child(body)
        del thing
        # Immortal: the program has dropped it, and it is there still. Documented.
        assert (ref() is not None) is IMMORTAL
    """)


def test_a_temporary_directory(tmp_path: Path) -> None:
    check(
        """
        import tempfile
        holder = [tempfile.TemporaryDirectory(dir=sys.argv[1])]
        name = holder[0].name
        prefork.prepare()
        def body():
            assert os.path.isdir(name)
        # Dropping it in a child removes it, as on stock.
        pid = os.fork()
        if pid == 0:
            import warnings
            warnings.simplefilter("ignore")
            holder.clear()
            os._exit(0 if not os.path.exists(name) else 1)
        assert os.waitpid(pid, 0)[1] == 0
        """,
        str(tmp_path),
    )


def test_a_workers_end_leaves_directories_and_processes_of_its_parent() -> None:
    # On stock a child's exit functions remove the directory, and end the process.
    check("""
        import multiprocessing, tempfile
        from cpythonplus.prefork import Options
        from cpythonplus.prefork._engine import Engine
        multiprocessing.set_start_method("fork")
        holder = tempfile.TemporaryDirectory()
        reading, writing = os.pipe()
        helper = multiprocessing.Process(target=os.read, args=(reading, 1), daemon=True)
        helper.start()
        parent = Engine(Options(gil=False))
        parent.before_fork()
        own = []
        def body():
            parent.start_worker()
            own.append(tempfile.TemporaryDirectory())
            os.write(result, own[0].name.encode())
        answer, result = os.pipe()
        in_child(body)
        assert os.path.isdir(holder.name)
        assert not os.path.exists(os.read(answer, 1000)), "its own is removed"
        helper.join(0)
        assert helper.is_alive()
        os.write(writing, b"x")
        helper.join(60)
        assert helper.exitcode == 0
    """)


def test_locks_held() -> None:
    check("""
        import threading
        lock, rlock = threading.Lock(), threading.RLock()
        condition = threading.Condition()
        lock.acquire(); rlock.acquire()
        prefork.prepare()
        def body():
            assert lock.locked() and not lock.acquire(blocking=False)
            lock.release()
            rlock.release()
            with lock, rlock, condition:
                assert not condition.wait(0.01)
        in_child(body)
        lock.release(); rlock.release()
    """)


def test_threads_alive_in_the_parent() -> None:
    check("""
        import threading, warnings
        warnings.simplefilter("ignore")
        stop, started = threading.Event(), threading.Barrier(4)
        def work():
            local = [object() for _ in range(100)]
            started.wait()
            while not stop.wait(0.001):
                local.append(str(len(local)))
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        started.wait()
        for _ in range(3):
            prefork.prepare()
            def body():
                assert threading.active_count() == 1
                fresh = threading.Thread(target=stop.is_set)
                fresh.start()
                fresh.join()
            in_child(body)
        stop.set()
        for thread in threads:
            thread.join()
    """)


def test_types_changed_later() -> None:
    check("""
        import abc
        class Root:
            pass
        class Base(Root):
            kind = "base"
            def say(self):
                return self.kind
        class Shape(abc.ABC):
            pass
        thing = Base()
        prefork.prepare()
        def body():
            Base.kind = "changed"
            Base.extra = property(lambda self: 7)
            assert thing.say() == "changed" and thing.extra == 7
            del Base.extra
            assert not hasattr(thing, "extra")
            class Derived(Base):
                pass
            thing.__class__ = Derived
            assert isinstance(thing, Derived) and Derived in Base.__subclasses__()
            Shape.register(Base)
            assert isinstance(thing, Shape)
            Base.__bases__ = (type("Mixin", (Root,), {"mixed": 1}),)
            assert thing.mixed == 1
            for number in range(2000):  # more names than a type's keys are shared for
                setattr(thing, f"name{number}", number)
            assert thing.name1999 == 1999
        in_child(body)
    """)


def test_interned_strings() -> None:
    check("""
        plain = "".join(["not ", "yet ", "interned"])
        interned = sys.intern("".join(["interned ", "before"]))
        names = {f"key{n}": n for n in range(1000)}
        prefork.prepare()
        def body():
            assert sys.intern(plain) is plain
            assert sys.intern("".join(["not ", "yet ", "interned"])) is plain
            assert sys.intern("".join(["interned ", "before"])) is interned
            class Thing:
                pass
            thing = Thing()
            for name in names:
                setattr(thing, name, 1)  # interns them
            assert getattr(thing, "".join(["key", "999"])) == 1
            exec("key5 = 5\\nassert key5 == 5", {})
        for _ in range(2):
            in_child(body)
        body()
        prefork.prepare()
    """)


def test_interned_strings_at_a_normal_end() -> None:
    check("""
        names = [sys.intern(f"some name {n}") for n in range(1000)]
        prefork.prepare()
        pid = os.fork()
        if pid == 0:
            del names
            more = [sys.intern(f"other {n}") for n in range(1000)]
            sys.exit(0)  # the interpreter's own, full end
        assert os.waitpid(pid, 0)[1] == 0
        # and the parent's
    """)


def test_an_asyncio_loop_in_the_parent() -> None:
    check("""
        import asyncio, warnings
        warnings.simplefilter("ignore")
        async def soon(value):
            await asyncio.sleep(0)
            return value
        async def main():
            task = asyncio.ensure_future(soon(1))
            prefork.prepare()
            pid = os.fork()
            if pid == 0:
                os._exit(0 if not task.done() else 1)
            assert os.waitpid(pid, 0)[1] == 0
            assert await task == 1
            return await asyncio.gather(*(soon(n) for n in range(10)))
        assert asyncio.run(main()) == list(range(10))
        def body():
            assert asyncio.run(soon(5)) == 5
        in_child(body)
    """)


def test_numpy_arrays() -> None:
    if importlib.util.find_spec("numpy") is None:
        pytest.skip("numpy has no wheel for this interpreter")
    check("""
        import numpy
        array = numpy.arange(100_000)
        view = array[10:20]
        prefork.prepare()
        def body():
            array[:] += 1
            assert view[0] == 11 and array.sum() == sum(range(1, 100_001))
            assert numpy.sort(array[::-1])[0] == 1
            grown = numpy.append(array, 5)
            assert len(grown) == 100_001
            mine = numpy.zeros(10)
            mine.resize(20)
            if IMMORTAL:
                try:  # documented: it asks for the only reference
                    array.resize(200_000)
                except ValueError:
                    array.resize(200_000, refcheck=False)
                assert len(array) == 200_000
        in_child(body)
    """)


SUB_INTERPRETERS = """
    try:
        import _interpreters as interpreters
        run = interpreters.run_string
    except ImportError:
        import _xxsubinterpreters as interpreters
        run = interpreters.run_string
    first = interpreters.create()
    run(first, "import json; data = json.loads('[1, {\\"a\\": 2}]')")
    prefork.prepare()
    run(first, "data.append(3); assert len(data) == 3")
    def body():
        second = interpreters.create()
        run(second, "import json; assert json.dumps([1, None, True]) == '[1, null, true]'")
        interpreters.destroy(second)
    body()
    interpreters.destroy(first)
    in_child(lambda: None)
"""


def test_sub_interpreters() -> None:
    check(SUB_INTERPRETERS)


# ---- tuples that are being filled ----------------------------------------------------------------
# Who fills one has to hold the only reference until it is done; an immortal object has none.


@pytest.mark.parametrize("count", [5, 10, 50])  # fewer, as many and more than are guessed
@pytest.mark.parametrize("items", ["numbers", "lists"])
def test_a_tuple_of_a_generator_that_prepares(count: int, items: str) -> None:
    check(
        """
        count, wrap = int(sys.argv[1]), {"numbers": int, "lists": lambda n: [n]}[sys.argv[2]]
        def steps():
            for number in range(count):
                prefork.prepare()
                yield wrap(number)
        expected = [wrap(number) for number in range(count)]
        made = tuple(steps())
        assert made == tuple(expected), made
        def spread(*args):
            return args
        assert spread(*steps()) == made
        assert frozenset(map(str, steps())) == frozenset(map(str, expected))
        import collections
        Row = collections.namedtuple("Row", [f"f{number}" for number in range(count)])
        assert Row._make(steps()) == made
        prefork.prepare()
        assert is_immortal(made) is IMMORTAL  # complete by now
        """,
        str(count),
        items,
    )


def test_a_tuple_of_processes_that_are_started() -> None:
    check("""
        prefork.install(prepare_again=1 << 40)
        more = []
        def start(number):
            more.append([[n] for n in range(60_000)])  # worth preparing again
            pid = os.fork()
            if pid == 0:
                os._exit(number)
            return pid
        before = prefork.statistics().prepares
        pids = tuple(start(number) for number in range(3))
        assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0, 1, 2]
        assert prefork.statistics().prepares == before + 3
    """)


def test_tuples_that_another_thread_is_filling() -> None:
    check("""
        import threading
        from queue import SimpleQueue
        asked, answers = SimpleQueue(), SimpleQueue()
        failed, made = [], []
        def steps():
            for number in range(40):
                asked.put(number)
                yield answers.get()
        def work():
            try:
                made.append(tuple(steps()))
            except BaseException as error:
                failed.append(error)
            asked.put(None)
        thread = threading.Thread(target=work)
        thread.start()
        while asked.get() is not None:
            if not answers.qsize():
                prefork.prepare()
            answers.put([1])
        thread.join()
        assert not failed and made == [([1],) * 40], (failed, made)
    """)


@pytest.mark.skipif(
    SANITIZED, reason="an ending thread may hold a lock of the sanitizer's allocator at a fork"
)
def test_a_tuple_of_what_a_pool_returns() -> None:
    check("""
        import multiprocessing
        from cpythonplus.prefork import multiprocessing as prepared
        prepared.install(prepare_again=1 << 40)
        kept = []
        def results(pool):
            for each in pool.imap(abs, range(30)):
                kept.append([[n] for n in range(30_000)])
                with multiprocessing.get_context("fork").Pool(1) as inner:
                    yield inner.apply(abs, (each,))
        with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
            assert tuple(results(pool)) == tuple(range(30))
        assert prefork.statistics().prepares > 5, prefork.statistics()
    """)


def test_what_is_complete_is_shared_although_it_is_a_tuple() -> None:
    """Of a variable, of a variable of a running function, nested."""
    check("""
        CONSTANT = tuple([n] for n in range(10))
        def main():
            table = tuple(tuple([n]) + (frozenset({str(n)}),) for n in range(1000))
            cell = tuple([n] for n in range(10))
            report = prefork.prepare()
            if IMMORTAL:
                assert all(map(is_immortal, table)) and is_immortal(table)
                assert is_immortal(table[5][1]) and is_immortal(CONSTANT) and is_immortal(cell)
                # What the interpreter itself and C modules hold.
                unheld = report.kept_mortal.get("tuple or frozenset that only C code holds", 0)
                assert unheld < 100, unheld
            return lambda: cell
        main()
    """)


FILLING_EXTENSION = """
/* Fills tuples and frozensets as extensions do, and calls Python meanwhile. */
#include <Python.h>

static PyObject *kept; /* as of a server that uses one again for each call */

static PyObject *
fill_tuple(PyObject *module, PyObject *function)
{
    PyObject *tuple = PyTuple_New(3);

    for (Py_ssize_t i = 0; i < 3; i++) {
        PyObject *item = PyObject_CallNoArgs(function);
        if (item == NULL || PyTuple_SetItem(tuple, i, item) < 0) {
            Py_DECREF(tuple);
            return NULL;
        }
    }
    return tuple;
}

static PyObject *
fill_frozenset(PyObject *module, PyObject *function)
{
    PyObject *set = PyFrozenSet_New(NULL);

    for (int i = 0; i < 3; i++) {
        PyObject *item = PyObject_CallNoArgs(function);
        if (item == NULL || PySet_Add(set, item) < 0) {
            Py_XDECREF(item);
            Py_DECREF(set);
            return NULL;
        }
        Py_DECREF(item);
    }
    return set;
}

static PyObject *
fill_again(PyObject *module, PyObject *item)
{
    if (kept == NULL) {
        kept = PyTuple_New(1);
    }
    if (PyTuple_SetItem(kept, 0, Py_NewRef(item)) < 0) {
        return NULL;
    }
    return PyLong_FromSsize_t(PyTuple_GET_SIZE(kept));
}

static PyMethodDef methods[] = {{"fill_tuple", fill_tuple, METH_O, NULL},
                                {"fill_frozenset", fill_frozenset, METH_O, NULL},
                                {"fill_again", fill_again, METH_O, NULL},
                                {NULL, NULL, 0, NULL}};
static PyModuleDef filling = {
    PyModuleDef_HEAD_INIT, .m_name = "filling", .m_methods = methods};

PyMODINIT_FUNC
PyInit_filling(void)
{
    return PyModule_Create(&filling);
}
"""


def build(folder: Path, name: str, text: str) -> None:
    """Make an extension module in `folder`."""
    import sysconfig

    include = sysconfig.get_path("include")
    if not Path(include, "Python.h").is_file():
        pytest.skip("this interpreter came without its headers")
    source = folder / f"{name}.c"
    source.write_text(text)
    compile_c(folder / f"{name}.so", [source], "-shared", "-fPIC", f"-I{include}")


def test_extensions_that_fill_what_they_made(tmp_path: Path) -> None:
    build(tmp_path, "filling", FILLING_EXTENSION)
    check(
        """
        sys.path.insert(0, sys.argv[1])
        import filling
        filling.fill_again([0])
        numbers = iter(range(100))
        def step():
            prefork.prepare()
            return str(next(numbers))
        assert filling.fill_tuple(step) == ("0", "1", "2")
        assert filling.fill_frozenset(step) == {"3", "4", "5"}
        def body():
            assert filling.fill_again([1]) == 1
        in_child(body)
        """,
        str(tmp_path),
    )


OLD_EXTENSION = """
/* As compiled long ago: the count is one word, and whoever takes a reference adds one to it. */
#include <Python.h>

static PyObject *
churn(PyObject *module, PyObject *op)
{
    Py_ssize_t *count = (Py_ssize_t *)op;

    for (int i = 0; i < 1000; i++) {
        ++*count;
        Py_INCREF(op);
        Py_DECREF(op);
        --*count;
    }
    ++*count;
    return op;
}

static PyObject *
leak(PyObject *module, PyObject *op)
{
    for (int i = 0; i < 100000; i++) {
        ++*(Py_ssize_t *)op;
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"churn", churn, METH_O, NULL}, {"leak", leak, METH_O, NULL}, {NULL, NULL, 0, NULL}};
static PyModuleDef old = {PyModuleDef_HEAD_INIT, .m_name = "old", .m_methods = methods};

PyMODINIT_FUNC
PyInit_old(void)
{
    return PyModule_Create(&old);
}
"""


@pytest.mark.needs_gil
def test_c_extensions_with_inlined_counts(tmp_path: Path) -> None:
    build(tmp_path, "old", OLD_EXTENSION)
    check(
        """
        sys.path.insert(0, sys.argv[1])
        import old
        things = [[n, str(n)] for n in range(1000)]
        old.leak(None)
        assert prefork.prepare().immortal is IMMORTAL
        def body():
            for thing in things:
                for _ in range(3):
                    assert old.churn(thing) is thing
            old.leak(things[0])
            for number, thing in enumerate(things):
                other = [thing, thing]
                del other
                assert thing == [number, str(number)]
            things.clear()
            gc.collect()
        in_child(body)
        """,
        str(tmp_path),
    )


def test_exceptions_kept() -> None:
    check("""
        class Kept(Exception):
            pass
        SINGLETON = Kept("again and again")
        try:
            raise Kept("with a traceback")
        except Kept as error:
            kept = error
        prefork.prepare()
        def body():
            import weakref
            class Local:
                pass
            def fail():
                local = Local()
                watch.append(weakref.ref(local))
                raise SINGLETON
            watch = []
            try:
                fail()
            except Kept as error:
                assert error is SINGLETON
            SINGLETON.__traceback__ = None
            gc.collect()
            assert watch[0]() is None, "the frame is kept"
            assert kept.__traceback__.tb_frame is not None
            try:
                raise kept from SINGLETON
            except Kept as error:
                assert error.__cause__ is SINGLETON
        in_child(body)
    """)


def test_caches_that_grow_and_shrink() -> None:
    check("""
        import functools
        @functools.lru_cache(maxsize=100)
        def square(n):
            return n * n
        for n in range(100):
            square(n)
        cache = {n: [n] for n in range(1000)}
        prefork.prepare()
        def body():
            class Mine:
                alive = 0
                def __init__(self):
                    Mine.alive += 1
                def __del__(self):
                    Mine.alive -= 1
            for n in range(10_000):
                assert square(n) == n * n
                cache[n] = Mine()
            assert Mine.alive == 10_000
            cache.clear()
            assert Mine.alive == 0  # what came after the fork dies as ever
            square.cache_clear()
        in_child(body)
    """)


def test_ten_forks_in_a_row() -> None:
    check("""
        data = {n: str(n) for n in range(1000)}
        for turn in range(10):
            report = prefork.prepare()
            data[f"turn {turn}"] = [turn]
            def body():
                assert len(data) == 1001 + turn and data[f"turn {turn}"] == [turn]
                data.clear()
            in_child(body)
        if IMMORTAL:
            report = prefork.prepare()
            assert is_immortal(data["turn 9"]) and report.objects < 1000, report
    """)


def test_the_fork_of_a_fork() -> None:
    check("""
        data = [str(n) for n in range(1000)]
        prefork.prepare()
        def grandchild():
            assert data[5] == "5" and own == ["child"]
        def body():
            global own
            own = ["child"]
            prefork.prepare()
            assert not IMMORTAL or is_immortal(own)
            in_child(grandchild)
        own = None
        in_child(body)
        assert own is None
    """)


def test_new_garbage_is_still_collected() -> None:
    check("""
        data = [[n] for n in range(1000)]
        prefork.prepare()
        def body():
            import weakref
            class Node:
                pass
            node = Node()
            node.self = node
            node.old = data  # a cycle that refers to what is immortal
            data.append(None)
            watch = weakref.ref(node)
            del node
            gc.collect()
            assert watch() is None
            gc.unfreeze()  # and nothing bad comes of it
            gc.collect()
            assert data[5] == [5] and len(gc.get_objects()) > 0
        in_child(body)
    """)
