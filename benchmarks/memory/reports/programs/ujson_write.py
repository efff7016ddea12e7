"""`dump()` keeps the text that it could not write."""

from contextlib import suppress

import ujson


class Closed:
    def write(self, text):
        raise OSError("closed")


def tick(number):
    with suppress(OSError):
        ujson.dump({"number": number, "lines": list(range(2000))}, Closed())


PER_SECOND = 100
