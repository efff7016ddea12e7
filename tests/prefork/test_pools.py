"""Pools that a warm-up has filled are empty when workers are forked, and every answer is one's own.

With real servers: PostgreSQL, Redis, and HTTP with and without TLS.
"""

import contextlib
import http.server
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.prefork.serving import running
from tests.prefork.test_connections import ask_as_many_users, run
from tests.servers import Service, postgres_server, redis_server

__all__ = ["postgres_server", "redis_server"]  # fixtures

APP = """
    import os
    what, where = os.environ["POOL"], os.environ["SERVER"]
    if what == "sqlalchemy":
        import sqlalchemy
        engine = sqlalchemy.create_engine(where.replace("postgresql", "postgresql+psycopg"))
        def ask(path):
            with engine.connect() as connection:
                return connection.execute(sqlalchemy.text("SELECT :it"), {"it": path}).scalar()
    elif what == "transaction":
        import sqlalchemy.orm
        engine = sqlalchemy.create_engine(where.replace("postgresql", "postgresql+psycopg"))
        session = sqlalchemy.orm.scoped_session(sqlalchemy.orm.sessionmaker(engine))
        def ask(path):
            # One that is never given back.
            try:
                return session.execute(sqlalchemy.text("SELECT :it"), {"it": path}).scalar()
            except sqlalchemy.exc.OperationalError:
                session.rollback()
                return ask(path)
    elif what == "psycopg_pool":
        import psycopg_pool
        pool = psycopg_pool.ConnectionPool(where, min_size=1, max_size=4, open=True)
        def ask(path):
            with pool.connection() as connection:
                return connection.execute("SELECT %s::text", [path]).fetchone()[0]
    elif what == "psycopg":
        import psycopg
        kept = []
        def ask(path):
            try:
                kept.append(kept.pop() if kept else psycopg.connect(where, autocommit=True))
                return kept[-1].execute("SELECT %s::text", [path]).fetchone()[0]
            except psycopg.OperationalError:
                kept.clear()
                return ask(path)
    elif what == "redis":
        import redis
        client = redis.Redis.from_url(where)
        def ask(path):
            return client.echo(path).decode()
    else:
        import requests
        session = requests.Session()
        def ask(path):
            return session.get(where + path).text
    def app(environ, start_response):
        path = environ["PATH_INFO"]
        body = ask(path).encode() if path.startswith("/user/") else b"ok"
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]
"""


