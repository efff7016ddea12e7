"""Threads that a fork loses: named, ended in time, or started again in the worker."""

import contextlib
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.prefork.serving import answers, running, until
from tests.support import compile_c, run_child

PRELUDE = """
    import ctypes, logging, os, queue, sys, threading, time
    from concurrent.futures import ThreadPoolExecutor
    from cpythonplus.prefork._fork import native_threads as _native_threads
    from cpythonplus.prefork._fork import openmp as _openmp
    from cpythonplus.prefork._engine import Engine
    from cpythonplus.prefork._limits.hung_workers import HungWorkers
    from cpythonplus.prefork._fork.lost_threads import LostThreads
    from cpythonplus.prefork._options import Options

    class Log:
        def __init__(self):
            self.lines = []
        def __getattr__(self, level):
            return lambda text, *args, **_: self.lines.append((level, text % args))

    def until(condition):
        end = time.monotonic() + 60
        while not condition() and time.monotonic() < end:
            time.sleep(0.01)
        assert condition()

    def in_child(body):
        pid = os.fork()
        if pid == 0:
            ctypes.CDLL(None).prctl(1, 9)  # it ends with the test, also if that has failed
            status = 1
            try:
                body()
                status = 0
            except BaseException:
                import traceback
                traceback.print_exc()
            os._exit(status)
        return pid

    def ended(pid):
        status = []
        def look():
            if not status:
                found, how = os.waitpid(pid, os.WNOHANG)
                status.extend([os.waitstatus_to_exitcode(how)] if found else [])
            return status
        try:
            until(look)
        finally:
            if not status:
                os.kill(pid, 9)
        return status[0]
"""

WAITING = """
    #include <pthread.h>
    #include <unistd.h>
    static void *waits(void *ignored) { for (;;) pause(); return ignored; }
    int start(void) { pthread_t thread; return pthread_create(&thread, 0, waits, 0); }
    void hang(void) { waits(0); }
"""

OPENMP = """
    #include <stdatomic.h>
    static atomic_int inside, over;
    long compute(long count) {
        long sum = 0;
    #pragma omp parallel for num_threads(2) reduction(+ : sum)
        for (long i = 0; i < count; i++) sum += i;
        return sum;
    }
    long compute_until_told(void) {
        long sum = 0;
    #pragma omp parallel num_threads(2) reduction(+ : sum)
        { sum += 1; inside++; while (!over) ; }
        return sum;
    }
    int is_inside(void) { return inside == 2; }
    void end(void) { over = 1; }
"""


def program(text: str) -> str:
    return f"{PRELUDE}\n{text}"


def library(folder: Path, source: str, *flags: str, name: str = "libwaiting.so") -> str:
    (folder / "library.c").write_text(source)
    output = folder / name
    return str(compile_c(output, [folder / "library.c"], "-shared", "-fPIC", *flags))


@pytest.fixture
def waiting(tmp_path: Path) -> str:
    return library(tmp_path, WAITING)


@pytest.fixture
def openmp(tmp_path: Path) -> str:
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if shutil.which(compiler[0]) is None:
        pytest.skip("no C compiler")
    command = [*compiler, "-fopenmp", "-x", "c", "-", "-o", str(tmp_path / "tried")]
    source = b"int main(void) { return 0; }"
    done = subprocess.run(command, check=False, input=source, capture_output=True)
    if done.returncode != 0:
        pytest.skip("the compiler has no OpenMP")
    return library(tmp_path, OPENMP, "-fopenmp", name="libcomputing.so")


# ---- which threads there are --------------------------------------------------------------------


def test_threads_of_this_process(waiting: str) -> None:
    run_child(
        program(
            """
    assert _native_threads.threads_of() == []
    assert ctypes.CDLL(sys.argv[1]).start() == 0
    over = threading.Event()
    threading.Thread(target=over.wait, name="mine", daemon=True).start()
    def found():
        return {(each.library, each.is_python) for each in _native_threads.threads_of()}
    until(lambda: found() == {("libwaiting.so", False), ("", True)})
    native, mine = sorted(_native_threads.threads_of(), key=lambda each: each.is_python)
    assert native.path == sys.argv[1]
    assert mine.name == "mine" and mine.tid == threading.enumerate()[1].native_id
    assert str(native).endswith(" (libwaiting.so)") and str(mine) == "mine"
    """
        ),
        args=[waiting],
    )


def test_threads_of_another_process(waiting: str) -> None:
    run_child(
        program(
            """
    pid = in_child(lambda: ctypes.CDLL(sys.argv[1]).hang())
    until(lambda: [each.library for each in _native_threads.threads_of(pid)] == ["libwaiting.so"])
    only, = _native_threads.threads_of(pid)
    assert only.tid == pid and only.is_python
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    assert _native_threads.threads_of(pid) == [] == _native_threads.loaded_libraries(pid)
    """
        ),
        args=[waiting],
    )


