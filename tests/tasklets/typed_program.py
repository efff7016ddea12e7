"""Uses the public names with their types: `make check` has mypy read it, nobody runs it."""

import asyncio

from cpythonplus.tasklets import aio, io, locks
from cpythonplus.tasklets.io import names, select, selectors, socket, ssl


def echo(connection: socket.socket, _address: object) -> None:
    while data := connection.recv(100):
        connection.sendall(data)


def servers() -> int:
    context = ssl.create_default_context()
    listener = io.socket.create_server(("", 0))
    one = io.StreamServer(("127.0.0.1", 0), echo, backlog=5, limit=3)
    other = io.StreamServer(listener, echo, ssl_context=context)
    for each in (one, other):
        each.start()
        each.stop(None)
    return one.connections


def times() -> bool:
    timer: io.Timer = io.call_later(1.0, print, "later")
    timer.cancel()
    with io.timeout(None) as limit:
        limit.reschedule(1)
        io.sleep(0)
    return limit.expired() or timer.active


def descriptors() -> list[int]:
    io.wait_readable(0, 1)
    with socket.socket() as connection, selectors.DefaultSelector() as selector:
        io.wait_writable(connection, timeout=None)
        selector.register(connection, selectors.EVENT_READ)
    names.getaddrinfo("localhost", 80)
    return [fd for fd, _events in select.poll().poll(0)]


def settings() -> frozenset[str]:
    io.set_thread_limit(io.in_thread(int, "5"))
    io.set_loop_factory(asyncio.new_event_loop)
    io.patch(socket=True, dns=True, ssl=True, select=False, time=True)
    areas = io.patched()
    io.unpatch()
    return areas


async def both_ways(number: int) -> str:
    started: asyncio.Future[int] = aio.spawn(int, "7")
    return str(number + await started)


def asked() -> str:
    return aio.run(both_ways(1))


def all_locks() -> tuple[int, dict[str, int]]:
    lock, condition, event = locks.Lock(), locks.Condition(), locks.Event()
    with lock, locks.RLock(), locks.Semaphore(1), locks.BoundedSemaphore(2):
        pass
    with lock.acquire_timeout(1) as got, condition:
        condition.wait_for(event.is_set, timeout=1)
        condition.notify_all()
    statistics: locks.LockStatistics = lock.statistics()
    try:
        turn = locks.Barrier(1).wait(1)
    except locks.BrokenBarrierError:
        turn = int(got)
    return turn + statistics.waits, statistics.as_json()


def all_queues() -> int:
    first: locks.Queue[int] = locks.Queue(1)
    last: locks.LifoQueue[int] = locks.LifoQueue()
    least: locks.PriorityQueue[int] = locks.PriorityQueue()
    simple: locks.SimpleQueue[int] = locks.SimpleQueue()
    try:
        first.put(1, timeout=1)
        first.shutdown()
        return first.get() + last.get_nowait() + least.get(timeout=1) + simple.get()
    except (locks.Empty, locks.Full, locks.ShutDown):
        return 0


class PerTasklet(locks.local):
    value: int = 0


def patching() -> bool:
    locks.patch(local=False)
    locks.unpatch()
    return locks.patched()