class _Echo(http.server.BaseHTTPRequestHandler):
    """Answers with the path that it is asked for, and keeps the connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = self.path.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


class _EchoServer(http.server.ThreadingHTTPServer):
    request_queue_size = 128


@contextlib.contextmanager
def http_server(context: ssl.SSLContext | None = None) -> Iterator[int]:
    with _EchoServer(("127.0.0.1", 0), _Echo) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def check(folder: Path, what: str, where: str, turns: int) -> str:
    """Warm the page, ask 4 workers as 8 users; returns the log."""
    with running(
        folder,
        *("--workers", "4", "--worker-class", "gthread", "--threads", "2"),
        *("--warm-up", "/user/0"),
        app=APP,
        env={"POOL": what, "SERVER": where},
    ) as server:
        right, wrong = ask_as_many_users(server, turns)
        assert wrong == []
        assert right == 8 * turns
        return server.output()


POSTGRES = {
    "sqlalchemy": "SQLAlchemy: 1",
    "transaction": "(opened by the warm-up /user/0)",
    "psycopg_pool": "psycopg_pool: 1",
    "psycopg": "(opened by the warm-up /user/0)",
}


@pytest.mark.slow
@pytest.mark.parametrize(("what", "told"), POSTGRES.items(), ids=POSTGRES)
def test_postgres(postgres_server: Service, tmp_path: Path, what: str, told: str) -> None:
    pytest.importorskip("psycopg")
    pytest.importorskip("sqlalchemy")
    pytest.importorskip("psycopg_pool")
    assert told in check(tmp_path, what, postgres_server.url, 25)


def test_redis(redis_server: Service, tmp_path: Path) -> None:
    pytest.importorskip("redis")
    assert "redis: 1" in check(tmp_path, "redis", redis_server.url, 25)


def test_http(tmp_path: Path) -> None:
    pytest.importorskip("requests")
    with http_server() as port:
        told = check(tmp_path, "requests", f"http://127.0.0.1:{port}", 25)
    assert "closed before the fork: HTTP: 1" in told


def test_https_with_a_session_that_is_not_given_back(tmp_path: Path) -> None:
    """A pool would be emptied; the TLS session that is in use is cut with its socket."""
    pytest.importorskip("cryptography")
    from tests.tasklets.io.certificates import make

    written = make(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(written.localhost)
    with http_server(context) as port:
        run(f"""
            import http.client, ssl
            from cpythonplus.prefork._fork import pools
            context = ssl.create_default_context(cafile={str(written.authority)!r})
            connections.begin()
            connection = http.client.HTTPSConnection("localhost", {port}, context=context)
            def ask(path):
                connection.request("GET", path)
                return connection.getresponse().read().decode()
            connection.request("GET", "/asked")
            assert pools.close_known(Log(), warmed=True, whole=True) == ""
            connections.look("the test")
            def body():
                # Two threads or processes in one session would break its encryption, too.
                raises((ssl.SSLError, OSError, http.client.HTTPException), connection.getresponse)
                connection.close()
                assert ask("/worker") == "/worker"
            in_worker(connections, body)
            assert connection.getresponse().read() == b"/asked"
            assert ask("/parent") == "/parent"
        """)


def test_only_what_is_idle_is_closed() -> None:
    with http_server() as port:
        run(f"""
            import http.client
            from cpythonplus.prefork._fork import pools
            idle = http.client.HTTPConnection("127.0.0.1", {port})
            idle.request("GET", "/idle")
            assert idle.getresponse().read() == b"/idle"
            busy = http.client.HTTPConnection("127.0.0.1", {port})
            busy.request("GET", "/busy")
            never = http.client.HTTPConnection("127.0.0.1", {port})
            for expected in "HTTP: 1", "":
                assert pools.close_known(Log(), warmed=True, whole=True) == expected
            assert busy.getresponse().read() == b"/busy"
            idle.request("GET", "/again")
            assert idle.getresponse().read() == b"/again"
        """)


def test_a_data_base_in_memory_keeps_its_data() -> None:
    pytest.importorskip("sqlalchemy")
    run("""
        import sqlalchemy
        from cpythonplus.prefork._fork import pools
        engine = sqlalchemy.create_engine("sqlite://")
        with engine.begin() as connection:
            connection.execute(sqlalchemy.text("CREATE TABLE kept (it int)"))
        pools.close_known(Log(), warmed=True, whole=True)
        with engine.begin() as connection:
            assert connection.execute(sqlalchemy.text("SELECT * FROM kept")).all() == []
    """)


def test_httpx_closes_the_idle_ones_of_its_pool() -> None:
    """Stand-ins of httpcore's shape: a client that is closed itself could not be used again."""
    run("""
        import types
        from cpythonplus.prefork._fork import pools
        class Connection:
            def __init__(self, idle):
                self.idle, self.closed = idle, False
            def is_idle(self):
                return self.idle
            def close(self):
                self.closed = True
        class ConnectionPool:
            def __init__(self):
                self.connections = [Connection(True), Connection(False)]
        class AsyncConnectionPool:
            def __init__(self):
                self._connections = [Connection(True), Connection(False)]
        sys.modules["httpcore"] = types.SimpleNamespace(
            ConnectionPool=ConnectionPool, AsyncConnectionPool=AsyncConnectionPool)
        pool, other = ConnectionPool(), AsyncConnectionPool()
        said = pools.close_known(Log(), warmed=True, whole=True)
        assert said == "httpx: 1, asynchronous httpx: 1", said
        assert [each.closed for each in pool.connections] == [True, False]
        assert [each.idle for each in other._connections] == [False]
    """)