def test_a_thread_that_runs_is_named_all_the_same(openmp: str) -> None:
    run_child(
        program(
            """
    computing = ctypes.CDLL(sys.argv[1])
    thread = threading.Thread(target=computing.compute_until_told, name="busy")
    thread.start()
    until(computing.is_inside)
    assert [each.name for each in _native_threads.threads_of() if each.is_python] == ["busy"]
    assert len(_native_threads.threads_of()) == 2
    computing.end()
    thread.join()
    """
        ),
        args=[openmp],
    )


def test_each_kind_is_told_once(waiting: str) -> None:
    run_child(
        program(
            """
    lost, log, over = LostThreads(), Log(), threading.Event()
    for number in range(3):
        threading.Thread(target=over.wait, name=f"refresher-{number}", daemon=True).start()
    assert ctypes.CDLL(sys.argv[1]).start() == 0
    until(lambda: any(each.library for each in _native_threads.threads_of()))
    threading.Thread(target=over.wait, name="OtelBatchSpanRecordProcessor", daemon=True).start()
    lost.end(log, "Do something.")
    (warned, line), (informed, back) = log.lines
    assert (warned, informed) == ("warning", "info")
    assert line.startswith("threads of the master: "), line
    assert "3 like refresher-" in line and "(libwaiting.so)" in line, line
    assert line.endswith("stays locked in that worker. Do something."), line
    assert back.endswith("each worker starts again: OtelBatchSpanRecordProcessor"), back
    threading.Thread(target=over.wait, name="refresher-7", daemon=True).start()
    lost.end(log, "Do something.")
    assert len(log.lines) == 2, log.lines
    lost.end(log, None)
    threading.Thread(target=over.wait, name="another", daemon=True).start()
    lost.end(log, None)
    assert len(log.lines) == 2, log.lines
    lost.end(log, "")
    assert "threads of the master: another." in log.lines[2][1], log.lines
    """
        ),
        args=[waiting],
    )


def test_a_thread_that_its_library_starts_in_each_process_is_not_lost() -> None:
    run_child(
        program(
            """
    from cpythonplus.prefork._fork.lost_threads import lost
    over = threading.Event()
    def dumper():
        over.wait()
    dumper.__module__ = "trytond.status"
    threading.Thread(target=dumper, daemon=True).start()
    assert lost() == []
    dumper.__module__ = "another"
    assert [each.name for each in lost()] == ["Thread-1 (dumper)"]
    """
        )
    )


# ---- OpenMP -------------------------------------------------------------------------------------


def test_openmps_threads_are_ended_before_the_fork(openmp: str) -> None:
    run_child(
        program(
            """
    computing = ctypes.CDLL(sys.argv[1])
    for _ in range(2):
        assert computing.compute(1000) == 499500
        log = Log()
        parent = Engine(Options(gil=False, immortal=False, fill_pools=False))
        parent.log = log
        parent.before_fork()
        assert _native_threads.threads_of() == []
        assert not [line for line in log.lines if line[0] in ("warning", "error")], log.lines
        def body():
            assert computing.compute(1000) == 499500
        assert ended(in_child(body)) == 0
    assert computing.compute(1000) == 499500
    # At a later fork too.
    parent.before_fork()
    assert _native_threads.threads_of() == []
    """
        ),
        args=[openmp],
    )


def test_another_thread_that_computes_is_not_disturbed(openmp: str) -> None:
    run_child(
        program(
            """
    computing = ctypes.CDLL(sys.argv[1])
    assert computing.compute(1000) == 499500
    answers = []
    thread = threading.Thread(target=lambda: answers.append(computing.compute_until_told()))
    thread.start()
    until(computing.is_inside)
    assert _openmp.pause() == []
    def body():
        assert computing.compute(1000) == 499500
    assert ended(in_child(body)) == 0
    assert computing.compute(1000) == 499500
    computing.end()
    thread.join()
    assert answers == [2], answers
    """
        ),
        args=[openmp],
    )


def test_a_runtime_that_cannot_end_its_threads(tmp_path: Path) -> None:
    run_child(
        program(
            """
    lost, log = LostThreads(), Log()
    old = ctypes.CDLL(sys.argv[1])
    lost.end(log, "")
    assert log.lines == [], "it has no threads yet"
    assert old.start() == 0
    until(lambda: any(each.library for each in _native_threads.threads_of()))
    lost.end(log, "")
    lost.end(log, "")
    (level, line), (_, other) = log.lines
    assert level == "warning" and sys.argv[1] in line and "Set OMP_NUM_THREADS=1" in line, line
    assert "(libgomp-1234.so.1.0.0)" in other, other
    """
        ),
        args=[library(tmp_path, WAITING, name="libgomp-1234.so.1.0.0")],
    )


