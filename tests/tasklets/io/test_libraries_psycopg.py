"""psycopg, as it is, used by 1,000 tasklets at once, with a real PostgreSQL.

With both of its implementations: libpq by ctypes, and where there is a wheel for it by C, whose own
wait would stop the thread.
"""

import importlib.util
from ctypes.util import find_library

import pytest

from tests import servers
from tests.servers import Service
from tests.support import Child, run_child
from tests.tasklets.io.libraries import needs, run_patched

CONNECT = """
import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

assert psycopg.pq.__impl__ == os.environ["PSYCOPG_IMPL"]
URL = os.environ["URL"]
os.environ["PGAPPNAME"] = NAME = f"test {os.getpid()}"  # of all that connect from here


def pool_of(size, **settings):
    pool = ConnectionPool(URL, min_size=size, max_size=size, timeout=60, open=False, **settings)
    pool.open(wait=True, timeout=60)
    return pool


def connect():
    return psycopg.connect(URL, autocommit=True)


watcher = connect()  # what the server says, on a connection of its own


def ask(question, *values):
    return watcher.execute(question, values).fetchone()[0]


def sleeping():
    return ask(
        "select count(*) from pg_stat_activity"
        " where application_name = %s and wait_event = 'PgSleep'",
        NAME,
    )


def table(name, columns):
    watcher.execute(f"drop table if exists {name}")
    watcher.execute(f"create table {name} ({columns})")
"""


# All are in the server at the same time; who waits with the thread never sees them there.
LOCKED = """
COUNT, LOCK = 20, 1147
watcher.execute("select pg_advisory_lock(%s)", (LOCK,))

def all_wait():
    return ask(
        "select count(*) from pg_locks where objid = %s and locktype = 'advisory' and not granted",
        LOCK,
    ) == COUNT

def unlock(together):
    assert not together.results
    watcher.execute("select pg_advisory_unlock(%s)", (LOCK,))

def work(number):
    with connect() as connection:
        connection.execute("select pg_advisory_lock_shared(%s)", (LOCK,))
        return connection.execute("select %s + 1", (number,)).fetchone()[0]

together = Together(work, COUNT, until=all_wait, then=unlock)
assert together.answers() == list(range(1, COUNT + 1))
"""


@pytest.fixture(params=["python", "binary"])
def implementation(request: pytest.FixtureRequest) -> str:
    needs("psycopg", "psycopg_pool")
    name: str = request.param
    if name == "binary" and importlib.util.find_spec("psycopg_binary") is None:
        pytest.skip("psycopg_binary is not installed")
    if name == "python" and find_library("pq") is None:
        servers.absent("there is no libpq")
    return name


def run_with_postgres(code: str, service: Service, implementation: str) -> Child:
    environment = {"URL": service.url, "PSYCOPG_IMPL": implementation}
    return run_patched(CONNECT + code, env=environment)


@pytest.mark.slow
def test_a_thousand_transactions(postgres_server: Service, implementation: str) -> None:
    run_with_postgres(
        """
COUNT, SIZE = 1_000, 20
table("orders", "number integer primary key, total integer")
pool = pool_of(SIZE)
backends = set()

class Never(Exception):
    pass

def work(number):
    with pool.connection() as connection:
        backends.add(connection.info.backend_pid)
        connection.execute("insert into orders values (%s, 0)", (number,))
        try:
            with connection.transaction():
                connection.execute("update orders set total = 99 where number = %s", (number,))
                raise Never
        except Never:
            pass
        row = connection.execute("select * from orders where number = %s", (number,)).fetchone()
        if number % 4 == 0:
            connection.rollback()
        return row

together = Together(work, COUNT)
assert together.answers() == [(number, 0) for number in range(COUNT)]
assert ask("select count(*) from orders") == COUNT * 3 // 4
assert len(backends) == SIZE
assert together.turns > 3
pool.close()
print("fine")
""",
        postgres_server,
        implementation,
    )


