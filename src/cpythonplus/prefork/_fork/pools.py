"""Closing the idle connections of known pools before a fork, so that workers begin with none.

`connections` cuts open connections in a worker.  A pool notices that in its own way, often with an
error for the first request.  A pool that is empty at the fork just opens new connections.
Connections in use are left alone.

Libraries are looked for in sys.modules, never imported.  Each is closed by its own means, unless
these close it for good:

    Django          connection.close()
    SQLAlchemy      engine.dispose(); dispose(close=False) for an asynchronous engine, which could
                    close only in its event loop.  Not SQLite and DuckDB: the data may be in the
                    memory of the connection
    redis           pool.disconnect(inuse_connections=False); redis.asyncio: as httpx
    http.client     connection.close(); urllib3, requests and botocore keep subclasses of it
    httpx           close() of idle connections in httpcore's pools; a closed client stays closed.
                    Those of an asynchronous pool are dropped: closing them needs the event loop of
                    the warm-up, which has ended, and a worker would fail to do so again and again
    multiprocessing the connection of this thread to a Manager; a proxy opens another one
    psycopg_pool    pool.close(), because a fork loses its threads; each worker opens it again

Libraries with a handler for the forks of multiprocessing (kombu and celery, queues) have it called
in a server's workers too.  pymongo has a fork handler of its own.  A pool of asyncpg and a session
of aiohttp belong to one event loop for good: made in a warm-up, they work in no worker.
`before_fork` is for all others.
"""

import logging
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

from cpythonplus._base.modules import imported
from cpythonplus.prefork._fork.preparing import instances_of
from cpythonplus.prefork._guarding import Guard

_F = TypeVar("_F", bound="Callable[[], object]")

_callbacks: list[Callable[[], object]] = []
_pools: dict[str, list[weakref.ref[Any]]] = {}
"""Pools that were found, by library: once frozen they are not found again."""
_closed: list[Any] = []
"""Pools to open again."""


def before_fork(callback: _F) -> _F:
    """Have `callback` called without arguments before each fork of a worker.

    It runs in the parent, in the thread that forks, before the memory is prepared.  Use it to close
    the connections of a pool that cpythonplus does not know, and to stop threads.  Connections that
    are still open then are cut in the worker.  An exception becomes one line in the log.

    uWSGI forks in C without calling Python first: there it is called once, before the first fork.
    Nothing is called before forks that cpythonplus does not prepare, or with CPYTHONPLUS_DISABLE
    set.  A callback that is given twice is called once.

    Returns `callback`, so this is a decorator too.
    """
    if callback not in _callbacks:
        _callbacks.append(callback)
    return callback


def call_before_fork(log: Any) -> None:  # noqa: ANN401  # what a Guard has
    """Call the functions given to `before_fork`, in that order; raises nothing."""
    for callback in _callbacks:
        name = getattr(callback, "__qualname__", repr(callback))
        with Guard(log, f"{name}, which was given to before_fork,"):
            callback()


def call_after_fork(log: Any) -> None:  # noqa: ANN401  # what a Guard has
    """Call, in a worker, what libraries have registered for multiprocessing's children."""
    with Guard(log, "calling multiprocessing's fork handlers", catch=Exception):
        call = getattr(sys.modules.get("multiprocessing.util"), "_run_after_forkers", None)
        if call is not None:
            call()


def close_known(log: Any, *, warmed: bool, whole: bool) -> str:  # noqa: ANN401  # what a Guard has
    """Close the idle connections of known pools; returns the number of each, for the log.

    warmed: of all libraries, not only Django's.  whole: the parent only forks, so pools that it
    cannot use afterwards are closed too.  Raises nothing.
    """
    found: list[str] = []
    for name, (module, class_name, close) in _LIBRARIES.items() if warmed else ():
        count = 0
        if close is _close_psycopg and not whole:
            continue
        with Guard(log, f"closing connections of {name} before the fork"):
            for pool in instances(name, getattr(sys.modules.get(module), class_name, None)):
                # An error of one pool must not keep the others open.
                with Guard(log, f"closing a connection of {name} before the fork"):
                    count += close(pool)
        if count:
            found.append(f"{name}: {count}")
    with Guard(log, "closing Django's connections before the fork"):
        for connection in _djangos():
            with Guard(log, "closing a connection of Django's before the fork"):
                connection.close()
    return ", ".join(found)


def reopen(log: Any) -> None:  # noqa: ANN401  # what a Guard has
    """Open closed pools again, in a worker or before another warm-up; raises nothing."""
    while _closed:
        with Guard(log, "opening a pool of psycopg_pool again", catch=Exception):
            _closed.pop().open()


