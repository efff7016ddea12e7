"""A validator that is made in a request is never freed: native code holds a cycle."""

from pydantic import BaseModel, TypeAdapter


class Price(BaseModel):
    pass


class Order(BaseModel):
    children: list["Order"]
    price: Price


def tick(number):
    TypeAdapter(list[Order]).validate_python([{"children": [], "price": Price()}])


PER_SECOND = 60