@pytest.mark.slow
def test_a_thousand_wait_for_twenty_that_wait(
    postgres_server: Service, implementation: str
) -> None:
    """Twenty wait for a lock in the server, the others in the pool for a connection."""
    run_with_postgres(
        """
COUNT, SIZE, LOCK = 1_000, 20, 4711
pool = pool_of(SIZE)
waiting = []
watcher.execute("select pg_advisory_lock(%s)", (LOCK,))

def all_wait():
    waiting.append(ask(
        "select count(*) from pg_locks where objid = %s and locktype = 'advisory' and not granted",
        LOCK,
    ))
    return waiting[-1] == SIZE

def unlock(together):
    assert not together.results
    assert pool.get_stats()["requests_waiting"] == COUNT - SIZE
    watcher.execute("select pg_advisory_unlock(%s)", (LOCK,))

def work(number):
    with pool.connection() as connection:
        connection.execute("select pg_advisory_lock_shared(%s)", (LOCK,))
        connection.execute("select pg_advisory_unlock_shared(%s)", (LOCK,))
        return connection.execute("select %s + 1", (number,)).fetchone()[0]

together = Together(work, COUNT, until=all_wait, then=unlock)
assert together.answers() == list(range(1, COUNT + 1))
assert max(waiting) == SIZE
pool.close()
print("fine")
""",
        postgres_server,
        implementation,
    )


def test_queries_wait_at_once(postgres_server: Service, implementation: str) -> None:
    run_with_postgres(
        LOCKED
        + """
def other(number):
    with connect() as connection:
        return connection.execute("select %s", (number,)).fetchone()[0]

before = descriptors()
assert Together(other, 20).answers() == list(range(20))
assert descriptors() <= before
print("fine")
""",
        postgres_server,
        implementation,
    )


def test_listen_and_notify(postgres_server: Service, implementation: str) -> None:
    run_with_postgres(
        """
COUNT = 20
listening = 0

def notify(together):
    for number in range(3):
        watcher.execute("select pg_notify('news', %s)", (str(number),))

def work(number):
    global listening
    with connect() as connection:
        connection.execute("listen news")
        listening += 1
        return [note.payload for note in connection.notifies(timeout=60, stop_after=3)]

together = Together(work, COUNT, until=lambda: listening == COUNT, then=notify)
# More than three, where two of them came in one packet.
assert {tuple(notes[:3]) for notes in together.answers()} == {("0", "1", "2")}
with connect() as connection:
    connection.execute("listen nothing")
    assert list(connection.notifies(timeout=0.05)) == []
print("fine")
""",
        postgres_server,
        implementation,
    )


def test_imported_before_the_patch(postgres_server: Service, implementation: str) -> None:
    run_patched(
        CONNECT + LOCKED + 'print("fine")\n',
        first="import psycopg",
        env={"URL": postgres_server.url, "PSYCOPG_IMPL": implementation},
    )


def test_unpatch_has_psycopg_wait_as_ever(implementation: str) -> None:
    child = run_child(
        """
        import os
        from cpythonplus.tasklets import io

        io.patch()
        io.unpatch()
        assert "PSYCOPG_WAIT_FUNC" not in os.environ
        import psycopg.waiting
        before = psycopg.waiting.wait
        io.patch()
        assert psycopg.waiting.wait is psycopg.waiting.wait_poll
        io.unpatch()
        assert psycopg.waiting.wait is before

        os.environ["PSYCOPG_WAIT_FUNC"] = "wait_epoll"  # somebody's choice
        io.patch()
        assert psycopg.waiting.wait is before
        io.unpatch()
        assert os.environ["PSYCOPG_WAIT_FUNC"] == "wait_epoll"
        """,
        env={"PSYCOPG_IMPL": implementation},
    )
    assert not child.err, child


def test_one_connection_is_shared(postgres_server: Service, implementation: str) -> None:
    """It lets one at a time use it, by a lock for which tasklets wait."""
    run_with_postgres(
        """
def work(number):
    with watcher.cursor() as cursor:
        cursor.execute("select %s, pg_sleep(0.001)", (number,))
        return cursor.fetchone()[0]

assert Together(work, 50).answers() == list(range(50))
print("fine")
""",
        postgres_server,
        implementation,
    )


def test_copy_and_a_pipeline(postgres_server: Service, implementation: str) -> None:
    run_with_postgres(
        """
ROWS = 500
table("rows", "who integer, number integer, filling text")

def work(number):
    with connect() as connection:
        with connection.cursor().copy("copy rows from stdin") as copy:
            for row in range(ROWS):
                copy.write_row((number, row, "x" * 200))
        with connection.pipeline():
            cursors = [connection.execute("select %s::int", (n,)) for n in range(10)]
            several = [cursor.fetchone()[0] for cursor in cursors]
        with connection.transaction(), connection.cursor("server_side") as cursor:
            cursor.itersize = 100
            cursor.execute("select number from rows where who = %s order by 1", (number,))
            return several, [row[0] for row in cursor]

assert Together(work, 10).answers() == [(list(range(10)), list(range(ROWS)))] * 10
assert ask("select count(*) from rows") == 10 * ROWS
print("fine")
""",
        postgres_server,
        implementation,
    )


