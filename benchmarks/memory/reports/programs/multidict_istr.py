"""Each key that becomes an `istr` keeps a reference that nobody has."""

from multidict import CIMultiDict


def tick(number):
    result = CIMultiDict()
    for key, value in CIMultiDict({f"X-Any-{n}": str(n) for n in range(10)}).items():
        result.add(key, value)


PER_SECOND = 500