def test_an_asynchronous_pool_of_redis_does_not_meet_its_ended_loop(redis_server: Service) -> None:
    pytest.importorskip("redis")
    run(f"""
        import asyncio
        import redis.asyncio
        from cpythonplus.prefork._fork import pools
        connections.begin()
        client = redis.asyncio.Redis.from_url({redis_server.url!r})
        assert asyncio.run(client.echo("warmed")) == b"warmed"
        said = pools.close_known(Log(), warmed=True, whole=True)
        assert said == "asynchronous redis: 1", said
        connections.look("the test")
        def body():
            assert asyncio.run(client.echo("worker")) == b"worker"
        in_worker(connections, body)
    """)


def test_proxies_of_a_manager_connect_again() -> None:
    run("""
        import multiprocessing
        from cpythonplus.prefork._fork import pools
        connections.begin()
        with multiprocessing.get_context("fork").Manager() as manager:
            shared = manager.dict(parent=1)
            shared["late"] = 1  # the first call connects
            assert pools.close_known(Log(), warmed=True, whole=True) == "Manager: 1"
            connections.look("the test")
            in_worker(connections, lambda: shared.update(worker=1))
            assert dict(shared) == {"parent": 1, "late": 1, "worker": 1}
    """)


@pytest.mark.any_version
def test_handlers_for_forks_of_multiprocessing_are_called_in_workers(tmp_path: Path) -> None:
    """A queue's thread is lost else; kombu closes the connections that its pools have given out."""
    app = """
        import multiprocessing, os
        from multiprocessing.util import register_after_fork
        class Library:
            pid = 0
        library, queue = Library(), multiprocessing.Queue()
        register_after_fork(library, lambda it: setattr(it, "pid", os.getpid()))
        queue.put("at import")
        assert queue.get(timeout=60) == "at import"
        def app(environ, start_response):
            queue.put("from a worker")
            got = queue.get(timeout=60)
            body = f"{got} {library.pid == os.getpid()}".encode()
            start_response("200 OK", [("Content-Length", str(len(body)))])
            return [body]
    """
    with running(tmp_path, app=app) as server:
        assert server.get() == "from a worker True"
        assert server.stop() == 0


def test_one_pool_that_cannot_be_closed_keeps_no_other_open() -> None:
    said = run("""
        import types
        from cpythonplus.prefork._fork import pools
        class Connection:
            closed = False
            def is_idle(self):
                return True
            def close(self):
                self.closed = True
        class ConnectionPool:
            def __init__(self, connections):
                self.connections = connections
        sys.modules["httpcore"] = types.SimpleNamespace(ConnectionPool=ConnectionPool)
        kept = [ConnectionPool(None), ConnectionPool([Connection()]), ConnectionPool(None)]
        log = Log()
        log.debug = lambda *_, **__: None
        assert pools.close_known(log, warmed=True, whole=True) == "httpx: 1"
        print(*log.lines, sep="\\n")
    """)
    assert said.count("closing a connection of httpx before the fork failed: TypeError") == 2


def test_a_log_that_is_a_connection_goes_on_in_each_worker() -> None:
    run("""
        import logging, logging.handlers
        from cpythonplus.prefork._fork import pools
        listener = listen()
        connections.begin()
        handler = logging.handlers.SysLogHandler(
            listener.getsockname(), socktype=socket.SOCK_STREAM)
        logging.getLogger().addHandler(handler)
        logging.warning("parent")
        kept = listener.accept()[0]
        connections.look("the test")
        def body():
            pools.reconnect_logs(Log())
            logging.warning("worker")
            assert b"worker" in listener.accept()[0].recv(99)
        in_worker(connections, body)
        logging.warning("again")
        assert b"parent" in kept.recv(99)
    """)


@pytest.mark.slow
def test_twenty_thousand_requests(
    postgres_server: Service, redis_server: Service, tmp_path: Path
) -> None:
    for library in ("psycopg", "sqlalchemy", "redis", "requests"):
        pytest.importorskip(library)
    with http_server() as port:
        for what, where in (
            ("sqlalchemy", postgres_server.url),
            ("redis", redis_server.url),
            ("requests", f"http://127.0.0.1:{port}"),
        ):
            check(tmp_path, what, where, 834)
