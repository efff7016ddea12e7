"""Flask and SQLAlchemy: one row for each request, over a pool that was used at import already."""

import os

from flask import Flask
from sqlalchemy import create_engine, event, func, select, text
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlalchemy.pool import QueuePool


class Base(DeclarativeBase):
    pass


class Visit(Base):
    __tablename__ = "visits"
    id: Mapped[int] = mapped_column(primary_key=True)
    pid: Mapped[int]


engine = create_engine(
    "sqlite:///visits.db", poolclass=QueuePool, pool_size=3, connect_args={"timeout": 10}
)


# From SQLAlchemy's documentation, "Using Connection Pools with Multiprocessing": a connection that
# came over a fork is replaced.
@event.listens_for(engine, "connect")
def connected(connection, record):
    record.info["pid"] = os.getpid()


@event.listens_for(engine, "checkout")
def checked_out(connection, record, proxy):
    if record.info["pid"] != os.getpid():
        record.dbapi_connection = proxy.dbapi_connection = None
        raise DisconnectionError("from another process")


with engine.begin() as first:
    first.execute(text("PRAGMA journal_mode=WAL"))
    first.execute(text("CREATE TABLE IF NOT EXISTS visits (id INTEGER PRIMARY KEY, pid INTEGER)"))

app = Flask(__name__)


@app.get("/")
def visit():
    with Session(engine) as session:
        session.add(Visit(pid=os.getpid()))
        session.commit()
        mine = session.scalar(select(func.count()).where(Visit.pid == os.getpid()))
    return {"pid": os.getpid(), "right": mine > 0}