def instances(name: str, kind: object) -> Iterator[Any]:
    """Yield the instances of a class, also those that were found under `name` and then frozen."""
    if not isinstance(kind, type):
        return
    known = [each for each in _pools.get(name, ()) if each() is not None]
    seen = {id(each()) for each in known}
    known += [weakref.ref(each) for each in instances_of(kind) if id(each) not in seen]
    _pools[name] = known
    for each in known:
        pool = each()
        if pool is not None:
            yield pool


# ---- libraries: each function closes one pool, and returns the number of its connections ---------


def _close_engine(engine: Any) -> int:  # noqa: ANN401  # SQLAlchemy's
    if engine.dialect.name in {"sqlite", "duckdb"}:
        return 0
    idle = getattr(engine.pool, "checkedin", int)()
    if getattr(engine.dialect, "is_async", False):
        engine.dispose(close=False)
    else:
        engine.dispose()
    return int(idle > 0)


def _close_redis(pool: Any) -> int:  # noqa: ANN401  # redis-py's
    idle = [each for each in getattr(pool, "_available_connections", ()) if each._sock is not None]  # noqa: SLF001
    with suppress(TypeError):  # an older BlockingConnectionPool cannot do that
        pool.disconnect(inuse_connections=False)
    return len(idle)


def _close_http(connection: Any) -> int:  # noqa: ANN401  # http.client's
    answer = getattr(connection, "_HTTPConnection__response", None)
    state = getattr(connection, "_HTTPConnection__state", "")
    if connection.sock is None or state != "Idle" or (answer and not answer.isclosed()):
        return 0
    connection.close()
    return 1


def _close_httpcore(pool: Any) -> int:  # noqa: ANN401  # httpcore's
    idle = [each for each in pool.connections if each.is_idle()]
    for each in idle:
        each.close()
    return len(idle)


def _drop_httpcore(pool: Any) -> int:  # noqa: ANN401  # httpcore's
    return _drop(pool._connections, lambda each: each.is_idle())  # noqa: SLF001


def _drop_redis(pool: Any) -> int:  # noqa: ANN401  # redis-py's
    return _drop(pool._available_connections, lambda _: True)  # noqa: SLF001


def _drop(connections: list[Any], is_idle: Callable[[Any], bool]) -> int:
    """Forget idle connections, whose sockets close with them; returns their number."""
    kept = [each for each in connections if not is_idle(each)]
    dropped = len(connections) - len(kept)
    connections[:] = kept
    return dropped


def _close_manager(local: Any) -> int:  # noqa: ANN401  # a thread's part of proxies
    connection = vars(local).pop("connection", None)
    if connection is None:
        return 0
    connection.close()
    return 1


def _close_psycopg(pool: Any) -> int:  # noqa: ANN401  # psycopg_pool's
    if pool.closed:
        return 0
    pool.close()
    # psycopg_pool refuses to open a pool twice.
    pool._opened = False  # noqa: SLF001
    _closed.append(pool)
    return 1


_LIBRARIES: dict[str, tuple[str, str, Callable[[Any], int]]] = {
    "SQLAlchemy": ("sqlalchemy.engine", "Engine", _close_engine),
    "redis": ("redis.connection", "ConnectionPool", _close_redis),
    "HTTP": ("http.client", "HTTPConnection", _close_http),
    "httpx": ("httpcore", "ConnectionPool", _close_httpcore),
    "asynchronous httpx": ("httpcore", "AsyncConnectionPool", _drop_httpcore),
    "asynchronous redis": ("redis.asyncio.connection", "ConnectionPool", _drop_redis),
    "Manager": ("multiprocessing.util", "ForkAwareLocal", _close_manager),
    "psycopg_pool": ("psycopg_pool", "ConnectionPool", _close_psycopg),
}


def _djangos() -> Iterable[Any]:
    """Return Django's connections of this thread.

    Django may be imported without being used (by Sentry, for example).  As long as it is not
    configured no connection can be open, and asking for them would raise.
    """
    database: Any = imported("django.db")
    conf: Any = imported("django.conf")
    if database is None or conf is None or not conf.settings.configured:
        return ()
    try:
        return list(database.connections.all(initialized_only=True))
    except TypeError:  # before Django 4.1
        return list(database.connections.all())


def reconnect_logs(log: Any) -> None:  # noqa: ANN401  # what a Guard has
    """Have a worker's log handlers that write to a socket open another one; raises nothing.

    Not in the parent, where a line that is logged before the fork would open it again.  From
    logging's own list: the handlers are frozen by now.
    """
    handlers: Any = imported("logging.handlers")
    with Guard(log, "connecting the log again", catch=Exception):
        for reference in getattr(logging, "_handlerList", ()) if handlers is not None else ():
            handler = reference()
            for kind, name in (
                (handlers.SocketHandler, "sock"),
                (handlers.SysLogHandler, "socket"),
            ):
                if isinstance(handler, kind) and getattr(handler, name, None) is not None:
                    getattr(handler, name).close()
                    setattr(handler, name, None)
