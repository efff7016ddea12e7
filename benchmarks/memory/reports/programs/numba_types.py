"""Each call with an argument that has no fingerprint appends its type to a list."""

from numba import jit


@jit("none(unicode_type)")
def foo(x):
    pass


def tick(number):
    for _ in range(100):
        foo("x")


PER_SECOND = 200
