"""The standard library's multiprocessing: what stays behind in the parent."""

import multiprocessing
import multiprocessing.pool
import threading
from multiprocessing import connection, shared_memory

from survey.drivers.support import Refused, fails

_REFUSED = Refused()
_CONTEXT = multiprocessing.get_context("fork")


def _refuse(_: object = None) -> object:
    raise ValueError("refused")


class _Unpicklable:
    def __reduce__(self) -> str:
        raise ValueError("refused")


def _unpicklable(_: object = None) -> object:
    return _Unpicklable()


def process() -> None:
    child = _CONTEXT.Process(target=str)
    child.start()
    child.join()
    child.close()


def pipe() -> None:
    here, there = _CONTEXT.Pipe()
    with here, there:
        here.send([1])
        there.recv()


def queue() -> None:
    waiting: multiprocessing.Queue[int] = _CONTEXT.Queue()
    waiting.put(1)
    waiting.get()
    waiting.close()
    waiting.join_thread()


def locks() -> None:
    with _CONTEXT.Lock(), _CONTEXT.Condition():
        _CONTEXT.Event().set()
    _CONTEXT.Value("i", 3).value += 1


def shared() -> None:
    block = shared_memory.SharedMemory(create=True, size=16)
    block.close()
    block.unlink()


def pool() -> None:
    with _CONTEXT.Pool(1) as workers:
        workers.map(abs, [1, 2])
        workers.close()
        workers.join()


def pool_left_to_with() -> None:
    with _CONTEXT.Pool(1) as workers:
        workers.map(abs, [1, 2])


def thread_pool() -> None:
    with multiprocessing.pool.ThreadPool(1) as workers:
        workers.map(abs, [1, 2])
        workers.close()
        workers.join()


def failing_process() -> None:
    child = _CONTEXT.Process(target=exit, args=(3,))
    child.start()
    child.join()
    child.close()


class _Pools:
    """A pool that stays, so that what one job leaves is told from what a pool leaves."""

    processes: multiprocessing.pool.Pool | None = None
    threads: multiprocessing.pool.ThreadPool | None = None


def _workers() -> multiprocessing.pool.Pool:
    if _Pools.processes is None:
        _Pools.processes = _CONTEXT.Pool(1)
    return _Pools.processes


def _threads() -> multiprocessing.pool.ThreadPool:
    if _Pools.threads is None:
        _Pools.threads = multiprocessing.pool.ThreadPool(1)
    return _Pools.threads


def failing_job() -> None:
    fails(ValueError, lambda: _workers().apply(_refuse))


def failing_map() -> None:
    fails(ValueError, lambda: _workers().map(_refuse, [1, 2]))


def failing_imap() -> None:
    fails(ValueError, lambda: list(_workers().imap_unordered(_refuse, [1, 2])))


def error_callback() -> None:
    _workers().apply_async(_refuse, error_callback=str).wait()


def job_that_cannot_be_pickled() -> None:
    fails(Exception, lambda: _workers().apply(lambda: 1))
    # The pool's thread goes on to other work, and so lets go of what it had in its variables.
    _workers().apply(abs, (1,))


def result_that_cannot_be_pickled() -> None:
    fails(Exception, lambda: _workers().apply(_unpicklable))


def failing_thread_job() -> None:
    fails(ValueError, lambda: _threads().apply(_refuse))


def failing_thread_map() -> None:
    fails(ValueError, lambda: _threads().map(_refuse, [1, 2]))


def timed_out_job() -> None:
    over = threading.Event()
    result = _threads().apply_async(over.wait)
    fails(multiprocessing.TimeoutError, lambda: result.get(0.001))
    over.set()
    result.wait()


def refused_client() -> None:
    fails(OSError, lambda: connection.Client(("127.0.0.1", _REFUSED.port)))


def end_of_pipe() -> None:
    here, there = _CONTEXT.Pipe()
    there.close()
    with here:
        fails(EOFError, here.recv)


def send_what_cannot_be_pickled() -> None:
    here, there = _CONTEXT.Pipe()
    with here, there:
        fails(ValueError, lambda: here.send(_Unpicklable()))


def missing_memory() -> None:
    fails(OSError, lambda: shared_memory.SharedMemory("cpythonplus-no-such-block"))


def closed_pool() -> None:
    with multiprocessing.pool.ThreadPool(1) as workers:
        workers.close()
        fails(ValueError, lambda: workers.apply(str))
        workers.join()


ORDINARY = [
    process,
    pipe,
    queue,
    locks,
    shared,
    pool,
    pool_left_to_with,
    thread_pool,
]
ERRORS = [
    failing_process,
    failing_job,
    failing_map,
    failing_imap,
    error_callback,
    job_that_cannot_be_pickled,
    result_that_cannot_be_pickled,
    failing_thread_job,
    failing_thread_map,
    timed_out_job,
    refused_client,
    end_of_pipe,
    send_what_cannot_be_pickled,
    missing_memory,
    closed_pool,
]
