"""A cache has the calling frame in its key, and with it all that is on the stack."""

from dataclasses import dataclass

import marshmallow_dataclass
from marshmallow.schema import BaseSchema


@dataclass(frozen=True)
class Order:
    name: str


def load():
    schema = marshmallow_dataclass.class_schema(Order, base_schema=BaseSchema)()
    return schema.load({"name": "a"})


def tick(number):
    body = [number] * 5000
    load()
    return body


PER_SECOND = 30
