"""redis: its clients against a little server of its protocol, and a port that refuses."""

import asyncio
from collections.abc import Coroutine

import redis
from redis import asyncio as aioredis
from redis.backoff import NoBackoff
from redis.retry import Retry

from survey.drivers.support import Connection, Refused, Server, awaits_failing, fails

_ANSWERS: dict[bytes, bytes | None] = {
    b"GET": b"$1\r\nx\r\n",
    b"PING": b"+PONG\r\n",
    b"LRANGE": b"*2\r\n$1\r\na\r\n$1\r\nb\r\n",
    b"INCRBY": b"-WRONGTYPE not a number\r\n",
    b"HGET": None,
    b"HLEN": b"",
    b"LLEN": b"?what is this\r\n",
    b"EVALSHA": b"-NOSCRIPT no such script\r\n",
    b"EVAL": b"-ERR script failed\r\n",
    b"HELLO": b"-ERR unknown command 'HELLO'\r\n",
    b"AUTH": b"-WRONGPASS invalid username-password pair\r\n",
    b"EXEC": b"*2\r\n+OK\r\n$1\r\nx\r\n",
    b"MULTI": b"+OK\r\n",
    b"SUBSCRIBE": b"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n",
    b"UNSUBSCRIBE": b"*3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:0\r\n",
}


def _read(connection: Connection) -> bytes:
    """The command's name; b"" at the end of the connection."""
    count = connection.until(b"\r\n")
    words = []
    for _ in range(int(count[1:] or 0)):
        size = int(connection.until(b"\r\n")[1:])
        words.append(connection.exactly(size + 2)[:-2])
    return b" ".join(words)


class _Transaction:
    """Commands between MULTI and EXEC are queued; one connection at a time is enough here."""

    open = False


def _answer(command: bytes) -> bytes | None:
    name = command.split(b" ")[0].upper()
    if name == b"MULTI":
        _Transaction.open = True
    elif name in (b"EXEC", b"DISCARD"):
        _Transaction.open = False
        return b"*-1\r\n" if b"WATCHED" in command else _ANSWERS[b"EXEC"]
    elif _Transaction.open:
        return b"+QUEUED\r\n"
    return _ANSWERS.get(name, b"+OK\r\n")


_SERVER = Server(_answer, _read)
_REFUSED = Refused()
_LOOP = asyncio.new_event_loop()
_PATIENCE_S = 0.1
_ONCE = Retry(NoBackoff(), 0)


def _new(port: int, **options: object) -> "redis.Redis":
    options = {
        "socket_timeout": _PATIENCE_S,
        "socket_connect_timeout": 30,
        "retry": _ONCE,
        "protocol": 2,
    } | options
    return redis.Redis("127.0.0.1", port, **options)  # type: ignore[arg-type]


# One client for all calls, as a service has.
_CLIENT = _new(_SERVER.port)


async def _asynchronously(port: int, *command: str) -> None:
    client = aioredis.Redis(
        host="127.0.0.1",
        port=port,
        retry=_async_once(),
        socket_timeout=_PATIENCE_S,
        socket_connect_timeout=30,
        protocol=2,
    )
    try:
        await client.execute_command(*command)
    finally:
        await client.aclose()


def _async_once() -> object:
    from redis.asyncio.retry import Retry as AsyncRetry

    return AsyncRetry(NoBackoff(), 0)


def _on_loop(work: Coroutine[object, object, object]) -> None:
    _LOOP.run_until_complete(work)


def get() -> None:
    _CLIENT.get("a")


def set_value() -> None:
    _CLIENT.set("a", "b", ex=10)


def read_list() -> None:
    _CLIENT.lrange("a", 0, -1)


def new_client() -> None:
    client = _new(_SERVER.port)
    client.ping()
    client.close()


def pipeline() -> None:
    with _CLIENT.pipeline(transaction=False) as pipe:
        pipe.set("a", 1).get("a")
        pipe.execute()


def transaction() -> None:
    with _CLIENT.pipeline() as pipe:
        pipe.set("a", 1).get("a")
        pipe.execute()


