"""The instrumentation keeps the listeners of each engine, and with them the engine."""

from opentelemetry.instrumentation.sqlalchemy import SQLAlchemyInstrumentor

SQLAlchemyInstrumentor().instrument()

import sqlalchemy


def tick(number):
    engine = sqlalchemy.create_engine("sqlite://")
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text("SELECT 1"))
    engine.dispose()


PER_SECOND = 30
