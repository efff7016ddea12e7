"""The standard library's asyncio: whole runs, and work on a loop that stays."""

import asyncio
from collections.abc import Coroutine

from survey.drivers.support import Refused, awaits_failing, fails

_REFUSED = Refused()
_LOOP = asyncio.new_event_loop()
_LOOP.set_exception_handler(lambda _loop, _context: None)


def _on_loop(work: Coroutine[object, object, object]) -> None:
    _LOOP.run_until_complete(work)


async def _nothing() -> None:
    await asyncio.sleep(0)


async def _refuse() -> None:
    await asyncio.sleep(0)
    raise ValueError("refused")


async def _forever() -> None:
    await asyncio.Event().wait()


def _refuse_at_once() -> None:
    raise ValueError("refused")


def run() -> None:
    asyncio.run(_nothing())


def gather() -> None:
    async def work() -> None:
        await asyncio.gather(_nothing(), _nothing())

    _on_loop(work())


def task_group() -> None:
    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(_nothing())

    _on_loop(work())


def wait_for() -> None:
    _on_loop(asyncio.wait_for(_nothing(), 10))


def as_completed() -> None:
    async def work() -> None:
        for done in asyncio.as_completed([_nothing(), _nothing()]):
            await done

    _on_loop(work())


def queue() -> None:
    async def work() -> None:
        waiting: asyncio.Queue[int] = asyncio.Queue(1)
        getter = asyncio.create_task(waiting.get())
        await waiting.put(1)
        await getter

    _on_loop(work())


def to_thread() -> None:
    _on_loop(asyncio.to_thread(str))


def streams() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def work() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"x\n")
            await reader.read()
            writer.close()
            await writer.wait_closed()

    _on_loop(work())


def subprocess() -> None:
    async def work() -> None:
        process = await asyncio.create_subprocess_exec("true", stdout=asyncio.subprocess.PIPE)
        await process.communicate()

    _on_loop(work())


def run_that_fails() -> None:
    fails(ValueError, lambda: asyncio.run(_refuse()))


def task_that_fails() -> None:
    fails(ValueError, lambda: _on_loop(_refuse()))


def gather_that_fails() -> None:
    async def work() -> None:
        await asyncio.gather(_refuse(), _nothing())

    _on_loop(awaits_failing(ValueError, work()))


def gather_exceptions() -> None:
    async def work() -> None:
        await asyncio.gather(_refuse(), _nothing(), return_exceptions=True)

    _on_loop(work())


def task_group_that_fails() -> None:
    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(_refuse())
            group.create_task(_forever())

    _on_loop(awaits_failing(ExceptionGroup, work()))


def body_of_a_task_group_that_fails() -> None:
    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(_forever())
            await _refuse()

    _on_loop(awaits_failing(ExceptionGroup, work()))


def wait_for_too_long() -> None:
    _on_loop(awaits_failing(TimeoutError, asyncio.wait_for(_forever(), 0.001)))


def timeout() -> None:
    async def work() -> None:
        async with asyncio.timeout(0.001):
            await _forever()

    _on_loop(awaits_failing(TimeoutError, work()))


def wait_for_what_fails() -> None:
    _on_loop(awaits_failing(ValueError, asyncio.wait_for(_refuse(), 10)))


def cancelled() -> None:
    async def work() -> None:
        task = asyncio.create_task(_forever())
        await asyncio.sleep(0)
        task.cancel()
        await task

    _on_loop(awaits_failing(asyncio.CancelledError, work()))


def shielded() -> None:
    async def work() -> None:
        await asyncio.shield(_refuse())

    _on_loop(awaits_failing(ValueError, work()))


def never_awaited_result() -> None:
    async def work() -> None:
        await asyncio.wait([asyncio.create_task(_refuse())])

    _on_loop(work())


def as_completed_that_fails() -> None:
    async def work() -> None:
        for done in asyncio.as_completed([_refuse(), _nothing()]):
            await done

    _on_loop(awaits_failing(ValueError, work()))


def failing_callback() -> None:
    async def work() -> None:
        asyncio.get_running_loop().call_soon(_refuse_at_once)
        await asyncio.sleep(0)

    _on_loop(work())


def thread_that_fails() -> None:
    _on_loop(awaits_failing(ValueError, asyncio.to_thread(_refuse_at_once)))


def connection_refused() -> None:
    _on_loop(awaits_failing(OSError, asyncio.open_connection("127.0.0.1", _REFUSED.port)))


def connections_refused() -> None:
    """Several addresses, one after the other and racing."""

    async def work(delay: float | None) -> None:
        await asyncio.open_connection("localhost", _REFUSED.port, happy_eyeballs_delay=delay)

    _on_loop(awaits_failing(OSError, work(None)))
    _on_loop(awaits_failing(OSError, work(0.25)))


def address_in_use() -> None:
    async def work() -> None:
        await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", _REFUSED.port)

    _on_loop(awaits_failing(OSError, work()))


def incomplete_read() -> None:
    async def work() -> None:
        reader = asyncio.StreamReader()
        reader.feed_data(b"x")
        reader.feed_eof()
        await reader.readexactly(10)

    _on_loop(awaits_failing(asyncio.IncompleteReadError, work()))


def stream_that_fails() -> None:
    async def work() -> None:
        reader = asyncio.StreamReader()
        reader.set_exception(ValueError("refused"))
        await reader.readline()

    _on_loop(awaits_failing(ValueError, work()))


def missing_program() -> None:
    _on_loop(awaits_failing(OSError, asyncio.create_subprocess_exec("/no/such/program")))


ORDINARY = [
    run,
    gather,
    task_group,
    wait_for,
    as_completed,
    queue,
    to_thread,
    streams,
    subprocess,
]
ERRORS = [
    run_that_fails,
    task_that_fails,
    gather_that_fails,
    gather_exceptions,
    task_group_that_fails,
    body_of_a_task_group_that_fails,
    wait_for_too_long,
    timeout,
    wait_for_what_fails,
    cancelled,
    shielded,
    never_awaited_result,
    as_completed_that_fails,
    failing_callback,
    thread_that_fails,
    connection_refused,
    connections_refused,
    address_in_use,
    incomplete_read,
    stream_that_fails,
    missing_program,
]