def subscribe() -> None:
    with _CLIENT.pubsub() as subscription:
        subscription.subscribe("c")
        subscription.get_message(timeout=1)


def get_asynchronously() -> None:
    _on_loop(_asynchronously(_SERVER.port, "GET", "a"))


def refused() -> None:
    fails(redis.ConnectionError, lambda: _new(_REFUSED.port).get("a"))


def refused_with_retries() -> None:
    client = _new(_REFUSED.port, retry=Retry(NoBackoff(), 2))
    fails(redis.ConnectionError, lambda: client.get("a"))


def refused_pipeline() -> None:
    def work() -> None:
        with _new(_REFUSED.port).pipeline() as pipe:
            pipe.set("a", 1)
            pipe.execute()

    fails(redis.ConnectionError, work)


def refused_subscription() -> None:
    def work() -> None:
        with _new(_REFUSED.port).pubsub() as subscription:
            subscription.subscribe("c")

    fails(redis.ConnectionError, work)


def refused_lock() -> None:
    def work() -> None:
        with _new(_REFUSED.port).lock("a", timeout=1):
            pass

    fails(redis.ConnectionError, work)


def refused_asynchronously() -> None:
    _on_loop(awaits_failing(redis.ConnectionError, _asynchronously(_REFUSED.port, "GET", "a")))


def error_answer() -> None:
    fails(redis.ResponseError, lambda: _CLIENT.incr("a"))


def error_answer_asynchronously() -> None:
    _on_loop(awaits_failing(redis.ResponseError, _asynchronously(_SERVER.port, "INCRBY", "a", "1")))


def error_in_a_pipeline() -> None:
    def work() -> None:
        with _CLIENT.pipeline(transaction=False) as pipe:
            pipe.get("a").incr("a")
            pipe.execute()

    fails(redis.ResponseError, work)


def errors_returned_by_a_pipeline() -> None:
    with _CLIENT.pipeline(transaction=False) as pipe:
        pipe.get("a").incr("a")
        pipe.execute(raise_on_error=False)


def timed_out() -> None:
    fails(redis.TimeoutError, lambda: _CLIENT.hget("a", "b"))


def timed_out_asynchronously() -> None:
    _on_loop(awaits_failing(redis.TimeoutError, _asynchronously(_SERVER.port, "HGET", "a", "b")))


def dropped() -> None:
    fails(redis.ConnectionError, lambda: _CLIENT.hlen("a"))


def not_its_protocol() -> None:
    fails(redis.RedisError, lambda: _CLIENT.llen("a"))


def wrong_password() -> None:
    fails(redis.AuthenticationError, lambda: _new(_SERVER.port, password="x").get("a"))


def failing_script() -> None:
    fails(redis.ResponseError, lambda: _CLIENT.eval("x", 0))


def missing_script() -> None:
    fails(redis.exceptions.NoScriptError, lambda: _CLIENT.evalsha("x", 0))


def wrong_value() -> None:
    fails(redis.DataError, lambda: _CLIENT.set("a", object()))  # type: ignore[arg-type]


def wrong_url() -> None:
    fails(ValueError, lambda: redis.Redis.from_url("nothing://"))


def full_pool() -> None:
    pool = redis.ConnectionPool(host="127.0.0.1", port=_SERVER.port, max_connections=1, protocol=2)
    held = pool.get_connection()
    try:
        fails(redis.ConnectionError, pool.get_connection)
    finally:
        pool.release(held)
        pool.disconnect()


ORDINARY = [
    get,
    set_value,
    read_list,
    new_client,
    pipeline,
    transaction,
    subscribe,
    get_asynchronously,
]
ERRORS = [
    refused,
    refused_with_retries,
    refused_pipeline,
    refused_subscription,
    refused_lock,
    refused_asynchronously,
    error_answer,
    error_answer_asynchronously,
    error_in_a_pipeline,
    errors_returned_by_a_pipeline,
    timed_out,
    timed_out_asynchronously,
    dropped,
    not_its_protocol,
    wrong_password,
    failing_script,
    missing_script,
    wrong_value,
    wrong_url,
    full_pool,
]
