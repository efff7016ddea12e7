"""Classes are mapped again for each tenant, and their registry is disposed."""

import warnings

import sqlalchemy as sa
from sqlalchemy.orm import configure_mappers, registry, relationship

warnings.simplefilter("ignore")


def build():
    reg = registry()
    base = reg.generate_base()

    class Parent(base):
        __tablename__ = "parent"
        id = sa.Column(sa.Integer, primary_key=True)
        name = sa.Column(sa.String(20))

    class Child(base):
        __tablename__ = "child"
        id = sa.Column(sa.Integer, primary_key=True)
        parent_id = sa.Column(sa.ForeignKey("parent.id"))
        parent = relationship(Parent)
        other = relationship(Parent)

    sa.Index("ix_parent", Parent.id.desc())
    configure_mappers()
    return reg


def tick(number):
    build().dispose()


PER_SECOND = 8
