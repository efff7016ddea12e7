"""A field that is an iterable keeps what it was given, in native code."""

from collections.abc import Iterable

from pydantic import BaseModel


class Trace(BaseModel):
    elements: Iterable[int]


def tick(number):
    Trace(elements=[number, number + 1, number + 2])


PER_SECOND = 1000
