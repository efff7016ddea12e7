"""The values of a map in RESP3 keep a reference that nobody has."""

import hiredis

reader = hiredis.Reader()


def tick(number):
    text = b"x" * 300 + str(number).encode()
    reader.feed(b"%%1\r\n+name\r\n$%d\r\n%s\r\n" % (len(text), text))
    reader.gets()


PER_SECOND = 2000
