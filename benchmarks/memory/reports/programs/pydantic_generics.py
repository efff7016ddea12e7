"""A generic model keeps each of its parameters, and what was made of it."""

from typing import Generic, TypeVar

from pydantic import create_model
from pydantic.generics import GenericModel

T = TypeVar("T")


class Page(GenericModel, Generic[T]):
    items: list[T]


def tick(number):
    item = create_model(f"Item{number}", name=(str, ...))
    Page[item](items=[{"name": "one"}])


PER_SECOND = 40
