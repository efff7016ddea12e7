"""SQLAlchemy: its core and its mapper, on SQLite in memory."""

import sqlalchemy
from sqlalchemy import event, exc, orm, pool

from survey.drivers.support import fails

_ENGINE = sqlalchemy.create_engine("sqlite://", poolclass=pool.StaticPool)


class _Base(orm.DeclarativeBase):
    pass


class _Shelf(_Base):
    __tablename__ = "shelf"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    books: orm.Mapped[list["_Book"]] = orm.relationship(back_populates="shelf")


class _Book(_Base):
    __tablename__ = "book"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sqlalchemy.String(20), unique=True)
    shelf_id: orm.Mapped[int | None] = orm.mapped_column(sqlalchemy.ForeignKey("shelf.id"))
    shelf: orm.Mapped[_Shelf | None] = orm.relationship(back_populates="books")


_Base.metadata.create_all(_ENGINE)
with orm.Session(_ENGINE) as _session:
    _session.add(_Shelf(id=1, books=[_Book(id=n, name=f"book {n}") for n in range(1, 4)]))
    _session.commit()


def _refuse(*_: object, **__: object) -> None:
    raise ValueError("refused")


def select() -> None:
    with _ENGINE.connect() as connection:
        connection.execute(sqlalchemy.text("select :n"), {"n": 1}).all()


def transaction() -> None:
    with _ENGINE.begin() as connection:
        connection.execute(sqlalchemy.update(_Book).where(_Book.id == 1).values(name="book 1"))


def query() -> None:
    with orm.Session(_ENGINE) as session:
        session.scalars(sqlalchemy.select(_Book).where(_Book.id < 3).order_by(_Book.name)).all()


def get() -> None:
    with orm.Session(_ENGINE) as session:
        session.get(_Book, 1)


def lazy_load() -> None:
    with orm.Session(_ENGINE) as session:
        assert session.get_one(_Shelf, 1).books


def eager_load() -> None:
    with orm.Session(_ENGINE) as session:
        session.scalars(sqlalchemy.select(_Shelf).options(orm.selectinload(_Shelf.books))).all()
        session.scalars(
            sqlalchemy.select(_Shelf).options(orm.joinedload(_Shelf.books))
        ).unique().all()


def old_query() -> None:
    with orm.Session(_ENGINE) as session:
        session.query(_Book).filter_by(name="book 1").one()


def add_and_roll_back() -> None:
    with orm.Session(_ENGINE) as session:
        session.add(_Shelf(books=[_Book(name="new")]))
        session.flush()
        session.rollback()


def add_and_delete() -> None:
    with orm.Session(_ENGINE) as session, session.begin():
        shelf = _Shelf(books=[_Book(name="new")])
        session.add(shelf)
        session.flush()
        session.delete(shelf.books[0])
        session.delete(shelf)


def savepoint() -> None:
    with orm.Session(_ENGINE) as session, session.begin_nested():
        session.get(_Book, 1)


def scoped_session() -> None:
    session = orm.scoped_session(orm.sessionmaker(_ENGINE))
    session.get(_Book, 1)
    session.remove()


def new_engine() -> None:
    engine = sqlalchemy.create_engine("sqlite://")
    with engine.connect():
        pass
    engine.dispose()


def new_table() -> None:
    sqlalchemy.Table("t", sqlalchemy.MetaData(), sqlalchemy.Column("c", sqlalchemy.Integer))


def reflect() -> None:
    sqlalchemy.inspect(_ENGINE).get_columns("book")
    sqlalchemy.MetaData().reflect(_ENGINE)


def alias() -> None:
    other = orm.aliased(_Book)
    str(sqlalchemy.select(other).join(other.shelf))


def wrong_sql() -> None:
    with _ENGINE.connect() as connection:
        fails(exc.OperationalError, lambda: connection.execute(sqlalchemy.text("select from")))


def missing_parameter() -> None:
    with _ENGINE.connect() as connection:
        fails(exc.StatementError, lambda: connection.execute(sqlalchemy.text("select :n"), {}))


def duplicate_row() -> None:
    values = sqlalchemy.insert(_Book).values(id=1, name="again")
    with _ENGINE.connect() as connection:
        fails(exc.IntegrityError, lambda: connection.execute(values))


