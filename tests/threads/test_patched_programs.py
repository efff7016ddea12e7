"""Programs of the standard library's that gain by the patch without change."""

from textwrap import dedent

import pytest

from tests.support import run_child
from tests.threads.patched import run

PROGRAMS = {
    "threads": """
        import threading
        done, local = [], threading.local()
        def body(i):
            local.i = i
            done.append(local.i)
        workers = [threading.Thread(target=body, args=(i,)) for i in range(4)]
        workers += [threading.Timer(0.001, body, args=(9,))]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert sorted(done) == [0, 1, 2, 3, 9]
        assert type(workers[0]._started) is threads.Event
        late = threading.Timer(1000, body)
        late.start()
        late.cancel()
        late.join()
    """,
    "futures": """
        import concurrent.futures as f
        with f.ThreadPoolExecutor(4) as pool:
            assert list(pool.map(str, range(200))) == [str(i) for i in range(200)]
            assert type(pool._work_queue) is threads.SimpleQueue
            futures = [pool.submit(divmod, 7, i) for i in range(3)]
            done, open_ = f.wait(futures, timeout=30)
            assert len(done) == 3 and not open_
            assert isinstance(futures[0].exception(), ZeroDivisionError)
            assert sorted(x.result() for x in f.as_completed(futures[1:])) == [(3, 1), (7, 0)]
    """,
    "barrier of processes": """
        import multiprocessing as mp
        import multiprocessing.synchronize as s
        context = mp.get_context("fork")
        meeting = context.Barrier(2)
        other = context.Process(target=meeting.wait, args=(30,))
        other.start()
        assert meeting.wait(30) in (0, 1) and meeting.n_waiting == 0
        other.join()
        assert other.exitcode == 0
        import threading
        assert s.Barrier.__base__ is threading.Barrier and is_native(threading.Barrier)
    """,
    "process pool": """
        import concurrent.futures as f, multiprocessing as mp
        with f.ProcessPoolExecutor(2, mp_context=mp.get_context("fork")) as pool:
            assert list(pool.map(abs, [-1, -2, -3])) == [1, 2, 3]
    """,
    "logging": """
        import io, logging, logging.handlers, queue, threading
        out, waiting = io.StringIO(), queue.Queue()
        log = logging.getLogger("x")
        log.addHandler(logging.handlers.QueueHandler(waiting))
        listener = logging.handlers.QueueListener(waiting, logging.StreamHandler(out))
        listener.start()
        workers = [threading.Thread(target=log.warning, args=("m",)) for _ in range(9)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        listener.stop()
        assert out.getvalue() == "m\\n" * 9
        assert type(logging._lock) is type(log.handlers[0].lock) is threads.RLock
    """,
    "asyncio": """
        import asyncio, time
        async def main():
            loop = asyncio.get_running_loop()
            found = await asyncio.gather(
                asyncio.to_thread(sum, range(9)), loop.run_in_executor(None, len, "four"))
            loop.call_soon_threadsafe(found.append, 1)
            await asyncio.sleep(0)
            assert found == [36, 4, 1]
            future = asyncio.run_coroutine_threadsafe(asyncio.sleep(0, 5), loop)
            assert await asyncio.wrap_future(future) == 5
            waiting = asyncio.Queue()
            await waiting.put(1)
            assert await waiting.get() == 1 and not is_native(type(waiting))
        asyncio.run(main())
    """,
    "socketserver": """
        import socketserver, socket, threading
        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                self.wfile.write(self.rfile.readline().upper())
        with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
            serving = threading.Thread(target=server.serve_forever, args=(0.01,))
            serving.start()
            for word in ("one", "two"):
                with socket.create_connection(server.server_address) as client:
                    client.sendall(word.encode() + b"\\n")
                    assert client.makefile().read() == word.upper() + "\\n"
            server.shutdown()
            serving.join()
    """,
    "queue of one's own": """
        import heapq, queue, threading
        class Newest(queue.Queue):
            def _init(self, maxsize):
                self.queue = []
            def _qsize(self):
                return len(self.queue)
            def _put(self, item):
                self.queue.append(item)
            def _get(self):
                return self.queue.pop()
        waiting = Newest(2)
        waiting.put(1)
        waiting.put(2)
        try:
            waiting.put_nowait(3)
        except queue.Full:
            pass
        assert (waiting.get(), waiting.get()) == (2, 1)
        with waiting.mutex:
            assert waiting.unfinished_tasks == 2
        waiting.task_done()
        waiting.task_done()
        waiting.join()
        typed: queue.Queue[int] = queue.Queue[int]()
        assert typed.qsize() == 0
    """,
    "pool of threads": """
        from multiprocessing.dummy import Pool
        from multiprocessing.pool import ThreadPool
        for kind in (Pool, ThreadPool):
            with kind(3) as pool:
                assert pool.map(abs, range(-20, 0)) == list(range(20, 0, -1))
                assert pool.apply_async(abs, (-5,)).get(30) == 5
    """,
    "copying": """
        import copy, pickle, queue, threading, weakref
        for kind in natives().values():
            thing = kind(1) if kind is threads.Barrier else kind()
            assert weakref.ref(thing)() is thing
            try:
                pickle.dumps(thing)
            except TypeError:
                pass
            else:
                raise AssertionError(kind)
            assert copy.copy(kind) is kind
        for kind in public().values():
            assert pickle.loads(pickle.dumps(kind)) is kind and copy.copy(kind) is kind
        assert pickle.loads(pickle.dumps(queue.Empty("x"))).args == ("x",)
        assert pickle.loads(pickle.dumps(queue.ShutDown("x"))).args == ("x",)
    """,
    "lru and the like": """
        import functools, random, tempfile, threading
        @functools.lru_cache(maxsize=3)
        def f(x):
            return x
        assert [f(i) for i in (1, 2, 1, 3, 4)] == [1, 2, 1, 3, 4]
        with tempfile.NamedTemporaryFile() as file:
            assert file.name
    """,
}


