"""`pop()` keeps a reference to what it takes out."""

from multidict import CIMultiDict


def tick(number):
    headers = CIMultiDict({f"X-Any-{n}": f"value of {n} in {number}" for n in range(10)})
    for key in list(headers.keys()):
        headers.pop(key)


PER_SECOND = 500