def duplicate_object() -> None:
    with orm.Session(_ENGINE) as session:
        session.add(_Book(name="book 1"))
        fails(exc.IntegrityError, session.flush)


def failed_commit() -> None:
    with orm.Session(_ENGINE) as session:
        session.add(_Book(name="book 1"))
        fails(exc.IntegrityError, session.commit)
        session.rollback()


def failed_transaction() -> None:
    def work() -> None:
        with _ENGINE.begin() as connection:
            connection.execute(sqlalchemy.text("select 1"))
            _refuse()

    fails(ValueError, work)


def failed_session() -> None:
    def work() -> None:
        with orm.Session(_ENGINE) as session, session.begin():
            session.get(_Book, 1)
            _refuse()

    fails(ValueError, work)


def failed_savepoint() -> None:
    def work() -> None:
        with orm.Session(_ENGINE) as session, session.begin_nested():
            _refuse()

    fails(ValueError, work)


def nothing_found() -> None:
    with orm.Session(_ENGINE) as session:
        fails(exc.NoResultFound, lambda: session.get_one(_Book, 1000))
        fails(
            exc.NoResultFound,
            lambda: session.scalars(sqlalchemy.select(_Book).where(_Book.id > 1000)).one(),
        )


def too_much_found() -> None:
    with orm.Session(_ENGINE) as session:
        fails(
            exc.MultipleResultsFound,
            lambda: session.scalars(sqlalchemy.select(_Book)).one(),
        )


def detached() -> None:
    with orm.Session(_ENGINE) as session:
        book = session.get_one(_Book, 1)
    fails(orm.exc.DetachedInstanceError, lambda: book.shelf)


def inactive_session() -> None:
    with orm.Session(_ENGINE) as session:
        session.add(_Book(name="book 1"))
        fails(exc.IntegrityError, session.flush)
        fails(exc.SQLAlchemyError, lambda: session.add(_Book(name="book 2")) or session.flush())


def closed_result() -> None:
    with _ENGINE.connect() as connection:
        result = connection.execute(sqlalchemy.text("select 1"))
        result.close()
        fails(exc.ResourceClosedError, result.all)


def cannot_connect() -> None:
    engine = sqlalchemy.create_engine("sqlite:////no/such/folder/base")
    fails(exc.OperationalError, engine.connect)


def full_pool() -> None:
    engine = sqlalchemy.create_engine(
        "sqlite://", poolclass=pool.QueuePool, pool_size=1, max_overflow=0, pool_timeout=0.001
    )
    with engine.connect():
        fails(exc.TimeoutError, engine.connect)
    engine.dispose()


def failing_listener() -> None:
    engine = sqlalchemy.create_engine("sqlite://")
    event.listen(engine, "before_cursor_execute", _refuse)
    with engine.connect() as connection:
        fails(ValueError, lambda: connection.execute(sqlalchemy.text("select 1")))
    engine.dispose()


def wrong_argument() -> None:
    fails(exc.ArgumentError, lambda: sqlalchemy.select(3).where("x"))


def cannot_compile() -> None:
    fails(
        exc.CompileError, lambda: str(sqlalchemy.insert(_Book).values(nothing=1).compile(_ENGINE))
    )


def no_such_table() -> None:
    fails(
        exc.NoSuchTableError,
        lambda: sqlalchemy.Table("none", sqlalchemy.MetaData(), autoload_with=_ENGINE),
    )


def no_such_dialect() -> None:
    fails(exc.NoSuchModuleError, lambda: sqlalchemy.create_engine("nothing://"))


ORDINARY = [
    select,
    transaction,
    query,
    get,
    lazy_load,
    eager_load,
    old_query,
    add_and_roll_back,
    add_and_delete,
    savepoint,
    scoped_session,
    new_engine,
    new_table,
    reflect,
    alias,
]
ERRORS = [
    wrong_sql,
    missing_parameter,
    duplicate_row,
    duplicate_object,
    failed_commit,
    failed_transaction,
    failed_session,
    failed_savepoint,
    nothing_found,
    too_much_found,
    detached,
    inactive_session,
    closed_result,
    cannot_connect,
    full_pool,
    failing_listener,
    wrong_argument,
    cannot_compile,
    no_such_table,
    no_such_dialect,
]
