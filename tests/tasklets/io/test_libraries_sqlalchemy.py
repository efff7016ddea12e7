"""SQLAlchemy over psycopg, as they are, used by 1,000 tasklets at once, with a real PostgreSQL."""

from ctypes.util import find_library
from pathlib import Path

import pytest

from tests import servers
from tests.servers import Service
from tests.support import Child
from tests.tasklets.io.libraries import needs, run_patched

MODEL = """
from sqlalchemy import create_engine, event, exc, select, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, scoped_session, sessionmaker
from sqlalchemy.pool import QueuePool, StaticPool

os.environ["PGAPPNAME"] = NAME = f"test {os.getpid()}"  # of all that connect from here
URL = os.environ["URL"].replace("postgresql:", "postgresql+psycopg:")


def engine_of(size, **settings):
    settings = {"max_overflow": 0, "pool_timeout": 60, **settings}
    return create_engine(URL, poolclass=QueuePool, pool_size=size, **settings)


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = os.environ["TABLE"]
    number: Mapped[int] = mapped_column(primary_key=True)
    total: Mapped[int]
"""


@pytest.fixture
def libraries() -> None:
    needs("sqlalchemy", "psycopg")
    if find_library("pq") is None:
        servers.absent("there is no libpq")


def run_with_sqlalchemy(code: str, service: Service, table: str) -> Child:
    environment = {"URL": service.url, "TABLE": table, "PSYCOPG_IMPL": "python"}
    return run_patched(MODEL + code, env=environment)


@pytest.mark.slow
@pytest.mark.usefixtures("libraries")
def test_a_thousand_sessions(postgres_server: Service) -> None:
    """The session that a registry has for each thread it has for each tasklet."""
    run_with_sqlalchemy(
        """
COUNT, SIZE = 1_000, 20
engine = engine_of(SIZE)
Base.metadata.drop_all(engine)
Base.metadata.create_all(engine)
Session = scoped_session(sessionmaker(engine))
mine = {}
out = most = 0

@event.listens_for(engine, "checkout")
def taken(*_):
    global out, most
    out += 1
    most = max(most, out)

@event.listens_for(engine, "checkin")
def given_back(*_):
    global out
    out -= 1

def work(number):
    mine[number] = Session()
    Session.add(Order(number=number, total=number * 2))
    Session.flush()
    assert Session() is mine[number]
    total = Session.scalars(select(Order).where(Order.number == number)).one().total
    Session.commit() if number % 4 else Session.rollback()
    assert Session() is mine[number]
    Session.remove()
    return total

together = Together(work, COUNT)
assert together.answers() == [number * 2 for number in range(COUNT)]
assert len(set(map(id, mine.values()))) == COUNT
assert most == SIZE and out == 0
with engine.connect() as connection:
    assert connection.scalar(text(f"select count(*) from {Order.__tablename__}")) == COUNT * 3 / 4
assert together.turns > 3
engine.dispose()
print("fine")
""",
        postgres_server,
        "a_thousand",
    )


@pytest.mark.usefixtures("libraries")
def test_waits_overlap_in_the_server(postgres_server: Service) -> None:
    run_with_sqlalchemy(
        """
COUNT, SIZE, LOCK = 200, 10, 815
engine = engine_of(SIZE)
watcher = create_engine(URL).connect().execution_options(isolation_level="AUTOCOMMIT")
watcher.execute(text(f"select pg_advisory_lock({LOCK})"))
waiting = []

def all_wait():
    waiting.append(watcher.scalar(text(
        f"select count(*) from pg_locks where objid = {LOCK} and locktype = 'advisory'"
        " and not granted"
    )))
    return waiting[-1] == SIZE

def unlock(together):
    assert not together.results
    watcher.execute(text(f"select pg_advisory_unlock({LOCK})"))

def work(number):
    with engine.begin() as connection:
        connection.execute(text(f"select pg_advisory_xact_lock_shared({LOCK})"))
        return connection.scalar(text("select :number + 1"), {"number": number})

together = Together(work, COUNT, until=all_wait, then=unlock)
assert together.answers() == list(range(1, COUNT + 1))
assert max(waiting) == SIZE
engine.dispose()
watcher.close()
print("fine")
""",
        postgres_server,
        "overlap",
    )