def test_names_of_runtimes() -> None:
    from cpythonplus.prefork._fork.openmp import is_openmp

    runtimes = ("libgomp.so.1.0.0", "libgomp-a34b3233.so.1.0.0", "libomp.so", "libomp-14.so.5")
    assert all(map(is_openmp, (*runtimes, "libiomp5.so")))
    assert not any(map(is_openmp, ("libompl.so", "libgomp.py", "libopenblas.so", "xlibgomp.so")))


def test_a_warm_up_that_computes_with_openmp(openmp: str, tmp_path: Path) -> None:
    app = f"""
        import ctypes
        computing = ctypes.CDLL({openmp!r})
        def app(environ, start_response):
            body = str(computing.compute(1000)).encode()
            start_response("200 OK", [("Content-Length", str(len(body)))])
            return [body]
    """
    with running(tmp_path, "--warm-up", "/", "--workers", "2", app=app) as server:
        assert server.get() == "499500"
        assert "threads of the master" not in server.output()
        assert server.stop() == 0


# ---- started again ------------------------------------------------------------------------------


def test_an_executor_works_in_a_worker() -> None:
    run_child(
        program(
            """
    pool = ThreadPoolExecutor(2)
    over, began = threading.Event(), threading.Event()
    idle = pool.submit(os.getpid)
    assert idle.result(60) == os.getpid()
    done = []
    def busy():
        began.set()
        over.wait(60)
    pool.submit(busy)
    began.wait(60)
    pool.submit(busy)
    later = pool.submit(lambda: done.append(os.getpid()))  # waits in the queue
    ended_one = ThreadPoolExecutor(1)
    ended_one.submit(int).result(60)
    ended_one.shutdown()
    parent = Engine(Options(gil=False))
    parent.log = Log()
    parent.before_fork()
    assert ("info", "threads of the master that each worker starts again:"
            " 2 like ThreadPoolExecutor-0_0") in parent.log.lines, parent.log.lines
    def body():
        parent.start_worker()
        assert {pool.submit(os.getpid).result(60) for _ in range(4)} == {os.getpid()}
        assert done == [], "the parent does that"
        try:
            ended_one.submit(int)
        except RuntimeError:
            pass
        else:
            raise AssertionError("it was shut down")
    assert ended(in_child(body)) == 0
    over.set()
    later.result(60)
    assert done == [os.getpid()]
    """
        )
    )


POOLS = {
    "executor": "futures.ProcessPoolExecutor(1)",
    "pool": "multiprocessing.Pool(1)",
    "threads": "multiprocessing.pool.ThreadPool(1)",
}


@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
def test_a_pool_of_processes_works_in_a_worker(pool: str) -> None:
    run_child(
        program(
            f"""
    from concurrent import futures
    import multiprocessing.pool
    if __name__ == "__main__":
        multiprocessing.set_start_method("fork")
        pool = {pool}
        def ask():
            if hasattr(pool, "submit"):
                return pool.submit(os.getpid).result(60)
            return pool.apply_async(os.getpid).get(60)
        end = getattr(pool, "shutdown", getattr(pool, "terminate", None))
        mine = ask()
        parent = Engine(Options(gil=False))
        parent.log = Log()
        parent.threads.processes = True
        parent.before_fork()
        line = next(line for _, line in parent.log.lines if "threads of the master" in line)
        assert line.startswith("threads of the master that each worker starts again:"), line
        def body():
            parent.start_worker()
            assert ask() not in {{mine, os.getppid()}}
            end()
        assert ended(in_child(body)) == 0
        assert ask() == mine
        end()
    """
        )
    )