@pytest.mark.parametrize("early", [True, False], ids=["patched first", "imported first"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(name: str, early: bool) -> None:
    program = dedent(PROGRAMS[name])
    patch = "threads.patch()\n"
    if early:
        program = patch + program
    else:
        # Its imports, and only then the patch: the locks that the modules made are stock ones.
        lines = program.strip().splitlines()
        imports = [line for line in lines if line.startswith(("import ", "from "))]
        program = "\n".join([*imports, patch, *lines])
        program = program.replace("type(logging._lock) is ", "")
    run(program)


MULTIPROCESSING = """
import multiprocessing, queue, sys, threading
from cpythonplus import threads
threads.patch()

def work(numbers, lock, event, results):
    waiting, native = queue.Queue(), isinstance(threading.Lock(), threads.Lock)
    thread = threading.Thread(target=lambda: waiting.put(sum(numbers)))
    thread.start()
    with lock:
        results.put((waiting.get(timeout=30), native, threads.patched()))
    thread.join()
    event.set()

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    lock, event, results = context.Lock(), context.Event(), context.Queue()
    process = context.Process(target=work, args=([1, 2], lock, event, results))
    process.start()
    assert event.wait(30)
    assert results.get(timeout=30) == (3, True, True)
    process.join()
    assert process.exitcode == 0
    with context.Manager() as manager:
        waiting, condition, gate = manager.Queue(2), manager.Condition(), manager.Semaphore(1)
        waiting.put(5)
        assert waiting.get(timeout=30) == 5 and waiting.empty()
        with condition, gate:
            condition.notify_all()
        try:
            waiting.get(block=False)
        except queue.Empty:
            pass
    with context.Pool(2) as pool:
        assert pool.map(abs, range(-5, 0)) == [5, 4, 3, 2, 1]
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(method: str) -> None:
    """Its workers import the program, and with it the patch; its own primitives are shared ones."""
    run_child(MULTIPROCESSING, args=[method])