@pytest.mark.usefixtures("libraries")
def test_errors_are_those_of_sqlalchemy(postgres_server: Service) -> None:
    run_with_sqlalchemy(
        """
import socket
taken = socket.socket()  # does not listen, and nobody else can at its port
taken.bind(("127.0.0.1", 0))
nobody = create_engine(f"postgresql+psycopg://postgres@127.0.0.1:{taken.getsockname()[1]}/x")
engine = engine_of(20)
small = engine_of(1, pool_timeout=0.05)

def run(question):
    with engine.connect() as connection:
        return connection.scalar(text(question))

def ended():
    run("select pg_terminate_backend(pg_backend_pid()), pg_sleep(100)")

def late():
    with small.connect() as connection:
        pass

expected = {
    lambda: run("select 1 / 0"): "DataError",
    ended: "OperationalError",
    nobody.connect: "OperationalError",
    late: "TimeoutError",
}
kinds = list(expected)
with small.connect():
    together = Together(lambda number: raised(kinds[number % 4]), 40)
assert together.answers() == list(expected.values()) * 10, together.answers()
# The pools have got over it.
assert Together(lambda n: run(f"select {n}"), 40).answers() == list(range(40))
late()
for each in (engine, small, nobody):
    each.dispose()
print("fine")
""",
        postgres_server,
        "errors",
    )


@pytest.mark.usefixtures("libraries")
def test_a_pool_gets_over_a_killed_tasklet(postgres_server: Service) -> None:
    run_with_sqlalchemy(
        """
SIZE = 5
engine = engine_of(SIZE)
watcher = create_engine(URL).connect().execution_options(isolation_level="AUTOCOMMIT")

def all_wait():
    return watcher.scalar(text(
        "select count(*) from pg_stat_activity where wait_event = 'PgSleep'"
        f" and application_name = '{NAME}'"
    )) == SIZE

def kill(together):
    for one in together.tasklets[:SIZE]:
        one.kill()

def work(number):
    with engine.connect() as connection:
        if number < SIZE:
            connection.execute(text("select pg_sleep(100)"))
        return connection.scalar(text(f"select {number}"))

try:
    Together(work, 4 * SIZE, until=all_wait, then=kill)
except BaseExceptionGroup as group:
    assert {type(each) for each in group.exceptions} == {TaskletExit}, group
    assert f"{SIZE} of them" in str(group)
assert Together(lambda n: work(n + SIZE), 50).answers() == list(range(SIZE, 50 + SIZE))
assert engine.pool.checkedout() == 0
engine.dispose()
# The server does not look whether the client is there while it sleeps.
watcher.execute(text(
    "select pg_terminate_backend(pid) from pg_stat_activity"
    f" where application_name = '{NAME}' and pid <> pg_backend_pid()"
))
watcher.close()
print("fine")
""",
        postgres_server,
        "killed",
    )


def test_sqlite(tmp_path: Path) -> None:
    """A tasklet is in its thread, as sqlite3 wants it; what is for a thread is for a tasklet."""
    needs("sqlalchemy")
    run_patched(
        MODEL
        + """
# One connection for all, and a lock around each use: two transactions would be one.
engine = create_engine("sqlite://", poolclass=StaticPool)
Base.metadata.create_all(engine)
guard = threading.Lock()

def work(number):
    with guard, engine.begin() as connection:
        connection.execute(text(f"insert into orders values ({number}, {number})"))
        time.sleep(0)
        return connection.scalar(text(f"select total from orders where number = {number}"))

assert Together(work, 100).answers() == list(range(100))
engine.dispose()

# In a file, each with a connection of its own, and one writer at a time.
engine = create_engine(os.environ["FILE"], pool_size=20)
Base.metadata.create_all(engine)
assert Together(work, 100).answers() == list(range(100))
engine.dispose()

# Without StaticPool a database in memory is the thread's: each tasklet has one, an empty one.
engine = create_engine("sqlite://")
Base.metadata.create_all(engine)
assert Together(lambda number: raised(work, number), 3).answers() == ["OperationalError"] * 3
engine.dispose()
print("fine")
""",
        env={"URL": "", "TABLE": "orders", "FILE": f"sqlite:///{tmp_path}/orders.db"},
    )