@pytest.mark.parametrize("kind", ["Queue", "SimpleQueue"])
def test_a_listener_of_the_log_listens_in_a_worker(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "log"
    run_child(
        program(
            """
    import logging.handlers
    records = getattr(queue, sys.argv[2])()
    handler, over = logging.FileHandler(sys.argv[1]), threading.Event()
    began = threading.Event()
    class Slow(logging.Handler):
        def emit(self, record):
            if record.msg == "first":
                began.set()
                over.wait(60)
    listener = logging.handlers.QueueListener(records, Slow(), handler)
    logger = logging.getLogger("mine")
    logger.addHandler(logging.handlers.QueueHandler(records))
    listener.start()
    logger.error("first")
    began.wait(60)
    logger.error("second")
    parent = Engine(Options(gil=False))
    parent.log = Log()
    parent.before_fork()
    def body():
        parent.start_worker()
        logger.error("third, by the worker")
        listener.stop()
    assert ended(in_child(body)) == 0
    assert open(sys.argv[1]).read() == "third, by the worker\\n"
    over.set()
    listener.stop()
    """
        ),
        args=[str(path), kind],
    )
    assert path.read_text() == "third, by the worker\nfirst\nsecond\n"


def test_a_listener_of_another_process_queue_stays_the_parents() -> None:
    run_child(
        program(
            """
    import logging.handlers, multiprocessing
    listener = logging.handlers.QueueListener(multiprocessing.get_context("fork").Queue())
    listener.start()
    parent = Engine(Options(gil=False))
    parent.log = Log()
    parent.before_fork()
    assert any("threads of the master: " in line for _, line in parent.log.lines)
    def body():
        parent.start_worker()
        assert not listener._thread.is_alive()
    assert ended(in_child(body)) == 0
    listener.stop()
    """
        )
    )


def test_sentrys_next_thread_is_woken() -> None:
    # A class of its shape: a lost thread waits in the queue, and takes the wake-up of the next one.
    run_child(
        program(
            """
    import types
    class BackgroundWorker:
        def __init__(self, size=100):
            self._queue, self._lock = queue.Queue(size), threading.Lock()
            self._thread = self._thread_for_pid = None
        def submit(self, callback):
            if self._thread_for_pid != os.getpid():
                self._thread = threading.Thread(target=self._target, daemon=True)
                self._thread.start()
                self._thread_for_pid = os.getpid()
                until(lambda: len(self._queue.not_empty._waiters) >= 1)
            self._queue.put_nowait(callback)
        def _target(self):
            while True:
                self._queue.get()()
    sys.modules["sentry_sdk.worker"] = types.SimpleNamespace(BackgroundWorker=BackgroundWorker)
    worker, sent = BackgroundWorker(7), threading.Event()
    worker.submit(sent.set)
    assert sent.wait(60)
    until(lambda: worker._queue.not_empty._waiters)
    parent = Engine(Options(gil=False, threads=False))
    parent.log = Log()
    parent.before_fork()
    sent.clear()
    def body():
        parent.start_worker()
        worker.submit(sent.set)
        assert sent.wait(60)
        assert worker._queue.maxsize == 7
    assert ended(in_child(body)) == 0
    """
        )
    )


# ---- workers that hang --------------------------------------------------------------------------


def test_workers_that_hang_one_after_another(waiting: str) -> None:
    run_child(
        program(
            """
    pid = in_child(lambda: ctypes.CDLL(sys.argv[1]).hang())
    until(lambda: [each.library for each in _native_threads.threads_of(pid)] == ["libwaiting.so"])
    hung, log = HungWorkers(), Log()
    def look(*, served=False, what="hangs in its first request"):
        log.lines.clear()
        hung.look(log, pid, what=what, served=served, enough=2)
        return log.lines
    where = f"in {sys.argv[1]}"
    assert look() == [("warning", f"worker {pid} hangs in its first request, {where}")]
    _, (level, line) = look()
    assert level == "error" and line.startswith(
        f"each of the last 2 workers hangs in its first request, {where}, and"
    ), line
    assert len(look()) == 1 and len(look()) == 2, "told again and again"
    assert len(look()) == 1
    assert look(what="hangs") == [("warning", f"worker {pid} hangs, {where}")]
    assert len(look()) == 1
    assert look(what="hangs as it starts")[0][1] == f"worker {pid} hangs as it starts, {where}"
    assert len(look()) == 1, "the one before hung elsewhere"
    assert len(look(served=True)) == 1
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    assert look()[0] == (
        "warning", f"worker {pid} hangs in its first request, in Python or the C library"
    )
    """
        ),
        args=[waiting],
    )


@pytest.mark.slow
def test_the_log_says_in_what_workers_hang(waiting: str, tmp_path: Path) -> None:
    app = f"""
        import ctypes
        library = ctypes.CDLL({waiting!r})
        def app(environ, start_response):
            if environ["PATH_INFO"] == "/hang":
                library.hang()
            start_response("200 OK", [("Content-Length", "2")])
            return [b"ok"]
    """
    words = ("--timeout", "1", "--graceful-timeout", "1")
    with running(tmp_path, *words, app=app) as server:

        def told(line: str, *paths: str) -> bool:
            for path in paths:
                with contextlib.suppress(OSError):
                    server.get(path)
            return line in server.output()

        # On a busy machine a worker may be slow to start, and is then told of in another way.
        until(lambda: told(f" hangs, in {waiting}", "/", "/hang"), "a worker that had served")
        line = f"each of the last 2 workers hangs in its first request, in {waiting}"
        until(lambda: told(line, "/hang"), "the line about all of them")
        assert server.output().count(f" hangs in its first request, in {waiting}") >= 2
        until(lambda: answers(server), "an answer")  # a slow worker is ended, too
        assert server.stop() == 0