def test_errors_are_those_of_psycopg(postgres_server: Service, implementation: str) -> None:
    run_with_postgres(
        """
import socket
taken = socket.socket()  # does not listen, and nobody else can at its port
taken.bind(("127.0.0.1", 0))
nobody = f"postgresql://postgres@127.0.0.1:{taken.getsockname()[1]}/postgres"

pool = pool_of(2)

def hurried():
    with connect() as connection:
        connection.execute("set statement_timeout = 50")
        connection.execute("select pg_sleep(100)")

def ended():
    with connect() as connection:
        connection.execute("select pg_terminate_backend(pg_backend_pid()), pg_sleep(100)")

def wrong():
    with connect() as connection:
        connection.execute("select 1 / 0")

def crowded():
    with pool.connection(), pool.connection():
        with pool.connection(timeout=0.05):
            pass

expected = {
    hurried: "QueryCanceled",
    ended: "AdminShutdown",
    wrong: "DivisionByZero",
    lambda: psycopg.connect(nobody): "OperationalError",
}
kinds = list(expected)
together = Together(lambda number: raised(kinds[number % len(kinds)]), 4 * len(kinds))
assert together.answers() == list(expected.values()) * 4, together.answers()
assert together.turns > 3
assert raised(crowded) == "PoolTimeout"
with pool.connection() as connection:
    assert connection.execute("select 1").fetchone() == (1,)
pool.close()
print("fine")
""",
        postgres_server,
        implementation,
    )


@pytest.mark.slow
def test_a_server_that_does_not_answer(postgres_server: Service, implementation: str) -> None:
    """The shortest time-out that there is for connecting is two seconds."""
    run_with_postgres(
        """
import socket
mute = socket.create_server(("127.0.0.1", 0))
silent = f"postgresql://postgres@127.0.0.1:{mute.getsockname()[1]}/postgres"

def hurried():
    psycopg.connect(silent, connect_timeout=2)

together = Together(lambda number: raised(hurried), 10)
assert together.answers() == ["ConnectionTimeout"] * 10
assert together.turns > 3
mute.close()
print("fine")
""",
        postgres_server,
        implementation,
    )


def test_a_pool_gets_over_a_killed_tasklet(postgres_server: Service, implementation: str) -> None:
    run_with_postgres(
        """
import logging
logging.disable()  # the pool tells of connections that it gives up
SIZE = 5
pool = pool_of(SIZE)

def kill(together):
    for one in together.tasklets:
        one.kill()

def work(number):
    with pool.connection() as connection:
        connection.execute("select pg_sleep(100)")

try:
    Together(work, SIZE, until=lambda: sleeping() == SIZE, then=kill)
except BaseExceptionGroup as group:
    assert {type(each) for each in group.exceptions} == {TaskletExit}, group

def again(number):
    with pool.connection() as connection:
        return connection.execute("select %s + 1", (number,)).fetchone()[0]

assert Together(again, 50).answers() == list(range(1, 51))
pool.close()
# The server does not look whether the client is there while it sleeps.
watcher.execute(
    "select pg_terminate_backend(pid) from pg_stat_activity"
    " where application_name = %s and pid <> pg_backend_pid()",
    (NAME,),
)
print("fine")
""",
        postgres_server,
        implementation,
    )


def test_the_server_ends_in_the_middle(implementation: str) -> None:
    with servers.postgres() as service:
        run_patched(
            CONNECT
            + """
import signal
COUNT = 20

def end(together):
    os.kill(int(os.environ["PID"]), signal.SIGQUIT)

def work(number):
    with connect() as connection:
        connection.execute("select pg_sleep(100)")

together = Together(
    lambda number: raised(work, 0), COUNT, until=lambda: sleeping() == COUNT, then=end
)
assert set(together.answers()) <= {"OperationalError", "AdminShutdown", "CrashShutdown"}
together = Together(lambda number: raised(connect), COUNT)
assert set(together.answers()) <= {"OperationalError", "CannotConnectNow"}
print("fine")
""",
            env={
                "URL": service.url,
                "PSYCOPG_IMPL": implementation,
                "PID": str(service.server.process.pid),
            },
        )
